/* SPDX-License-Identifier: Apache-2.0 */
#include "block_flow.h"

/* What instructions take their results from is not told yet: a loop is then never taken for one
 * that waits at a word. */
struct block_flow *block_flow_create(struct arena *arena, const struct block *block) {
  struct block_flow *flow =
      arena_allocate(arena, sizeof(*flow) + block->instructions * sizeof(struct flow_instruction));
  flow->instructions = block->instructions;
  flow->is_opaque = true;
  return flow;
}
