/* SPDX-License-Identifier: Apache-2.0 */
#include "instruction_set.h"

static int same_call(int number) { return number; }

/* Whether the instruction reads and writes memory as one: it has the prefix for that, or is an
 * exchange. */
static bool is_locked(const uint8_t *code, uint32_t bytes) {
  for (const uint8_t *end = code + bytes; code < end; code++) {
    if (*code == 0xf0 || (*code & 0xfe) == 0x86)
      return true;
    bool is_prefix = (*code & 0xf0) == 0x40 || (*code >= 0x64 && *code <= 0x67) || *code == 0xf2 ||
                     *code == 0xf3;
    if (!is_prefix)
      break;
  }
  return false;
}

const struct instruction_set instruction_set = {
    .x86_64_call = same_call, .updates_in_one_step = is_locked, .epoll_event_bytes = 12};
