/* SPDX-License-Identifier: Apache-2.0 */
/* Children that each do the same work.
 *   at_once N ROUNDS   all at once
 *   flag N ROUNDS      each when the one before has said in shared memory that it is done
 *   pipe N ROUNDS      each when the one before has written to a pipe
 *   wait N ROUNDS      each when the one before has ended
 *   vanish N ROUNDS    the same, of children whose ends are ignored
 *   end N ROUNDS       each when nobody can write to a pipe any more, but for the one before
 *   locked N ROUNDS    all at once, with a mutex that they share */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX 16

struct shared {
  pthread_mutex_t mutex;
  _Atomic int done;
};

static volatile long sum;

static void work(long rounds) {
  for (long i = 0; i < rounds; i++)
    sum += i;
}

static int child(struct shared *shared, const char *mode, int number, int ends[][2], long rounds) {
  char token = 0;
  if (strcmp(mode, "flag") == 0)
    while (atomic_load(&shared->done) != number)
      ;
  if (strcmp(mode, "pipe") == 0 && number > 0 && read(ends[number - 1][0], &token, 1) != 1)
    return 1;
  if (strcmp(mode, "end") == 0 && number > 0 && read(ends[number - 1][0], &token, 1) != 0)
    return 1;
  if (strcmp(mode, "locked") == 0)
    pthread_mutex_lock(&shared->mutex);
  work(rounds);
  if (strcmp(mode, "locked") == 0)
    pthread_mutex_unlock(&shared->mutex);
  if (strcmp(mode, "flag") == 0)
    atomic_store(&shared->done, number + 1);
  if (strcmp(mode, "pipe") == 0 && write(ends[number][1], &token, 1) != 1)
    return 1;
  return 0;
}

int main(int argc, char **argv) {
  if (argc != 4)
    return 2;
  const char *mode = argv[1];
  int ends[CHILDREN_MAX][2], children = atoi(argv[2]), status, failed = 0;
  long rounds = atol(argv[3]);
  struct shared *shared =
      mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &attributes);
  if (strcmp(mode, "vanish") == 0)
    signal(SIGCHLD, SIG_IGN);
  for (int i = 0; i < children; i++)
    if (pipe(ends[i]) != 0)
      return 1;
  for (int i = 0; i < children; i++) {
    if (fork() == 0)
      _exit(child(shared, mode, i, ends, rounds));
    if (strcmp(mode, "wait") == 0 && wait(&status) > 0)
      failed |= status;
    if (strcmp(mode, "vanish") == 0 && wait(&status) >= 0)
      failed = 1;
    if (strcmp(mode, "end") == 0)
      close(ends[i][1]);
  }
  while (wait(&status) > 0)
    failed |= status;
  return failed != 0;
}
