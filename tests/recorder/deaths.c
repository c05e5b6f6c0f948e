/* SPDX-License-Identifier: Apache-2.0 */
/* deaths ROUNDS: a tree of five processes that meet by pipes, a robust mutex, words in shared
 * memory, signals and waits. Whichever of them is killed, and when: all others come to their end,
 * with status 0.
 *
 * Each is named by its role, "role 0" to "role 4"; the first one says how its children ended. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROLES 5
#define CHILDREN 3 /* of the first one */
/* Descriptors: of the memory that they share, and behind an exec. */
enum { SHARED = 9, FROM, TO };

struct shared {
  pthread_mutex_t mutex;
  _Atomic long word[ROLES];
  long sum;
};

static struct shared *shared;
static volatile long sink;
static volatile sig_atomic_t signals;

static void on_signal(int number) { signals += number; }

static void work(long rounds) {
  for (long i = 0; i < rounds; i++)
    sink += i;
}

static void begin(int role) {
  char name[16];
  snprintf(name, sizeof(name), "role %d", role);
  prctl(PR_SET_NAME, name);
}

static void map(void) {
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED, 0);
  if (shared == MAP_FAILED)
    _exit(1);
}

/* Whoever had it may be dead. */
static void add(int role) {
  if (pthread_mutex_lock(&shared->mutex) == EOWNERDEAD)
    pthread_mutex_consistent(&shared->mutex);
  shared->sum += role;
  work(200);
  pthread_mutex_unlock(&shared->mutex);
}

/* For as long as anybody would. */
static void spin(int role) {
  long before = atomic_load(&shared->word[(role + 1) % ROLES]);
  atomic_fetch_add(&shared->word[role], 1);
  for (int i = 0; i < 200 && atomic_load(&shared->word[(role + 1) % ROLES]) == before; i++)
    __builtin_ia32_pause();
}

/* A child answers each byte, until there is nobody to answer. */
static void answer(int role, int from, int to) {
  char byte;
  while (read(from, &byte, 1) == 1) {
    work(3000 * role);
    add(role);
    spin(role);
    if (write(to, &byte, 1) != 1)
      break;
  }
}

struct child {
  pid_t process;
  int to, from;
};

/* The last one executes the program again, with its ends where that finds them. */
static void execute(const char *program, int from, int to) {
  dup2(from, FROM);
  dup2(to, TO);
  execl(program, program, NULL);
  _exit(1);
}

static void live(int role, const char *program, int from, int to);

/* Knows nothing of those that were made before. */
static struct child make(int role, const char *program, const struct child *others, int count) {
  int there[2], back[2];
  if (pipe2(there, O_CLOEXEC) != 0 || pipe2(back, O_CLOEXEC) != 0)
    _exit(1);
  struct child child = {fork(), there[1], back[0]};
  if (child.process != 0) {
    close(there[0]);
    close(back[1]);
    return child;
  }
  begin(role);
  close(there[1]);
  close(back[0]);
  for (int i = 0; i < count; i++) {
    close(others[i].to);
    close(others[i].from);
  }
  live(role, program, there[0], back[1]);
  _exit(0);
}

static void ask(const struct child *child) {
  char byte = 1;
  if (child->process > 0 && write(child->to, &byte, 1) == 1 && read(child->from, &byte, 1) != 1)
    byte = 0;
}

/* How a child ended, once it has nothing more to answer. */
static void await(struct child *child, int role) {
  int status = 0;
  close(child->to);
  close(child->from);
  while (waitpid(child->process, &status, 0) < 0 && errno == EINTR)
    ;
  printf("%d %d\n", role, status);
  fflush(stdout);
}

/* Has a child of its own, which it asks, too. */
static void ask_own(const char *program, int from, int to) {
  struct child own = make(ROLES - 1, program, NULL, 0);
  char byte;
  while (read(from, &byte, 1) == 1) {
    ask(&own);
    add(ROLES - 2);
    if (write(to, &byte, 1) != 1)
      break;
  }
  await(&own, ROLES - 1);
}

static void live(int role, const char *program, int from, int to) {
  if (role == ROLES - 1)
    execute(program, from, to);
  if (role == ROLES - 2)
    ask_own(program, from, to);
  else
    answer(role, from, to);
}

static void share(void) {
  int memory = memfd_create("shared", 0);
  if (memory < 0 || ftruncate(memory, sizeof(*shared)) != 0 || dup2(memory, SHARED) < 0)
    exit(1);
  close(memory);
  map();
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&shared->mutex, &attributes);
}

int main(int argc, char **argv) {
  struct child child[CHILDREN];
  signal(SIGPIPE, SIG_IGN);
  begin(argc > 1 ? 0 : ROLES - 1);
  if (argc == 1) {
    map();
    answer(ROLES - 1, FROM, TO);
    return 0;
  }
  signal(SIGUSR1, on_signal);
  share();
  for (int i = 0; i < CHILDREN; i++)
    child[i] = make(i + 1, argv[0], child, i);
  for (int round = 0; round < atoi(argv[1]); round++) {
    ask(&child[round % CHILDREN]);
    add(0);
    spin(0);
    kill(child[round % CHILDREN].process, SIGUSR1);
  }
  for (int i = 0; i < CHILDREN; i++)
    await(&child[i], i + 1);
  return 0;
}
