/* SPDX-License-Identifier: Apache-2.0 */
/* The table of what processes supply each other, with no engine and no program.
 *   full PREFIX     more channels and supplies than it has room for
 *   killed PREFIX   processes that use it are killed, wherever they are */
#include "arena.h"
#include "channel_key.h"
#include "channels.h"
#include "encoding_platform.h"
#include "sent_signals.h"

#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define CHECK(holds)                                                                               \
  do {                                                                                             \
    if (!(holds)) {                                                                                \
      fprintf(stderr, "line %d: %s\n", __LINE__, #holds);                                          \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

#define KEYS 40
#define KILLED 400
#define PROCESSES 3

static uint64_t pipe_key(uint64_t number) { return number << 3 | CHANNEL_OF_BYTES; }

/* What is not consumed of one channel: the newest supply stands for those that have no room. */
static void overfill_one(void) {
  uint64_t clock[1100];
  for (int i = 0; i < 1100; i++)
    clock[i] = channels_give(pipe_key(1), 10).clock;
  CHECK(channels_look(pipe_key(1), 10).clock == clock[0]);
  CHECK(channels_take(pipe_key(1), 11).clock == clock[1]);
  CHECK(channels_take(pipe_key(1), 9).clock == clock[1]);
  CHECK(channels_take(pipe_key(1), 10 * 1021).clock == clock[1022]);
  CHECK(channels_take(pipe_key(1), 10).clock == clock[1099]);
  CHECK(channels_take(pipe_key(1), 10 * 76).clock == clock[1099]);
  CHECK(channels_take(pipe_key(1), 1).clock == 0);
}

static void fill_supplies(void) {
  uint64_t number = 2, given = 0;
  struct transfer_edge last = {1, 0};
  for (; last.channel != 0; number++) {
    for (int i = 0; i < 1000 && last.channel != 0; i++, given++)
      last = channels_give(pipe_key(number), 1);
  }
  /* The last that had no room left was in a channel of its own, or it would have been joined. */
  CHECK(given > SUPPLIES_MAX);
  CHECK(channels_take(pipe_key(2), 1000).clock != 0);
  CHECK(channels_give(pipe_key(number), 1).channel != 0);
}

static void fill_channels(void) {
  uint64_t number = 1u << 20, met = supply_table()->channels_met;
  while (channels_number(pipe_key(number)) != 0)
    number++;
  CHECK(number - (1u << 20) + met == CHANNELS_MAX / 2);
  CHECK(channels_give(pipe_key(number), 1).channel == 0);
  CHECK(channels_take(pipe_key(number), 1).channel == 0);
  CHECK(channels_number(pipe_key(number - 1)) == CHANNELS_MAX / 2);
}

static void fill_signals(void) {
  struct system_call call = {.x86_64 = SYS_kill, .argument = {(uint64_t)recording.process, 34}};
  uint32_t dropped = 0;
  uint64_t first = sent_signals_send(&the_thread, &call, &dropped);
  for (uint32_t i = 1; i < SIGNALS_MAX; i++) {
    CHECK(sent_signals_send(&the_thread, &call, &dropped) > first);
    CHECK(dropped == 0);
  }
  CHECK(sent_signals_send(&the_thread, &call, &dropped) > first && dropped == 1);
  struct thread other = {.id = 1};
  CHECK(sent_signals_take(&other, 34) == first + 1);
  supply_table_end(supply_table(), recording.process);
  CHECK(sent_signals_take(&other, 34) == 0);
}

/* Until it is killed. */
static void use(unsigned seed) {
  recording.process = getpid();
  for (;;) {
    uint64_t key = pipe_key(1 + (uint64_t)rand_r(&seed) % KEYS);
    switch (rand_r(&seed) % 3) {
    case 0:
      channels_give(key, 1);
      break;
    case 1:
      channels_take(key, 1);
      break;
    default:
      channels_connect(key, pipe_key(1000 + (uint64_t)rand_r(&seed) % 100000));
    }
  }
}

static pid_t begin(unsigned seed) {
  pid_t child = fork();
  if (child == 0)
    use(seed);
  return child;
}

/* Each supply stands in one list, of a channel or of those that are free. */
static void check_links(void) {
  static bool is_seen[SUPPLIES_MAX + 1];
  const struct supply_table *table = supply_table();
  for (uint32_t i = 0; i <= CHANNELS_MAX; i++) {
    uint32_t at = i < CHANNELS_MAX ? table->channel[i].first : table->free;
    for (; at != 0; at = table->supply[at - 1].next) {
      CHECK(at <= table->used && !is_seen[at]);
      is_seen[at] = true;
    }
  }
}

static void kill_users(void) {
  pid_t user[PROCESSES];
  unsigned seed = 1;
  for (int i = 0; i < PROCESSES; i++)
    user[i] = begin(seed++);
  for (int i = 0; i < KILLED; i++) {
    pid_t *one = &user[i % PROCESSES];
    nanosleep(&(struct timespec){.tv_nsec = 1000 * (rand_r(&seed) % 1000)}, NULL);
    kill(*one, SIGKILL);
    waitpid(*one, NULL, 0);
    supply_table_end(supply_table(), *one);
    *one = i + PROCESSES < KILLED ? begin(seed++) : 0;
  }
  CHECK(supply_table()->lock == 0);
  check_links();
}

int main(int count, char **arguments) {
  pages_init();
  if (count != 3 || !open_recording(arguments[2], true))
    return 2;
  recording.tree->used = 1;
  recording.tree->place[0].process = recording.process;
  if (strcmp(arguments[1], "killed") == 0) {
    kill_users();
    return 0;
  }
  overfill_one();
  fill_supplies();
  fill_signals();
  fill_channels();
  return 0;
}
