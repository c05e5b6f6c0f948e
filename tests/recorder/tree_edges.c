/* SPDX-License-Identifier: Apache-2.0 */
/* What processes of a tree have of each other.
 *   maps FILE      memory that parent and child map at addresses and offsets of their own
 *   serves FOLDER  a server, and two clients that connect before it accepts
 *   selects        a byte that is waited for with select
 *   waits          children that end, in all ways in which their parent is told
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096ul
#define BOTH (PROT_READ | PROT_WRITE)

/* Ends with the line where it is wrong. */
#define CHECK(what)                                                                                \
  if (!(what))                                                                                     \
  exit(__LINE__)

static char *map_at(unsigned long address, int file, unsigned long page, unsigned long pages) {
  int flags = MAP_SHARED | MAP_FIXED | (file < 0 ? MAP_ANONYMOUS : 0);
  void *at = mmap((void *)address, pages * PAGE, BOTH, flags, file, (off_t)(page * PAGE));
  CHECK(at == (void *)address);
  return at;
}

static void await(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static int maps(const char *path) {
  int file = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600), memory = memfd_create("memory", 0);
  CHECK(ftruncate(file, 8 * PAGE) == 0 && ftruncate(memory, 8 * PAGE) == 0);
  int segment = shmget(IPC_PRIVATE, 2 * PAGE, 0600);
  char *inherited = map_at(0x10000000, -1, 0, 4);
  CHECK(munmap(inherited + PAGE, PAGE) == 0);
  pid_t child = fork();
  if (child == 0) {
    CHECK(mremap(inherited + 2 * PAGE, 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED,
                 (void *)0x18000000) == (void *)0x18000000);
    map_at(0x20000000, file, 1, 3)[0] = 1;
    map_at(0x30000000, memory, 2, 3)[0] = 2;
    map_at(0x30003000, memory, 5, 1)[0] = 2;
    CHECK(shmat(segment, (void *)0x40000000, 0) == (void *)0x40000000);
    exit(0);
  }
  await(child);
  char *file_mapped = mmap((void *)0x50000000, 2 * PAGE, PROT_NONE, MAP_SHARED, file, 0);
  CHECK(mprotect(file_mapped, 2 * PAGE, BOTH) == 0 && file_mapped[PAGE] == 1);
  CHECK(map_at(0x60000000, memory, 2, 1)[0] == 2);
  CHECK(shmat(segment, (void *)0x70000000, 0) == (void *)0x70000000);
  CHECK(shmctl(segment, IPC_RMID, NULL) == 0);
  return 0;
}

static void give(int to) { CHECK(write(to, "x", 1) == 1); }

static void take(int from) {
  char byte;
  CHECK(read(from, &byte, 1) == 1);
}

#define CLIENTS 2

static void serve(int listener, int start) {
  int connection[CLIENTS];
  for (int i = 0; i < CLIENTS; i++)
    take(start);
  for (int i = 0; i < CLIENTS; i++)
    CHECK((connection[i] = accept(listener, NULL, NULL)) >= 0);
  for (int i = 0; i < CLIENTS; i++)
    take(connection[i]);
  for (int i = 0; i < CLIENTS; i++)
    give(connection[i]);
  exit(0);
}

static int serves(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  const struct sockaddr *place = (struct sockaddr *)&address;
  int listener = socket(AF_UNIX, SOCK_STREAM, 0), start[2];
  pid_t child[1 + CLIENTS];
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
  CHECK(bind(listener, place, sizeof(address)) == 0 && listen(listener, CLIENTS) == 0);
  CHECK(pipe(start) == 0);
  if ((child[0] = fork()) == 0)
    serve(listener, start[0]);
  for (int i = 1; i <= CLIENTS; i++) {
    if ((child[i] = fork()) != 0)
      continue;
    int connection = socket(AF_UNIX, SOCK_STREAM, 0);
    CHECK(connect(connection, place, sizeof(address)) == 0);
    give(connection);
    give(start[1]);
    take(connection);
    exit(0);
  }
  for (int i = 0; i <= CLIENTS; i++)
    await(child[i]);
  CHECK(unlink(address.sun_path) == 0);
  return 0;
}

static int selects(void) {
  int end[2];
  fd_set set;
  FD_ZERO(&set);
  CHECK(pipe(end) == 0);
  FD_SET(end[0], &set);
  pid_t child = fork();
  if (child == 0) {
    for (volatile int i = 0; i < 100000; i++)
      ;
    give(end[1]);
    exit(0);
  }
  CHECK(select(end[0] + 1, &set, NULL, NULL, NULL) == 1 && FD_ISSET(end[0], &set));
  take(end[0]);
  await(child);
  return 0;
}

static pid_t child_that_ends(int code) {
  pid_t child = fork();
  if (child == 0)
    _exit(code);
  return child;
}

static int waits(void) {
  siginfo_t end;
  int status;
  pid_t child = child_that_ends(1);
  CHECK(waitid(P_PID, (id_t)child, &end, WEXITED | WNOWAIT) == 0 && end.si_pid == child);
  CHECK(waitid(P_PID, (id_t)child, &end, WEXITED) == 0 && end.si_status == 1);
  child_that_ends(2);
  CHECK(wait(NULL) > 0);
  if ((child = fork()) == 0) {
    raise(SIGSTOP);
    abort();
  }
  CHECK(waitpid(child, &status, WUNTRACED) == child && WIFSTOPPED(status));
  kill(child, SIGCONT);
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status));
  child = child_that_ends(3);
  CHECK(waitid(P_PID, (id_t)child, NULL, WEXITED) == 0);
  child_that_ends(4);
  return 0;
}

int main(int argc, char **argv) {
  CHECK(argc > 1);
  if (strcmp(argv[1], "maps") == 0)
    return maps(argv[2]);
  if (strcmp(argv[1], "serves") == 0)
    return serves(argv[2]);
  if (strcmp(argv[1], "selects") == 0)
    return selects();
  if (strcmp(argv[1], "waits") == 0)
    return waits();
  return 2;
}
