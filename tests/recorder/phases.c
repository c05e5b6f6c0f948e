/* SPDX-License-Identifier: Apache-2.0 */
/* phases ROUNDS: phases that compute and phases that go through memory, in turns. */
#include <stdint.h>
#include <stdlib.h>

#define WORDS (1u << 19)
#define PHASE 40000

int main(int argc, char **argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 1;
  uint64_t *words = calloc(WORDS, sizeof(*words)), at = 1, sum = 0;
  for (int round = 0; words != NULL && round < rounds; round++) {
    for (int i = 0; i < 4 * PHASE; i++)
      sum = sum * 6364136223846793005ull + (uint64_t)i;
    for (int i = 0; i < PHASE; i++) {
      at = at * 6364136223846793005ull + 1442695040888963407ull;
      words[(at >> 33) % WORDS] += sum;
    }
  }
  return (int)(sum >> 63);
}
