/* SPDX-License-Identifier: Apache-2.0 */
/* The fields of an A64 instruction word. Where a field names a register, 31 is the stack pointer or
 * the zero register, as the instruction has it. */
#ifndef A64_FIELDS_H
#define A64_FIELDS_H

#define RN(word) ((word) >> 5 & 31)
#define RM(word) ((word) >> 16 & 31)
#define BIT(word, at) (((word) >> (at) & 1) != 0)
#define FIELD(word, high, low) ((word) >> (low) & ((1u << ((high) - (low) + 1)) - 1))
#define IS(word, mask, value) (((word) & (mask)) == (value))

#endif
