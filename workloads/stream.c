// SPDX-License-Identifier: Apache-2.0
//
// Streaming kernels over three long arrays, which show the bandwidth of the memory: copy, scale,
// add and triad. Each thread owns an equal part of every array; all wait for one another between
// two kernels. With a flush instruction each kernel's result is persisted by the threads that wrote
// it.
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "options.h"
#include "persist.h"
#include "team.h"

static const char usage[] = "stream [-s SIZE_OF_AN_ARRAY (bytes, K, M or G)] [-r REPETITIONS] "
                            "[-t THREADS] [--flush none|clflush|clflushopt|clwb]";

// One repetition multiplies every element by factor * (2 + factor). With the square root of 2, less
// 1, that is 1: values neither grow nor vanish, however many repetitions there are.
static const double factor = 0.41421356237309505;

// Elements begin with one of this many values: a prime, so that no shifted access goes unnoticed.
enum { INITIAL_VALUES = 61, REPETITIONS_MAX = 1000000 };

struct stream {
  size_t elements;
  unsigned threads;
  uint64_t repetitions;
  enum flush flush;
  double *a, *b, *c;
  pthread_barrier_t kernel_barrier;
};

static void copy(double *restrict to, const double *restrict from, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++)
    to[i] = from[i];
}

static void scale(double *restrict to, const double *restrict from, size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++)
    to[i] = factor * from[i];
}

static void add(double *restrict to, const double *restrict x, const double *restrict y,
                size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++)
    to[i] = x[i] + y[i];
}

static void triad(double *restrict to, const double *restrict x, const double *restrict y,
                  size_t begin, size_t end) {
  for (size_t i = begin; i < end; i++)
    to[i] = x[i] + factor * y[i];
}

static void finish_kernel(struct stream *stream, const double *result, size_t begin, size_t end) {
  persist(stream->flush, result + begin, (end - begin) * sizeof *result);
  pthread_barrier_wait(&stream->kernel_barrier);
}

// Parts begin at cache lines, so that no two threads write to the same one.
static size_t part_begin(const struct stream *stream, unsigned thread) {
  size_t line_elements = LINE_BYTES / sizeof(double);
  size_t lines = stream->elements / line_elements;
  return lines * thread / stream->threads * line_elements;
}

static void work(unsigned thread, void *problem) {
  struct stream *stream = problem;
  double *a = stream->a, *b = stream->b, *c = stream->c;
  size_t begin = part_begin(stream, thread), end = part_begin(stream, thread + 1);
  for (uint64_t repetition = 0; repetition < stream->repetitions; repetition++) {
    copy(c, a, begin, end);
    finish_kernel(stream, c, begin, end);
    scale(b, c, begin, end);
    finish_kernel(stream, b, begin, end);
    add(c, a, b, begin, end);
    finish_kernel(stream, c, begin, end);
    triad(a, b, c, begin, end);
    finish_kernel(stream, a, begin, end);
  }
}

static double initial_value(size_t element) { return 1.0 + (double)(element % INITIAL_VALUES); }

static double *new_array(size_t elements) {
  double *array = aligned_alloc(LINE_BYTES, elements * sizeof *array);
  if (array == NULL) {
    perror("no memory");
    exit(EXIT_FAILURE);
  }
  return array;
}

// The kernels are done once more, on one element of each initial value. The comparison is exact.
static bool is_right(const struct stream *stream) {
  double a[INITIAL_VALUES], b[INITIAL_VALUES], c[INITIAL_VALUES];
  for (size_t i = 0; i < INITIAL_VALUES; i++)
    a[i] = initial_value(i);
  for (uint64_t repetition = 0; repetition < stream->repetitions; repetition++) {
    copy(c, a, 0, INITIAL_VALUES);
    scale(b, c, 0, INITIAL_VALUES);
    add(c, a, b, 0, INITIAL_VALUES);
    triad(a, b, c, 0, INITIAL_VALUES);
  }
  for (size_t i = 0; i < stream->elements; i++) {
    size_t value = i % INITIAL_VALUES;
    if (stream->a[i] != a[value] || stream->b[i] != b[value] || stream->c[i] != c[value])
      return false;
  }
  return true;
}

int main(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'}, {0}};
  struct stream stream = {.threads = 1, .repetitions = 10, .flush = FLUSH_NONE};
  uint64_t size = 1 << 20;
  for (int option; (option = getopt_long(count, values, "s:r:t:", options, NULL)) != -1;)
    switch (option) {
    case 's':
      size = number_option(usage, "-s", optarg, LINE_BYTES, UINT64_C(16) << 30);
      break;
    case 'r':
      stream.repetitions = number_option(usage, "-r", optarg, 1, REPETITIONS_MAX);
      break;
    case 't':
      stream.threads = (unsigned)number_option(usage, "-t", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'f':
      stream.flush = flush_option(usage, optarg);
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);

  stream.elements = size / LINE_BYTES * LINE_BYTES / sizeof(double);
  stream.a = new_array(stream.elements);
  stream.b = new_array(stream.elements);
  stream.c = new_array(stream.elements);
  for (size_t i = 0; i < stream.elements; i++) {
    stream.a[i] = initial_value(i);
    stream.b[i] = stream.c[i] = 0;
  }
  pthread_barrier_init(&stream.kernel_barrier, NULL, stream.threads);

  team_run(stream.threads, work, &stream);

  bool is_ok = is_right(&stream);
  printf("stream: elements=%zu repetitions=%" PRIu64 " threads=%u flush=%s last=%.17g %s\n",
         stream.elements, stream.repetitions, stream.threads, flush_names[stream.flush],
         stream.a[stream.elements - 1], is_ok ? "ok" : "WRONG");
  return is_ok ? EXIT_SUCCESS : EXIT_FAILURE;
}
