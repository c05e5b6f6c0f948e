/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a program shares.
 *   awaits FILE    until somebody else has stored to the file that it has mapped
 *   stores FILE    who does, and stays for a while
 *   child          a child stores to it
 *   executes       a child runs another program */
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define BYTES 4096
#define STAYS_US 3000000

static _Atomic int *map(const char *path) {
  int file = path == NULL ? -1 : open(path, O_RDWR);
  void *at = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | (path == NULL) * MAP_ANONYMOUS,
                  file, 0);
  return at == MAP_FAILED ? NULL : at;
}

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  _Atomic int *word = map(argc > 2 ? argv[2] : NULL);
  if (word == NULL)
    return 2;
  if (strcmp(what, "awaits") == 0) {
    puts("ready");
    fflush(stdout);
    while (atomic_load(word) == 0)
      usleep(1000);
    return 0;
  }
  if (strcmp(what, "stores") == 0) {
    usleep(STAYS_US);
    atomic_store(word, 1);
    return 0;
  }
  if (fork() == 0) {
    if (strcmp(what, "executes") == 0)
      execl("/bin/true", "true", NULL);
    atomic_store(word, 1);
    _exit(0);
  }
  wait(NULL);
  return atomic_load(word) != (strcmp(what, "child") == 0);
}
