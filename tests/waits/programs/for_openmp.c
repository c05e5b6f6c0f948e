// SPDX-License-Identifier: Apache-2.0
//
// A loop of OpenMP whose iterations the runtime hands out one by one.
#define RUN_TEAM run_openmp
#include "rounds.h"

enum { ITERATIONS = 4 * THREADS };

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
#pragma omp for schedule(dynamic, 1)
    for (unsigned i = 0; i < ITERATIONS; i++)
      work(thread, SHORT_WORK);
  }
}

static struct path critical_path(void) { return path_handed_out(ITERATIONS, SHORT_WORK); }

static void run_openmp(void) {
  unsigned members = 0;
#pragma omp parallel num_threads(THREADS)
  {
#pragma omp barrier
  }
  region_begin();
#pragma omp parallel num_threads(THREADS) shared(members)
  {
    unsigned member;
#pragma omp atomic capture
    member = members++;
    run(member);
  }
  region_end();
}
