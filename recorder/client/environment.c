/* SPDX-License-Identifier: Apache-2.0 */
#include "environment.h"

#include "dr_api.h"

#include "initial_stack.h"

#include <stdint.h>
#include <string.h>

static const char engine_prefix[] = "DYNAMORIO_";
/* What the engine leaves of a variable that it has done with. */
static const char engine_remains[] = "__disabled__";

static bool is_the_engines(const char *variable) {
  return strncmp(variable, engine_prefix, sizeof(engine_prefix) - 1) == 0 ||
         strncmp(variable, engine_remains, sizeof(engine_remains) - 1) == 0;
}

void environment_clean(void) {
  uint64_t stack_pointer = initial_stack_pointer();
  if (stack_pointer == 0)
    return;
  uint64_t *words = (uint64_t *)(uintptr_t)stack_pointer;
  uint64_t argument_count = words[0];
  uint64_t *from = words + 1 + argument_count + 1, *to = from;
  for (; *from != 0; from++) {
    const char *variable = (const char *)(uintptr_t)*from;
    if (!is_the_engines(variable))
      *to++ = *from;
  }
  *to++ = *from++;
  if (to == from)
    return;
  /* The auxiliary vector must follow the environment directly: pairs, up to one of type 0. */
  uint64_t type;
  do {
    type = *from;
    *to++ = *from++;
    *to++ = *from++;
  } while (type != 0);
}
