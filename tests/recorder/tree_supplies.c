/* SPDX-License-Identifier: Apache-2.0 */
/* What processes supply each other.
 *   pipe          a parent writes to its child, which answers
 *   pair          the same through a socket pair
 *   counts        through eventfds
 *   messages      to its child only, through a queue of System V
 *   server DIR    clients write to a server before it has accepted them
 *   signals       a handler of the child answers a signal by another one, then both have one of
 *                 their group
 *   waits         a child waits for two signals that queue
 *   descriptors   signals that are sent by one descriptor and read from another */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/msg.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALL_PIDFD_SEND_SIGNAL 424
#define CALL_PIDFD_OPEN 434
#define CLIENTS 2

static void require(int holds) {
  if (!holds)
    _exit(1);
}

static int end_of(pid_t child) {
  int status;
  return waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
}

/* Three words each way: the child's answer is twice what it was asked. */
static void ask(int to, int from) {
  for (uint32_t i = 1; i <= 3; i++) {
    uint32_t answer;
    require(write(to, &i, sizeof(i)) == sizeof(i));
    require(read(from, &answer, sizeof(answer)) == sizeof(answer) && answer == 2 * i);
  }
}

static void answer(int from, int to) {
  uint32_t word;
  for (int i = 1; i <= 3; i++) {
    require(read(from, &word, sizeof(word)) == sizeof(word));
    word *= 2;
    require(write(to, &word, sizeof(word)) == sizeof(word));
  }
}

static int talk(const int there[2], const int back[2]) {
  pid_t child = fork();
  if (child == 0) {
    answer(there[0], back[1]);
    _exit(0);
  }
  ask(there[1], back[0]);
  return end_of(child);
}

static int over_pipes(void) {
  int there[2], back[2];
  require(pipe(there) == 0 && pipe(back) == 0);
  return talk(there, back);
}

static int over_pair(void) {
  int end[2];
  require(socketpair(AF_UNIX, SOCK_STREAM, 0, end) == 0);
  int there[2] = {end[1], end[0]}, back[2] = {end[0], end[1]};
  return talk(there, back);
}

static int over_counts(void) {
  int there = eventfd(0, 0), back = eventfd(0, 0);
  uint64_t sum = 3;
  require(there >= 0 && back >= 0);
  pid_t child = fork();
  if (child == 0) {
    require(read(there, &sum, sizeof(sum)) == sizeof(sum) && sum == 3);
    sum = 5;
    require(write(back, &sum, sizeof(sum)) == sizeof(sum));
    _exit(0);
  }
  require(write(there, &sum, sizeof(sum)) == sizeof(sum));
  require(read(back, &sum, sizeof(sum)) == sizeof(sum) && sum == 5);
  return end_of(child);
}

struct message {
  long type;
  int value;
};

static int over_queue(void) {
  int queue = msgget(IPC_PRIVATE, 0600);
  require(queue >= 0);
  pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < 2; i++) {
      struct message message;
      require(msgrcv(queue, &message, sizeof(message.value), 0, 0) == sizeof(message.value));
      require(message.value == i);
    }
    _exit(0);
  }
  for (int i = 0; i < 2; i++) {
    struct message message = {1, i};
    require(msgsnd(queue, &message, sizeof(message.value), 0) == 0);
  }
  int status = end_of(child);
  msgctl(queue, IPC_RMID, NULL);
  return status;
}

static void serve(int listener) {
  char byte;
  for (int i = 0; i < CLIENTS; i++) {
    int connection = accept(listener, NULL, NULL);
    require(connection >= 0 && read(connection, &byte, 1) == 1);
    byte++;
    require(write(connection, &byte, 1) == 1);
    close(connection);
  }
  _exit(0);
}

static int over_server(const char *folder) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  snprintf(address.sun_path, sizeof(address.sun_path), "%s/socket", folder);
  int listener = socket(AF_UNIX, SOCK_STREAM, 0);
  unlink(address.sun_path);
  require(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0);
  require(listen(listener, CLIENTS) == 0);
  int connection[CLIENTS];
  for (int i = 0; i < CLIENTS; i++) {
    char byte = (char)('a' + i);
    connection[i] = socket(AF_UNIX, SOCK_STREAM, 0);
    require(connect(connection[i], (struct sockaddr *)&address, sizeof(address)) == 0);
    require(write(connection[i], &byte, 1) == 1);
  }
  pid_t server = fork();
  if (server == 0)
    serve(listener);
  for (int i = CLIENTS; i-- > 0;) {
    char byte;
    require(read(connection[i], &byte, 1) == 1 && byte == 'b' + i);
  }
  return end_of(server);
}

static volatile sig_atomic_t taken[3];

static void take(int number) {
  taken[number == SIGUSR1 ? 0 : number == SIGUSR2 ? 1 : 2] = 1;
  if (number == SIGUSR1)
    kill(getppid(), SIGUSR2);
}

static void await(volatile sig_atomic_t *flag) {
  while (!*flag)
    pause();
}

static void block(int number, sigset_t *set) {
  sigemptyset(set);
  sigaddset(set, number);
  sigprocmask(SIG_BLOCK, set, NULL);
}

static int by_signals(void) {
  struct sigaction action = {.sa_handler = take};
  sigaction(SIGUSR1, &action, NULL);
  sigaction(SIGUSR2, &action, NULL);
  sigaction(SIGURG, &action, NULL);
  require(setpgid(0, 0) == 0);
  pid_t child = fork();
  if (child == 0) {
    await(&taken[0]);
    await(&taken[2]);
    _exit(0);
  }
  kill(child, SIGUSR1);
  await(&taken[1]);
  require(kill(child, 0) == 0 && kill(child, 1000) != 0);
  kill(0, SIGURG);
  return end_of(child);
}

static int by_waits(void) {
  sigset_t set;
  union sigval value = {.sival_int = 1};
  block(SIGRTMIN, &set);
  pid_t child = fork();
  if (child == 0) {
    require(sigwaitinfo(&set, NULL) == SIGRTMIN && sigwaitinfo(&set, NULL) == SIGRTMIN);
    _exit(0);
  }
  require(sigqueue(child, SIGRTMIN, value) == 0 && sigqueue(child, SIGRTMIN, value) == 0);
  return end_of(child);
}

static int by_descriptors(void) {
  sigset_t set;
  struct signalfd_siginfo information;
  block(SIGUSR1, &set);
  int signals = signalfd(-1, &set, 0);
  pid_t child = fork();
  if (child == 0) {
    require(read(signals, &information, sizeof(information)) == sizeof(information));
    _exit(0);
  }
  int process = (int)syscall(CALL_PIDFD_OPEN, child, 0);
  require(process >= 0 && syscall(CALL_PIDFD_SEND_SIGNAL, process, SIGUSR1, NULL, 0) == 0);
  return end_of(child);
}

int main(int argc, char **argv) {
  if (argc < 2)
    return 2;
  if (strcmp(argv[1], "pipe") == 0)
    return over_pipes();
  if (strcmp(argv[1], "pair") == 0)
    return over_pair();
  if (strcmp(argv[1], "counts") == 0)
    return over_counts();
  if (strcmp(argv[1], "messages") == 0)
    return over_queue();
  if (strcmp(argv[1], "server") == 0)
    return over_server(argv[2]);
  if (strcmp(argv[1], "signals") == 0)
    return by_signals();
  if (strcmp(argv[1], "waits") == 0)
    return by_waits();
  return by_descriptors();
}
