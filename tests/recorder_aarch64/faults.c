/* SPDX-License-Identifier: Apache-2.0 */
/* A store in the middle of a block faults, a handler repairs that, and the store is made again; an
 * instruction that there is not is passed over by its handler; then the same fault without a
 * handler, where an argument asks for it. Prints where the store goes. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define PAGE 4096

static char *page;
static volatile int repaired, passed;

static void repair(int number, siginfo_t *information, void *context) {
  (void)number, (void)information, (void)context;
  repaired++;
  mprotect(page, PAGE, PROT_READ | PROT_WRITE);
}

static void pass_over(int number, siginfo_t *information, void *context) {
  (void)number, (void)information;
  passed++;
  ((ucontext_t *)context)->uc_mcontext.pc += 4;
}

/* Between the markers seven instructions, of which the store is the fourth. */
static void store(char *to) {
  __asm__ volatile("b 1f\n1:\n"
                   "movz xzr, #0x5001, lsl #48\n"
                   "mov x9, #1\n"
                   "mov x10, #2\n"
                   "str x9, [%0]\n"
                   "add x9, x9, x10\n"
                   "mov x10, x9\n"
                   "movz xzr, #0x5002, lsl #48\n"
                   "b 2f\n2:\n"
                   :
                   : "r"(to)
                   : "x9", "x10", "memory");
}

int main(int count, char **arguments) {
  struct sigaction on_fault = {.sa_sigaction = repair, .sa_flags = SA_SIGINFO};
  struct sigaction on_undefined = {.sa_sigaction = pass_over, .sa_flags = SA_SIGINFO};
  (void)arguments;
  page = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  sigaction(SIGSEGV, &on_fault, NULL);
  sigaction(SIGILL, &on_undefined, NULL);
  printf("page %ju\n", (uintmax_t)(uintptr_t)page);
  fflush(stdout);
  store(page + 8);
  __asm__ volatile("udf #0");
  printf("repaired %d\npassed %d\n", repaired, passed);
  fflush(stdout);
  if (count > 1) {
    signal(SIGSEGV, SIG_DFL);
    mprotect(page, PAGE, PROT_NONE);
    store(page + 16);
  }
  return repaired == 1 && passed == 1 ? 0 : 1;
}
