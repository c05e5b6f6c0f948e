/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_watch.h"

#include "complaint.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers may be. */
#define CALL_PIDFD_OPEN 434
#define STACK_BYTES (64u * 1024)

static struct control_area *area;

static void *await_end(void *argument) {
  int32_t process = (int32_t)(intptr_t)argument;
  struct pollfd end = {.fd = (int)syscall(CALL_PIDFD_OPEN, process, 0), .events = POLLIN};
  while (end.fd >= 0 && poll(&end, 1, -1) <= 0)
    ;
  supply_table_end(&area->supplies, process);
  tree_end(&area->tree, process);
  if (end.fd >= 0)
    close(end.fd);
  return NULL;
}

static void begin(void *(*run)(void *), void *argument) {
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

static void *watch(void *argument) {
  static int32_t watched[TREE_PLACES_MAX];
  struct tree *tree = &area->tree;
  (void)argument;
  for (;;) {
    uint32_t joined = __atomic_load_n(&tree->joined, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < tree->used; i++) {
      int32_t process = __atomic_load_n(&tree->place[i].process, __ATOMIC_SEQ_CST);
      if (process != watched[i] && process != 0)
        begin(await_end, (void *)(intptr_t)process);
      watched[i] = process;
    }
    syscall(SYS_futex, &tree->joined, FUTEX_WAIT, joined, NULL);
  }
  return NULL;
}

void tree_watch_begin(struct control_area *control) {
  area = control;
  begin(watch, NULL);
}
