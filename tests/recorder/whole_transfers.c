/* SPDX-License-Identifier: Apache-2.0 */
/* Transfers of more than fits at once, while another thread stops all again and again.
 * Prints how much each call transferred, and whether it was right. */
#include "stops.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define BYTES (1 << 20)
#define PIECE (BYTES / 32)

static char out[BYTES], in[BYTES];
static int ends[2];

static void *read_slowly(void *unused) {
  for (ssize_t done = 0, bytes; done < BYTES; done += bytes) {
    usleep(2 * TIME_BETWEEN_STOPS_US);
    bytes = read(ends[0], in + done, PIECE < BYTES - done ? PIECE : BYTES - done);
    if (bytes <= 0)
      break;
  }
  return unused;
}

static void *write_slowly(void *unused) {
  for (ssize_t done = 0, bytes; done < BYTES; done += bytes) {
    usleep(2 * TIME_BETWEEN_STOPS_US);
    bytes = write(ends[1], out + done, PIECE);
    if (bytes <= 0)
      break;
  }
  return unused;
}

static ssize_t by_write(void) { return write(ends[1], out, BYTES); }
static ssize_t by_send(void) { return send(ends[1], out, BYTES, 0); }
static ssize_t by_receive(void) { return recv(ends[0], in, BYTES, MSG_WAITALL); }

static void transfer(const char *name, int result, ssize_t (*call)(void), void *(*peer)(void *)) {
  pthread_t other;
  if (result != 0)
    exit(2);
  memset(in, 0, BYTES);
  pthread_create(&other, NULL, peer, NULL);
  ssize_t bytes = call();
  pthread_join(other, NULL);
  printf("%s %zd %d\n", name, bytes, memcmp(in, out, BYTES) == 0);
  close(ends[0]);
  close(ends[1]);
}

static int said[2], count;

static void take(int number) {
  char name[] = "taken";
  (void)number;
  count++;
  if (write(said[1], name, sizeof(name)) != sizeof(name))
    abort();
}

/* Nobody reads: the program's own signal ends it, with what there was room for. What its handler
 * writes is all that is written besides. */
static void until_alarm(const char *name, int flags) {
  struct itimerval soon = {.it_value = {.tv_sec = 2}}; /* the call has begun by then */
  sigaction(SIGALRM, &(struct sigaction){.sa_handler = take, .sa_flags = flags}, NULL);
  if (pipe(ends) != 0)
    exit(2);
  setitimer(ITIMER_REAL, &soon, NULL);
  ssize_t bytes = write(ends[1], out, BYTES);
  int held = 0, told = 0;
  ioctl(ends[0], FIONREAD, &held);
  ioctl(said[0], FIONREAD, &told);
  printf("%s %d %d %d\n", name, bytes > 0 && bytes < BYTES, held == bytes, told == 6 * count);
  close(ends[0]);
  close(ends[1]);
}

int main(void) {
  pthread_t stopper;
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (int i = 0; i < BYTES; i++)
    out[i] = (char)(i * 2654435761u >> 24);
  /* The stopper leaves the alarm to this thread: while a stop holds this one, the kernel would have
   * the other take what is the process's. */
  sigset_t alarms;
  sigemptyset(&alarms);
  sigaddset(&alarms, SIGALRM);
  pthread_sigmask(SIG_BLOCK, &alarms, NULL);
  pthread_create(&stopper, NULL, stop_all, NULL);
  pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
  transfer("write", pipe(ends), by_write, read_slowly);
  transfer("write", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), by_write, read_slowly);
  transfer("send", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), by_send, read_slowly);
  transfer("receive", socketpair(AF_UNIX, SOCK_STREAM, 0, ends), by_receive, write_slowly);
  if (pipe(said) != 0)
    return 2;
  until_alarm("alarm", 0);
  until_alarm("restarting", SA_RESTART);
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  pthread_join(stopper, NULL);
  return 0;
}
