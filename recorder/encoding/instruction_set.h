/* SPDX-License-Identifier: Apache-2.0 */
/* What the encoding has to know of the instruction set that the program is written in. Each
 * recorder has one. */
#ifndef INSTRUCTION_SET_H
#define INSTRUCTION_SET_H

#include <stdbool.h>
#include <stdint.h>

struct instruction_set {
  /* The number that x86-64 has for a system call of the program, by which the encoding knows it; a
   * negative one for a call that x86-64 does not have. */
  int (*x86_64_call)(int number);
  /* Whether an instruction that reads and writes memory does so in one step, as other threads see
   * it. */
  bool (*updates_in_one_step)(const uint8_t *code, uint32_t bytes);
  uint32_t epoll_event_bytes;
};

extern const struct instruction_set instruction_set;

#endif
