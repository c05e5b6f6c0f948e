/* clone_child FLAGS: makes a child with these flags, hexadecimal, and prints what it ends with. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define STACK_BYTES (1 << 20)

static int work(void *nothing) {
  volatile long sum = 0;
  for (int i = 0; i < 100000; i++)
    sum += i;
  int file = open("/dev/null", O_RDONLY);
  _exit(file > 2 ? 7 : 1);
  return nothing == NULL;
}

int main(int argc, char **argv) {
  char *stack = malloc(STACK_BYTES);
  int status = 0, flags = argc > 1 ? (int)strtol(argv[1], NULL, 16) : 0;
  int child = clone(work, stack + STACK_BYTES, flags | SIGCHLD, NULL);
  if (child < 0 || waitpid(child, &status, 0) != child)
    return 1;
  volatile long sum = 0;
  for (int i = 0; i < 100000; i++)
    sum += i;
  printf("%d\n", WEXITSTATUS(status));
  return 0;
}
