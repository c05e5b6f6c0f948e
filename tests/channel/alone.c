/* A program that nobody launched: alone [PATH]. Joins what PATH or the environment says, prints
 * with what that ends, and ends with 0 if it is 0. Then it opens a channel, and computes in its
 * first thread until standard input ends. It fails if joining gave it a child, a SIGCHLD or more
 * than one descriptor. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <mchannel.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static atomic_int is_over, children;

static void on_child(int number) {
  (void)number;
  atomic_fetch_add(&children, 1);
}

static void *await_end(void *nothing) {
  while (getchar() != EOF)
    ;
  atomic_store(&is_over, 1);
  return nothing;
}

static int descriptors(void) {
  DIR *folder = opendir("/proc/self/fd");
  int count = 0;
  while (folder && readdir(folder))
    count++;
  closedir(folder);
  return count;
}

static void check(int is_right, const char *what) {
  if (!is_right) {
    fprintf(stderr, "alone: %s\n", what);
    exit(1);
  }
}

int main(int count, char **arguments) {
  /* A server that inherited these could not be ended, and would keep the file open. */
  sigset_t blocked;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGCHLD);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  signal(SIGTERM, SIG_IGN);
  signal(SIGCHLD, on_child);
  int inherited = dup(open("/", O_RDONLY));
  int before = descriptors();
  int joined = mchannel_init(count > 1 ? arguments[1] : NULL);
  printf("%d\n", joined);
  fflush(stdout);
  check(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD, "a child that it has not made");
  check(atomic_load(&children) == 0, "a SIGCHLD");
  check(descriptors() <= before + (joined == 0), "descriptors that nobody has closed");
  check(fcntl(inherited, F_GETFD) == 0, "a descriptor that was closed");
  if (joined != 0)
    return 1;
  int opened = mchannel_open(NULL);
  check(opened == 0 || opened == -EBUSY, "no channel");
  pthread_t reader;
  pthread_create(&reader, NULL, await_end, NULL);
  while (!atomic_load_explicit(&is_over, memory_order_relaxed))
    ;
  pthread_join(reader, NULL);
  check(mchannel_close() == 0, "no channel to close");
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  check(sigismember(&now, SIGURG) == 1, "a signal that is blocked no more");
  return 0;
}
