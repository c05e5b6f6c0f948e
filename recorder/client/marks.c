/* SPDX-License-Identifier: Apache-2.0 */
#include "marks.h"

#include "dr_api.h"

#include "drmgr.h"

#include "block_plan.h"
#include "fields.h"
#include "platform.h"
#include "record_format.h"
#include "recording.h"
#include "threads.h"

#include <string.h>

#define MARK_BYTES 8u
#define TEXT_BYTES_MAX 200u

/* What the mark says, 0 for another instruction: a no-operation whose displacement is 0x504d and
 * that code. */
static uint8_t mark_at(void *drcontext, instr_t *instr) {
  static const uint8_t start[] = {0x0f, 0x1f, 0x84, 0x00}, end[] = {0x00, 0x4d, 0x50};
  const uint8_t *code = instr_get_app_pc(instr);
  if (instr_length(drcontext, instr) != MARK_BYTES || memcmp(code, start, sizeof(start)) != 0 ||
      memcmp(code + 5, end, sizeof(end)) != 0)
    return 0;
  return code[4] >= MARK_BEGIN && code[4] <= MARK_ACKNOWLEDGED ? code[4] : 0;
}

/* As much of the text as can be read; it may end where nothing is mapped. */
static size_t copy_text(uint64_t address, char *text) {
  size_t length = 0, page = platform_page_bytes();
  while (length < TEXT_BYTES_MAX) {
    size_t wanted = page - (address + length) % page, read = 0;
    if (wanted > TEXT_BYTES_MAX - length)
      wanted = TEXT_BYTES_MAX - length;
    if (!platform_read((const void *)(uintptr_t)(address + length), wanted, text + length, &read))
      return length;
    for (size_t end = length + read; length < end; length++) {
      if (text[length] == '\0')
        return length;
    }
  }
  return length;
}

/* Called by instrumented code at a mark, whose text is where RDI points to. */
static void meet_mark(int kind) {
  void *drcontext = dr_get_current_drcontext();
  struct thread *thread = thread_of(drcontext);
  char text[TEXT_BYTES_MAX];
  dr_mcontext_t context = {.size = sizeof(context), .flags = DR_MC_INTEGER};
  if (thread == NULL || !thread->is_recorded)
    return;
  dr_get_mcontext(drcontext, &context);
  struct fields fields;
  fields_begin(&fields);
  fields_byte(&fields, (uint8_t)kind);
  fields_bytes(&fields, text, kind == MARK_END ? 0 : copy_text(context.xdi, text));
  fields_send_clocked(&fields, thread, EVENT_MARK, clock_advance());
}

/* What stands behind a mark starts a block of its own, since events stand between blocks. */
static dr_emit_flags_t on_block(void *drcontext, void *tag, instrlist_t *block, bool for_trace,
                                bool translating) {
  (void)tag, (void)for_trace, (void)translating;
  instr_t *instr = instrlist_first_app(block);
  while (instr != NULL && mark_at(drcontext, instr) == 0)
    instr = instr_get_next_app(instr);
  if (instr != NULL)
    block_plan_cut(drcontext, block, instr_get_next(instr));
  return DR_EMIT_DEFAULT;
}

static dr_emit_flags_t on_insertion(void *drcontext, void *tag, instrlist_t *block, instr_t *instr,
                                    bool for_trace, bool translating, void *user_data) {
  (void)tag, (void)for_trace, (void)translating, (void)user_data;
  uint8_t kind = instr_is_app(instr) ? mark_at(drcontext, instr) : 0;
  if (kind != 0)
    dr_insert_clean_call_ex(drcontext, block, instr, (void *)meet_mark,
                            DR_CLEANCALL_READS_APP_CONTEXT, 1, OPND_CREATE_INT32(kind));
  return DR_EMIT_DEFAULT;
}

void marks_init(void) {
  /* Behind the start of the block's execution, which instrument.c writes. */
  drmgr_priority_t priority = {sizeof(priority), "fencepost.marks", NULL, NULL, 1001};
  bool is_ready = drmgr_register_bb_app2app_event(on_block, NULL) &&
                  drmgr_register_bb_instrumentation_event(NULL, on_insertion, &priority);
  DR_ASSERT_MSG(is_ready, "the engine's extensions could not be started");
}

void marks_exit(void) {
  drmgr_unregister_bb_app2app_event(on_block);
  drmgr_unregister_bb_insertion_event(on_insertion);
}
