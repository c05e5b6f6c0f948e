/* SPDX-License-Identifier: Apache-2.0 */
/* Signals that are ignored.
 *   children        waits for children whose ends are ignored
 *   flag            the same, by SA_NOCLDWAIT
 *   again           the same, and then not ignored any more
 *   executes        ignores some signals and runs itself, which says which it ignores
 *   fails           the same, where there is nothing to run */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static const int shown[] = {SIGHUP, SIGINT, SIGUSR1, SIGCHLD, SIGPIPE, SIGTERM};

static void show(void) {
  for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
    struct sigaction action;
    sigaction(shown[i], NULL, &action);
    printf("%d: %s\n", shown[i], action.sa_handler == SIG_IGN ? "ignored" : "taken");
  }
}

static void make_and_wait(int options) {
  int status = 0, sum = 0;
  pid_t child = 0;
  for (int i = 0; i < 3; i++) {
    child = fork();
    if (child == 0) {
      usleep(10000 * (unsigned)i);
      _exit(i);
    }
  }
  pid_t found = waitpid(options ? child : -1, &status, 0);
  printf("%d %s", found > 0, found < 0 ? strerror(errno) : "");
  do
    sum += status;
  while (wait(&status) > 0);
  printf(" %d\n", sum); /* They may end in any order. */
}

static void ignore_ends(int flag) {
  struct sigaction action = {.sa_handler = flag ? SIG_DFL : SIG_IGN, .sa_flags = flag};
  sigaction(SIGCHLD, &action, NULL);
}

int main(int argc, char **argv) {
  const char *how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "executes") == 0 || strcmp(how, "fails") == 0) {
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    signal(SIGCHLD, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    signal(SIGTERM, SIG_DFL);
    if (strcmp(how, "executes") == 0)
      execl(argv[0], argv[0], NULL);
    execl("/nowhere", "nowhere", NULL);
    raise(SIGUSR1);
    show();
  } else if (how[0] != '\0') {
    ignore_ends(strcmp(how, "flag") == 0 ? SA_NOCLDWAIT : 0);
    make_and_wait(0);
    make_and_wait(1);
    if (strcmp(how, "again") == 0) {
      signal(SIGCHLD, SIG_DFL);
      make_and_wait(0);
    }
  } else {
    show();
    make_and_wait(0);
  }
  return 0;
}
