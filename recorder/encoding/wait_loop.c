/* SPDX-License-Identifier: Apache-2.0 */
#include "wait_loop.h"

#include "arena.h"
#include "encoder.h"
#include "polled_words.h"
#include "raw_words.h"
#include "record_format.h"
#include "recording.h"
#include "selected_memory.h"
#include "varint.h"
#include "wait_entry.h"
#include "wait_path.h"
#include "wait_rounds.h"

#include <string.h>

#define RUNS_MAX 4096u
#define LOOKS_MAX 8u
/* Rounds that say by themselves that a loop waits for a word of the thread's own stack: a guess,
 * more than loops take whose counter the slice does not see. */
#define ROUNDS_AT_OWN_WORD 1024u
/* Rounds after which a loop that goes on counts as one that waits, so that stores to its words are
 * looked at before the one that ends it. */
#define ROUNDS_TO_LEARN 8u
/* For how many of its rounds, and at most for how many, a loop that works is not looked at again.
 */
#define PASS_OVER_FACTOR 64u
#define PASS_OVER_MAX (1u << 20)

/* The same round so many times. */
struct run {
  uint32_t shape;
  uint64_t times;
};

struct wait_loop {
  bool is_open;
  bool has_first; /* its first round, which is encoded, is the first shape */
  /* What came before its first round, behind a look in an execution that does more than look, which
   * is encoded: left out if it waits. */
  uint64_t lead[LEAD_WORDS_MAX];
  uint32_t lead_words;
  const uint64_t *left_at; /* the round that has left the last one: it begins none */
  uint32_t left_filling;   /* of the buffer */
  uint64_t head_words[HEAD_WORDS_MAX];
  struct path_head head;
  struct wait_rounds known;
  struct run run[RUNS_MAX];
  uint32_t runs;
  uint64_t rounds, instructions;      /* left out */
  struct polled_look look[LOOKS_MAX]; /* the last of each word, */
  uint32_t looks;
  struct polled_look first_look[LOOKS_MAX]; /* and those of the first round */
  uint32_t first_looks;
  bool has_learned;
  bool is_full;                /* it had more kinds of rounds than can be kept */
  struct path_place entry;     /* what the thread updated last before */
  struct path_updates updates; /* of the thread so far, */
  uint32_t updates_filling;    /* in this filling of the buffer */
  struct wait_slice slice;
};

bool wait_loop_is_open(const struct wait_loop *loop) { return loop != NULL && loop->is_open; }

void wait_loop_free(struct wait_loop *loop) {
  if (loop != NULL)
    pages_free(loop, sizeof(*loop));
}

/* --- the stores that were seen -------------------------------------------------------------- */

static void note_look(struct wait_loop *loop, struct polled_look look) {
  for (uint32_t i = 0; i < loop->looks; i++) {
    if (loop->look[i].address == look.address) {
      loop->look[i].clock = look.clock;
      return;
    }
  }
  if (loop->looks < LOOKS_MAX)
    loop->look[loop->looks++] = look;
  else
    recording_meets_limit(LIMIT_LOOKS);
}

static const struct polled_look *look_at(const struct polled_look *look, uint32_t looks,
                                         uint64_t address) {
  for (uint32_t i = 0; i < looks; i++) {
    if (look[i].address == address)
      return &look[i];
  }
  return NULL;
}

static void note_looks(struct wait_loop *loop, const uint64_t *from, const uint64_t *to) {
  for (; from < to; from += raw_words_of(from)) {
    struct polled_look look;
    if (path_look(from, &look))
      note_look(loop, look);
  }
}

/* Stores to polled words in a round that is left out still have their places: others may have seen
 * them. */
static void keep_releases(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  for (; from < to; from += raw_words_of(from)) {
    if (word_is_marker(*from) && marker_event(*from) == EVENT_SPIN_RELEASE)
      encoder_release_left_out(encoder, from);
  }
}

/* --- deciding ------------------------------------------------------------------------------- */

static void slice_rounds(struct encoder *encoder, struct wait_loop *loop) {
  struct wait_slice *slice = &loop->slice;
  wait_slice_begin(slice, &encoder->predictor, encoder->own);
  for (uint32_t i = 0; i < loop->known.shapes; i++) {
    const uint64_t *from = loop->known.stored + loop->known.shape[i].first;
    wait_slice_look(slice, from, from + loop->known.shape[i].count);
  }
  for (uint32_t i = 0; i < loop->known.shapes; i++) {
    const uint64_t *from = loop->known.stored + loop->known.shape[i].first;
    wait_slice_add(slice, from, from + loop->known.shape[i].count);
  }
  wait_slice_close(slice);
}

static bool is_polled_one(const struct wait_loop *loop, origin_set origins, uint32_t index) {
  const struct shared_word *word = &loop->slice.word[index];
  if (!origins_have_word(origins, index) ||
      (word->is_own && origins_have_foreign_word(&loop->slice, origins)))
    return false;
  /* What each round reads anew, as on the way through a list, is not polled. */
  return wait_rounds_began_with(&loop->known, word->address);
}

static const struct shared_word *polled_word(const struct wait_loop *loop, origin_set origins) {
  for (uint32_t i = 0; i < loop->slice.words; i++) {
    if (is_polled_one(loop, origins, i))
      return &loop->slice.word[i];
  }
  return NULL;
}

/* From now on stores to the word are looked at, and so is each instruction of the rounds that reads
 * it. */
static void learn_word(struct wait_loop *loop, const struct shared_word *word) {
  for (uint32_t i = 0; i < loop->known.shapes; i++) {
    const uint64_t *at = loop->known.stored + loop->known.shape[i].first,
                   *end = at + loop->known.shape[i].count;
    int locks = 0; /* never negative: path_round */
    for (size_t step; at < end; at += step) {
      step = path_step(at, end);
      const struct block *block = word_is_marker(*at) ? NULL : code_table_get((uint32_t)*at);
      if (block == NULL)
        locks += path_locks_taken(at, at + step);
      for (uint32_t slot = 0; block != NULL && slot < block->slots; slot++) {
        if (block->slot[slot].kind == SLOT_LOAD &&
            path_slot_value(&block->slot[slot], at) == word->address)
          polled_word_add(word->address, block_pc(block, block->slot[slot].instruction),
                          (uint32_t)locks);
      }
    }
  }
  polled_word_add(word->address, word->pc, UINT32_MAX); /* by an update, perhaps */
}

static void learn(struct wait_loop *loop, origin_set origins) {
  bool has_word = false;
  for (uint32_t i = 0; i < loop->slice.words; i++) {
    if (!is_polled_one(loop, origins, i))
      continue;
    learn_word(loop, &loop->slice.word[i]);
    has_word = true;
  }
  if (has_word && loop->entry.address != 0)
    polled_word_add_entry(loop->entry.address);
}

/* The most rounds in turn that read the same as the one before. A program that comes to the same
 * state again goes on for ever, unless another thread ends that. */
static uint64_t rounds_without_change(const struct wait_loop *loop) {
  uint64_t most = 0, equal = 0, before = loop->known.shape[0].reads;
  bool has_before = loop->has_first;
  for (uint32_t i = 0; i < loop->runs; i++) {
    uint64_t reads = loop->known.shape[loop->run[i].shape].reads, times = loop->run[i].times;
    equal = has_before && reads == before ? equal + times : times - 1;
    most = equal > most ? equal : most;
    before = reads;
    has_before = true;
  }
  return most;
}

/* Whether another thread's word alone decides a branch of its rounds: then it polls, whatever else
 * could end it. */
static bool polls_steadily(struct wait_loop *loop) {
  origin_set steady = 0;
  for (uint32_t i = 0; i < loop->known.shapes; i++) {
    const uint64_t *from = loop->known.stored + loop->known.shape[i].first;
    steady |= wait_slice_steady(&loop->slice, from, from + loop->known.shape[i].count);
  }
  const struct shared_word *word = polled_word(loop, steady);
  return word != NULL && !word->is_own && !loop->slice.has_failed;
}

/* Whether its rounds read the same again: a walk through a tree or a list comes to new words. */
static bool reads_the_same_again(const struct wait_loop *loop) {
  return loop->known.widening <= 1 || 2 * (uint64_t)loop->known.widening <= loop->rounds;
}

/* Whether the loop updates nothing but what it has waited for. */
static bool updates_what_it_polls(const struct wait_loop *loop, origin_set origins) {
  for (uint32_t at = 0; at < loop->known.updates; at++) {
    bool is_polled = false;
    for (uint32_t i = 0; i < loop->slice.words; i++)
      is_polled |=
          loop->slice.word[i].address == loop->known.update[at] && origins_have_word(origins, i);
    if (!is_polled)
      return false;
  }
  return true;
}

/* The word for which the loop has waited, by what the branch depends on that left it; NULL where
 * it has not waited. */
static const struct shared_word *awaited_word(const struct encoder *encoder,
                                              const struct wait_loop *loop, origin_set origins) {
  const struct wait_slice *slice = &loop->slice;
  const struct shared_word *unseen = NULL;
  uint64_t equal = rounds_without_change(loop);
  for (uint32_t i = 0; i < slice->words; i++) {
    if (!is_polled_one(loop, origins, i))
      continue;
    uint64_t address = slice->word[i].address;
    const struct polled_look *first = look_at(loop->first_look, loop->first_looks, address);
    const struct polled_look *last = look_at(loop->look, loop->looks, address);
    if (last != NULL && last->clock != (first != NULL ? first->clock : 0))
      return &slice->word[i];
    /* Where the first round looked and no store has come since, it is none that ended the loop.
     * Where it could not look, few rounds are more often a loop that works, unless it is known that
     * another thread stores there. */
    uint32_t enough = slice->word[i].is_own ? ROUNDS_AT_OWN_WORD : ROUNDS_TO_LEARN;
    if (first == NULL &&
        (equal >= enough || polled_word_last_store(address, encoder->frame.thread) != 0))
      unseen = &slice->word[i];
  }
  return origins_vary(origins) ? NULL : unseen;
}

static void encode_as_work(struct encoder *encoder, struct wait_loop *loop) {
  encoder_consume_path(encoder, loop->lead, loop->lead + loop->lead_words);
  for (uint32_t i = 0; i < loop->runs; i++) {
    const struct shape *shape = &loop->known.shape[loop->run[i].shape];
    const uint64_t *from = loop->known.stored + shape->first;
    for (uint64_t times = loop->run[i].times; times > 0; times--)
      encoder_consume_path(encoder, from, from + shape->count);
  }
}

static void close_loop(struct encoder *encoder, struct wait_loop *loop, const uint64_t *at) {
  loop->is_open = false;
  loop->left_at = at;
  loop->left_filling = encoder->filling;
  encoder->is_waiting = false;
}

/* A loop that works is not looked at for some time: it may be the inner one of a loop that waits.
 */
static void pass_over(struct block_state *head, uint64_t rounds) {
  uint64_t more = 2 * (uint64_t)head->pass_over + PASS_OVER_FACTOR * (rounds + 1);
  head->pass_over = more < PASS_OVER_MAX ? (uint32_t)more : PASS_OVER_MAX;
  head->passed_over = head->pass_over;
}

static const uint64_t *is_work(struct encoder *encoder, struct wait_loop *loop,
                               const uint64_t *at) {
  encode_as_work(encoder, loop);
  struct block_state *head = predictor_state(&encoder->predictor, (uint32_t)loop->head_words[0]);
  pass_over(head, loop->rounds);
  const struct run *longest = &loop->run[0];
  for (uint32_t i = 1; i < loop->runs; i++)
    longest = loop->run[i].times > longest->times ? &loop->run[i] : longest;
  const struct shape *shape = &loop->known.shape[longest->shape];
  bool polls = !loop->slice.has_failed && reads_the_same_again(loop) &&
               origins_have_foreign_word(&loop->slice, loop->slice.branches);
  head->round_instructions = polls ? shape->instructions : 0;
  head->round_words = shape->count;
  encoder->polling_instructions += polls ? loop->instructions : 0;
  if (polls && loop->is_full)
    recording_meets_limit(LIMIT_ROUNDS);
  close_loop(encoder, loop, at);
  return at;
}

/* The store for which the loop has waited. Where its last round did not look, since the engine
 * still ran code that does not, the last store that has been made, if that was before the thread
 * did anything of which others may have known. */
static uint64_t awaited_store(const struct encoder *encoder, const struct wait_loop *loop,
                              uint64_t address, const uint64_t *at, const uint64_t *to) {
  const struct polled_look *look = look_at(loop->look, loop->looks, address);
  if (look != NULL && look->clock != 0)
    return look->clock;
  uint64_t clock = polled_word_last_store(address, encoder->frame.thread);
  for (; at < to; at += raw_words_of(at)) {
    if (word_is_marker(*at) && marker_has_clock(*at))
      return at[1] > clock ? clock : 0;
  }
  return clock;
}

static const uint64_t *is_waiting(struct encoder *encoder, struct wait_loop *loop, uint64_t address,
                                  const uint64_t *at, const uint64_t *to) {
  encoder_wait(encoder, address, awaited_store(encoder, loop, address, at, to), loop->rounds);
  predictor_state(&encoder->predictor, (uint32_t)loop->head_words[0])->pass_over = 0;
  close_loop(encoder, loop, at);
  return at;
}

/* No store ends the wait so far: the thread blocks at the word, and what wakes it is said by that,
 * or it polls to the end of the words, or goes on to. */
static const uint64_t *is_unended(struct encoder *encoder, struct wait_loop *loop,
                                  const uint64_t *at) {
  predictor_state(&encoder->predictor, (uint32_t)loop->head_words[0])->pass_over = 0;
  close_loop(encoder, loop, at);
  return at;
}

/* No round follows the one at `at`, which begins as they all do and leaves the loop at a branch
 * that `end` stands behind; NULL where none has left it (an interruption). */
static const uint64_t *leave(struct encoder *encoder, struct wait_loop *loop, const uint64_t *at,
                             const uint64_t *to, bool is_last, const struct path_exit *exit) {
  if (loop->rounds == 0) { /* Nothing has been left out, but what led to it. */
    encode_as_work(encoder, loop);
    close_loop(encoder, loop, at);
    return at;
  }
  slice_rounds(encoder, loop);
  if (loop->slice.has_failed || !reads_the_same_again(loop))
    return is_work(encoder, loop, at);
  origin_set origins = loop->slice.branches;
  if (exit->how == EXIT_BY_BRANCH) {
    origins = wait_slice_exit(&loop->slice, at, exit->end);
    note_looks(loop, at, exit->end);
  }
  if (!updates_what_it_polls(loop, origins))
    return is_work(encoder, loop, at);
  bool is_at_end = exit->how == EXIT_UNKNOWN && exit->is_at_end && is_last;
  if ((is_at_end || exit->how == EXIT_NOT_TAKEN) && polls_steadily(loop)) {
    learn(loop, origins);
    return is_unended(encoder, loop, at);
  }
  const struct shared_word *word = awaited_word(encoder, loop, origins);
  /* Nothing says how a loop would have gone on that was interrupted: it waits if nothing but the
   * words that it polls could end it. */
  if (exit->how == EXIT_BY_INTERRUPTION && word == NULL && !origins_vary(origins))
    word = polled_word(loop, origins);
  bool goes_to_sleep =
      exit->how == EXIT_INTO_WAIT && wait_rounds_have_load(&loop->known, exit->object);
  bool may_have_waited = exit->how == EXIT_BY_BRANCH && rounds_without_change(loop) > 0;
  if (word != NULL || (may_have_waited && !origins_vary(origins)))
    learn(loop, origins);
  if (word == NULL && exit->how == EXIT_BY_BRANCH) {
    struct path_sleep sleep;
    path_find_sleep(at, to, &sleep);
    if (sleep.is_unknown && !is_last) {
      encoder->is_waiting = true;
      return at;
    }
    goes_to_sleep = sleep.object != 0 && wait_rounds_have_load(&loop->known, sleep.object);
  }
  if (goes_to_sleep) {
    learn(loop, loop->slice.branches);
    return is_unended(encoder, loop, at);
  }
  if (word == NULL || loop->slice.has_failed || exit->how == EXIT_UNKNOWN ||
      exit->how == EXIT_NOT_TAKEN)
    return is_work(encoder, loop, at);
  return is_waiting(encoder, loop, word->address, at, to);
}

/* --- going round ---------------------------------------------------------------------------- */

static uint32_t newest_shape(const struct wait_loop *loop) {
  return loop->runs != 0 ? loop->run[loop->runs - 1].shape : 0;
}

static bool add_round(struct encoder *encoder, struct wait_loop *loop, const uint64_t *from,
                      const uint64_t *to) {
  uint32_t shape = wait_rounds_shape(&loop->known, newest_shape(loop), encoder->own, from, to);
  loop->is_full =
      shape == SHAPES_MAX || (loop->runs == RUNS_MAX && loop->run[loop->runs - 1].shape != shape);
  if (loop->is_full)
    return false;
  if (loop->runs == 0 || loop->run[loop->runs - 1].shape != shape)
    loop->run[loop->runs++] = (struct run){shape, 0};
  loop->run[loop->runs - 1].times++;
  loop->rounds++;
  loop->instructions += loop->known.shape[shape].instructions;
  note_looks(loop, from, to);
  keep_releases(encoder, from, to);
  return true;
}

/* The loop may go on for long: from now on stores to the words that end it are looked at. */
static void learn_early(struct encoder *encoder, struct wait_loop *loop) {
  if (loop->has_learned || loop->rounds < ROUNDS_TO_LEARN || !reads_the_same_again(loop))
    return;
  loop->has_learned = true;
  slice_rounds(encoder, loop);
  if (!loop->slice.has_failed)
    learn(loop, loop->slice.branches);
}

/* The way that the path at `at` takes where no round has gone. */
static void find_exit(const struct wait_loop *loop, const uint64_t *at, const uint64_t *to,
                      struct path_exit *exit) {
  path_find_exit(at, to, exit);
  while (exit->how == EXIT_BY_BRANCH && wait_rounds_have_edge(&loop->known, exit->from, exit->to))
    path_next_edge(to, exit);
}

/* Whether the round [at, end) has another shape than all before because a polled word has changed:
 * then the wait is over, although the thread comes back to wait again, and nothing between that
 * would not be in a loop which waits. Also where nobody can tell. */
static bool ends_the_wait(struct encoder *encoder, struct wait_loop *loop, const uint64_t *at,
                          const uint64_t *end, struct path_exit *exit) {
  if (loop->known.shapes == 0 || wait_rounds_have_shape(&loop->known, at, end))
    return false;
  find_exit(loop, at, end, exit);
  if (exit->how != EXIT_BY_BRANCH)
    return false;
  slice_rounds(encoder, loop);
  origin_set origins = wait_slice_exit(&loop->slice, at, exit->end);
  return loop->slice.has_failed || (!origins_vary(origins) && polled_word(loop, origins) != NULL);
}

static const uint64_t *go_round(struct encoder *encoder, struct wait_loop *loop, const uint64_t *at,
                                const uint64_t *to, bool is_last) {
  for (;;) {
    const uint64_t *end = at;
    enum path_round round = path_round(encoder->own, &loop->head, at, to, &end);
    struct path_exit exit;
    if (round == ROUND_ENDS && ends_the_wait(encoder, loop, at, end, &exit))
      return leave(encoder, loop, at, to, is_last, &exit);
    if (round == ROUND_ENDS && add_round(encoder, loop, at, end)) {
      at = end;
      continue;
    }
    if (round == ROUND_ENDS && path_has_interruption(at, end)) {
      exit.how = EXIT_NOT_TAKEN;
      return leave(encoder, loop, at, to, is_last, &exit);
    }
    if (round == ROUND_GOES_ON && !is_last) {
      learn_early(encoder, loop);
      encoder->is_waiting = true;
      return at;
    }
    find_exit(loop, at, to, &exit);
    if (exit.how == EXIT_UNKNOWN && exit.is_at_end && !is_last && round != ROUND_ENDS &&
        to - at < ROUND_WORDS_MAX) {
      encoder->is_waiting = true;
      return at;
    }
    return leave(encoder, loop, at, to, is_last, &exit);
  }
}

static struct wait_loop *open_loop(struct encoder *encoder, const struct path_head *head) {
  if (encoder->loop == NULL)
    encoder->loop = pages_allocate(sizeof(*encoder->loop));
  struct wait_loop *loop = encoder->loop;
  loop->is_open = true;
  memcpy(loop->head_words, head->words, head->count * sizeof(uint64_t));
  loop->head = (struct path_head){loop->head_words, head->count, head->polled};
  loop->known.shapes = loop->runs = loop->known.stored_words = loop->known.edges =
      loop->known.loads = loop->looks = 0;
  loop->known.updates = loop->known.widening = 0;
  loop->has_first = false;
  loop->lead_words = 0;
  loop->rounds = loop->instructions = 0;
  loop->has_learned = loop->is_full = false;
  memset(loop->known.edge, 0, sizeof(loop->known.edge));
  return loop;
}

static void note_first_looks(struct wait_loop *loop, const uint64_t *from, const uint64_t *to) {
  note_looks(loop, from, to);
  loop->first_looks = loop->looks;
  memcpy(loop->first_look, loop->look, sizeof(loop->look));
}

static bool has_just_left(const struct encoder *encoder, const uint64_t *words) {
  const struct wait_loop *loop = encoder->loop;
  return loop != NULL && loop->left_at == words && loop->left_filling == encoder->filling;
}

/* What the thread updated last before the execution at `words`. */
static struct path_place last_update(const struct encoder *encoder, struct wait_loop *loop,
                                     const uint64_t *words) {
  if (loop->updates_filling != encoder->filling || loop->updates.at > words) {
    loop->updates = (struct path_updates){.at = encoder->filled_from};
    loop->updates_filling = encoder->filling;
  }
  path_updates_up_to(encoder->own, &loop->updates, words);
  return loop->updates.last;
}

const uint64_t *wait_loop_encode(struct encoder *encoder, const uint64_t *last,
                                 const uint64_t *words, const uint64_t *to, bool is_last) {
  const uint64_t *end = NULL;
  struct block_state *state = predictor_state(&encoder->predictor, (uint32_t)*words);
  struct path_head head = {words, state->raw_words, {0, 0}};
  if (state->raw_words > HEAD_WORDS_MAX || has_just_left(encoder, words) ||
      path_round(encoder->own, &head, last, to, &end) != ROUND_ENDS || end > words ||
      path_behind_notes(end, words) != words)
    return words;
  if (!round_reads_what_it_does_not_store(last, end)) {
    if (!was_interrupted(last + state->raw_words, end)) /* before it has read anything, perhaps */
      pass_over(state, 32);
    return words;
  }
  struct wait_loop *loop = open_loop(encoder, &head);
  if (wait_rounds_shape(&loop->known, newest_shape(loop), encoder->own, last, words) ==
      SHAPES_MAX) {
    close_loop(encoder, loop, NULL);
    return words;
  }
  loop->has_first = true;
  note_first_looks(loop, last, words);
  if (loop->looks == 0)
    loop->entry = last_update(encoder, loop, last);
  return go_round(encoder, loop, words, to, is_last);
}

/* The execution behind `words` looks at what it may wait for, and is none of a round: it does more
 * (from a ticket that it takes, the code may run straight into the loop), or a compiler has taken
 * the loop's first look out of it. It is encoded; what follows up to the next look is waiting if
 * that begins a loop that waits, or sees a new store and the thread has let time pass before. */
static const uint64_t *wait_behind_look(struct encoder *encoder, const struct path_head *head,
                                        const uint64_t *words, const uint64_t *to, bool is_last) {
  const uint64_t *lead = head->words + head->count, *end = NULL;
  struct polled_look look;
  struct next_look next;
  if (!entry_look(words, head->words, head->polled.address, &look) ||
      !entry_next_look(lead, to, look.address, &next) || next.notes == lead ||
      raw_words_of(next.execution) > HEAD_WORDS_MAX)
    return words;
  struct path_head first = {
      next.execution, (uint32_t)raw_words_of(next.execution), {look.address, next.pc}};
  bool sees_store = next.clock != look.clock;
  if (path_round(encoder->own, &first, lead, to, &end) != ROUND_ENDS || end != next.notes ||
      (sees_store && !entry_lets_time_pass(lead, end)))
    return words;
  for (const uint64_t *note = words; note < head->words; note += raw_words_of(note))
    encoder_note(encoder, note);
  encoder_consume_executions(encoder, head->words, lead);
  if (sees_store) {
    keep_releases(encoder, lead, end);
    return end;
  }
  struct wait_loop *loop = open_loop(encoder, &first);
  memcpy(loop->lead, lead, (size_t)(end - lead) * sizeof(uint64_t));
  loop->lead_words = (uint32_t)(end - lead);
  note_first_looks(loop, end, next.execution);
  loop->entry.address = 0;
  if (!polled_word_has_waited(look.address))
    loop->entry = last_update(encoder, loop, end);
  return go_round(encoder, loop, end, to, is_last);
}

const uint64_t *wait_loop_at_look(struct encoder *encoder, const uint64_t *words,
                                  const uint64_t *to, bool is_last) {
  const uint64_t *first = path_behind_notes(words, to), *end = NULL;
  if (first >= to || word_is_marker(*first) || first + raw_words_of(first) > to ||
      raw_words_of(first) > HEAD_WORDS_MAX || has_just_left(encoder, words))
    return words;
  struct path_head head = {first, (uint32_t)raw_words_of(first),
                           entry_polled(encoder, words, first)};
  if (head.polled.address == 0)
    return words;
  enum path_round round = ROUND_LEAVES;
  if (!entry_updates_another(first, head.polled.address))
    round = path_round(encoder->own, &head, words, to, &end);
  if (round == ROUND_LEAVES)
    return wait_behind_look(encoder, &head, words, to, is_last);
  if (round == ROUND_GOES_ON && is_last)
    return words;
  struct wait_loop *loop = open_loop(encoder, &head);
  note_first_looks(loop, words, first);
  loop->entry.address = 0;
  if (!polled_word_has_waited(head.polled.address))
    loop->entry = last_update(encoder, loop, words);
  return go_round(encoder, loop, words, to, is_last);
}

const uint64_t *wait_loop_go_on(struct encoder *encoder, const uint64_t *words, const uint64_t *to,
                                bool is_last) {
  return go_round(encoder, encoder->loop, words, to, is_last);
}
