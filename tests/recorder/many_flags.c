/* SPDX-License-Identifier: Apache-2.0 */
/* Waits until another thread has set so many flags: each round reads all. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#define FLAGS_MAX 64

static atomic_int flag[FLAGS_MAX], is_waiting;
static int flags;

static void *set_all(void *unused) {
  while (!is_waiting)
    usleep(1000);
  usleep(300000);
  for (int i = flags - 1; i >= 0; i--)
    flag[i] = 1;
  return unused;
}

int main(int argc, char **argv) {
  pthread_t setter;
  flags = argc > 1 ? atoi(argv[1]) : FLAGS_MAX;
  pthread_create(&setter, NULL, set_all, NULL);
  is_waiting = 1;
  for (int all = 0; !all;) {
    all = 1;
    for (int i = 0; i < flags; i++)
      all &= flag[i];
  }
  pthread_join(setter, NULL);
  return 0;
}
