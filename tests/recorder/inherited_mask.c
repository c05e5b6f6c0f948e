/* SPDX-License-Identifier: Apache-2.0 */
/* Signal masks of threads that nobody sets one for: a thread has that of whoever made it, from its
 * first instruction on. And what comes for the process while a thread begins and all block it
 * runs no handler. Prints the masks, and how often the handler ran. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#define STACK_BYTES (1 << 16)
#define STARTS 200
#define MASK_BYTES 8

static uint64_t mask;
static int is_there, handled;

static void handle(int number) {
  (void)number;
  __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static int tell_mask(void *unused) {
  (void)unused;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &mask, MASK_BYTES);
  return 0;
}

static void start_with(uint64_t blocked, char *stack) {
  int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
              CLONE_CHILD_CLEARTID;
  syscall(SYS_rt_sigprocmask, SIG_SETMASK, &blocked, NULL, MASK_BYTES);
  is_there = 1;
  clone(tell_mask, stack + STACK_BYTES, flags, NULL, NULL, NULL, &is_there);
  while (__atomic_load_n(&is_there, __ATOMIC_ACQUIRE)) /* The kernel clears it at the end. */
    usleep(1000);
  printf("blocked %llx\n", (unsigned long long)mask);
}

static void *begin(void *unused) { return unused; }

int main(void) {
  sigset_t terminate;
  struct timespec none = {0};
  int taken = 0;
  char *stack = malloc(STACK_BYTES);
  sigaction(SIGTERM, &(struct sigaction){.sa_handler = handle}, NULL);
  start_with((uint64_t)1 << (SIGTERM - 1) | (uint64_t)1 << (SIGUSR1 - 1), stack);
  start_with((uint64_t)1 << (SIGTERM - 1), stack);
  sigemptyset(&terminate);
  sigaddset(&terminate, SIGTERM);
  for (int i = 0; i < STARTS; i++) {
    pthread_t thread;
    pthread_create(&thread, NULL, begin, NULL);
    kill(getpid(), SIGTERM);
    pthread_join(thread, NULL);
    taken += sigtimedwait(&terminate, NULL, &none) == SIGTERM;
  }
  printf("taken %d handled %d\n", taken, handled);
  return 0;
}
