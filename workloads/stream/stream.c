// SPDX-License-Identifier: Apache-2.0
//
// STREAM's four kernels (copy, scale, add, triad) over arrays in memory of any NUMA node, or in a
// libpmemobj pool. `fencepost measure stream` runs it; it is recorded and simulated like any other
// program, with a region of interest for each kernel of each repetition but the first.
//
// Every kernel begins when all threads stand at a barrier, and ends when the last is done. Each
// thread owns the same part of every array. The program prints what it did, each repetition's
// seconds, and whether all elements hold what they should; statistics are for whoever reads them.
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

#include "arrays.h"
#include "check.h"
#include "nodes.h"
#include "pmdk.h"
#include "region.h"
#include "settings.h"

static struct {
  struct settings settings;
  double *arrays[ARRAYS];
  bool is_new; // the arrays have to be filled
  const char *memory;
  double seconds[KERNELS][REPETITIONS_MAX];
  pthread_barrier_t barrier;
} stream;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void pin(unsigned thread) {
  if (stream.settings.cpu_count == 0)
    return;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(stream.settings.cpus[thread], &own);
  if (sched_setaffinity(0, sizeof own, &own) != 0) {
    fprintf(stderr, "stream: a thread cannot be pinned to processor %d: %s%s\n",
            stream.settings.cpus[thread], strerror(errno),
            errno == EINVAL ? " (no such processor, or not allowed by the cpuset)" : "");
    exit(EXIT_USAGE);
  }
}

static void fill(size_t begin, size_t end) {
  for (size_t element = begin; element < end; element++)
    for (unsigned array = 0; array < ARRAYS; array++)
      stream.arrays[array][element] = initial_value(array, element);
}

// A kernel over some elements, as TX_BEGIN wants it: in a function of its own.
struct stretch {
  unsigned kernel;
  size_t begin, end;
};

static void act(void *argument) {
  const struct stretch *stretch = argument;
  if (stream.settings.access == ACCESS_D_RW) {
    d_rw_loops[stretch->kernel](stretch->begin, stretch->end);
    return;
  }
  struct operands own = operands[stretch->kernel];
  pointer_loops[stream.settings.stores][stretch->kernel](
      stream.arrays[own.to] + stretch->begin, stream.arrays[own.x] + stretch->begin,
      stream.arrays[own.y] + stretch->begin, stretch->end - stretch->begin);
}

// A thread's part of a kernel, made durable as the settings say.
static void kernel_part(unsigned thread, unsigned kernel, size_t begin, size_t end) {
  const struct settings *settings = &stream.settings;
  struct stretch stretch = {kernel, begin, end};
  if (settings->durable == DURABLE_NONE) {
    act(&stretch);
    return;
  }
  struct progress *progress = &pool_progress()[thread];
  size_t block = block_of(settings, end - begin);
  for (; stretch.begin < end; stretch.begin += block) {
    double *written = stream.arrays[operands[kernel].to] + stretch.begin;
    stretch.end = stretch.begin + block < end ? stretch.begin + block : end;
    if (settings->durable == DURABLE_TRANSACTION) {
      pool_transaction(progress, written, stretch.end - stretch.begin, act, &stretch);
    } else {
      act(&stretch);
      pool_persist(progress, written, stretch.end - stretch.begin);
    }
  }
}

// STREAM leaves out the first repetition, which finds the caches as filling the arrays leaves them;
// so does a replay, unless it is the only one.
static bool is_of_interest(unsigned repetition) {
  return repetition != 0 || stream.settings.repetitions == 1;
}

static void *work(void *argument) {
  const struct settings *settings = &stream.settings;
  unsigned thread = (unsigned)(uintptr_t)argument;
  size_t begin = part_begin(settings, thread), end = part_begin(settings, thread + 1);
  if (thread != 0) // the first was pinned before it made the arrays
    pin(thread);
  if (stream.is_new && settings->is_first_touch)
    fill(begin, end);
  pthread_barrier_wait(&stream.barrier);
  for (unsigned repetition = 0; repetition < settings->repetitions; repetition++)
    for (unsigned kernel = 0; kernel < KERNELS; kernel++) {
      double start = 0;
      pthread_barrier_wait(&stream.barrier);
      if (thread == 0) {
        start = now();
        if (is_of_interest(repetition))
          region_begin();
      }
      pthread_barrier_wait(&stream.barrier);
      kernel_part(thread, kernel, begin, end);
      pthread_barrier_wait(&stream.barrier);
      if (thread == 0) {
        if (is_of_interest(repetition))
          region_end();
        stream.seconds[kernel][repetition] = now() - start;
      }
    }
  return NULL;
}

static void run(void) {
  pthread_t handles[TEAM_THREADS_MAX];
  unsigned threads = stream.settings.threads;
  if (stream.is_new && !stream.settings.is_first_touch)
    fill(0, stream.settings.elements);
  pthread_barrier_init(&stream.barrier, NULL, threads);
  for (unsigned thread = 1; thread < threads; thread++)
    if ((errno = pthread_create(&handles[thread], NULL, work, (void *)(uintptr_t)thread)) != 0) {
      perror("stream: cannot start a thread");
      exit(EXIT_FAILURE);
    }
  work(NULL);
  for (unsigned thread = 1; thread < threads; thread++)
    pthread_join(handles[thread], NULL);
  pthread_barrier_destroy(&stream.barrier);
}

static void plain_arrays(void) {
  size_t bytes = stream.settings.elements * sizeof(double);
  for (unsigned array = 0; array < ARRAYS; array++) {
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
      fprintf(stderr, "stream: no memory for three arrays of %zu bytes: %s\n", bytes,
              strerror(errno));
      exit(EXIT_USAGE);
    }
    nodes_place(&stream.settings, memory, bytes);
    stream.arrays[array] = memory;
  }
  stream.is_new = true;
  stream.memory = "memory";
}

static void print_placement(void) {
  unsigned pages[NODES_MAX] = {0};
  for (unsigned array = 0; array < ARRAYS; array++)
    if (!nodes_count((char *)stream.arrays[array], stream.settings.elements * sizeof(double),
                     pages))
      return;
  printf("pages");
  for (unsigned node = 0; node < NODES_MAX; node++)
    if (pages[node] != 0)
      printf(" %u:%u", node, pages[node]);
  printf("\n");
}

static void print_about(const struct settings *settings) {
  printf("libnuma %s\n", numa.handle != NULL ? "yes" : numa.missing);
  printf("libpmemobj %s\n", pmdk.handle != NULL ? "yes" : pmdk.missing);
  if (pmdk.handle != NULL)
    printf("libpmemobj_path %s\n", pmdk.path);
  if (settings->is_about)
    exit(EXIT_SUCCESS);
}

static void print_results(bool is_ok) {
  const struct settings *settings = &stream.settings;
  printf("elements %" PRIu64 "\n", settings->elements);
  printf("memory %s\n", stream.memory);
  if (settings->place != POOL_NONE)
    printf("flushes %s\n", pool_flushes(stream.arrays[0]) ? "instructions" : "msync");
  print_placement();
  for (unsigned kernel = 0; kernel < KERNELS; kernel++) {
    printf("kernel %s %" PRIu64, kernel_names[kernel], kernel_bytes[kernel] * settings->elements);
    for (unsigned repetition = 0; repetition < settings->repetitions; repetition++)
      printf(" %.9f", stream.seconds[kernel][repetition]);
    printf("\n");
  }
  printf("answer %s\n", is_ok ? "ok" : "WRONG");
}

// Examines a pool that a power cut has left.
__attribute__((noreturn)) static void check_pool(void) {
  const char *fault = pool_fault(&stream.settings, stream.arrays);
  printf("stream: persist=%s %s%s\n", durable_names[stream.settings.durable],
         fault == NULL ? "ok" : "WRONG: ", fault == NULL ? "" : fault);
  pool_end();
  exit(fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE);
}

// What a pool holds that has a name is durable before anything is measured, so that a power cut
// meets whole arrays; elsewhere only what --persist asks for is.
static void prepare_pool(const struct settings *settings) {
  fill(0, settings->elements);
  pool_finish(settings, stream.arrays);
  if (settings->is_preparation) {
    pool_end();
    exit(EXIT_SUCCESS);
  }
  stream.is_new = false;
}

int main(int count, char **values) {
  stream.settings = parse_settings(count, values);
  const struct settings *settings = &stream.settings;
  pin(0);
  numa_load(settings->libnuma);
  if (settings->place != POOL_NONE || settings->is_about)
    pmdk_load(settings);
  if (settings->is_about)
    print_about(settings);
  nodes_check(settings);
  if (settings->place == POOL_NONE)
    plain_arrays();
  else
    pool_arrays(settings, stream.arrays, &stream.memory, &stream.is_new);
  if (settings->is_check)
    check_pool();
  if (settings->place == POOL_FILE && stream.is_new)
    prepare_pool(settings);
  uint64_t before = 0;
  for (unsigned thread = 0; settings->durable != DURABLE_NONE && thread < settings->threads;
       thread++)
    before += pool_progress()[thread].blocks;
  if (before != 0)
    pool_mismatch(settings->path, "a pool that was used: make a new one by --prepare");

  run();

  bool is_ok = all_hold(settings, stream.arrays, (uint64_t)KERNELS * settings->repetitions);
  print_results(is_ok);
  if (settings->place != POOL_NONE)
    pool_end();
  return is_ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
