/* SPDX-License-Identifier: Apache-2.0 */
#include "killed_process.h"

#include "arena.h"
#include "baton.h"
#include "call_path.h"
#include "code_table.h"
#include "frame.h"
#include "raw_words.h"
#include "recording.h"
#include "thread.h"

/* Of the block that a thread was in it is not known how far it was. */
static const uint64_t *end_of_last_whole(const uint64_t *from, const uint64_t *to) {
  const uint64_t *last = raw_words_last_record(from, to);
  if (last == NULL)
    return raw_words_last_start(from, to);
  return word_is_marker(*last) ? to : last;
}

static void save(struct thread *thread) {
  if (!thread->is_recorded || thread->process != recording.process)
    return;
  struct encoder *encoder = &thread->encoder;
  const uint64_t *from = thread->buffer;
  trace_frame_close_if_written(&encoder->frame);
  if (thread->phase == THREAD_ENCODES) {
    /* What the predictors have learnt since then no reader knows: with a frame they begin anew. */
    from = encoder->reached;
    trace_frame_write(&encoder->frame);
  }
  if (thread->call_position != NULL && thread->phase == THREAD_RUNS)
    call_path_drop(thread);
  const uint64_t *to = *thread->position < thread->guard ? *thread->position : thread->guard;
  if (thread->call_position != NULL && thread->phase == THREAD_ENCODES)
    to = thread->call_position;
  if (thread->member.has_baton && thread->phase == THREAD_RUNS)
    to = end_of_last_whole(from, to);
  if (thread->phase != THREAD_MOVES)
    thread_encode(thread, from, to);
  trace_frame_write(&encoder->frame);
  __atomic_sub_fetch(&recording.control->live_threads, 1, __ATOMIC_SEQ_CST);
}

void killed_process_save(void) {
  pages_after_fork();
  frame_write_again();
  code_table_continue_killed();
  frame_after_fork();
  call_paths_after_fork();
  for (struct baton_member *member = baton_first(); member != NULL; member = member->next)
    save(member->thread);
}
