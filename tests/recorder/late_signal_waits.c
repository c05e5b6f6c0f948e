/* SPDX-License-Identifier: Apache-2.0 */
/* Signals of the process, in each way that a thread takes one which the kernel may have given to
 * another, while a third one stops all again and again. No thread waits before they come. Prints
 * who took which. */
#include "stops.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SENT 20
#define QUEUED 300

static sigset_t all, none, terminate;
static int handled, handled_by, is_ready;

static int own_number(void) { return (int)syscall(SYS_gettid); }

static void handle(int number) {
  (void)number;
  handled_by = own_number();
  __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *run(void *(*begin)(void *), void *argument) {
  pthread_t thread;
  void *result;
  pthread_create(&thread, NULL, begin, argument);
  pthread_join(thread, &result);
  return result;
}

static int is_pending(int number) {
  sigset_t pending;
  sigpending(&pending);
  return sigismember(&pending, number);
}

static void *take_all(void *unused) {
  siginfo_t information;
  for (int i = 0; i < 4; i++) {
    int number = sigwaitinfo(&all, &information);
    printf("late %d %d\n", number,
           information.si_code == SI_QUEUE ? information.si_value.sival_int : 0);
  }
  return unused;
}

static void by_late_thread(void) {
  for (int value = 1; value <= 3; value++)
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = value});
  kill(getpid(), SIGTERM);
  kill(getpid(), SIGTERM);
  printf("pending %d %d %d\n", is_pending(SIGTERM), is_pending(SIGRTMIN), is_pending(SIGUSR1));
  run(take_all, NULL);
  printf("pending %d\n", is_pending(SIGTERM));
}

static void unblock(void) { pthread_sigmask(SIG_UNBLOCK, &terminate, NULL); }

static void suspend(void) { sigsuspend(&none); }

static void by_ppoll(void) { ppoll(NULL, 0, NULL, &none); }

static void by_pselect(void) { pselect(0, NULL, NULL, NULL, NULL, &none); }

static void by_epoll(void) {
  struct epoll_event event;
  int set = epoll_create1(0);
  epoll_pwait(set, &event, 1, -1, &none);
  close(set);
}

/* Likewise where the kernel has it (5.11). */
static void by_epoll_pwait2(void) {
  struct epoll_event event;
  struct timespec limit = {.tv_sec = 30};
  int set = epoll_create1(0);
  if (syscall(SYS_epoll_pwait2, set, &event, 1, &limit, &none, 8) < 0 && errno == ENOSYS)
    by_ppoll();
  close(set);
}

/* The handler's return unblocks it. */
static void by_sigreturn(void) {
  unblock();
  raise(SIGUSR1);
}

static void send_in_handler(int number) {
  (void)number;
  kill(getpid(), SIGTERM);
  for (int i = 0; i < 100 && !is_pending(SIGTERM); i++)
    usleep(1000);
}

static void *take(void *unblocks) {
  ((void (*)(void))(uintptr_t)unblocks)();
  printf(" %d", handled_by == own_number());
  return NULL;
}

static void by_handler(const char *name, void (*unblocks)(void), int is_sent) {
  handled = 0;
  handled_by = 0;
  if (is_sent)
    kill(getpid(), SIGTERM);
  printf("%s", name);
  run(take, (void *)(uintptr_t)unblocks);
  printf(" %d\n", handled);
}

static void *compute(void *unused) {
  unblock();
  __atomic_add_fetch(&is_ready, 1, __ATOMIC_RELAXED);
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED))
    usleep(1000);
  return unused;
}

/* Three threads do not block it: one of them gets it. */
static void once_each(void) {
  pthread_t thread[3];
  handled = 0;
  for (int i = 0; i < 3; i++)
    pthread_create(&thread[i], NULL, compute, NULL);
  while (__atomic_load_n(&is_ready, __ATOMIC_RELAXED) < 3)
    usleep(1000);
  for (int i = 1; i <= SENT; i++) {
    kill(getpid(), SIGTERM);
    while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < i)
      usleep(1000);
    usleep(2000); /* Another one would come now. */
  }
  printf("once %d\n", handled);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++)
    pthread_join(thread[i], NULL);
}

static void *send_often(void *receiver) {
  for (int i = 0; i < QUEUED; i++) {
    while (pthread_sigqueue(*(pthread_t *)receiver, SIGRTMIN, (union sigval){0}) != 0)
      usleep(100);
  }
  return NULL;
}

/* Each that is queued comes, also while another one is delivered. */
static void none_is_lost(void) {
  pthread_t sender[2], own = pthread_self();
  sigset_t queued;
  sigemptyset(&queued);
  sigaddset(&queued, SIGRTMIN);
  handled = 0;
  for (int i = 0; i < 2; i++)
    pthread_create(&sender[i], NULL, send_often, &own);
  pthread_sigmask(SIG_UNBLOCK, &queued, NULL);
  for (int i = 0; i < 2; i++)
    pthread_join(sender[i], NULL);
  while (__atomic_load_n(&handled, __ATOMIC_RELAXED) < 2 * QUEUED)
    usleep(1000);
  printf("queued %d\n", handled);
}

int main(void) {
  pthread_t stopper;
  setvbuf(stdout, NULL, _IOLBF, 0);
  sigfillset(&all);
  sigemptyset(&none);
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = handle}, NULL);
  sigaction(SIGRTMIN, &(struct sigaction){.sa_handler = handle}, NULL);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = send_in_handler, .sa_mask = all}, NULL);
  pthread_create(&stopper, NULL, stop_all, NULL);
  by_late_thread();
  by_handler("unblocked", unblock, 1);
  by_handler("sigsuspend", suspend, 1);
  by_handler("ppoll", by_ppoll, 1);
  by_handler("pselect", by_pselect, 1);
  by_handler("epoll_pwait", by_epoll, 1);
  by_handler("epoll_pwait2", by_epoll_pwait2, 1);
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  pthread_sigmask(SIG_UNBLOCK, &user, NULL);
  by_handler("sigreturn", by_sigreturn, 0);
  none_is_lost();
  once_each();
  pthread_join(stopper, NULL);
  return 0;
}
