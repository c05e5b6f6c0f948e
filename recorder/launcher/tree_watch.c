/* SPDX-License-Identifier: Apache-2.0 */
#include "tree_watch.h"

#include "process_state.h"
#include "recorded_process.h"
#include "thread_of_launcher.h"

#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Newer than the headers may be. */
#define CALL_PIDFD_OPEN 434

static struct control_area *area;

static void note_status(int32_t process) {
  int status;
  if (!process_status_unwaited(process, &status))
    return;
  for (unsigned i = control_area_count(area); i-- > 0;) {
    struct process_control *control = &area->process[i];
    if (control->process != process || control->is_sealed)
      continue;
    control->seen_status = status;
    __atomic_store_n(&control->is_seen_ended, 1, __ATOMIC_RELEASE);
    return;
  }
}

static void *await_end(void *argument) {
  int32_t process = (int32_t)(intptr_t)argument;
  struct pollfd end = {.fd = (int)syscall(CALL_PIDFD_OPEN, process, 0), .events = POLLIN};
  while (end.fd >= 0 && poll(&end, 1, -1) <= 0)
    ;
  note_status(process);
  supply_table_end(&area->supplies, process);
  tree_end(&area->tree, process);
  if (end.fd >= 0)
    close(end.fd);
  return NULL;
}

static void *watch(void *argument) {
  static int32_t watched[TREE_PLACES_MAX];
  struct tree *tree = &area->tree;
  (void)argument;
  for (;;) {
    uint32_t joined = __atomic_load_n(&tree->joined, __ATOMIC_SEQ_CST);
    for (uint32_t i = 0; i < tree->used; i++) {
      int32_t process = __atomic_load_n(&tree->place[i].process, __ATOMIC_SEQ_CST);
      if (process != watched[i] && process != 0)
        launcher_thread_begin(await_end, (void *)(intptr_t)process);
      watched[i] = process;
    }
    syscall(SYS_futex, &tree->joined, FUTEX_WAIT, joined, NULL);
  }
  return NULL;
}

void tree_watch_begin(struct control_area *control) {
  area = control;
  launcher_thread_begin(watch, NULL);
}
