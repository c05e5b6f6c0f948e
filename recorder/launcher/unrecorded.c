/* SPDX-License-Identifier: Apache-2.0 */
#include "unrecorded.h"

#include "complaint.h"
#include "record_info.h"
#include "recorded_process.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* As many different names as are worth a line. */
#define NAMES_MAX 6u

/* A child that runs what it was forked from has no name of its own. */
static const char *name_of(const struct unrecorded_child *child) {
  return child->name[0] == '\0' ? "a copy of the program" : child->name;
}

static bool is_first_of_its_name(const struct control_area *control, unsigned number) {
  for (unsigned i = 0; i < number; i++) {
    if (strcmp(name_of(&control->unrecorded[i]), name_of(&control->unrecorded[number])) == 0)
      return false;
  }
  return true;
}

/* With --children, a child that shared its parent's memory and then ran another program. */
static bool has_record(const struct control_area *control, const struct unrecorded_child *child) {
  unsigned count = control_area_count(control);
  for (unsigned i = 1; i < count; i++) {
    if (control->process[i].process == child->process)
      return true;
  }
  return false;
}

/* What would record them. */
static const char *advice(const struct control_area *control) {
  if (control->children)
    return ": what shares its parent's memory is not";
  return strcmp(control->isa, ISA_AARCH64) == 0 ? "" : "; --children records children too";
}

void unrecorded_say(const struct control_area *control) {
  if (control->set_id_program[0] != '\0')
    complain("%s ran without its set-uid or set-gid bit, which no program has that is recorded",
             control->set_id_program);
  unsigned count = 0, names = 0, at = 0;
  char listed[(NAMES_MAX + 1) * (CONTROL_NAME_BYTES + 2)] = "";
  for (; at < CONTROL_UNRECORDED_MAX && control->unrecorded[at].process != 0; at++) {
    if (has_record(control, &control->unrecorded[at]))
      continue;
    count++;
    if (names > NAMES_MAX || !is_first_of_its_name(control, at))
      continue;
    if (names++ == NAMES_MAX) {
      strcat(listed, ", …");
      continue;
    }
    size_t length = strlen(listed);
    snprintf(listed + length, sizeof(listed) - length, "%s%.*s", length == 0 ? "" : ", ",
             CONTROL_NAME_BYTES - 1, name_of(&control->unrecorded[at]));
  }
  if (count != 0)
    complain("%s%u child process%s not recorded (%s)%s",
             at == CONTROL_UNRECORDED_MAX ? "at least " : "", count,
             count == 1 ? " was" : "es were", listed, advice(control));
}
