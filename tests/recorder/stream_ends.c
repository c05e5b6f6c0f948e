/* SPDX-License-Identifier: Apache-2.0 */
/* What a parent reads to its end, and messages; its child supplies them.
 *   close         a pipe that the child closes
 *   dup2          a pipe over which the child opens something else
 *   range         the child closes all that it has
 *   exec          a pipe that is closed by the exec of another program
 *   exit          a pipe that the child's end closes
 *   shutdown      one direction of a socket pair
 *   several       messages through a socket pair, several by one call
 *   sent          datagrams to an address, and answers to where they came from
 *   connected     datagrams through a socket that is connected to an address
 *   named FOLDER  datagrams to a socket with a path */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_CLOSE_RANGE 436
#define MESSAGES 3

/* Ends with the line where it is wrong. */
#define CHECK(what)                                                                                \
  do {                                                                                             \
    if (!(what))                                                                                   \
      exit(__LINE__);                                                                              \
  } while (0)

static volatile int rounds;

static void work(void) {
  while (rounds < 50000)
    rounds++;
}

static int await(pid_t child) {
  int status;
  CHECK(waitpid(child, &status, 0) == child && status == 0);
  return 0;
}

static void close_by(const char *how, int to) {
  if (strcmp(how, "close") == 0) {
    CHECK(close(to) == 0);
  } else if (strcmp(how, "dup2") == 0) {
    CHECK(dup2(0, to) == to);
  } else if (strcmp(how, "range") == 0) {
    CHECK(syscall(CALL_CLOSE_RANGE, 0, ~0u, 0) == 0);
  } else if (strcmp(how, "exec") == 0) {
    execl("/bin/true", "true", NULL);
    exit(__LINE__);
  }
  if (strcmp(how, "exit") != 0)
    work();
  _exit(0);
}

static int ends(const char *how) {
  int end[2];
  char byte;
  CHECK(pipe2(end, O_CLOEXEC) == 0);
  pid_t child = fork();
  if (child == 0) {
    work();
    close_by(how, end[1]);
  }
  CHECK(close(end[1]) == 0);
  CHECK(read(end[0], &byte, 1) == 0);
  return await(child);
}

static int shuts_down(void) {
  int end[2];
  char byte;
  CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
  pid_t child = fork();
  if (child == 0) {
    work();
    CHECK(shutdown(end[1], SHUT_WR) == 0 && read(end[1], &byte, 1) == 1);
    _exit(0);
  }
  CHECK(recv(end[0], &byte, 1, 0) == 0);
  CHECK(send(end[0], &byte, 1, 0) == 1);
  return await(child);
}

static void prepare(struct mmsghdr *messages, struct iovec *vectors, char *bytes) {
  for (int i = 0; i < MESSAGES; i++) {
    vectors[i] = (struct iovec){&bytes[i], 1};
    messages[i] = (struct mmsghdr){.msg_hdr = {.msg_iov = &vectors[i], .msg_iovlen = 1}};
  }
}

static int several(void) {
  struct mmsghdr messages[MESSAGES];
  struct iovec vectors[MESSAGES];
  char bytes[MESSAGES] = "abc";
  int end[2];
  CHECK(socketpair(AF_UNIX, SOCK_DGRAM, 0, end) == 0);
  prepare(messages, vectors, bytes);
  pid_t child = fork();
  if (child == 0) {
    work();
    CHECK(sendmmsg(end[1], messages, MESSAGES, 0) == MESSAGES);
    _exit(0);
  }
  memset(bytes, 0, sizeof(bytes));
  CHECK(recvmmsg(end[0], messages, MESSAGES, 0, NULL) == MESSAGES);
  CHECK(memcmp(bytes, "abc", MESSAGES) == 0);
  return await(child);
}

static int bound(struct sockaddr_in *address) {
  int one = socket(AF_INET, SOCK_DGRAM, 0);
  socklen_t bytes = sizeof(*address);
  *address = (struct sockaddr_in){.sin_family = AF_INET};
  address->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(bind(one, (struct sockaddr *)address, sizeof(*address)) == 0);
  CHECK(getsockname(one, (struct sockaddr *)address, &bytes) == 0);
  return one;
}

static int by_address(int is_connected) {
  struct sockaddr_in here, there;
  int own = bound(&here);
  socklen_t bytes = sizeof(there);
  char byte = 1;
  pid_t child = fork();
  if (child == 0) {
    int sender = socket(AF_INET, SOCK_DGRAM, 0);
    const struct sockaddr *to = (struct sockaddr *)&here;
    work();
    CHECK(!is_connected || connect(sender, to, sizeof(here)) == 0);
    if (is_connected)
      CHECK(write(sender, &byte, 1) == 1);
    else
      CHECK(sendto(sender, &byte, 1, 0, to, sizeof(here)) == 1);
    CHECK(read(sender, &byte, 1) == 1 && byte == 2);
    _exit(0);
  }
  CHECK(recvfrom(own, &byte, 1, 0, (struct sockaddr *)&there, &bytes) == 1 && byte == 1);
  byte = 2;
  CHECK(sendto(own, &byte, 1, 0, (struct sockaddr *)&there, bytes) == 1);
  return await(child);
}

static int named(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  int own = socket(AF_UNIX, SOCK_DGRAM, 0);
  char byte = 1;
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
  CHECK(bind(own, (struct sockaddr *)&address, sizeof(address)) == 0);
  pid_t child = fork();
  if (child == 0) {
    struct iovec vector = {&byte, 1};
    struct msghdr message = {
        .msg_name = &address, .msg_namelen = sizeof(address), .msg_iov = &vector, .msg_iovlen = 1};
    work();
    CHECK(sendmsg(socket(AF_UNIX, SOCK_DGRAM, 0), &message, 0) == 1);
    _exit(0);
  }
  CHECK(read(own, &byte, 1) == 1);
  CHECK(unlink(address.sun_path) == 0);
  return await(child);
}

int main(int argc, char **argv) {
  CHECK(argc > 1);
  if (strcmp(argv[1], "shutdown") == 0)
    return shuts_down();
  if (strcmp(argv[1], "several") == 0)
    return several();
  if (strcmp(argv[1], "sent") == 0 || strcmp(argv[1], "connected") == 0)
    return by_address(argv[1][0] == 'c');
  if (argc > 2)
    return named(argv[2]);
  return ends(argv[1]);
}
