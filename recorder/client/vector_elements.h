/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers and scatters: which elements they have, and where each lies when the instruction runs. */
#ifndef VECTOR_ELEMENTS_H
#define VECTOR_ELEMENTS_H

#include "dr_api.h"

#include <stdint.h>

struct vector_elements {
  bool is_scatter;
  uint32_t count;
  uint32_t element_bytes;
  uint32_t index_bytes;
  opnd_t operand; /* the memory operand: base, vector of indices, scale */
  int64_t displacement;
  reg_id_t mask; /* a mask register (AVX-512) or a vector whose sign bits are the mask (AVX2) */
};

/* False where `instr`, which stands at `pc`, is neither a gather nor a scatter. */
bool vector_elements_describe(instr_t *instr, const uint8_t *pc, struct vector_elements *elements);

/* What a vector register holds. */
const uint8_t *vector_bytes(const dr_mcontext_t *context, reg_id_t reg);

/* Writes one address per element to `addresses`, 0 where it is masked off. */
void vector_elements_addresses(const struct vector_elements *elements, dr_mcontext_t *context,
                               uint64_t *addresses);

#endif
