/* SPDX-License-Identifier: Apache-2.0 */
/* A plugin of QEMU that shares nothing with the recorder: counts the instructions that a program
 * begins, in generated code, and prints how many on standard error. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

struct tb;
struct insn;
enum { ADD_U64 = 0 };

extern void qemu_plugin_register_vcpu_tb_trans_cb(uint64_t, void (*)(uint64_t, struct tb *));
extern void qemu_plugin_register_vcpu_insn_exec_inline(struct insn *, int, void *, uint64_t);
extern void qemu_plugin_register_atexit_cb(uint64_t, void (*)(uint64_t, void *), void *);
extern size_t qemu_plugin_tb_n_insns(const struct tb *);
extern struct insn *qemu_plugin_tb_get_insn(const struct tb *, size_t);

int qemu_plugin_version = 1;
static uint64_t count;

static void on_translated(uint64_t id, struct tb *tb) {
  (void)id;
  for (size_t i = 0; i < qemu_plugin_tb_n_insns(tb); i++)
    qemu_plugin_register_vcpu_insn_exec_inline(qemu_plugin_tb_get_insn(tb, i), ADD_U64, &count, 1);
}

static void on_exit(uint64_t id, void *data) {
  (void)id, (void)data;
  fprintf(stderr, "instructions %llu\n", (unsigned long long)count);
}

int qemu_plugin_install(uint64_t id, const void *info, int argc, char **argv) {
  (void)info, (void)argc, (void)argv;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_atexit_cb(id, on_exit, NULL);
  return 0;
}
