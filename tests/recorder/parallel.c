/* SPDX-License-Identifier: Apache-2.0 */
/* OpenMP: parallel loops with barriers, a reduction, a critical section and single. */
#include <omp.h>
#include <stdio.h>

int main(void) {
  static double values[4096];
  double sum = 0;
  int visits = 0, singles = 0;
  for (int round = 0; round < 5; round++) {
#pragma omp parallel num_threads(4)
    {
#pragma omp for
      for (int i = 0; i < 4096; i++)
        values[i] += i;
#pragma omp single
      singles++;
#pragma omp for reduction(+ : sum)
      for (int i = 0; i < 4096; i++)
        sum += values[i];
#pragma omp critical
      visits++;
    }
  }
  printf("%.0f %d %d\n", sum, visits, singles);
  return 0;
}
