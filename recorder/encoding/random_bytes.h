/* SPDX-License-Identifier: Apache-2.0 */
/* Random bytes that are the same in each recording with the same seed: programs that
 * hash or shuffle by them then do the same again. */
#ifndef RANDOM_BYTES_H
#define RANDOM_BYTES_H

#include <stddef.h>
#include <stdint.h>

uint64_t random_word(void);
/* That of a sequence of one's own. */
uint64_t random_word_of(uint64_t seed, uint64_t step);
void random_bytes(void *to, size_t bytes);

/* Fills memory of the program; how much, or a negative errno. */
int64_t random_fill(uint64_t to, uint64_t bytes);

#endif
