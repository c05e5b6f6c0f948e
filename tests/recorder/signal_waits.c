/* SPDX-License-Identifier: Apache-2.0 */
/* Waits for signals that are blocked, in each way that there is, while another thread stops all
 * again and again. Prints who took which.
 *
 *   signal_waits         all of them, sent by itself
 *   signal_waits server  says "ready", and then waits until SIGTERM comes from outside
 */
#include "stops.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define TURNS 100

static sigset_t all, awaited;
static volatile sig_atomic_t handled_by;
static uint64_t sum;

static void handle(int number) {
  (void)number;
  handled_by = (int)syscall(SYS_gettid);
}

static void *wait_for_one(void *unused) {
  siginfo_t information;
  int number = sigwaitinfo(&awaited, &information);
  printf("%d %d %d\n", number, information.si_pid == getpid(),
         information.si_code == SI_QUEUE ? information.si_value.sival_int : 0);
  return unused;
}

static void come_to_wait(void) { usleep(20000); }

static void at_another_thread(void (*send)(pthread_t)) {
  pthread_t waiter;
  pthread_create(&waiter, NULL, wait_for_one, NULL);
  come_to_wait();
  send(waiter);
  pthread_join(waiter, NULL);
}

static void send_to_process(pthread_t waiter) {
  (void)waiter;
  kill(getpid(), SIGTERM);
}

static void send_with_value(pthread_t waiter) {
  (void)waiter;
  sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = 7});
}

static void send_to_thread(pthread_t waiter) { pthread_kill(waiter, SIGUSR1); }

/* A thread that makes no system call may get it. */
static void send_and_compute(pthread_t waiter) {
  (void)waiter;
  kill(getpid(), SIGTERM);
  for (uint64_t i = 0; i < 1000000; i++)
    __atomic_fetch_add(&sum, i, __ATOMIC_RELAXED);
}

static void before_it_waits(void) {
  for (int value = 1; value <= 3; value++)
    sigqueue(getpid(), SIGRTMIN, (union sigval){.sival_int = value});
  raise(SIGUSR1);
  for (int i = 0; i < 4; i++)
    wait_for_one(NULL);
}

static void by_time_limit(void) {
  struct timespec limit = {.tv_nsec = 50000000};
  int number = sigtimedwait(&awaited, NULL, &limit);
  printf("limit %d %s\n", number, strerrorname_np(errno));
  kill(getpid(), SIGTERM);
  printf("limit %d\n", sigtimedwait(&awaited, NULL, &limit));
}

static void *take_by_handler(void *unused) {
  sigset_t one;
  sigemptyset(&one);
  sigaddset(&one, SIGTERM);
  handled_by = 0;
  pthread_sigmask(SIG_UNBLOCK, &one, NULL);
  printf("handler %d\n", handled_by == (int)syscall(SYS_gettid));
  return unused;
}

static void at_a_thread_that_unblocks_it(void) {
  pthread_t taker;
  kill(getpid(), SIGTERM);
  pthread_create(&taker, NULL, take_by_handler, NULL);
  pthread_join(taker, NULL);
}

static void by_sigsuspend(void) {
  for (int i = 0; i < 2; i++) {
    sigset_t rest = all;
    sigdelset(&rest, SIGTERM);
    handled_by = 0;
    kill(getpid(), SIGTERM);
    sigsuspend(&rest);
    printf("suspended %d\n", handled_by == getpid());
  }
}

/* Each takes what the other sends. */
static void *take_turns(void *unused) {
  int number;
  for (int i = 0; i < TURNS; i++) {
    sigwait(&awaited, &number);
    kill(getpid(), SIGUSR2);
  }
  return unused;
}

static void in_turns(void) {
  pthread_t other;
  sigset_t answer;
  int number, taken = 0;
  sigemptyset(&answer);
  sigaddset(&answer, SIGUSR2);
  sigdelset(&awaited, SIGUSR2);
  pthread_create(&other, NULL, take_turns, NULL);
  for (int i = 0; i < TURNS; i++) {
    kill(getpid(), SIGTERM);
    taken += sigwait(&answer, &number) == 0;
  }
  pthread_join(other, NULL);
  printf("turns %d\n", taken);
}

static void *serve(void *unused) {
  int number;
  sigwait(&all, &number);
  printf("server %d\n", number);
  return unused;
}

int main(int argc, char **argv) {
  pthread_t stopper, server;
  setvbuf(stdout, NULL, _IOLBF, 0);
  sigfillset(&all);
  sigfillset(&awaited);
  pthread_sigmask(SIG_BLOCK, &all, NULL);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = handle}, NULL);
  if (argc > 1 && strcmp(argv[1], "server") == 0) {
    pthread_create(&server, NULL, serve, NULL);
    come_to_wait();
    puts("ready");
    pthread_join(server, NULL);
    return 3;
  }
  pthread_create(&stopper, NULL, stop_all, NULL);
  at_another_thread(send_to_process);
  at_another_thread(send_with_value);
  at_another_thread(send_to_thread);
  at_another_thread(send_and_compute);
  before_it_waits();
  by_time_limit();
  at_a_thread_that_unblocks_it();
  by_sigsuspend();
  in_turns();
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  pthread_join(stopper, NULL);
  return 0;
}
