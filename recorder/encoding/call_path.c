/* SPDX-License-Identifier: Apache-2.0 */
#include "call_path.h"

#include "arena.h"
#include "code_table.h"
#include "instruction_set.h"
#include "platform.h"
#include "raw_words.h"
#include "thread.h"

#include <string.h>

/* Where an address of one call lies in another: in the objects, in the function's stack frames, in
 * the thread's control block, which may begin right above these. */
#define OBJECT_BYTES 64u
#define OBJECTS_MAX 2u
#define CONTROL_BLOCK_BELOW 4096u
#define CONTROL_BLOCK_ABOVE 4096u
#define FRAME_BYTES (16u * 1024)
#define FRAME_ABOVE 8u /* the return address */

struct known_path {
  uint32_t object_kind;
  bool updates_object;
  uint64_t thread_pointer;
  uint64_t stack_pointer;
  uint64_t object[OBJECTS_MAX];
  uint64_t instructions;
  size_t before; /* as in struct call_path */
  size_t after;
  uint64_t words[];
};

static struct {
  void *lock;
  struct arena memory;
} paths;

void call_paths_init(void) { paths.lock = platform_mutex_create(); }

void call_paths_after_fork(void) { paths.lock = platform_mutex_create(); }

void call_paths_exit(void) {
  platform_mutex_destroy(paths.lock);
  arena_free(&paths.memory);
}

static bool lies_in(uint64_t address, uint64_t start, uint64_t bytes) {
  return address - start < bytes;
}

void call_path_begin(struct thread *thread, uint32_t objects, uint32_t kind_at, bool always_waits) {
  struct call_inside *inside = &thread->call.inside;
  size_t read;
  memset(inside, 0, sizeof(*inside));
  inside->always_waits = always_waits;
  inside->objects = objects;
  if (kind_at != 0)
    platform_read((void *)(uintptr_t)(thread->call.argument[0] + kind_at),
                  sizeof(inside->object_kind), &inside->object_kind, &read);
  if (thread->path == NULL)
    thread->path = pages_allocate(CALL_WORDS_MAX * sizeof(uint64_t));
}

static void wait_ends_at(struct call_inside *inside, size_t words) {
  if (inside->wait_first == 0 || words < inside->wait_first)
    inside->wait_first = words;
  if (words > inside->wait_last)
    inside->wait_last = words;
}

void call_path_futex(struct thread *thread, uint64_t word, bool waits) {
  struct call_inside *inside = &thread->call.inside;
  bool is_purpose =
      inside->always_waits && waits && lies_in(word, thread->call.argument[0], OBJECT_BYTES);
  inside->meets_others |= !is_purpose;
  /* A condition's mutex, taken again behind the wait, is no second wait to leave out up to. */
  if (waits && is_purpose == inside->always_waits && !inside->is_cut &&
      thread->call_position != NULL)
    wait_ends_at(inside, (size_t)(*thread->position - thread->call_position));
}

/* An event that does not depend on the executions around it. */
static bool stands_alone(const uint64_t *record) {
  return word_is_marker(*record) && marker_event(*record) != EVENT_INTERRUPTED;
}

/* Moves the records of [from, to) that stand alone to `out`; gives their end. */
static uint64_t *keep_events(uint64_t *out, const uint64_t *from, const uint64_t *to) {
  size_t words;
  for (; from < to; from += words) {
    words = raw_words_of(from);
    if (!stands_alone(from))
      continue;
    memmove(out, from, words * sizeof(uint64_t));
    out += words;
  }
  return out;
}

static void cut(struct call_inside *inside) {
  inside->is_cut = true;
  inside->wait_first = inside->wait_last = 0;
}

void call_path_drop(struct thread *thread) {
  uint64_t *start = thread->call_position;
  cut(&thread->call.inside);
  *thread->position = keep_events(start, start, *thread->position);
}

void call_path_shorten(struct thread *thread, const uint64_t *end) {
  uint64_t *start = thread->call_position;
  const uint64_t *unfinished = raw_words_last_start(start, end);
  const uint64_t *last = raw_words_last_record(start, unfinished);
  if (last == NULL)
    return;
  uint64_t *out = keep_events(start, start, last);
  memmove(out, last, (size_t)(end - last) * sizeof(uint64_t));
  *thread->position -= last - out;
  cut(&thread->call.inside);
}

static void find_pauses(struct call_inside *inside, const uint64_t *words, size_t count) {
  for (size_t at = 0, length; at < count; at += length) {
    length = raw_words_of(words + at);
    if (!word_is_marker(words[at]) &&
        (code_table_get((uint32_t)words[at])->flags & BLOCK_HAS_PAUSE) != 0)
      wait_ends_at(inside, at + length);
  }
}

static bool repeats(const uint64_t *words, size_t count) {
  for (size_t at = 0; at < count; at += raw_words_of(words + at)) {
    for (size_t other = 0; other < at; other += raw_words_of(words + other)) {
      if (words[other] == words[at])
        return true;
    }
  }
  return false;
}

static bool updates(const uint64_t *words, const struct block *block, uint64_t object) {
  const uint8_t *code = block->code;
  uint32_t instruction = 0;
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    for (; instruction < slot->instruction; instruction++)
      code += block->lengths[instruction];
    if (slot->kind == SLOT_UPDATE &&
        instruction_set.updates_in_one_step(code, block->lengths[instruction]) &&
        lies_in(words[slot->raw] + (uint64_t)slot->displacement, object, OBJECT_BYTES))
      return true;
  }
  return false;
}

/* Fills in what the path says of itself. */
static void measure(struct known_path *path, const uint64_t *words, size_t count) {
  path->instructions = 0;
  path->updates_object = false;
  for (size_t at = 0; at < count; at += raw_words_of(words + at)) {
    if (word_is_marker(words[at]))
      continue;
    const struct block *block = code_table_get((uint32_t)words[at]);
    path->instructions += block->instructions;
    path->updates_object |= updates(words + at, block, path->object[0]);
  }
}

static void describe(struct thread *thread, struct known_path *path, const uint64_t *words,
                     size_t count) {
  path->object_kind = thread->call.inside.object_kind;
  path->thread_pointer = thread_pointer(thread);
  path->stack_pointer = thread->call.stack_pointer;
  memcpy(path->object, thread->call.argument, sizeof(path->object));
  measure(path, words, count);
}

/* Where the path of the same kind is, or could be; NULL where there is neither it nor room. */
static const struct known_path **place_of(struct known_paths *known,
                                          const struct known_path *path) {
  for (uint32_t i = 0; i < KNOWN_PATHS; i++) {
    const struct known_path *other = __atomic_load_n(&known->path[i], __ATOMIC_ACQUIRE);
    if (other == NULL ||
        (other->object_kind == path->object_kind && other->updates_object == path->updates_object))
      return &known->path[i];
  }
  return NULL;
}

/* The known path that stands for `own`, NULL where there is none. Of a call that was cut nobody
 * knows what it did to its object. */
static const struct known_path *path_for(struct known_paths *known, const struct known_path *own,
                                         bool is_cut) {
  const struct known_path **place = place_of(known, own);
  const struct known_path *path = place == NULL ? NULL : __atomic_load_n(place, __ATOMIC_ACQUIRE);
  for (uint32_t i = 0; i < KNOWN_PATHS && path == NULL && is_cut; i++) {
    const struct known_path *other = __atomic_load_n(&known->path[i], __ATOMIC_ACQUIRE);
    if (other != NULL && other->object_kind == own->object_kind)
      path = other;
  }
  return path;
}

static bool is_news(const struct known_path **place, const struct known_path *path) {
  const struct known_path *known = place == NULL ? NULL : __atomic_load_n(place, __ATOMIC_ACQUIRE);
  return place != NULL && (known == NULL || path->instructions < known->instructions);
}

static void remember(struct known_paths *known, const struct known_path *path,
                     const struct call_path *taken) {
  if (!is_news(place_of(known, path), path))
    return;
  platform_mutex_lock(paths.lock);
  const struct known_path **place = place_of(known, path);
  if (is_news(place, path)) {
    size_t count = taken->before + taken->after;
    struct known_path *kept =
        arena_allocate(&paths.memory, sizeof(*path) + count * sizeof(uint64_t));
    *kept = *path;
    kept->before = taken->before;
    kept->after = taken->after;
    memcpy(kept->words, taken->words, count * sizeof(uint64_t));
    __atomic_store_n(place, kept, __ATOMIC_RELEASE);
  }
  platform_mutex_unlock(paths.lock);
}

/* The address that is in this call what `address` was in the one whose path is taken. */
static uint64_t relocated(const struct thread *thread, const struct known_path *path,
                          uint64_t pointer, uint64_t address) {
  for (uint32_t i = 0; i < thread->call.inside.objects; i++) {
    if (lies_in(address, path->object[i], OBJECT_BYTES))
      return address - path->object[i] + thread->call.argument[i];
  }
  if (lies_in(address, path->stack_pointer - FRAME_BYTES, FRAME_BYTES + FRAME_ABOVE))
    return address - path->stack_pointer + thread->call.stack_pointer;
  if (lies_in(address, path->thread_pointer - CONTROL_BLOCK_BELOW,
              CONTROL_BLOCK_BELOW + CONTROL_BLOCK_ABOVE))
    return address - path->thread_pointer + pointer;
  return address;
}

static struct call_path relocate(struct thread *thread, const struct known_path *path) {
  uint64_t *out = thread->path, pointer = thread_pointer(thread);
  size_t count = path->before + path->after;
  for (size_t at = 0; at < count;) {
    size_t end = at + raw_words_of(path->words + at);
    out[at] = path->words[at];
    while (++at < end)
      out[at] = relocated(thread, path, pointer, path->words[at]);
  }
  return (struct call_path){.words = out, .before = path->before, .after = path->after};
}

/* The call's own path without what it executed from its first wait to its last. */
static struct call_path without_waits(const struct thread *thread, size_t count) {
  const struct call_inside *inside = &thread->call.inside;
  struct call_path path = {.words = thread->path, .before = count};
  if (inside->wait_first == 0)
    return path;
  uint64_t *first = thread->path + inside->wait_first;
  const uint64_t *rest = thread->path + inside->wait_last, *end = thread->path + count;
  if (was_interrupted(rest, end)) /* It is about what is left out. */
    rest += marker_words(*rest);
  uint64_t *out = keep_events(first, first, rest);
  path.before = (size_t)(out - thread->path);
  path.after = (size_t)(end - rest);
  memmove(out, rest, path.after * sizeof(uint64_t));
  return path;
}

static bool has_events(const uint64_t *words, size_t count) {
  for (size_t at = 0; at < count; at += raw_words_of(words + at)) {
    if (word_is_marker(words[at]))
      return true;
  }
  return false;
}

struct call_path call_path_take(struct thread *thread, struct known_paths *known) {
  uint64_t *start = thread->call_position;
  struct call_inside *inside = &thread->call.inside;
  struct known_path own = {0};
  if (*thread->position - start > CALL_WORDS_MAX)
    call_path_drop(thread);
  size_t count = (size_t)(*thread->position - start);
  find_pauses(inside, start, count);
  bool is_alone = !inside->is_cut && !inside->meets_others &&
                  (inside->always_waits || (inside->wait_first == 0 && !repeats(start, count)));
  thread->call_position = NULL;
  if (known != NULL)
    describe(thread, &own, start, count);
  const struct known_path *path =
      known == NULL || is_alone ? NULL : path_for(known, &own, inside->is_cut);
  if (path != NULL) {
    *thread->position = keep_events(start, start, start + count);
    return relocate(thread, path);
  }
  memcpy(thread->path, start, count * sizeof(uint64_t));
  *thread->position = start;
  struct call_path taken = without_waits(thread, count);
  if (known != NULL && is_alone && !has_events(taken.words, taken.before + taken.after)) {
    measure(&own, taken.words, taken.before + taken.after);
    remember(known, &own, &taken);
  }
  return taken;
}
