/* SPDX-License-Identifier: Apache-2.0 */
/* Threads wait, each by another system call, while the first one stops all of them again and again:
 * an exec that fails does so when it is recorded. Prints of each call how it ended, how long it
 * took and what it says remains, in milliseconds.
 *
 *   cut_calls limits    calls with a time limit of 300 ms
 *   cut_calls signals   calls that would take 3 s, or for ever, but for a signal with a handler
 *   cut_calls others    calls of 300 ms during which signals come that are blocked or ignored
 *   cut_calls spinners  sleeps beside threads that wait by polling: their code is changed meanwhile
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_MS 300
#define SIGNAL_MS 150
#define LATE_SIGNAL_MS 700
#define LONG_MS 3000
#define TIME_BETWEEN_STOPS_MS 10
#define NOTHING (-1)

struct wait {
  const char *name;
  int64_t (*make)(void); /* returns what remains, in milliseconds, or NOTHING */
  pthread_t thread;
  int error;
  int64_t taken_ms, left_ms;
};

static int limit_ms;
static int started, waiting;
static volatile sig_atomic_t handled;

static int64_t now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static struct timespec limit(void) {
  return (struct timespec){limit_ms / 1000, limit_ms % 1000 * 1000000};
}

static int64_t ms(struct timespec time) { return time.tv_sec * 1000 + time.tv_nsec / 1000000; }

/* The call's own time limit must be as it was. */
static int64_t unless_changed(struct timespec time, int64_t left) {
  return ms(time) == limit_ms ? left : -2;
}

static int64_t by_nanosleep(void) {
  struct timespec time = limit(), left = {0, 77000000};
  syscall(SYS_nanosleep, &time, &left);
  return unless_changed(time, ms(left));
}

static int64_t by_nanosleep_in_place(void) {
  struct timespec time = limit();
  syscall(SYS_nanosleep, &time, &time);
  return ms(time);
}

static int64_t by_clock_nanosleep(void) {
  struct timespec time = limit(), left = {0, 77000000};
  syscall(SYS_clock_nanosleep, CLOCK_REALTIME, 0, &time, &left);
  return unless_changed(time, ms(left));
}

static int64_t until(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  time.tv_nsec += limit_ms * 1000000l;
  time.tv_sec += time.tv_nsec / 1000000000;
  time.tv_nsec %= 1000000000;
  syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL);
  return NOTHING;
}

static int64_t by_poll(void) {
  syscall(SYS_poll, NULL, 0, limit_ms);
  return NOTHING;
}

static int64_t by_ppoll(void) {
  struct timespec time = limit();
  syscall(SYS_ppoll, NULL, 0, &time, NULL, 8);
  return ms(time);
}

static int64_t by_select(void) {
  struct timeval time = {limit_ms / 1000, limit_ms % 1000 * 1000};
  syscall(SYS_select, 0, NULL, NULL, NULL, &time);
  return time.tv_sec * 1000 + time.tv_usec / 1000;
}

static int64_t by_pselect(void) {
  struct timespec time = limit();
  syscall(SYS_pselect6, 0, NULL, NULL, NULL, &time, NULL);
  return ms(time);
}

static int64_t by_epoll(void) {
  struct epoll_event event;
  int set = epoll_create1(0);
  syscall(SYS_epoll_wait, set, &event, 1, limit_ms);
  int error = errno;
  close(set);
  errno = error;
  return NOTHING;
}

static int64_t by_futex(void) {
  uint32_t word = 0;
  struct timespec time = limit();
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &time);
  return unless_changed(time, NOTHING);
}

static int64_t by_sigtimedwait(void) {
  struct timespec time = limit();
  uint64_t set = 1ull << (SIGURG - 1);
  syscall(SYS_rt_sigtimedwait, &set, NULL, &time, sizeof(set));
  return unless_changed(time, NOTHING);
}

static int64_t by_semtimedop(void) {
  struct timespec time = limit();
  struct sembuf take = {.sem_op = -1};
  int set = semget(IPC_PRIVATE, 1, 0600);
  syscall(SYS_semtimedop, set, &take, 1, &time);
  int error = errno;
  semctl(set, 0, IPC_RMID);
  errno = error;
  return unless_changed(time, NOTHING);
}

static int64_t by_socket(void) {
  struct timeval time = {limit_ms / 1000, limit_ms % 1000 * 1000};
  char byte;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0)
    return -2;
  setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof(time));
  syscall(SYS_recvfrom, pair[0], &byte, 1, 0, NULL, NULL);
  int error = errno;
  close(pair[0]);
  close(pair[1]);
  errno = error;
  return NOTHING;
}

static int64_t by_pause(void) {
  syscall(SYS_pause);
  return NOTHING;
}

static int64_t by_sigsuspend(void) {
  uint64_t none = 0;
  syscall(SYS_rt_sigsuspend, &none, sizeof(none));
  return NOTHING;
}

static int64_t by_msgrcv(void) {
  char message[16];
  int queue = msgget(IPC_PRIVATE, 0600);
  syscall(SYS_msgrcv, queue, message, 8, 0, 0);
  int error = errno;
  msgctl(queue, IPC_RMID, NULL);
  errno = error;
  return NOTHING;
}

static int64_t by_read(void) {
  char byte;
  int ends[2];
  if (pipe(ends) != 0)
    return -2;
  syscall(SYS_read, ends[0], &byte, 1);
  int error = errno;
  close(ends[0]);
  close(ends[1]);
  errno = error;
  return NOTHING;
}

static struct wait limited[] = {
    {.name = "nanosleep", .make = by_nanosleep},
    {.name = "nanosleep_in_place", .make = by_nanosleep_in_place},
    {.name = "clock_nanosleep", .make = by_clock_nanosleep},
    {.name = "clock_nanosleep_until", .make = until},
    {.name = "poll", .make = by_poll},
    {.name = "ppoll", .make = by_ppoll},
    {.name = "select", .make = by_select},
    {.name = "pselect", .make = by_pselect},
    {.name = "epoll_wait", .make = by_epoll},
    {.name = "futex", .make = by_futex},
    {.name = "sigtimedwait", .make = by_sigtimedwait},
    {.name = "semtimedop", .make = by_semtimedop},
    {.name = "recv", .make = by_socket},
};

static struct wait ended[] = {
    {.name = "nanosleep", .make = by_nanosleep},
    {.name = "nanosleep_in_place", .make = by_nanosleep_in_place},
    {.name = "clock_nanosleep", .make = by_clock_nanosleep},
    {.name = "poll", .make = by_poll},
    {.name = "ppoll", .make = by_ppoll},
    {.name = "select", .make = by_select},
    {.name = "epoll_wait", .make = by_epoll},
    {.name = "futex", .make = by_futex},
    {.name = "semtimedop", .make = by_semtimedop},
    {.name = "recv", .make = by_socket},
    {.name = "pause", .make = by_pause},
    {.name = "sigsuspend", .make = by_sigsuspend},
    {.name = "msgrcv", .make = by_msgrcv},
    {.name = "read", .make = by_read},
};

static struct wait spared[] = {
    {.name = "nanosleep", .make = by_nanosleep},
    {.name = "poll", .make = by_poll},
    {.name = "select", .make = by_select},
};

static void handle(int number) {
  (void)number;
  __atomic_add_fetch(&handled, 1, __ATOMIC_RELAXED);
}

static void *make(void *wait_of) {
  struct wait *wait = wait_of;
  int64_t begin = now_ms();
  __atomic_add_fetch(&started, 1, __ATOMIC_RELAXED);
  errno = 0;
  wait->left_ms = wait->make();
  wait->error = errno;
  wait->taken_ms = now_ms() - begin;
  __atomic_sub_fetch(&waiting, 1, __ATOMIC_RELAXED);
  return NULL;
}

static void stop_all_for(int64_t time_ms) {
  char *const nothing[] = {NULL};
  int64_t end = now_ms() + time_ms;
  while (now_ms() < end && __atomic_load_n(&waiting, __ATOMIC_RELAXED) > 0) {
    execve("/nowhere", nothing, nothing);
    usleep(TIME_BETWEEN_STOPS_MS * 1000);
  }
}

static void run(struct wait *wait, int count, int signal, int64_t signal_ms) {
  waiting = count;
  started = 0;
  for (int i = 0; i < count; i++)
    pthread_create(&wait[i].thread, NULL, make, &wait[i]);
  while (__atomic_load_n(&started, __ATOMIC_RELAXED) < count)
    usleep(1000);
  stop_all_for(signal_ms);
  for (int i = 0; i < count && signal != 0; i++)
    pthread_kill(wait[i].thread, signal);
  stop_all_for(INT64_MAX / 2);
  for (int i = 0; i < count; i++) {
    pthread_join(wait[i].thread, NULL);
    printf("%s %s %ld %ld\n", wait[i].name,
           wait[i].error == 0 ? "0" : strerrorname_np(wait[i].error), (long)wait[i].taken_ms,
           (long)wait[i].left_ms);
  }
}

#define SLEEPERS 3
#define SLEEPS 100
#define TURNS 30

static int turn, cut_short;

static void *sleep_often(void *unused) {
  struct timespec time = {.tv_nsec = 1000000};
  for (int i = 0; i < SLEEPS; i++) {
    if (nanosleep(&time, NULL) != 0)
      __atomic_add_fetch(&cut_short, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

static void *take_turns(void *own_turn) {
  for (int i = 0; i < TURNS; i++) {
    while (__atomic_load_n(&turn, __ATOMIC_ACQUIRE) != (int)(intptr_t)own_turn)
      __builtin_ia32_pause();
    __atomic_store_n(&turn, 1 - (int)(intptr_t)own_turn, __ATOMIC_RELEASE);
  }
  return NULL;
}

static void sleep_beside_spinners(void) {
  pthread_t thread[SLEEPERS + 2];
  for (int i = 0; i < SLEEPERS + 2; i++)
    pthread_create(&thread[i], NULL, i < SLEEPERS ? sleep_often : take_turns,
                   (void *)(intptr_t)(i - SLEEPERS));
  for (int i = 0; i < SLEEPERS + 2; i++)
    pthread_join(thread[i], NULL);
  printf("cut short %d\n", cut_short);
}

#define COUNT(waits) ((int)(sizeof(waits) / sizeof(*(waits))))

int main(int argc, char **argv) {
  const char *what = argc > 1 ? argv[1] : "";
  sigset_t blocked;
  limit_ms = LIMIT_MS;
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle, .sa_flags = SA_RESTART}, NULL);
  sigaction(SIGUSR2, &(struct sigaction){.sa_handler = handle}, NULL);
  sigaction(SIGWINCH, &(struct sigaction){.sa_handler = SIG_IGN}, NULL);
  sigemptyset(&blocked);
  if (strcmp(what, "limits") == 0) {
    run(limited, COUNT(limited), 0, 0);
  } else if (strcmp(what, "signals") == 0) {
    limit_ms = LONG_MS;
    run(ended, COUNT(ended), SIGUSR2, LATE_SIGNAL_MS);
  } else if (strcmp(what, "others") == 0) {
    run(spared, COUNT(spared), SIGCHLD, SIGNAL_MS);
    run(spared, COUNT(spared), SIGWINCH, SIGNAL_MS);
    sigaddset(&blocked, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    run(spared, COUNT(spared), SIGUSR1, SIGNAL_MS);
  } else if (strcmp(what, "spinners") == 0) {
    sleep_beside_spinners();
    return 0;
  } else {
    return 2;
  }
  printf("handled %d\n", (int)handled);
  return 0;
}
