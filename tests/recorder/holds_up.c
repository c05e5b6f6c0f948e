/* SPDX-License-Identifier: Apache-2.0 */
/* A thread is in a system call that ends when another thread makes one: the opening of a pipe by
 * its name, of which nobody can ask whether it would wait. */
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void *read_end(void *name) {
  char byte = 0;
  int end = open(name, O_RDONLY);
  if (read(end, &byte, 1) != 1)
    byte = '?';
  printf("read %c\n", byte);
  return NULL;
}

int main(int count, char **arguments) {
  pthread_t reader;
  if (count != 2 || mkfifo(arguments[1], 0600) != 0)
    return 2;
  pthread_create(&reader, NULL, read_end, arguments[1]);
  usleep(1000);
  int end = open(arguments[1], O_WRONLY);
  usleep(1000);
  if (write(end, "x", 1) != 1)
    return 3;
  return pthread_join(reader, NULL);
}
