/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps what the program's instructions leave in selected memory (--values): called by instrumented
 * code right after each instruction that writes. */
#ifndef VALUES_H
#define VALUES_H

#include "thread.h"

/* Where a write belongs: its block, its first slot in it, and its number among the block's writes.
 */
struct write_place {
  uint32_t block;
  uint16_t slot, write;
};

/* The first write of an instruction of the block; false where it has none. `writes_string`: it is
 * one that may write any length, and with --values ends its block. */
bool values_find_write(uint32_t id, uint32_t instruction, bool writes_string,
                       struct write_place *place);

/* The instruction is done. `happened` is false where its write depends on the processor's state and
 * did not. */
void values_after_write(struct thread *thread, const struct write_place *place, bool happened);
/* Before a call instruction, behind which control does not come: it will write its return address.
 */
void values_before_call(struct thread *thread, const struct write_place *place,
                        uint64_t return_address);

/* What a synchronisation function, whose instructions are not recorded, wrote. */
void values_send_of_call(struct thread *thread);

#endif
