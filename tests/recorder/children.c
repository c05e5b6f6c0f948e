/* SPDX-License-Identifier: Apache-2.0 */
/* Makes children whose records are to be looked at, and says who they are: "NAME PID" a line. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define POOL_BYTES (1 << 20)

extern char **environ;
static volatile int is_done;
static char *pool;

static void say(const char *name, pid_t process) {
  printf("%s %d\n", name, (int)process);
  fflush(stdout);
}

/* Three instructions a round. */
static void work(long rounds) { __asm__ volatile("1: nop\n\tdec %0\n\tjnz 1b" : "+r"(rounds)); }

static pid_t start_work(long rounds, int code) {
  pid_t child = fork();
  if (child == 0) {
    work(rounds);
    exit(code);
  }
  return child;
}

static int two(void) {
  int status, other;
  pid_t one = start_work(200000, 3), another = start_work(800000, 4);
  say("one", one);
  say("another", another);
  if (waitpid(another, &other, 0) != another || waitpid(one, &status, 0) != one)
    return 1;
  return WEXITSTATUS(status) == 3 && WEXITSTATUS(other) == 4 ? 0 : 2;
}

static int orphan(void) {
  pid_t child = fork();
  if (child == 0) {
    pid_t grandchild = fork();
    if (grandchild == 0) {
      usleep(500000);
      work(1000000);
      exit(9);
    }
    say("grandchild", grandchild);
    exit(8);
  }
  say("child", child);
  return waitpid(child, NULL, 0) == child ? 0 : 1;
}

static int killed(void) {
  int status;
  pid_t child = fork();
  if (child == 0) {
    work(1000000);
    raise(SIGKILL);
  }
  say("killed", child);
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) ? WTERMSIG(status) : 1;
}

static int spawned(void) {
  char *arguments[] = {"sh", "-c", "exit 7", NULL}, *none[] = {"none", NULL};
  pid_t child;
  int status;
  if (posix_spawn(&child, "/nowhere/none", NULL, NULL, none, environ) != ENOENT)
    return 1;
  if (posix_spawnp(&child, "sh", NULL, NULL, arguments, environ) != 0)
    return 2;
  say("spawned", child);
  waitpid(child, &status, 0);
  pid_t other = vfork();
  if (other == 0) {
    execlp("true", "true", "argument", NULL);
    _exit(1);
  }
  say("vforked", other);
  return waitpid(other, NULL, 0) == other ? WEXITSTATUS(status) : 3;
}

static void *keep_busy(void *argument) {
  while (!is_done)
    usleep(100);
  return argument;
}

static void *fill(void *argument) {
  for (size_t i = 0; i < POOL_BYTES / 2; i += 8)
    *(uint64_t *)(pool + i) = i * (uintptr_t)argument;
  return argument;
}

/* The child changes what it has got from its parent, with a thread of its own. */
static void change_pool(void) {
  char name[64];
  pthread_t thread;
  pthread_create(&thread, NULL, fill, (void *)7);
  for (size_t i = POOL_BYTES / 2; i < POOL_BYTES; i += 4096)
    pool[i + 1] = (char)i + 1;
  pthread_join(thread, NULL);
  char *more = malloc(100000); /* moves the break */
  memset(more, 5, 100000);
  snprintf(name, sizeof(name), "pool.%d", (int)getpid());
  FILE *out = fopen(name, "w");
  fwrite(pool, 1, POOL_BYTES, out);
  fclose(out);
}

static void *fork_in_thread(void *argument) {
  pid_t child = fork();
  if (child == 0) {
    is_done = 1;
    change_pool();
    exit(6);
  }
  say("child", child);
  waitpid(child, NULL, 0);
  return argument;
}

static int threads(void) {
  pthread_t busy, forking;
  pool = malloc(POOL_BYTES);
  printf("pool %ju %d\n", (uintmax_t)(uintptr_t)pool, POOL_BYTES);
  fill((void *)3);
  memset(pool + POOL_BYTES / 2, 2, POOL_BYTES / 2);
  pthread_create(&busy, NULL, keep_busy, NULL);
  pthread_create(&forking, NULL, fork_in_thread, NULL);
  pthread_join(forking, NULL);
  is_done = 1;
  pthread_join(busy, NULL);
  return 0;
}

/* Works with a child until both are ended. */
static _Noreturn void wait_for_end(void) {
  pid_t child = fork();
  if (child == 0) {
    while (1)
      work(1000000);
  }
  say("child", child);
  while (1)
    work(1000000);
}

int main(int count, char **arguments) {
  const char *what = count > 1 ? arguments[1] : "";
  return strcmp(what, "two") == 0       ? two()
         : strcmp(what, "orphan") == 0  ? orphan()
         : strcmp(what, "killed") == 0  ? killed()
         : strcmp(what, "spawned") == 0 ? spawned()
         : strcmp(what, "threads") == 0 ? threads()
         : strcmp(what, "wait") == 0    ? (wait_for_end(), 0)
                                        : 99;
}
