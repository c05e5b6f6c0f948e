// SPDX-License-Identifier: Apache-2.0
//
// Each thread reads or writes every N-th line of memory of its own that nobody has touched before:
// what prefetchers make of strides. A read is one load; a write fills its line, with non-temporal
// stores or with ordinary ones. The only region of interest is the accesses.
#include <getopt.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"
#include "team.h"

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

static const char usage[] = "strides [-n ACCESSES_OF_A_THREAD] [-s STRIDE (lines)] [-t THREADS] "
                            "[--access read|write|non-temporal]";

enum access { ACCESS_READ, ACCESS_WRITE, ACCESS_NON_TEMPORAL };

struct strides {
  uint64_t accesses;
  uint64_t stride_bytes;
  unsigned threads;
  enum access access;
  char *memory;
  uint64_t *sums;
};

static uint64_t read_all(const char *memory, uint64_t accesses, uint64_t stride_bytes) {
  uint64_t sum = 0;
  for (uint64_t i = 0; i < accesses; i++)
    sum += *(const volatile uint64_t *)(memory + i * stride_bytes);
  return sum;
}

static void write_all(char *memory, uint64_t accesses, uint64_t stride_bytes) {
  for (uint64_t i = 0; i < accesses; i++)
    for (unsigned at = 0; at < LINE_BYTES; at += sizeof(uint64_t))
      *(volatile uint64_t *)(memory + i * stride_bytes + at) = i;
}

static void write_around(char *memory, uint64_t accesses, uint64_t stride_bytes) {
#if defined(__x86_64__)
  for (uint64_t i = 0; i < accesses; i++) {
    __m128i value = _mm_set1_epi64x((long long)i);
    for (unsigned at = 0; at < LINE_BYTES; at += sizeof value)
      _mm_stream_si128((__m128i *)(memory + i * stride_bytes + at), value);
  }
  _mm_sfence();
#else
  write_all(memory, accesses, stride_bytes);
#endif
}

static void work(unsigned thread, void *problem) {
  struct strides *strides = problem;
  char *own = strides->memory + thread * strides->accesses * strides->stride_bytes;
  if (strides->access == ACCESS_READ)
    strides->sums[thread] = read_all(own, strides->accesses, strides->stride_bytes);
  else if (strides->access == ACCESS_WRITE)
    write_all(own, strides->accesses, strides->stride_bytes);
  else
    write_around(own, strides->accesses, strides->stride_bytes);
}

// Memory is zero where nothing was written, and has the number of the access where something was.
static bool is_right(const struct strides *strides) {
  for (unsigned thread = 0; thread < strides->threads; thread++) {
    const char *own = strides->memory + thread * strides->accesses * strides->stride_bytes;
    if (strides->sums[thread] != 0)
      return false;
    for (uint64_t i = 0; i < strides->accesses; i += 1 + strides->accesses / 16) {
      uint64_t expected = strides->access == ACCESS_READ ? 0 : i;
      if (memcmp(own + i * strides->stride_bytes, &expected, sizeof expected) != 0)
        return false;
    }
  }
  return true;
}

static enum access access_option(const char *text) {
  static const char *const names[] = {"read", "write", "non-temporal"};
  for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(text, names[i]) == 0)
      return (enum access)i;
  usage_error(usage, "--access takes read, write or non-temporal, not '%s'", text);
}

int main(int argc, char **argv) {
  struct strides strides = {.accesses = 4096, .stride_bytes = LINE_BYTES, .threads = 4};
  static const struct option options[] = {{"access", required_argument, NULL, 'a'}, {0}};
  for (int option; (option = getopt_long(argc, argv, "n:s:t:", options, NULL)) != -1;) {
    if (option == 'n')
      strides.accesses = number_option(usage, "-n", optarg, 1, UINT64_C(1) << 30);
    else if (option == 's')
      strides.stride_bytes = LINE_BYTES * number_option(usage, "-s", optarg, 1, 1 << 16);
    else if (option == 't')
      strides.threads = (unsigned)number_option(usage, "-t", optarg, 1, TEAM_THREADS_MAX);
    else if (option == 'a')
      strides.access = access_option(optarg);
    else
      usage_error(usage, "unknown option");
  }
  if (optind < argc)
    usage_error(usage, "unexpected argument '%s'", argv[optind]);
  strides.sums = calloc(strides.threads, sizeof *strides.sums);
  // Zeroed by the kernel, when it is touched; a line more, so that it can begin at one.
  char *memory = calloc(strides.threads * strides.accesses * strides.stride_bytes + LINE_BYTES, 1);
  strides.memory = memory + (LINE_BYTES - (uintptr_t)memory % LINE_BYTES) % LINE_BYTES;
  if (strides.sums == NULL || memory == NULL) {
    perror("no memory");
    return EXIT_FAILURE;
  }
  team_run(strides.threads, work, &strides);
  if (!is_right(&strides)) {
    fprintf(stderr, "strides: memory is not what was written\n");
    return EXIT_FAILURE;
  }
  printf("strides: %u threads, %" PRIu64 " accesses each\n", strides.threads, strides.accesses);
  return EXIT_SUCCESS;
}
