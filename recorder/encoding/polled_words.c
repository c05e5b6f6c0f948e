/* SPDX-License-Identifier: Apache-2.0 */
#include "polled_words.h"

#include "baton.h"

#include "arena.h"
#include "code_table.h"
#include "fields.h"
#include "platform.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "selected_memory.h"
#include "thread.h"

#include <string.h>

/* Long because: the table of words, its protocols and what a look says of them are one state. */
#define WORDS_MAX 32768u
#define SITES_MAX 4096u
#define OUTDATED_MAX 64u
/* What by its code may wait, and comes to more words, walks through memory. */
#define WORDS_OF_SITE_MAX 256u
/* Of a flag that a thread sets and clears by updates, somebody goes on each time that it is set; a
 * reader of a lock does now and then, as it looks once more and gives up. */
#define PASSES_OF_FLAG 4u
/* Whoever holds a word is not stopped (thread_holds_lock), but may have ended with its process. */
#define LOCK_YIELDS_MAX 20000u

/* What threads do with a word, as far as has been seen. It is a lock if threads that have polled it
 * update it next, and nobody else does before they have stored to it; those that only read it, as
 * versions are read, go on while nobody has it. A flag has threads go on that wait for the update.
 */
struct protocol {
  uint64_t holder; /* thread + 1 that updated it and has not stored to it since */
  uint32_t taken_by_pollers;
  uint32_t given;             /* how often a holder has stored to it */
  uint32_t passed_while_held; /* how often a thread that polled it went on while another had it */
  bool has_been_updated;
  bool is_no_lock;
  /* Of threads that updated this word and then waited for another one: whether the thread that
   * ended the wait had updated it later, as the last one at a barrier has, or earlier, as the
   * holder of a lock that is handed on. */
  uint32_t ended_by_later, ended_by_earlier;
};

struct polled_word {
  uint64_t address; /* 0 where the entry is free */
  uint32_t lock;
  bool is_polled;
  uint64_t clock;                       /* of its last store; 0 where none has been seen */
  uint32_t thread;                      /* that made it */
  uint64_t updated_word, updated_clock; /* that thread's last update */
  uint64_t looker;                      /* thread + 1 that has looked at it last */
  uint64_t user;                        /* thread + 1 that has polled it or stored to it first; */
  bool is_shared;                       /* another one has since */
  uint64_t handed_on; /* the lock that a store to this word hands on; 0 for none */
  struct protocol protocol;
};

bool polled_words_are_watched;

static struct {
  struct polled_word word[WORDS_MAX];
  uint32_t words;
  uint64_t site[SITES_MAX];
  uint8_t site_kind[SITES_MAX];   /* enum site_kind */
  uint16_t site_words[SITES_MAX]; /* that an expected one was the first to come to */
  uint8_t site_locks[SITES_MAX];  /* that the rounds take before it, and give back */
  uint32_t sites;
  uint32_t learned_sites;          /* those of them that were not expected */
  uint64_t outdated[OUTDATED_MAX]; /* sites whose code is to be made anew */
  uint32_t outdated_count;
  uint8_t *filter;
  void *lock; /* of additions */
} table;

static uint32_t place_of(uint64_t key, uint32_t places) {
  return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> 40) & (places - 1);
}

static struct polled_word *find(uint64_t address) {
  uint32_t at = place_of(address, WORDS_MAX);
  for (;;) {
    uint64_t found = __atomic_load_n(&table.word[at].address, __ATOMIC_ACQUIRE);
    if (found == address)
      return &table.word[at];
    if (found == 0)
      return NULL;
    at = (at + 1) & (WORDS_MAX - 1);
  }
}

uint32_t polled_words_learned(void) { return table.learned_sites; }

/* Where the instruction stands in the table, or would. */
static uint32_t site_place(uint64_t pc) {
  uint32_t at = place_of(pc, SITES_MAX);
  for (;;) {
    uint64_t found = __atomic_load_n(&table.site[at], __ATOMIC_ACQUIRE);
    if (found == pc || found == 0)
      return at;
    at = (at + 1) & (SITES_MAX - 1);
  }
}

bool polled_words_know(uint64_t pc) {
  return __atomic_load_n(&table.site[site_place(pc)], __ATOMIC_ACQUIRE) == pc;
}

static uint8_t site_kind(uint64_t pc) {
  uint32_t at = site_place(pc);
  return __atomic_load_n(&table.site[at], __ATOMIC_ACQUIRE) == pc ? table.site_kind[at] : 0;
}

void polled_words_begin(void) {
  if (polled_words_are_watched || baton_is_passed)
    return;
  table.lock = platform_mutex_create();
  table.filter = platform_map_low_pages(POLLED_WORDS_FILTER_BYTES);
  if (table.filter == NULL)
    return;
  polled_words_are_watched = true;
  platform_renew_all_code();
}

void polled_words_after_fork(void) {
  if (!polled_words_are_watched)
    return;
  table.lock = platform_mutex_create();
  for (uint32_t i = 0; i < WORDS_MAX; i++) {
    struct polled_word *word = &table.word[i];
    word->lock = 0;
    word->clock = word->handed_on = word->looker = word->user = word->updated_word = 0;
    word->is_shared = false;
    memset(&word->protocol, 0, sizeof(word->protocol));
  }
}

/* False where it is known, or there are too many. */
static bool add_site_of_kind(uint64_t pc, uint8_t kind, uint8_t locks) {
  uint32_t at = site_place(pc);
  if (table.site[at] == pc)
    return false;
  if (table.sites == SITES_MAX / 2) {
    recording_meets_limit(LIMIT_INSTRUCTIONS);
    return false;
  }
  table.site_kind[at] = kind;
  table.site_locks[at] = locks;
  __atomic_store_n(&table.site[at], pc, __ATOMIC_RELEASE);
  table.sites++;
  return true;
}

static void make_code_anew(uint64_t pc) {
  if (table.outdated_count < OUTDATED_MAX)
    __atomic_store_n(&table.outdated[table.outdated_count++], pc, __ATOMIC_RELEASE);
  else
    platform_renew_code_later(pc);
}

void polled_words_expect(uint64_t pc, uint8_t kind, bool may_be_instrumented) {
  platform_mutex_lock(table.lock);
  if (add_site_of_kind(pc, kind, 0)) {
    if (may_be_instrumented)
      make_code_anew(pc);
  } else if (polled_words_know(pc)) {
    table.site_kind[site_place(pc)] |= kind;
    table.site_locks[site_place(pc)] = 0;
  }
  platform_mutex_unlock(table.lock);
}

/* One that is in loops of several kinds counts as one of the loop that gives back the fewest locks:
 * a thread that keeps a lock while it waits must not lose it. */
static void add_site(uint64_t pc, uint32_t locks) {
  uint8_t kept = locks < UINT8_MAX ? (uint8_t)locks : UINT8_MAX;
  uint32_t at = site_place(pc);
  if (add_site_of_kind(pc, 0, kept)) {
    table.learned_sites++;
    make_code_anew(pc);
  } else if (table.site[at] == pc && table.site_locks[at] > kept) {
    table.site_locks[at] = kept;
  }
}

void polled_words_renew_code(void) {
  if (__atomic_load_n(&table.outdated_count, __ATOMIC_RELAXED) == 0)
    return;
  uint64_t pc[OUTDATED_MAX];
  platform_mutex_lock(table.lock);
  uint32_t count = table.outdated_count;
  memcpy(pc, table.outdated, count * sizeof(pc[0]));
  table.outdated_count = 0;
  platform_mutex_unlock(table.lock);
  for (uint32_t i = 0; i < count; i++)
    platform_renew_code(pc[i]);
}

static struct polled_word *add_word_locked(uint64_t address) {
  struct polled_word *word = find(address);
  if (word != NULL)
    return word;
  if (table.words == WORDS_MAX / 2) {
    recording_meets_limit(LIMIT_WORDS);
    return NULL;
  }
  uint32_t at = place_of(address, WORDS_MAX);
  while (table.word[at].address != 0)
    at = (at + 1) & (WORDS_MAX - 1);
  word = &table.word[at];
  __atomic_store_n(&word->address, address, __ATOMIC_RELEASE);
  table.words++;
  __atomic_store_n(&table.filter[address % POLLED_WORDS_FILTER_BYTES], 1, __ATOMIC_RELEASE);
  return word;
}

static struct polled_word *add_word(uint64_t address) {
  platform_mutex_lock(table.lock);
  struct polled_word *word = add_word_locked(address);
  platform_mutex_unlock(table.lock);
  return word;
}

void polled_word_add(uint64_t address, uint64_t pc, uint32_t locks) {
  if (!polled_words_are_watched)
    return;
  platform_mutex_lock(table.lock);
  struct polled_word *word = add_word_locked(address);
  if (word != NULL)
    word->is_polled = true;
  add_site(pc, locks);
  platform_mutex_unlock(table.lock);
}

void polled_word_add_entry(uint64_t address) {
  if (polled_words_are_watched)
    add_word(address);
}

static void take(struct polled_word *word) {
  for (uint32_t yields = 0; yields < LOCK_YIELDS_MAX; yields++) {
    if (__atomic_exchange_n(&word->lock, 1, __ATOMIC_ACQUIRE) == 0)
      return;
    platform_yield();
  }
}

void polled_words_end(struct thread *thread) {
  if (thread->polling.stored == NULL)
    return;
  __atomic_store_n(&thread->polling.stored->lock, 0, __ATOMIC_RELEASE);
  thread->polling.stored = NULL;
}

static bool is_lock(const struct polled_word *word) {
  if (word->handed_on != 0) {
    const struct polled_word *lock = find(word->handed_on);
    return lock != NULL && lock->protocol.ended_by_later == 0;
  }
  const struct protocol *protocol = &word->protocol;
  return protocol->taken_by_pollers != 0 && !protocol->is_no_lock &&
         PASSES_OF_FLAG * protocol->passed_while_held <= protocol->given;
}

uint64_t polled_word_last_store(uint64_t address, uint32_t thread) {
  const struct polled_word *word = find(address);
  return word == NULL || word->thread == thread ? 0
                                                : __atomic_load_n(&word->clock, __ATOMIC_ACQUIRE);
}

bool polled_word_has_waited(uint64_t address) {
  const struct polled_word *word = find(address);
  return word != NULL && word->is_polled;
}

bool polled_word_is_shared(uint64_t address) {
  if (!polled_words_are_watched || table.filter[address % POLLED_WORDS_FILTER_BYTES] == 0)
    return false;
  const struct polled_word *word = find(address);
  return word != NULL && __atomic_load_n(&word->is_shared, __ATOMIC_RELAXED);
}

bool polled_word_is_lock(uint64_t address) {
  const struct polled_word *word = find(address);
  return word != NULL && is_lock(word);
}

bool polled_word_is_own_lock(uint64_t address) {
  const struct polled_word *word = find(address);
  return word != NULL && word->handed_on == 0 && is_lock(word);
}

/* What an atomic update by `thread` does, in terms of the record. */
static uint8_t update_kind(struct polled_word *word, struct thread *thread, bool clears_lowest_bit,
                           uint64_t *lock) {
  struct protocol *protocol = &word->protocol;
  uint64_t own = thread->id + 1;
  *lock = word->address;
  if (protocol->ended_by_earlier != 0 && protocol->ended_by_later == 0 && !word->is_polled) {
    if (thread->polling.held_lock == word->address)
      return RELEASE_GIVES_LOCK;
    return RELEASE_TAKES_LOCK;
  }
  if (protocol->ended_by_later != 0 && protocol->ended_by_earlier == 0)
    return RELEASE_COUNTS;
  bool gives = !protocol->has_been_updated && protocol->holder == 0 && clears_lowest_bit;
  protocol->has_been_updated = true;
  if (gives) /* a lock that was taken before anybody looked at it */
    return RELEASE_UPDATES;
  if (protocol->holder == 0) {
    protocol->holder = own;
    return is_lock(word) ? RELEASE_TAKES_LOCK : RELEASE_UPDATES;
  }
  if (protocol->holder == own) {
    protocol->holder = 0;
    protocol->given++;
    return is_lock(word) ? RELEASE_GIVES_LOCK : RELEASE_UPDATES;
  }
  protocol->is_no_lock = true;
  protocol->holder = 0;
  return RELEASE_UPDATES;
}

static uint8_t store_kind(struct polled_word *word, struct thread *thread, uint64_t *lock) {
  struct protocol *protocol = &word->protocol;
  *lock = word->address;
  /* Before a thread waits for its turn, it may set up the word at which it will. */
  bool is_set_up = word->looker == thread->id + 1 && !thread->polling.has_looked;
  if ((thread->polling.held_kind & SITE_SETS_UP) != 0 && thread->polling.held_lock != 0 &&
      !thread->polling.has_looked) {
    word->handed_on = thread->polling.held_lock;
    is_set_up = true;
  }
  if (word->handed_on != 0 && thread->polling.held_lock == word->handed_on && !is_set_up) {
    *lock = word->handed_on;
    return RELEASE_GIVES_LOCK;
  }
  if (protocol->holder == 0)
    return RELEASE_STORES;
  if (protocol->holder != thread->id + 1) {
    protocol->is_no_lock = true;
    protocol->holder = 0;
    return RELEASE_STORES;
  }
  protocol->holder = 0;
  protocol->given++;
  return is_lock(word) ? RELEASE_GIVES_LOCK : RELEASE_STORES;
}

/* --- what looks say ------------------------------------------------------------------------- */

static void add_site_kind(uint64_t pc, uint8_t kind) {
  uint32_t at = site_place(pc);
  if (__atomic_load_n(&table.site[at], __ATOMIC_ACQUIRE) == pc)
    __atomic_fetch_or(&table.site_kind[at], kind, __ATOMIC_RELAXED);
}

/* The thread has done something else than taking the lock that it saw free. */
static void note_reader(const struct kept_look *look) {
  if (look->pc != 0 && look->saw_given)
    add_site_kind(look->pc, SITE_READS);
}

static void keep_look(struct thread *thread, struct polled_word *word, uint64_t pc) {
  struct polling *polling = &thread->polling;
  const struct protocol *protocol = &word->protocol;
  struct kept_look look = {word, pc, protocol->holder != 0 && protocol->holder != thread->id + 1,
                           protocol->holder == 0 && protocol->given != 0};
  /* Whoever fails to take a lock is none that only reads it. */
  if (polling->looks != 0 && (pc != 0 || polling->look[0].word != word))
    note_reader(&polling->look[0]);
  uint32_t kept = polling->looks < LOOKS_KEPT_OF_THREAD ? polling->looks : LOOKS_KEPT_OF_THREAD - 1;
  memmove(&polling->look[1], &polling->look[0], kept * sizeof(look));
  polling->look[0] = look;
  polling->looks = kept + 1;
}

/* The thread stores to `word`: what that says of those that it polled before. */
static void end_looks(struct thread *thread, struct polled_word *word, bool is_update) {
  struct polling *polling = &thread->polling;
  bool has_looked = false;
  for (uint32_t i = 0; i < polling->looks; i++)
    has_looked |= polling->look[i].word == word;
  if (is_update && has_looked)
    word->protocol.taken_by_pollers++;
  if (polling->looks != 0 && polling->look[0].word != word) {
    note_reader(&polling->look[0]);
    if (polling->look[0].saw_taken)
      polling->look[0].word->protocol.passed_while_held++;
  }
  polling->looks = 0;
}

/* Gives the store or update that comes now its place in the process clock, and says so before the
 * execution that it is part of. */
static void announce(struct thread *thread, const struct block *block, struct polled_word *word,
                     bool is_update, bool clears_lowest_bit) {
  end_looks(thread, word, is_update);
  uint64_t before = word->clock != 0 && word->thread != thread->id ? word->clock : 0, lock;
  uint8_t kind = is_update ? update_kind(word, thread, clears_lowest_bit, &lock)
                           : store_kind(word, thread, &lock);
  if (kind == RELEASE_TAKES_LOCK) {
    thread->polling.held_lock = lock;
    thread->polling.has_looked = false;
  } else if (kind == RELEASE_GIVES_LOCK) {
    thread->polling.held_lock = 0;
  }
  uint64_t clock = clock_advance();
  word->thread = thread->id;
  word->updated_word = thread->polling.updated_word;
  word->updated_clock = thread->polling.updated_clock;
  __atomic_store_n(&word->clock, clock, __ATOMIC_RELEASE);
  if (is_update) {
    thread->polling.updated_word = word->address;
    thread->polling.updated_clock = clock;
  }
  if (kind == RELEASE_GIVES_LOCK) /* What it waits for next has nothing to do with that. */
    thread->polling.updated_word = 0;
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, word->address);
  fields_byte(&fields, kind);
  fields_number(&fields, before);
  fields_number(&fields, kind == RELEASE_TAKES_LOCK || kind == RELEASE_GIVES_LOCK ? lock : 0);
  thread_event_before_execution(thread, block->raw_words, EVENT_SPIN_RELEASE, true, clock,
                                fields.bytes, (size_t)(fields.end - fields.bytes));
}

static const struct slot *written_slot(const struct block *block, uint32_t instruction) {
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->instruction == instruction && (slot->kind == SLOT_STORE || slot->kind == SLOT_UPDATE))
      return slot;
  }
  return NULL;
}

/* Counts another word that the site is the first to come to; false where there are too many. */
static bool may_add_word(uint64_t pc) {
  uint32_t at = site_place(pc);
  if (table.site_kind[at] == 0)
    return true;
  if (table.site_words[at] == WORDS_OF_SITE_MAX)
    recording_meets_limit(LIMIT_WORDS_OF_ONE);
  if (table.site_words[at] <= WORDS_OF_SITE_MAX)
    table.site_words[at]++;
  return table.site_words[at] <= WORDS_OF_SITE_MAX;
}

/* The word that the slot is at. What an instruction stores or polls that is known to do so is one,
 * even if nobody has waited for it yet. */
static struct polled_word *word_of_slot(struct thread *thread, const struct block *block,
                                        const struct slot *slot, uint64_t pc) {
  const uint64_t *words = *thread->position - block->raw_words;
  if (slot == NULL)
    return NULL;
  uint64_t address = words[slot->raw] + (uint64_t)slot->displacement;
  struct polled_word *word = find(address);
  return word == NULL && polled_words_know(pc) && may_add_word(pc) ? add_word(address) : word;
}

static void note_user(struct polled_word *word, const struct thread *thread) {
  if (word->user == 0)
    word->user = thread->id + 1;
  else if (word->user != thread->id + 1)
    __atomic_store_n(&word->is_shared, true, __ATOMIC_RELAXED);
}

/* The word is the thread's until polled_words_end. */
static void hold(struct thread *thread, struct polled_word *word) {
  polled_words_end(thread);
  take(word);
  note_user(word, thread);
  thread->polling.stored = word;
}

/* Whether threads have to do with each other there. A word that is only expected to be polled may
 * be anything, and the memory may be used for something else by now. */
static bool is_between_threads(const struct polled_word *word) {
  return word->is_shared || word->is_polled || word->handed_on != 0 ||
         word->protocol.taken_by_pollers != 0;
}

/* From now on the instruction's code is made for one that stores where others poll. To be called
 * while no word is held: others that wait for it keep the engine from making code. */
static void know_site(uint64_t pc, const struct polled_word *word) {
  if (!polled_words_know(pc) && is_between_threads(word)) {
    platform_mutex_lock(table.lock);
    add_site(pc, 0);
    platform_mutex_unlock(table.lock);
  }
  polled_words_renew_code();
}

/* Where it was not known to be one, nobody calls behind it to give the word back. */
void polled_words_before_store(struct thread *thread, uint32_t id, uint32_t instruction,
                               uint64_t pc) {
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  const struct block *block = code_table_get(id);
  bool is_known = polled_words_know(pc);
  struct polled_word *word = word_of_slot(thread, block, written_slot(block, instruction), pc);
  if (word == NULL)
    return;
  know_site(pc, word);
  hold(thread, word);
  thread->polling.held_kind = site_kind(pc);
  announce(thread, block, word, false, false);
  if (!is_known)
    polled_words_end(thread);
}

static uint64_t value_of(const struct polled_word *word, uint32_t bytes) {
  uint64_t value = 0;
  size_t read;
  platform_read((void *)(uintptr_t)word->address, bytes, &value, &read);
  return value;
}

/* The word is the thread's until the update is done, so whether it changes memory is known then. */
void polled_words_before_update(struct thread *thread, uint32_t id, uint32_t instruction,
                                uint64_t pc) {
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  const struct block *block = code_table_get(id);
  const struct slot *slot = written_slot(block, instruction);
  struct polled_word *word = word_of_slot(thread, block, slot, pc);
  if (word == NULL)
    return;
  know_site(pc, word);
  hold(thread, word);
  thread->polling.held_kind = site_kind(pc);
  thread->polling.held_bytes = slot->bytes; /* at most 8: find_store */
  thread->polling.held_value = value_of(word, slot->bytes);
}

/* What the code of an update says that the word is for, where no wait has said otherwise. */
static void expect_protocol(struct polled_word *word, uint8_t kind) {
  struct protocol *protocol = &word->protocol;
  bool is_open = protocol->ended_by_later == 0 && protocol->ended_by_earlier == 0;
  protocol->taken_by_pollers += (kind & SITE_TAKES_LOCK) != 0;
  protocol->ended_by_later += is_open && (kind & SITE_COUNTS) != 0;
  protocol->ended_by_earlier += is_open && (kind & SITE_TAKES_TURN) != 0;
}

void polled_words_after_update(struct thread *thread, uint32_t id) {
  struct polled_word *word = thread->polling.stored;
  if (word == NULL)
    return;
  uint64_t before = thread->polling.held_value, now = value_of(word, thread->polling.held_bytes);
  if (now != before) {
    expect_protocol(word, thread->polling.held_kind);
    announce(thread, code_table_get(id), word, true, (before & ~now & 1) != 0);
  } else {
    keep_look(thread, word, 0);
  }
  polled_words_end(thread);
}

/* The waits of threads that updated one word and wait for another tell what the first is for. */
static void learn_protocol(struct thread *thread, struct polled_word *word) {
  uint64_t updated = thread->polling.updated_word;
  if (updated == 0 || updated == word->address || updated != word->updated_word ||
      word->clock < thread->polling.updated_clock)
    return;
  struct polled_word *entry = find(updated);
  if (entry == NULL || entry->protocol.taken_by_pollers != 0)
    return;
  if (word->updated_clock > thread->polling.updated_clock) {
    entry->protocol.ended_by_later++;
  } else {
    entry->protocol.ended_by_earlier++;
    word->handed_on = updated;
  }
}

void polled_words_after_load(struct thread *thread, uint32_t id, uint32_t instruction) {
  if (!thread->is_recorded || thread->call_depth > 0)
    return;
  const struct block *block = code_table_get(id);
  for (uint32_t i = 0; i < block->slots; i++) {
    const struct slot *slot = &block->slot[i];
    if (slot->instruction != instruction || slot->kind != SLOT_LOAD)
      continue;
    uint64_t pc = block_pc(block, instruction);
    struct polled_word *word = word_of_slot(thread, block, slot, pc);
    if (word == NULL)
      return;
    hold(thread, word);
    uint64_t clock = word->thread == thread->id ? 0 : word->clock;
    if ((site_kind(pc) & SITE_AWAITS_TURN) != 0 && thread->polling.held_lock != 0 &&
        !thread->polling.has_looked)
      word->handed_on = thread->polling.held_lock;
    if (clock != 0)
      learn_protocol(thread, word);
    word->looker = thread->id + 1;
    keep_look(thread, word, pc);
    bool only_reads = (site_kind(pc) & SITE_READS) != 0 && word->protocol.holder != thread->id + 1;
    uint8_t locks = polled_words_know(pc) ? table.site_locks[site_place(pc)] : 0;
    polled_words_end(thread);
    thread->polling.has_looked = true;
    struct fields fields;
    fields_begin(&fields);
    fields_number(&fields, word->address);
    fields_number(&fields, clock);
    fields_byte(&fields, only_reads);
    fields_byte(&fields, locks);
    thread_event_before_execution(thread, block->raw_words, MARKER_LOOK, false, 0, fields.bytes,
                                  (size_t)(fields.end - fields.bytes));
    return;
  }
}

const uint8_t *polled_words_filter(void) { return table.filter; }
