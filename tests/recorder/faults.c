/* SPDX-License-Identifier: Apache-2.0 */
/* Handles faults in the middle of blocks, timers at any time, and a signal inside a wait. */
#define _GNU_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <ucontext.h>
#include <unistd.h>

static char *page;
static volatile int faults, ticks, handled;
static volatile uint64_t in_handler[8];
static sigjmp_buf back;
static sem_t never;

static void open_page(int number, siginfo_t *information, void *context) {
  (void)number, (void)information, (void)context;
  faults++;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
}

static void jump_back(int number) {
  (void)number;
  faults++;
  siglongjmp(back, 1);
}

static void tick(int number) {
  (void)number;
  ticks++;
}

static void handle_in_wait(int number) {
  (void)number;
  handled++;
  in_handler[3] = 42;
}

/* The number of threads that wait for it, which glibc keeps behind the value. */
static int is_waiting(void) {
  return __atomic_load_n((uint32_t *)&never + 1, __ATOMIC_ACQUIRE) != 0;
}

static void *interrupt(void *argument) {
  pthread_t *thread = argument;
  while (!is_waiting())
    usleep(10000);
  usleep(10000); /* it sleeps by now */
  pthread_kill(*thread, SIGUSR1);
  return NULL;
}

int main(void) {
  static uint64_t words[64];
  struct sigaction action = {.sa_sigaction = open_page, .sa_flags = SA_SIGINFO};
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaction(SIGSEGV, &action, NULL);
  printf("words %ju\npage %ju\nin_handler %ju\n", (uintmax_t)(uintptr_t)words,
         (uintmax_t)(uintptr_t)page, (uintmax_t)(uintptr_t)&in_handler[3]);
  fflush(stdout);
  /* The third of five instructions faults, and is repeated. */
  __asm__ volatile("movq $1, (%0)\n\tmovq $2, 8(%0)\n\tmovq $3, (%1)\n\t"
                   "movq $4, 16(%0)\n\tmovq $5, 24(%0)" ::"r"(words),
                   "r"(page)
                   : "memory");
  signal(SIGSEGV, jump_back);
  mprotect(page, 4096, PROT_NONE);
  if (sigsetjmp(back, 1) == 0)
    __asm__ volatile("movq $1, 32(%0)\n\tmovq $3, 64(%1)\n\tmovq $4, 40(%0)" ::"r"(words), "r"(page)
                     : "memory");
  signal(SIGALRM, tick);
  struct itimerval timer = {{0, 1000}, {0, 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  volatile uint64_t sum = 0;
  while (ticks < 10)
    for (int i = 0; i < 1000; i++)
      sum += words[i % 64];
  memset(&timer, 0, sizeof(timer));
  setitimer(ITIMER_REAL, &timer, NULL);
  struct sigaction wake = {.sa_handler = handle_in_wait};
  sigaction(SIGUSR1, &wake, NULL);
  pthread_t self = pthread_self(), other;
  sem_init(&never, 0, 0);
  pthread_create(&other, NULL, interrupt, &self);
  int result = sem_wait(&never);
  pthread_join(other, NULL);
  printf("faults %d\nresult %d\nhandled %d\n", faults, result, handled);
  fflush(stdout);
  signal(SIGSEGV, SIG_DFL);
  __asm__ volatile("movq $1, 48(%0)\n\tmovq $3, 64(%1)\n\tmovq $4, 56(%0)" ::"r"(words), "r"(page)
                   : "memory");
  return 0;
}
