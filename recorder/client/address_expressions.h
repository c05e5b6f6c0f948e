/* SPDX-License-Identifier: Apache-2.0 */
/* Which address computations of a block are already known, as a raw word plus a constant: the
 * block's instructions are stepped through, and an expression lives until one of its registers
 * changes by something else than a constant. */
#ifndef ADDRESS_EXPRESSIONS_H
#define ADDRESS_EXPRESSIONS_H

#include "dr_api.h"

#include <stdint.h>

#define EXPRESSIONS_MAX 24u

struct address_expression {
  reg_id_t base, index; /* 64-bit or DR_REG_NULL */
  int scale;
  uint16_t raw;
  int64_t displacement; /* base + index * scale == word `raw` + displacement */
};

struct address_expressions {
  uint32_t count;
  uint32_t oldest; /* the one that makes room */
  struct address_expression expression[EXPRESSIONS_MAX];
};

void address_expressions_init(struct address_expressions *expressions);
void address_expressions_add(struct address_expressions *expressions, reg_id_t base, reg_id_t index,
                             int scale, uint16_t raw, int64_t displacement);
bool address_expressions_find(const struct address_expressions *expressions, reg_id_t base,
                              reg_id_t index, int scale, uint16_t *raw, int64_t *displacement);

/* What is still known after `instr`. */
void address_expressions_step(struct address_expressions *expressions, instr_t *instr);

#endif
