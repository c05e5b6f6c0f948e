/* SPDX-License-Identifier: Apache-2.0 */
#include "spin_rounds.h"

#include "raw_words.h"
#include "record_format.h"
#include "varint.h"

/* Longer loops are not looked at. */
#define SPIN_BLOCKS_MAX 9u

/* The words of one round of the loop that may begin at `from`, up to where its first block comes
 * again; 0 where there is none that only reads. */
static size_t spin_round_words(struct encoder *encoder, const uint64_t *from, const uint64_t *to) {
  const uint64_t *at = from;
  bool reads = false;
  for (uint32_t blocks = 0; blocks < SPIN_BLOCKS_MAX; blocks++) {
    if (at >= to || word_is_marker(*at))
      return 0;
    if (at != from && *at == *from)
      return reads ? (size_t)(at - from) : 0;
    const struct block_state *state = predictor_state(&encoder->predictor, (uint32_t)*at);
    if ((state->flags & BLOCK_WRITES) != 0)
      return 0;
    reads |= (state->flags & BLOCK_READS) != 0;
    at += state->raw_words;
  }
  return 0;
}

/* The block that left the loop: the last one of the unfinished round at `after` that was executed
 * as in the round at `round`, or the round's last where there is none. Sets where its words are. */
static const struct block_state *spin_exit(struct encoder *encoder, const uint64_t *round,
                                           size_t count, const uint64_t *after, const uint64_t *to,
                                           const uint64_t **words) {
  const struct block_state *last = NULL, *unfinished = NULL;
  bool is_as_before = true;
  for (const uint64_t *at = round; at < round + count; at += last->raw_words) {
    const uint64_t *now = after + (at - round);
    last = predictor_state(&encoder->predictor, (uint32_t)*at);
    is_as_before =
        is_as_before && now + last->raw_words <= to && words_are_equal(at, now, last->raw_words);
    if (is_as_before)
      unfinished = last;
    if (is_as_before || unfinished == NULL)
      *words = at;
  }
  return unfinished != NULL ? unfinished : last;
}

static uint64_t first_load(const struct block_state *state, const uint64_t *words) {
  const struct block *block = code_table_get(state->id);
  for (uint32_t i = 0; i < block->slots; i++) {
    if (block->slot[i].kind == SLOT_LOAD)
      return words[block->slot[i].raw] + (uint64_t)block->slot[i].displacement;
  }
  return 0;
}

/* The block of the round that reads memory, where one of the unfinished round at `after` was
 * interrupted: then none has left the loop. NULL where none was. Sets where its words are. */
static const struct block_state *spin_interrupted(struct encoder *encoder, const uint64_t *round,
                                                  size_t count, const uint64_t *after,
                                                  const uint64_t *to, const uint64_t **words) {
  const struct block_state *reader = NULL, *state;
  bool is_interrupted = false, is_same = true;
  for (const uint64_t *at = round; at < round + count; at += state->raw_words) {
    const uint64_t *now = after + (at - round);
    state = predictor_state(&encoder->predictor, (uint32_t)*at);
    is_same = is_same && now < to && *now == *at;
    is_interrupted = is_interrupted || (is_same && was_interrupted(now + state->raw_words, to));
    if (reader == NULL && (state->flags & BLOCK_READS) != 0) {
      reader = state;
      *words = at;
    }
  }
  return is_interrupted ? reader : NULL;
}

/* The loop has ended: its rounds were waiting if the block that left it had just read memory; if
 * not, it was counting, and its rounds are work. */
static void end_spin(struct encoder *encoder, const uint64_t *round, size_t count,
                     const uint64_t *after, const uint64_t *to) {
  const uint64_t *exit_words = round;
  const struct block_state *exit = spin_interrupted(encoder, round, count, after, to, &exit_words);
  if (exit == NULL)
    exit = spin_exit(encoder, round, count, after, to, &exit_words);
  if ((exit->flags & BLOCK_READS) == 0) {
    for (; encoder->spin_rounds > 0; encoder->spin_rounds--)
      encoder_consume_executions(encoder, round, round + count);
  } else if (encoder->spin_rounds > 0) {
    uint8_t fields[2 * VARINT_BYTES_MAX], *out = fields;
    out = varint_write(out, first_load(exit, exit_words));
    out = varint_write(out, encoder->spin_rounds);
    encoder_make_room(encoder);
    /* Nobody saw the moment when it ended: it stands where the thread's last event stood. */
    trace_frame_event(&encoder->frame, EVENT_SPIN_WAIT, true, encoder->frame.clock_last, fields,
                      (uint32_t)(out - fields));
  }
  encoder->is_spinning = false;
  encoder->spin_rounds = 0;
}

const uint64_t *spin_rounds_encode(struct encoder *encoder, const uint64_t *words,
                                   const uint64_t *to, bool is_last) {
  size_t count = encoder->spin_words;
  if (!encoder->is_spinning) {
    count = spin_round_words(encoder, words, to);
    if (count == 0)
      return NULL;
    encoder_consume_executions(encoder, words, words + count);
    encoder->is_spinning = true;
    encoder->spin_words = count;
  }
  const uint64_t *at = words + count;
  for (; at + count <= to && words_are_equal(words, at, count) && !was_interrupted(at + count, to);
       at += count)
    encoder->spin_rounds++;
  size_t rest = (size_t)(to - at);
  if (!is_last && rest < count && words_are_equal(words, at, rest))
    return at - count;
  end_spin(encoder, words, count, at, to);
  return at;
}
