/* SPDX-License-Identifier: Apache-2.0 */
/* Instructions executed with symbols for values: two values have equal symbols only if they are
 * equal, provided that memory does not change in between. Registers, flags and the thread's own
 * stack frame are followed; any other memory is taken to hold what it always holds. */
#ifndef SYMBOLIC_STATE_H
#define SYMBOLIC_STATE_H

#include "dr_api.h"

#include <stdbool.h>
#include <stdint.h>

/* What a value is made of, as far as that matters: of what was read at the address that a search is
 * about, by a load or an update. */
enum symbol_origin { FROM_LOOK = 1, FROM_UPDATE = 2 };

struct symbol {
  uint64_t base; /* a constant has the base 0 */
  int64_t offset;
  uint8_t origin; /* enum symbol_origin */
};

#define SYMBOLIC_GPRS 16u
#define SYMBOLIC_VECTORS 32u
#define SYMBOLIC_SLOTS 32u
#define SYMBOLIC_CALLS 3u

struct symbolic_state {
  struct symbol gpr[SYMBOLIC_GPRS];
  struct symbol vector[SYMBOLIC_VECTORS];
  struct symbol flags;
  struct {
    struct symbol address, value;
  } slot[SYMBOLIC_SLOTS]; /* of the stack frame */
  uint32_t slots;
  app_pc return_to[SYMBOLIC_CALLS];
  uint32_t calls;
  uint64_t unknowns;     /* values of which nothing is known, so far */
  uint32_t instructions; /* on the way */
  bool has_updated;      /* the word that is looked at, by another instruction than the target */
  bool has_depended;     /* a branch on the way depended on what was looked at */
};

void symbolic_state_begin(struct symbolic_state *state);
bool symbolic_states_are_equal(const struct symbolic_state *one,
                               const struct symbolic_state *other);

static inline bool symbols_are_equal(struct symbol one, struct symbol other) {
  return one.base == other.base && one.offset == other.offset;
}

static inline bool symbol_is_constant(struct symbol symbol) { return symbol.base == 0; }

/* The address of a memory operand. */
struct symbol symbolic_address(const struct symbolic_state *state, opnd_t operand);
/* Whether it is in the stack frame of the code whose registers these were at the beginning. */
bool symbol_is_frame_address(struct symbol address);
struct symbol symbolic_register(const struct symbolic_state *state, reg_id_t reg);

/* What an instruction reads and writes becomes symbols. What it reads at `watched` is made of
 * `origin` too. Calls, returns and jumps have no effect but on the stack pointer. */
void symbolic_step(struct symbolic_state *state, instr_t *instr, const struct symbol *watched,
                   enum symbol_origin origin);

/* A function, or the kernel, has been called at `pc`, which changes what calls may change, to the
 * same each time. */
void symbolic_call_returns(struct symbolic_state *state, app_pc pc, bool is_system_call);

/* Enters a function, or leaves it; false where that is too deep, or where it is not known. */
bool symbolic_enter(struct symbolic_state *state, app_pc return_to);
bool symbolic_leave(struct symbolic_state *state, app_pc *return_to);

#endif
