/* SPDX-License-Identifier: Apache-2.0 */
#include "threads.h"

#include "drmgr.h"

#include "environment.h"

reg_id_t position_tls_segment;
uint position_tls_offset;
static int field_index;

/* The position, and the limits that it is compared with. */
#define TLS_SLOTS 4

struct thread *thread_of(void *drcontext) { return drmgr_get_tls_field(drcontext, field_index); }

struct thread *thread_of_caller(void) { return thread_of(dr_get_current_drcontext()); }

static void on_thread_start(void *drcontext) {
  struct thread *thread = dr_thread_alloc(drcontext, sizeof(*thread));
  drmgr_set_tls_field(drcontext, field_index, thread);
  byte *tls = dr_get_dr_segment_base(position_tls_segment);
  uint64_t **slots = (uint64_t **)(tls + position_tls_offset);
  if (thread_begin(thread, drcontext, slots, (struct baton_limits *)(slots + 1)))
    environment_clean();
}

static void on_thread_exit(void *drcontext) {
  struct thread *thread = thread_of(drcontext);
  thread_end(thread);
  dr_thread_free(drcontext, thread, sizeof(*thread));
}

void threads_init(void) {
  field_index = drmgr_register_tls_field();
  dr_raw_tls_calloc(&position_tls_segment, &position_tls_offset, TLS_SLOTS, 0);
  /* Behind all others: the process may end while the thread waits there for its first turn, and
   * what ends a thread relies on what began it. */
  drmgr_priority_t priority = {sizeof(priority), "fencepost.threads", NULL, NULL, 1000};
  drmgr_register_thread_init_event_ex(on_thread_start, &priority);
  drmgr_register_thread_exit_event(on_thread_exit);
}

void threads_exit(void) {
  drmgr_unregister_thread_init_event(on_thread_start);
  drmgr_unregister_thread_exit_event(on_thread_exit);
  dr_raw_tls_cfree(position_tls_offset, TLS_SLOTS);
  drmgr_unregister_tls_field(field_index);
}
