/* SPDX-License-Identifier: Apache-2.0 */
#include "thread_of_launcher.h"

#include "complaint.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>

#define STACK_BYTES (64u * 1024)

void launcher_thread_begin(void *(*run)(void *), void *argument) {
  pthread_attr_t attributes;
  pthread_t thread;
  sigset_t all, before;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &before);
  int error = pthread_create(&thread, &attributes, run, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  pthread_attr_destroy(&attributes);
  if (error != 0)
    fail(EXIT_OURS, "cannot watch the program's processes: %s", strerror(error));
}
