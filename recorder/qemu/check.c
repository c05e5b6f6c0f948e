/* SPDX-License-Identifier: Apache-2.0 */
#include "check.h"

#include "a64.h"
#include "check_program.h"
#include "engine.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* DCZID_EL0 for the size that a64.h has: log2 of it in words. */
#define BLOCK_SIZE_EXPECTED 4u

static struct {
  const uint64_t *registers;
  unsigned lines;
  uint64_t line[CHECK_LINES];
  uint64_t block_size;
} seen;

static void on_maintenance(unsigned vcpu, void *user_data) {
  unsigned number = (unsigned)(uintptr_t)user_data;
  if (seen.registers == NULL)
    return;
  if (engine_copies_registers())
    engine_copy_registers(1u << number);
  if (seen.lines < CHECK_LINES)
    seen.line[seen.lines] = seen.registers[number];
  seen.lines++;
  (void)vcpu;
}

static void on_first(unsigned vcpu, void *user_data) {
  (void)user_data;
  seen.registers = engine_find_registers(vcpu);
}

static void on_last(unsigned vcpu, void *user_data) {
  (void)vcpu, (void)user_data;
  if (seen.registers == NULL)
    return;
  if (engine_copies_registers())
    engine_copy_registers(1u << CHECK_BLOCK_SIZE_REGISTER);
  seen.block_size = seen.registers[CHECK_BLOCK_SIZE_REGISTER];
}

static void on_known_code(qemu_plugin_id_t id, struct qemu_plugin_tb *block) {
  static bool has_first;
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(block); i++) {
    struct qemu_plugin_insn *instruction = qemu_plugin_tb_get_insn(block, i);
    struct a64_access access;
    uint32_t word;
    memcpy(&word, (const void *)(uintptr_t)qemu_plugin_insn_vaddr(instruction), sizeof(word));
    on_execution callback = NULL;
    void *user_data = NULL;
    if (!has_first) {
      callback = on_first;
      has_first = true;
    } else if (a64_access_of(word, &access)) {
      callback = on_maintenance;
      user_data = (void *)(uintptr_t)access.base;
    } else if (a64_ends_block(word)) {
      callback = on_last;
    }
    if (callback != NULL)
      qemu_plugin_register_vcpu_insn_exec_cb(instruction, callback, CALLBACK_READS_REGISTERS,
                                             user_data);
  }
}

/* NULL where all is as it should be. */
static const char *problem(void) {
  if (seen.registers == NULL)
    return "the processor's registers are not where they were looked for";
  if (seen.lines != CHECK_LINES)
    return "not every flush was seen";
  for (unsigned i = 0; i < CHECK_LINES; i++) {
    if (seen.line[i] != CHECK_FIRST_LINE + i * CHECK_LINE_BYTES)
      return "a flush has another address than the program gave it";
  }
  if (seen.block_size != BLOCK_SIZE_EXPECTED)
    return "DC ZVA zeroes another number of bytes than 64";
  return NULL;
}

/* The program's only system call ends it. */
static void on_call_made(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1,
                         uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                         uint64_t a7, uint64_t a8) {
  const char *why = problem();
  (void)id, (void)vcpu, (void)number, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6;
  (void)a7, (void)a8;
  if (why == NULL)
    _exit(0);
  fprintf(stderr, "fencepost: recorder: %s\n", why);
  _exit(1);
}

void check_install(qemu_plugin_id_t id) {
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_known_code);
  qemu_plugin_register_vcpu_syscall_cb(id, on_call_made);
}
