/* What programs do that a preloaded runtime may break: traps NAME…; ends with 1 and says what was
 * otherwise than without it. Each burns processor time beside, so that it is paced. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)                                                                           \
  do {                                                                                             \
    if (!(condition)) {                                                                            \
      fprintf(stderr, "%s:%d: %s (errno %d)\n", __func__, __LINE__, #condition, errno);            \
      exit(1);                                                                                     \
    }                                                                                              \
  } while (0)

static double now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void burn(double seconds) {
  double end = now(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end)
    for (volatile int spin = 0; spin < 2000; spin++)
      ;
}

/* Nothing that waits ends early, or with an error. */
static void waits(void) {
  enum { ROUNDS = 10 };
  const struct timespec wait = {0, 3000000};
  const double seconds = 0.003;
  int pipes[2], epoll = epoll_create1(0);
  CHECK(pipe(pipes) == 0 && epoll >= 0);
  struct epoll_event event = {.events = EPOLLIN};
  CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, pipes[0], &event) == 0);
  sem_t semaphore;
  sem_init(&semaphore, 0, 0);
  pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
  sigset_t none;
  sigemptyset(&none);
  for (int round = 0; round < ROUNDS; round++)
    for (int kind = 0; kind < 11; kind++) {
      burn(0.0007);
      struct pollfd file = {.fd = pipes[0], .events = POLLIN};
      fd_set files;
      FD_ZERO(&files);
      FD_SET(pipes[0], &files);
      struct timeval limit = {0, 3000};
      struct timespec end, left = wait;
      clock_gettime(CLOCK_REALTIME, &end);
      end.tv_nsec += wait.tv_nsec;
      end.tv_sec += end.tv_nsec / 1000000000;
      end.tv_nsec %= 1000000000;
      // The last two wait for an instant of the wall clock, which may be set meanwhile.
      clockid_t clock = kind < 9 ? CLOCK_MONOTONIC : CLOCK_REALTIME;
      double begun = now(clock);
      errno = 0;
      switch (kind) {
      case 0:
        CHECK(poll(&file, 1, 3) == 0);
        break;
      case 1:
        CHECK(ppoll(&file, 1, &wait, NULL) == 0);
        break;
      case 2:
        CHECK(ppoll(&file, 1, &wait, &none) == 0);
        break;
      case 3:
        CHECK(select(pipes[0] + 1, &files, NULL, NULL, &limit) == 0);
        break;
      case 4:
        CHECK(pselect(pipes[0] + 1, &files, NULL, NULL, &wait, &none) == 0);
        break;
      case 5:
        CHECK(epoll_wait(epoll, &event, 1, 3) == 0);
        break;
      case 6:
        CHECK(nanosleep(&wait, &left) == 0);
        break;
      case 7:
        CHECK(clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) == 0);
        break;
      case 8:
        CHECK(usleep(3000) == 0);
        break;
      case 9:
        CHECK(sem_timedwait(&semaphore, &end) == -1 && errno == ETIMEDOUT);
        break;
      case 10:
        pthread_mutex_lock(&mutex);
        CHECK(pthread_cond_timedwait(&condition, &mutex, &end) == ETIMEDOUT);
        pthread_mutex_unlock(&mutex);
        break;
      }
      CHECK(now(clock) - begun >= seconds * 0.99);
    }
}

static volatile sig_atomic_t calls;

static void count(int signal) {
  (void)signal;
  calls++;
}

/* What is sent comes as often as it is sent, and not before it is unblocked. */
static void check_signal(int signal) {
  enum { SENT = 150 };
  struct sigaction action = {.sa_handler = count}, before;
  sigset_t set, old;
  CHECK(sigaction(signal, NULL, &before) == 0 && before.sa_handler == SIG_DFL);
  CHECK(sigaction(signal, &action, &before) == 0 && before.sa_handler == SIG_DFL);
  calls = 0;
  for (int sent = 0; sent < SENT; sent++) {
    burn(0.00003);
    CHECK(raise(signal) == 0);
  }
  CHECK(calls == SENT);
  sigemptyset(&set);
  sigaddset(&set, signal);
  CHECK(pthread_sigmask(SIG_BLOCK, &set, &old) == 0 && !sigismember(&old, signal));
  CHECK(raise(signal) == 0);
  burn(0.005);
  CHECK(calls == SENT);
  CHECK(pthread_sigmask(SIG_UNBLOCK, &set, &old) == 0 && sigismember(&old, signal));
  CHECK(calls == SENT + 1);
  CHECK(sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, &before) == 0);
  CHECK(before.sa_handler == count);
}

/* The program's own signals are its own, and end waits as they do. */
static void own_signals(void) {
  check_signal(SIGUSR1);
  check_signal(SIGIO);
  for (int signal = SIGRTMIN; signal <= SIGRTMAX; signal += 5)
    check_signal(signal);
  CHECK(signal(SIGALRM, count) == SIG_DFL);
  struct sigaction action = {.sa_handler = count};
  CHECK(sigaction(SIGALRM, &action, NULL) == 0);
  calls = 0;
  struct itimerval timer = {.it_value = {0, 20000}};
  CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
  struct timespec hour = {3600, 0};
  CHECK(nanosleep(&hour, NULL) == -1 && errno == EINTR && calls == 1);
}

/* So is the one that calls our handler. Not with a timer: the kernel merges two of them that wait
 * at once. */
static void same_signal(void) { check_signal(SIGURG); }

/* Errors of calls stay what they are, whatever comes between. */
static void keeps_errno(void) {
  /* Handlers of the program interrupt our pauses. */
  CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = count}, NULL) == 0);
  struct itimerval often = {{0, 700}, {0, 700}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  /* Or the compiler would know what it is. */
  volatile int *place = &errno;
  double end = now(CLOCK_THREAD_CPUTIME_ID) + 0.3;
  while (now(CLOCK_THREAD_CPUTIME_ID) < end) {
    *place = E2BIG;
    for (volatile int spin = 0; spin < 1000000; spin++)
      ;
    CHECK(*place == E2BIG);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static sigjmp_buf back;

static void jump(int signal) {
  (void)signal;
  siglongjmp(back, 1);
}

static void burn_a_little(int signal) {
  (void)signal;
  int before = errno;
  burn(0.0005);
  errno = before;
  calls++;
}

/* Handlers interrupt ours, take their time, and leave it by a jump. */
static void nested(void) {
  CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = burn_a_little}, NULL) == 0);
  struct itimerval often = {{0, 6000}, {0, 6000}}, never = {{0, 0}, {0, 0}};
  CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
  burn(0.3);
  CHECK(calls > 5);
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
  CHECK(sigaction(SIGALRM, &(struct sigaction){.sa_handler = jump}, NULL) == 0);
  for (volatile int jumps = 0; jumps < 40; jumps++) {
    if (sigsetjmp(back, 1) != 0)
      continue;
    struct itimerval once = {.it_value = {0, 1500}};
    setitimer(ITIMER_REAL, &once, NULL);
    burn(3600);
  }
  CHECK(setitimer(ITIMER_REAL, &never, NULL) == 0);
}

static void *burn_and_return(void *argument) {
  burn(0.0005);
  return argument;
}

static void *burn_and_exit(void *argument) {
  burn(0.0005);
  pthread_exit(argument);
}

static void *wait_for_ever(void *argument) {
  burn(0.0005);
  poll(NULL, 0, -1);
  return argument;
}

static int burn_c(void *argument) {
  burn(0.0005);
  return *(int *)argument;
}

/* Threads end in every way; their results are theirs. */
static void threads(void) {
  enum { ROUNDS = 40 };
  int value = 7;
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[4];
    thrd_t thread;
    void *result;
    int code;
    CHECK(pthread_create(&threads[0], NULL, burn_and_return, &value) == 0);
    CHECK(pthread_create(&threads[1], NULL, burn_and_exit, &value) == 0);
    CHECK(pthread_create(&threads[2], NULL, wait_for_ever, &value) == 0);
    CHECK(pthread_create(&threads[3], NULL, burn_and_return, &value) == 0);
    CHECK(thrd_create(&thread, burn_c, &value) == thrd_success);
    CHECK(pthread_detach(threads[3]) == 0);
    CHECK(pthread_join(threads[0], &result) == 0 && result == &value);
    CHECK(pthread_join(threads[1], &result) == 0 && result == &value);
    CHECK(pthread_cancel(threads[2]) == 0);
    CHECK(pthread_join(threads[2], &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(thrd_join(thread, &code) == thrd_success && code == value);
  }
}

static void *fork_in_thread(void *argument) {
  pid_t child = fork();
  CHECK(child >= 0);
  if (child == 0) {
    burn(0.002);
    _exit(5);
  }
  int status;
  CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 5);
  return argument;
}

static __attribute__((noinline)) pid_t vforked(void) {
  pid_t child = vfork();
  if (child == 0) {
    execl("/proc/self/exe", "traps", "burn", (char *)NULL);
    _exit(9);
  }
  return child;
}

/* Children are forked, by threads too; they execute programs with signals under way. */
static void processes(void) {
  enum { ROUNDS = 12 };
  for (int round = 0; round < ROUNDS; round++) {
    pthread_t threads[2];
    for (int at = 0; at < 2; at++)
      CHECK(pthread_create(&threads[at], NULL, fork_in_thread, NULL) == 0);
    burn(0.001);
    int status;
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
      burn(0.001);
      execl("/proc/self/exe", "traps", "burn", (char *)NULL);
      _exit(9);
    }
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    child = vforked();
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (int at = 0; at < 2; at++)
      CHECK(pthread_join(threads[at], NULL) == 0);
  }
  CHECK(system("exit 3") == 3 << 8);
  for (int file = 3; file < 1024; file++)
    close(file);
  burn(0.05);
}

/* A thread that lets no signal through is paced all the same. */
static void masked(void) {
  sigset_t all, seen;
  sigfillset(&all);
  CHECK(sigprocmask(SIG_SETMASK, &all, NULL) == 0);
  burn(0.3);
  CHECK(sigprocmask(SIG_SETMASK, NULL, &seen) == 0);
  CHECK(sigismember(&seen, SIGURG) && sigismember(&seen, SIGUSR1) && sigismember(&seen, SIGRTMAX));
}

/* How the children of `processes` spend their lives. */
static void burn_briefly(void) { burn(0.003); }

static const struct trap {
  const char *name;
  void (*run)(void);
} traps[] = {
    {"waits", waits},         {"own_signals", own_signals}, {"keeps_errno", keeps_errno},
    {"nested", nested},       {"same_signal", same_signal}, {"threads", threads},
    {"processes", processes}, {"masked", masked},           {"burn", burn_briefly},
};

int main(int count_of, char **names) {
  for (int at = 1; at < count_of; at++)
    for (unsigned trap = 0; trap < sizeof(traps) / sizeof(*traps); trap++)
      if (strcmp(names[at], traps[trap].name) == 0)
        traps[trap].run();
  return 0;
}
