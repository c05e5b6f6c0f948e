/* SPDX-License-Identifier: Apache-2.0 */
/* The functions of QEMU's plugin interface that the recorder uses, as every version from 1 on has
 * them. Debian's qemu-user comes without a header. */
#ifndef PLUGIN_API_H
#define PLUGIN_API_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t qemu_plugin_id_t;

struct qemu_info {
  const char *target_name;
  struct {
    int oldest;
    int current;
  } version;
};

struct qemu_plugin_tb;   /* a translation block */
struct qemu_plugin_insn; /* an instruction of one */

enum callback_flags { CALLBACK_NO_REGISTERS, CALLBACK_READS_REGISTERS };
enum memory_access { MEMORY_READ = 1, MEMORY_WRITE, MEMORY_BOTH };

typedef void (*on_translated)(qemu_plugin_id_t id, struct qemu_plugin_tb *block);
typedef void (*on_execution)(unsigned vcpu, void *user_data);
typedef void (*on_access)(unsigned vcpu, uint32_t access, uint64_t address, void *user_data);
typedef void (*on_call)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, uint64_t a1,
                        uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5, uint64_t a6,
                        uint64_t a7, uint64_t a8);
typedef void (*on_call_return)(qemu_plugin_id_t id, unsigned vcpu, int64_t number, int64_t result);
typedef void (*on_exit)(qemu_plugin_id_t id, void *user_data);

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t id, on_translated callback);
void qemu_plugin_register_vcpu_insn_exec_cb(struct qemu_plugin_insn *instruction,
                                            on_execution callback, int flags, void *user_data);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *instruction, on_access callback,
                                      int flags, int accesses, void *user_data);
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id, on_call callback);
void qemu_plugin_register_vcpu_syscall_ret_cb(qemu_plugin_id_t id, on_call_return callback);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t id, on_exit callback, void *user_data);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *block);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *block, size_t index);
uint64_t qemu_plugin_insn_vaddr(const struct qemu_plugin_insn *instruction);

#endif
