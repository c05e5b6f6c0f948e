// SPDX-License-Identifier: Apache-2.0
//
// The barrier of an OpenMP runtime that polls (OMP_WAIT_POLICY=active).
#define RUN_TEAM run_openmp
#include "rounds.h"

static void run(unsigned thread) {
  for (unsigned round = 0; round < ROUNDS; round++) {
    work(thread, rotating_work(thread, round));
#pragma omp barrier
  }
}

static struct path critical_path(void) { return path_rounds(rotating_work); }

// Which thread of the runtime is which does not matter, but each has to have its own work.
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
