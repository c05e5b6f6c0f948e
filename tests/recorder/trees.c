/* SPDX-License-Identifier: Apache-2.0 */
/* Trees of processes, each of which must be recorded alike each time.
 *   forks         children that work, one of which runs another program
 *   shares        two processes that meet in shared memory, by spinning and by futexes
 *   serves DIR    three servers that accept from one socket, and their client
 *   killed        children at work, of which one is killed from outside */
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 3

static volatile long sum;

static void work(long rounds) {
  for (long i = 0; i < rounds; i++)
    sum += i;
}

static int forks(void) {
  int ends[2], status;
  char text[CHILDREN + 1] = "";
  if (pipe(ends) != 0)
    return 1;
  for (int i = 0; i < CHILDREN; i++) {
    if (fork() != 0)
      continue;
    work(20000 * (CHILDREN - i));
    char name = (char)('a' + i);
    if (write(ends[1], &name, 1) != 1)
      _exit(1);
    if (i == 1)
      execl("/bin/true", "true", NULL);
    _exit(i);
  }
  for (int i = 0; i < CHILDREN; i++) {
    if (read(ends[0], &text[i], 1) != 1)
      return 1;
  }
  while (wait(&status) > 0)
    ;
  puts(text);
  return 0;
}

struct shared {
  pthread_barrier_t barrier;
  pthread_mutex_t mutex;
  _Atomic int flag[2];
  long sum, box[2][64];
};

static int shares(void) {
  struct shared *shared =
      mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  pthread_barrierattr_t barrier;
  pthread_mutexattr_t mutex;
  pthread_barrierattr_init(&barrier);
  pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->barrier, &barrier, 2);
  pthread_mutexattr_init(&mutex);
  pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
  pthread_mutex_init(&shared->mutex, &mutex);
  int rank = fork() == 0;
  for (int round = 0; round < 20; round++) {
    for (int i = 0; i < 2000 * (1 + rank + round % 3); i++)
      shared->box[rank][i % 64] += i;
    atomic_store(&shared->flag[rank], round + 1);
    while (round % 2 == 0 && atomic_load(&shared->flag[!rank]) <= round)
      __builtin_ia32_pause();
    pthread_mutex_lock(&shared->mutex);
    shared->sum += shared->box[rank][round];
    pthread_mutex_unlock(&shared->mutex);
    pthread_barrier_wait(&shared->barrier);
  }
  if (rank == 1)
    _exit(0);
  wait(NULL);
  printf("%ld\n", shared->sum);
  return 0;
}

static void serve(int listener, int number) {
  char byte;
  for (;;) {
    int connection = accept(listener, NULL, NULL);
    if (connection < 0 || read(connection, &byte, 1) != 1)
      _exit(1);
    work(5000 * (byte - 'a' + 1));
    byte = (char)('0' + number);
    if (write(connection, &byte, 1) != 1)
      _exit(1);
    close(connection);
  }
}

static int serves(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(address.sun_path);
  if (bind(listener, (struct sockaddr *)&address, sizeof(address)) != 0 ||
      listen(listener, CHILDREN) != 0)
    return 1;
  pid_t server[CHILDREN];
  for (int i = 0; i < CHILDREN; i++) {
    if ((server[i] = fork()) == 0)
      serve(listener, i);
  }
  pid_t client = fork();
  for (int i = 0; client == 0 && i < 12; i++) {
    char byte = (char)('a' + i % 4);
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof(address)) != 0 ||
        write(connection, &byte, 1) != 1 || read(connection, &byte, 1) != 1)
      _exit(1);
    close(connection);
  }
  if (client == 0)
    _exit(0);
  int status, killed = 0;
  waitpid(client, &status, 0);
  for (int i = 0; i < CHILDREN; i++)
    kill(server[i], SIGTERM);
  for (int i = 0; i < CHILDREN; i++) {
    int end;
    waitpid(server[i], &end, 0);
    killed += WIFSIGNALED(end) && WTERMSIG(end) == SIGTERM;
  }
  printf("%d %d\n", status, killed);
  return 0;
}

/* Says when all are there; one is then killed from outside. The others work until their input ends.
 */
static int killed(void) {
  pid_t child[CHILDREN];
  int killed = 0, status;
  for (int i = 0; i < CHILDREN; i++) {
    if ((child[i] = fork()) == 0) {
      struct pollfd input = {.fd = 0, .events = POLLIN};
      while (poll(&input, 1, 0) == 0)
        work(10000);
      _exit(0);
    }
  }
  for (int i = 0; i < CHILDREN; i++)
    printf("%d ", (int)child[i]);
  puts("");
  fflush(stdout);
  while (wait(&status) > 0)
    killed += WIFSIGNALED(status);
  printf("killed %d\n", killed);
  return 0;
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  if (strcmp(argv[1], "forks") == 0)
    return forks();
  if (strcmp(argv[1], "shares") == 0)
    return shares();
  if (argc > 2)
    return serves(argv[2]);
  return killed();
}
