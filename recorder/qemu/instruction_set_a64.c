/* SPDX-License-Identifier: Apache-2.0 */
#include "instruction_set.h"

#include "a64.h"
#include "call_numbers.h"

#include <string.h>

static bool updates_in_one_step(const uint8_t *code, uint32_t bytes) {
  uint32_t word;
  if (bytes != sizeof(word))
    return false;
  memcpy(&word, code, sizeof(word));
  return a64_is_atomic_update(word);
}

const struct instruction_set instruction_set = {.x86_64_call = call_number_on_x86_64,
                                                .updates_in_one_step = updates_in_one_step,
                                                .epoll_event_bytes = 16};
