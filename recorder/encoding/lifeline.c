/* SPDX-License-Identifier: Apache-2.0 */
#include "lifeline.h"

#include "platform.h"
#include "raw_system_call.h"
#include "recording.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/syscall.h>

static int held = -1;

static long control(int command, uintptr_t argument) {
  return raw_system_call(SYS_fcntl, (uintptr_t)held, (uintptr_t)command, argument);
}

/* Nobody writes, so only the end of the last writer can be read. */
static bool launcher_is_gone(void) {
  char byte;
  return raw_system_call(SYS_read, (uintptr_t)held, (uintptr_t)&byte, sizeof(byte)) == 0;
}

static void die(void) { raw_system_call(SYS_kill, (uintptr_t)process_id_of_caller(), SIGKILL, 0); }

void lifeline_hold(void) {
  /* Opened anew, since whom the kernel kills belongs to what was opened, and that is one for all
   * copies of a descriptor. */
  held = platform_open_to_keep(recording.area->lifeline);
  if (held < 0)
    return; /* The process may no longer look there: it has changed its user or its root. */
  control(F_SETOWN, (uintptr_t)process_id_of_caller());
  control(F_SETSIG, SIGKILL);
  control(F_SETFL, O_ASYNC | O_NONBLOCK);
  if (launcher_is_gone())
    die();
}

void lifeline_hold_in_child(void) {
  int parents = held;
  if (parents >= 0 && launcher_is_gone())
    die();
  lifeline_hold();
  if (parents >= 0)
    platform_close_file(parents);
}

bool lifeline_is(int descriptor) { return descriptor == held && held >= 0; }
