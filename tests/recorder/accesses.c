/* SPDX-License-Identifier: Apache-2.0 */
/* Loads and stores in every addressing form, and sequences in which registers change by constants
 * between them: the recorder shares what it stores for such operands. */
#include "case.h"

#include <string.h>

static uint64_t words[512] __attribute__((aligned(64)));
static __thread uint64_t thread_local_word;

static void registers_and_displacements(void) {
  uint64_t *p = words;
  case_begins("base register with displacements");
  expect("load", p, 8);
  expect("store", p + 2, 8);
  expect("update", p + 4, 4);
  __asm__ volatile(MARK_BEGIN "mov (%0), %%rax\n\t"
                              "mov %%rax, 16(%0)\n\t"
                              "addl $1, 32(%0)" MARK_END ::"r"(p)
                   : "rax", "memory", "cc");
}

static void constants_between(void) {
  uint64_t *p = words, *q = words + 64;
  case_begins("registers that move by constants");
  expect("load", p, 8);
  expect("load", p + 2, 8);
  expect("store", p + 1, 8);
  expect("load", p + 4, 8);
  expect("store", p + 3, 8);
  expect("load", q, 8);
  __asm__ volatile(MARK_BEGIN "mov (%0), %%rax\n\t"
                              "add $16, %0\n\t"
                              "mov (%0), %%rax\n\t"
                              "sub $8, %0\n\t"
                              "mov %%rax, (%0)\n\t"
                              "lea 8(%0), %0\n\t"
                              "inc %0\n\t"
                              "mov 15(%0), %%rax\n\t"
                              "dec %0\n\t"
                              "mov %%rax, 8(%0)\n\t"
                              "mov %1, %0\n\t"
                              "mov (%0), %%rax" MARK_END
                   : "+&r"(p)
                   : "r"(q)
                   : "rax", "memory", "cc");
}

static void changes_nobody_knows(void) {
  uint64_t *p = words;
  case_begins("registers that change otherwise");
  expect("load", p, 8);
  expect("load", p + 3, 8);
  expect("load", p + 3, 8);
  expect("load", p + 10, 8);
  expect("load", p + 6, 8);
  __asm__ volatile(MARK_BEGIN "mov (%0), %%rax\n\t"
                              "mov $24, %%ecx\n\t"
                              "add %%rcx, %0\n\t"
                              "mov (%0), %%rax\n\t"
                              "mov %0, %%rdx\n\t"
                              "mov (%%rdx), %%rax\n\t"
                              "lea 56(%%rdx), %0\n\t"
                              "mov (%0), %%rax\n\t"
                              "cmp %%rax, %%rax\n\t"
                              "lea 24(%%rdx), %%rdx\n\t"
                              "cmove %%rdx, %0\n\t"
                              "mov (%0), %%rax" MARK_END
                   : "+&r"(p)
                   :
                   : "rax", "rcx", "rdx", "memory", "cc");
}

static void partial_registers(void) {
  /* 8- and 16-bit writes leave the rest of the register; 32-bit ones clear it. */
  static uint64_t area[256 * 4] __attribute__((aligned(65536)));
  char *p = (char *)area;
  case_begins("partial writes of the base");
  expect("load", p, 1);
  expect("load", p + 64, 1);
  expect("load", p + 1024, 1);
  __asm__ volatile(MARK_BEGIN "movb (%0), %%cl\n\t"
                              "mov %0, %%rax\n\t"
                              "movb $64, %%al\n\t"
                              "movb (%%rax), %%cl\n\t"
                              "movw $1024, %%ax\n\t"
                              "movb (%%rax), %%cl" MARK_END ::"r"(p)
                   : "rax", "rcx", "memory");
}

static void indices(void) {
  uint64_t *p = words;
  uint64_t i = 5;
  case_begins("base and index");
  expect("load", p + 5, 8);
  expect("store", p + 6, 8);
  expect("load", p + 7, 8);
  expect("store", p + 9, 8);
  expect("load", (char *)p + 16, 4);
  __asm__ volatile(MARK_BEGIN "mov (%0,%1,8), %%rax\n\t"
                              "mov %%rax, 8(%0,%1,8)\n\t"
                              "add $2, %1\n\t"
                              "mov (%0,%1,8), %%rax\n\t"
                              "add $16, %0\n\t"
                              "mov %%rax, (%0,%1,8)\n\t"
                              "mov -14(%0,%1,2), %%eax" MARK_END
                   : "+&r"(p), "+r"(i)
                   :
                   : "rax", "memory", "cc");
}

static void index_without_base(void) {
  uint64_t i = (uint64_t)(uintptr_t)words / 8;
  case_begins("index without base");
  expect("load", words + 3, 8);
  __asm__ volatile(MARK_BEGIN "mov 24(,%0,8), %%rax" MARK_END ::"r"(i) : "rax", "memory");
}

static void stack(void) {
  uint64_t *sp;
  __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
  case_begins("stack");
  sp -= 32; /* below the red zone */
  expect("store", sp - 1, 8);
  expect("store", sp - 2, 8);
  expect("load", sp - 1, 8);
  expect("load", sp - 2, 8);
  expect("store", sp - 1, 8);
  expect("load", sp - 1, 8);
  expect("store", sp - 1, 8);
  expect("load", sp - 1, 8);
  __asm__ volatile("sub $256, %%rsp\n\t" MARK_BEGIN "push %%rax\n\t"
                   "push $7\n\t"
                   "mov 8(%%rsp), %%rcx\n\t"
                   "pop %%rcx\n\t"
                   "mov %%rax, (%%rsp)\n\t"
                   "pop %%rcx\n\t"
                   "push %%rbp\n\t"
                   "mov %%rsp, %%rbp\n\t"
                   "leave" MARK_END "add $256, %%rsp" ::
                       : "rax", "rcx", "memory", "cc");
}

static void push_and_pop_memory(void) {
  uint64_t *sp;
  __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
  sp -= 32;
  case_begins("push and pop of memory");
  expect("load", words, 8);
  expect("store", sp - 1, 8);
  expect("load", sp - 1, 8);
  expect("store", words + 1, 8);
  __asm__ volatile("sub $256, %%rsp\n\t" MARK_BEGIN "pushq (%0)\n\t"
                   "popq 8(%0)" MARK_END "add $256, %%rsp" ::"r"(words)
                   : "memory", "cc");
}

static void pop_relative_to_stack(void) {
  uint64_t *sp;
  __asm__ volatile("mov %%rsp, %0" : "=r"(sp));
  sp -= 64;
  case_begins("pop to the stack, enter and leave");
  expect("store", sp - 1, 8);
  expect("load", sp - 1, 8);
  expect("store", sp - 8, 8);
  expect("store", sp - 1, 8);
  expect("load", sp - 1, 8);
  __asm__ volatile("sub $512, %%rsp\n\t" MARK_BEGIN "push $7\n\t"
                   "popq -64(%%rsp)\n\t"
                   "enter $32, $0\n\t"
                   "leave" MARK_END "add $512, %%rsp" ::
                       : "memory", "cc");
}

static void constants(void) {
  static uint64_t near;
  uint64_t loaded;
  case_begins("constant addresses");
  expect("load", &near, 8);
  expect("store", &near, 8);
  __asm__ volatile(MARK_BEGIN "mov %1, %0\n\tmov %0, %1" MARK_END
                   : "=&r"(loaded), "+m"(near)::"memory");
}

static void thread_local(void) {
  uint64_t loaded;
  case_begins("thread-local storage");
  expect("load", &thread_local_word, 8);
  __asm__ volatile(MARK_BEGIN "mov %%fs:thread_local_word@tpoff, %0" MARK_END
                   : "=r"(loaded)::"memory");
}

static void atomics(void) {
  uint64_t *p = words + 8, old = 1;
  memset(p, 0, 16);
  case_begins("atomics");
  expect("update", p, 8);
  expect("update", p, 8);
  expect("update", p, 8);
  expect("update", p, 16);
  expect("update", p + 4, 4);
  __asm__ volatile(MARK_BEGIN "lock xadd %0, (%1)\n\t"
                              "xchg %0, (%1)\n\t"
                              "lock cmpxchg %0, (%1)\n\t"
                              "lock cmpxchg16b (%1)\n\t"
                              "lock orl $1, 32(%1)" MARK_END
                   : "+r"(old)
                   : "r"(p)
                   : "rax", "rdx", "rcx", "rbx", "memory", "cc");
}

static void plain_strings(void) {
  char *from = (char *)words, *to = (char *)(words + 100);
  case_begins("string instructions without rep");
  expect("load", from, 8);
  expect("store", to, 8);
  expect("load", from + 8, 1);
  expect("store", to + 8, 4);
  __asm__ volatile(MARK_BEGIN "movsq\n\tlodsb\n\tstosl" MARK_END
                   : "+S"(from), "+D"(to)
                   :
                   : "rax", "memory");
}

static void repeated_strings(void) {
  char *from = (char *)words, *to = (char *)(words + 100);
  uint64_t count = 13;
  memset(words, 7, sizeof(words));
  case_begins("rep strings");
  expect("string_source", from, 8);
  expect("string_source", from + 13 * 8, 8);
  expect("string_destination", to, 8);
  expect("string_destination", to + 13 * 8, 8);
  expect("string_destination", to + 13 * 8, 1);
  expect("string_destination", to + 13 * 8 + 5, 1);
  expect("string_destination", (char *)words, 1);
  expect("string_destination", (char *)words + 100, 1);
  expect("string_source", from, 4);
  expect("string_source", from + 3 * 4, 4);
  expect("string_source", (char *)words, 2);
  expect("string_source", (char *)words + 20 * 2, 2);
  expect("string_destination", (char *)words + 64, 2);
  expect("string_destination", (char *)words + 64 + 20 * 2, 2);
  expect("string_destination", (char *)words + 104, 8);
  expect("string_destination", (char *)words + 104, 8);
  __asm__ volatile(MARK_BEGIN "rep movsq\n\t"
                              "mov $5, %%ecx\n\t"
                              "rep stosb\n\t"
                              "mov %3, %%rdi\n\t"
                              "mov $100, %%ecx\n\t"
                              "mov $7, %%eax\n\t"
                              "repe scasb\n\t"
                              "mov %3, %%rsi\n\t"
                              "mov $3, %%ecx\n\t"
                              "rep lodsl\n\t"
                              "mov %3, %%rsi\n\t"
                              "lea 64(%3), %%rdi\n\t"
                              "mov $20, %%ecx\n\t"
                              "repe cmpsw\n\t"
                              "xor %%ecx, %%ecx\n\t"
                              "rep stosq" MARK_END
                   : "+&S"(from), "+&D"(to), "+&c"(count)
                   : "r"(words)
                   : "rax", "memory", "cc");
}

static void many_registers(void) {
  /* Every register is named, so that none is left for the whole block. */
  uint64_t *p = words;
  case_begins("all registers named");
  expect("load", p, 8);
  expect("load", p + 1, 8);
  expect("store", p + 2, 8);
  expect("string_destination", p + 3, 8);
  expect("string_destination", p + 5, 8);
  expect("load", p + 6, 8);
  __asm__ volatile("push %%rbp\n\t"
                   "push %%rbx\n\t" MARK_BEGIN "mov (%0), %%rax\n\t"
                   "xor %%ecx, %%ecx\n\t"
                   "xor %%edx, %%edx\n\t"
                   "xor %%ebx, %%ebx\n\t"
                   "xor %%ebp, %%ebp\n\t"
                   "xor %%esi, %%esi\n\t"
                   "xor %%r8d, %%r8d\n\t"
                   "xor %%r9d, %%r9d\n\t"
                   "xor %%r10d, %%r10d\n\t"
                   "xor %%r11d, %%r11d\n\t"
                   "xor %%r12d, %%r12d\n\t"
                   "xor %%r13d, %%r13d\n\t"
                   "xor %%r14d, %%r14d\n\t"
                   "mov $1, %%r15d\n\t"
                   "mov (%0,%%r15,8), %%r14\n\t"
                   "mov %%r14, 16(%0)\n\t"
                   "add $24, %0\n\t"
                   "mov $2, %%ecx\n\t"
                   "rep stosq\n\t"
                   "mov 8(%%rdi), %%rax" MARK_END "pop %%rbx\n\t"
                   "pop %%rbp"
                   : "+D"(p)
                   :
                   : "rax", "rcx", "rdx", "rsi", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
                     "r15", "memory", "cc");
}

static void not_an_access(void) {
  case_begins("operands that are no access");
  __asm__ volatile(MARK_BEGIN "lea 8(%0), %%rax\n\tnopl 64(%0)" MARK_END ::"r"(words) : "rax");
}

int main(void) {
  registers_and_displacements();
  constants_between();
  changes_nobody_knows();
  partial_registers();
  indices();
  index_without_base();
  stack();
  push_and_pop_memory();
  pop_relative_to_stack();
  constants();
  thread_local();
  atomics();
  plain_strings();
  repeated_strings();
  many_registers();
  not_an_access();
  return 0;
}
