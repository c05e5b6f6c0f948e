/* SPDX-License-Identifier: Apache-2.0 */
/* Threads and waits without any library: clone and futex by themselves. Prints the futex's address.
 */
#define _GNU_SOURCE
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 20
#define STACK_BYTES 65536

static atomic_int ball; /* 0: the first thread's turn, 1: the second's */
static atomic_int is_gone;

static long futex(atomic_int *word, int operation, int value, const struct timespec *timeout) {
  return syscall(SYS_futex, word, operation, value, timeout, NULL, 0);
}

static void play(int me) {
  for (int i = 0; i < ROUNDS; i++) {
    while (atomic_load(&ball) != me)
      futex(&ball, FUTEX_WAIT_PRIVATE, !me, NULL);
    atomic_store(&ball, !me);
    futex(&ball, FUTEX_WAKE_PRIVATE, 1, NULL);
  }
}

static int second(void *argument) {
  (void)argument;
  play(1);
  return 0;
}

int main(void) {
  printf("ball %ju\ngone %ju\n", (uintmax_t)(uintptr_t)&ball, (uintmax_t)(uintptr_t)&is_gone);
  fflush(stdout);
  char *stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  is_gone = 1;
  int flags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM |
              CLONE_CHILD_CLEARTID;
  clone(second, stack + STACK_BYTES, flags, NULL, NULL, NULL, &is_gone);
  play(0);
  while (atomic_load(&is_gone) != 0) /* The kernel clears it and wakes, as at any thread's end. */
    futex(&is_gone, FUTEX_WAIT, 1, &(struct timespec){.tv_nsec = 10000000});
  struct timespec moment = {.tv_nsec = 1000000};
  futex(&ball, FUTEX_WAIT_PRIVATE, atomic_load(&ball), &moment);
  futex(&ball, FUTEX_WAIT_PRIVATE, 12345, NULL);
  return 0;
}
