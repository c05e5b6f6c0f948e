/* SPDX-License-Identifier: Apache-2.0 */
/* The recorder's encoding with no engine: the "program" is a list of executions that main() puts
 * into a thread's buffer. Writes the record of a child process to the prefix that it is given, and
 * prints the record's path. */
#include "arena.h"
#include "code_table.h"
#include "encoding_platform.h"
#include "frame.h"
#include "mapped_files.h"
#include "record_format.h"
#include "region_of_interest.h"
#include "selected_memory.h"
#include "synchronisation.h"
#include "system_calls.h"
#include "thread_identity.h"

#include <sys/syscall.h>

/* Loads a word, stores to the one behind it, and goes back: one raw word says where. */
static uint32_t intern_block(void) {
  static const uint8_t lengths[] = {4, 5, 2}, code[] = "loadstorego";
  static const struct slot slots[] = {
      {.instruction = 0, .kind = SLOT_LOAD, .bytes = 8, .raw = 1, .displacement = 0},
      {.instruction = 1, .kind = SLOT_STORE, .bytes = 8, .raw = 1, .displacement = 8}};
  struct block block = {.address = 0x400000,
                        .instructions = 3,
                        .raw_words = 2,
                        .slots = 2,
                        .flags = BLOCK_READS | BLOCK_STORES,
                        .code_bytes = 11,
                        .lengths = lengths,
                        .code = code,
                        .slot = slots};
  return code_table_intern(&block);
}

static void execute(struct thread *thread, uint32_t id, uint64_t address) {
  if (*thread->position + 2 > thread->guard)
    thread_drain(thread);
  uint64_t *words = *thread->position;
  words[0] = id;
  words[1] = address;
  *thread->position = words + 2;
}

static void lock(struct thread *thread, uint32_t id) {
  const struct function *function = synchronisation_function("pthread_mutex_lock");
  int result = 0;
  if (!synchronisation_call_begins(thread, 0x7000))
    return;
  thread->call.argument[0] = 0x5000;
  synchronisation_call_enters(thread, function);
  execute(thread, id, 0x5000);
  synchronisation_call_returns(thread, function, &result);
}

int main(int count, char **arguments) {
  uint64_t *position;
  pages_init();
  if (count != 3 || !open_recording(arguments[1], false))
    return 2;
  frame_init();
  code_table_init();
  thread_identities_init();
  selected_memory_init();
  mapped_files_init();
  region_of_interest_init();
  synchronisation_init();
  struct thread *thread = &the_thread;
  bool is_first = thread_begin(thread, NULL, &position, NULL);
  uint32_t id = intern_block();
  for (uint64_t i = 0, executions = strtoull(arguments[2], NULL, 10); i < executions; i++)
    execute(thread, id, 0x10000 + 16 * (i % 1000));
  lock(thread, id);
  struct system_call *call = &thread->system_call;
  *call = (struct system_call){.number = SYS_getppid};
  system_call_begins(thread, call);
  system_call_ends(thread, call, 1);
  thread_end(thread);
  code_table_write_pending();
  char path[RECORD_PATH_BYTES];
  recording_path(path);
  puts(path);
  return is_first ? 0 : 1;
}
