/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces its image by itself, once from a second thread, after an exec that fails. With an
 * argument it is the image that was to come. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char *program;

static void *replace(void *argument) {
  (void)argument;
  execl("/nowhere/nothing", "nothing", NULL);
  printf("failed %d\n", errno == ENOENT);
  fflush(stdout);
  execl(program, program, "second", NULL);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t thread;
  program = arguments[0];
  if (count == 1) {
    pthread_create(&thread, NULL, replace, NULL);
    pthread_join(thread, NULL);
    return 1;
  }
  printf("%s %d\n", arguments[1], getenv("DYNAMORIO_OPTIONS") == NULL);
  fflush(stdout);
  if (strcmp(arguments[1], "second") == 0)
    execl(program, program, "third", NULL);
  return 6;
}
