// SPDX-License-Identifier: Apache-2.0
//
// Measures what it costs to persist lines on the machine at hand, point by point (points.h).
//
// Every round goes through all points, so that whatever changes while it runs meets all of them.
// Before a batch its lines are brought into their state; only the loop over them is timed. Between
// markers it is also what a recorder sees, so the same program can be simulated. It prints what the
// machine is and every sample; statistics are for whoever reads them.
#define _GNU_SOURCE
#include <fcntl.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdalign.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "options.h"
#include "points.h"
#include "region.h"
#include "scramble.h"
#include "timer.h"

#ifndef MAP_SYNC
#define MAP_SYNC 0x80000
#endif
#ifndef MAP_SHARED_VALIDATE
#define MAP_SHARED_VALIDATE 0x03
#endif

static const char usage[] =
    "persist [--rounds N] [--warm-up N] [--threads N] [--cpu N] [--file FILE]";

// Where it lies is part of what is simulated. A wish: an emulator may have no such place.
#define ARENA_ADDRESS ((char *)0x200000000000)

enum {
  ARENA_BYTES = 1 << 20,
  THREADS_MAX = 64,
  ROUNDS_MAX = 100000,
  CHAIN_STRIDE = 4,
  CHAIN_SLOTS = 128
};

struct settings {
  unsigned rounds, warm_up, threads;
  int cpu; // the first that is used; -1: the first that is allowed
  const char *file;
};

// A thread's part of a batch.
struct part {
  char *lines[BATCH_LINES];
  uint64_t ticks, cycles;
};

static struct measurement {
  struct settings settings;
  struct points points;
  uint64_t *samples[POINTS_MAX], *cycles[POINTS_MAX];
  struct cycle_counter counter;
  char *arena; // a part of ARENA_BYTES for each thread
  cpu_set_t allowed;
  const struct point *point; // under way; NULL: the threads end
  unsigned round;
  pthread_barrier_t barrier;
  struct part parts[THREADS_MAX];
} measurement;

__attribute__((noreturn)) static void fail(const char *what) {
  perror(what);
  exit(EXIT_FAILURE);
}

static inline void store(char *line, uint64_t value) { *(volatile uint64_t *)line = value; }
static inline uint64_t load(const char *line) { return *(const volatile uint64_t *)line; }

static inline void store_past_caches(char *line, uint64_t value) {
#if defined(__x86_64__)
  for (int word = 0; word < 8; word++)
    __asm__ volatile("movnti %1, %0" : "=m"(*(volatile uint64_t *)(line + 8 * word)) : "r"(value));
#else
  store(line, value);
#endif
}

static void evict(char *const *lines, unsigned count) {
#if defined(__x86_64__)
  const enum flush flush = FLUSH_CLFLUSH;
#else
  const enum flush flush = FLUSH_CIVAC;
#endif
  for (unsigned i = 0; i < count; i++)
    flush_range(flush, lines[i], 1);
  fence(flush);
}

// Inlined with constants, so that each loop has nothing but its own instructions.
__attribute__((always_inline)) static inline void groups(enum action action, enum flush flush,
                                                         char *const *lines, unsigned of_group,
                                                         unsigned count) {
  for (unsigned group = 0; group < count; group++, lines += of_group)
    for (int time = 0; time < (action == TWICE ? 2 : 1); time++) {
      for (unsigned i = 0; i < of_group; i++) {
        if (action == UPDATE || action == UPDATE_PAST)
          store(lines[i] + 8, load(lines[i]));
        if (action == STORE_FENCE || action == PERSIST || action == UPDATE || action == TWICE)
          store(lines[i], group);
        if (action == NON_TEMPORAL || action == UPDATE_PAST)
          store_past_caches(lines[i], group);
      }
      if (flush != FLUSH_NONE)
        for (unsigned i = 0; i < of_group; i++)
          flush_range(flush, lines[i], 1);
      store_fence();
    }
}

#define OF_FLUSH(ACTION)                                                                           \
  switch (point->flush) {                                                                          \
  case FLUSH_NONE:                                                                                 \
    groups(ACTION, FLUSH_NONE, lines, point->lines, count);                                        \
    break;                                                                                         \
  case FLUSH_CLFLUSH:                                                                              \
    groups(ACTION, FLUSH_CLFLUSH, lines, point->lines, count);                                     \
    break;                                                                                         \
  case FLUSH_CLFLUSHOPT:                                                                           \
    groups(ACTION, FLUSH_CLFLUSHOPT, lines, point->lines, count);                                  \
    break;                                                                                         \
  case FLUSH_CLWB:                                                                                 \
    groups(ACTION, FLUSH_CLWB, lines, point->lines, count);                                        \
    break;                                                                                         \
  case FLUSH_CIVAC:                                                                                \
    groups(ACTION, FLUSH_CIVAC, lines, point->lines, count);                                       \
    break;                                                                                         \
  case FLUSH_CVAC:                                                                                 \
    groups(ACTION, FLUSH_CVAC, lines, point->lines, count);                                        \
    break;                                                                                         \
  case FLUSH_CVAP:                                                                                 \
    groups(ACTION, FLUSH_CVAP, lines, point->lines, count);                                        \
    break;                                                                                         \
  }                                                                                                \
  break

static void act(const struct point *point, char *const *lines, unsigned count) {
  switch (point->action) {
  case STORE_FENCE:
    OF_FLUSH(STORE_FENCE);
  case FLUSH_FENCE:
    OF_FLUSH(FLUSH_FENCE);
  case PERSIST:
    OF_FLUSH(PERSIST);
  case UPDATE:
    OF_FLUSH(UPDATE);
  case TWICE:
    OF_FLUSH(TWICE);
  case NON_TEMPORAL:
    groups(NON_TEMPORAL, FLUSH_NONE, lines, point->lines, count);
    break;
  case UPDATE_PAST:
    groups(UPDATE_PAST, FLUSH_NONE, lines, point->lines, count);
    break;
  case READ:
    for (const char *line = lines[0]; line != NULL; line = (const char *)load(line))
      ;
    break;
  default:
    break;
  }
}

// A chain goes through random slots of a window: lines apart, so that no prefetcher fetches one
// with another, in few pages, so that no load misses the TLB, and not more of them in a set of the
// first level than that has ways.
static void choose_chain(struct part *part, char *arena, unsigned round, unsigned count) {
  unsigned windows = ARENA_BYTES / LINE_BYTES / CHAIN_STRIDE / CHAIN_SLOTS;
  char *window = arena + scramble(round) % windows * CHAIN_SLOTS * CHAIN_STRIDE * LINE_BYTES;
  unsigned slots[CHAIN_SLOTS];
  for (unsigned i = 0; i < CHAIN_SLOTS; i++)
    slots[i] = i;
  for (unsigned i = 0; i < count; i++) {
    unsigned other = i + (unsigned)(scramble(round * UINT64_C(65536) + i) % (CHAIN_SLOTS - i));
    unsigned chosen = slots[other];
    slots[other] = slots[i];
    part->lines[i] = window + (size_t)chosen * CHAIN_STRIDE * LINE_BYTES;
  }
}

// Which lines of a thread's part of the arena a batch has.
static void choose_lines(struct part *part, char *arena, const struct point *point, unsigned round,
                         unsigned count) {
  if (point->action == READ) {
    choose_chain(part, arena, round, count);
    return;
  }
  unsigned in_arena = ARENA_BYTES / LINE_BYTES;
  unsigned first = (unsigned)(scramble(round) % (in_arena / BATCH_LINES)) * BATCH_LINES;
  // Any lines of the whole part, each once: a step that is odd passes all of a power of two.
  uint64_t step = point->arrangement == SEQUENTIAL ? 1 : scramble(~(uint64_t)round) | 1;
  for (unsigned i = 0; i < count; i++)
    part->lines[i] = arena + (size_t)((first + i * step) % in_arena) * LINE_BYTES;
}

static void prepare(const struct part *part, const struct point *point, unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (point->action == READ)
      store(part->lines[i], i + 1 < count ? (uintptr_t)part->lines[i + 1] : 0);
    else
      store(part->lines[i], i);
  if (point->state == CLEAN || point->state == ABSENT)
    evict(part->lines, count);
  if (point->state == CLEAN)
    for (unsigned i = 0; i < count; i++)
      load(part->lines[i]);
  if (point->state == FLUSHED)
    for (unsigned i = 0; i < count; i++)
      flush_range(point->flush, part->lines[i], 1);
  store_fence();
  timer_ticks(); // which waits for all that
}

// A thread's part of a batch. With `is_marked` the calling thread marks the region.
static void batch(unsigned thread, const struct point *point, unsigned round, bool is_marked) {
  struct part *part = &measurement.parts[thread];
  unsigned count = point->action == NOTHING ? 0 : point_groups(point);
  choose_lines(part, measurement.arena + (size_t)thread * ARENA_BYTES, point, round,
               point_groups(point) * point->lines);
  prepare(part, point, point_groups(point) * point->lines);
  if (point->threads > 1)
    pthread_barrier_wait(&measurement.barrier);
  uint64_t cycles = thread == 0 ? cycle_counter_read(&measurement.counter) : 0;
  uint64_t begin = timer_ticks();
  if (is_marked && thread == 0)
    region_begin();
  act(point, part->lines, count);
  uint64_t end = timer_ticks();
  if (is_marked && thread == 0)
    region_end();
  part->ticks = end - begin;
  part->cycles = thread == 0 ? cycle_counter_read(&measurement.counter) - cycles : 0;
}

static void pin(unsigned nth) {
  int wanted = measurement.settings.cpu;
  for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
    if (!CPU_ISSET(cpu, &measurement.allowed) || cpu < wanted || nth-- != 0)
      continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(cpu, &own);
    if (sched_setaffinity(0, sizeof own, &own) != 0)
      fail("cannot pin a thread");
    return;
  }
}

static void *member(void *argument) {
  unsigned thread = (unsigned)(uintptr_t)argument;
  pin(thread);
  for (;;) {
    pthread_barrier_wait(&measurement.barrier);
    const struct point *point = measurement.point;
    if (point == NULL)
      return NULL;
    if (thread < point->threads)
      batch(thread, point, measurement.round, false);
    else
      pthread_barrier_wait(&measurement.barrier);
    pthread_barrier_wait(&measurement.barrier);
  }
}

// Ticks of a batch, over its threads the mean.
static uint64_t sample(const struct point *point, unsigned round, bool is_marked) {
  if (point->threads == 1) {
    batch(0, point, round, is_marked);
    return measurement.parts[0].ticks;
  }
  measurement.point = point;
  measurement.round = round;
  pthread_barrier_wait(&measurement.barrier);
  batch(0, point, round, is_marked);
  pthread_barrier_wait(&measurement.barrier);
  uint64_t ticks = 0;
  for (unsigned thread = 0; thread < point->threads; thread++)
    ticks += measurement.parts[thread].ticks;
  return ticks / point->threads;
}

// A file that lies in memory, or a new one of the name that is given, which goes with the process:
// what another file has in it must not be written over. Gives what it is.
static const char *map_arena(size_t bytes) {
  const char *path = measurement.settings.file;
  int file = path == NULL ? memfd_create("persist", MFD_CLOEXEC)
                          : open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file >= 0 && path != NULL)
    unlink(path); // the file stays as long as it is mapped
  if (file < 0 || (errno = posix_fallocate(file, 0, (off_t)bytes)) != 0)
    fail(path == NULL ? "cannot make a file in memory" : path);
  const char *kind = "DAX file (MAP_SYNC)";
  char *base =
      mmap(ARENA_ADDRESS, bytes, PROT_READ | PROT_WRITE, MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
  if (base == MAP_FAILED) {
    kind = path == NULL ? "file in memory" : "file, not DAX";
    base = mmap(ARENA_ADDRESS, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  }
  if (base == MAP_FAILED)
    fail("cannot map the arena");
  close(file);
  measurement.arena = base;
  memset(base, 0, bytes);
  return kind;
}

static struct settings parse(int count, char **values) {
  static const struct option options[] = {
      {"rounds", required_argument, NULL, 'r'},  {"warm-up", required_argument, NULL, 'w'},
      {"threads", required_argument, NULL, 't'}, {"cpu", required_argument, NULL, 'c'},
      {"file", required_argument, NULL, 'f'},    {0}};
  struct settings settings = {.rounds = 200, .warm_up = 20, .threads = 1, .cpu = -1};
  for (int option; (option = getopt_long(count, values, "", options, NULL)) != -1;)
    switch (option) {
    case 'r':
      settings.rounds = (unsigned)number_option(usage, "--rounds", optarg, 1, ROUNDS_MAX);
      break;
    case 'w':
      settings.warm_up = (unsigned)number_option(usage, "--warm-up", optarg, 0, ROUNDS_MAX);
      break;
    case 't':
      settings.threads = (unsigned)number_option(usage, "--threads", optarg, 1, THREADS_MAX);
      break;
    case 'c':
      settings.cpu = (int)number_option(usage, "--cpu", optarg, 0, CPU_SETSIZE - 1);
      break;
    case 'f':
      settings.file = optarg;
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  return settings;
}

// One line for each point: what it is, then its samples in ticks; a second one with its cycles.
static void print_points(unsigned rounds) {
  for (unsigned p = 0; p < measurement.points.count; p++) {
    const struct point *point = &measurement.points.all[p];
    const char *state = point->action == NOTHING ? "-" : state_names[point->state];
    printf("point %s %s %s %s %u %u %u", action_names[point->action], point_primitive(point), state,
           arrangement_names[point->arrangement], point->lines, point->threads,
           point_groups(point));
    for (unsigned round = 0; round < rounds; round++)
      printf(" %" PRIu64, measurement.samples[p][round]);
    printf("\n");
    if (measurement.counter.file < 0)
      continue;
    printf("cycles");
    for (unsigned round = 0; round < rounds; round++)
      printf(" %" PRIu64, measurement.cycles[p][round]);
    printf("\n");
  }
}

static void print_platform(const char *memory, double ticks_per_ns) {
  printf("memory %s\n", memory);
  printf("arena 0x%" PRIxPTR "\n", (uintptr_t)measurement.arena);
  printf("ticks_per_ns %.9f\n", ticks_per_ns);
  printf("counter %s\n", measurement.counter.file >= 0 ? "yes" : measurement.counter.reason);
  printf("cpu %d\n", sched_getcpu());
  for (enum flush flush = FLUSH_CLFLUSH; flush <= FLUSH_CVAP; flush++)
    if (flush_is_of_this_set(flush))
      printf("primitive %s %s\n", flush_names[flush], flush_is_supported(flush) ? "yes" : "no");
}

static void allocate_samples(unsigned rounds) {
  for (unsigned p = 0; p < measurement.points.count; p++) {
    measurement.samples[p] = calloc(rounds, sizeof(uint64_t));
    measurement.cycles[p] = calloc(rounds, sizeof(uint64_t));
    if (measurement.samples[p] == NULL || measurement.cycles[p] == NULL)
      fail("no memory for the samples");
  }
}

int main(int count, char **values) {
  struct settings settings = measurement.settings = parse(count, values);
  if (sched_getaffinity(0, sizeof measurement.allowed, &measurement.allowed) != 0)
    fail("cannot tell which processors are allowed");
  int processors = CPU_COUNT(&measurement.allowed);
  if (settings.cpu >= 0 && !CPU_ISSET(settings.cpu, &measurement.allowed))
    usage_error(usage, "--cpu %d: not one of the processors that are allowed", settings.cpu);
  if (settings.threads > (unsigned)processors)
    usage_error(usage, "--threads %u: %d processors are allowed", settings.threads, processors);
  points_all(&measurement.points, settings.threads);
  allocate_samples(settings.rounds);
  pin(0);
  const char *memory = map_arena((size_t)settings.threads * ARENA_BYTES);
  measurement.counter = cycle_counter_open();
  pthread_t members[THREADS_MAX];
  pthread_barrier_init(&measurement.barrier, NULL, settings.threads);
  for (unsigned thread = 1; thread < settings.threads; thread++)
    if (pthread_create(&members[thread], NULL, member, (void *)(uintptr_t)thread) != 0)
      fail("cannot start a thread");

  uint64_t begin_ns = clock_ns(), begin = timer_ticks();
  for (unsigned round = 0; round < settings.warm_up + settings.rounds; round++)
    for (unsigned p = 0; p < measurement.points.count; p++) {
      bool is_measured = round >= settings.warm_up;
      uint64_t ticks = sample(&measurement.points.all[p], round, is_measured);
      if (is_measured) {
        measurement.samples[p][round - settings.warm_up] = ticks;
        measurement.cycles[p][round - settings.warm_up] = measurement.parts[0].cycles;
      }
    }
  double elapsed_ns = (double)(clock_ns() - begin_ns);
  double ticks_per_ns = (double)(timer_ticks() - begin) / elapsed_ns;

  measurement.point = NULL;
  if (settings.threads > 1)
    pthread_barrier_wait(&measurement.barrier);
  for (unsigned thread = 1; thread < settings.threads; thread++)
    pthread_join(members[thread], NULL);
  print_platform(memory, ticks_per_ns);
  print_points(settings.rounds);
  return EXIT_SUCCESS;
}
