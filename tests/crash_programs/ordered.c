/* Two threads that order what they make durable by calls or by flags: `ordered POOL HOW` makes
 * numbers durable in turn, `ordered POOL HOW check` looks whether one is ahead of the other. With
 * BROKEN the first thread does not flush. */
#define _GNU_SOURCE
#include <emmintrin.h>
#include <fcntl.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef SKEW
#define SKEW 300
#endif

enum { TURNS = 12, BYTES = 4096 };

static volatile struct {
  uint64_t magic;
  uint64_t first __attribute__((aligned(64)));
  uint64_t second __attribute__((aligned(64)));
} *pool;

static const char *how;
static int to[2], from[2]; /* of each thread, what it tells the other one by and is told by */
static mqd_t queue[2];
static pthread_t threads[2];

static int is(const char *name) { return strstr(how, name) != NULL; }

static void persist(const volatile void *at) {
  _mm_clflush((const void *)at);
  _mm_sfence();
}

static void tell(int self) {
  uint64_t one = 1;
  if (is("queue"))
    mq_send(queue[1 - self], "1", 1, 0);
  else if (is("signal"))
    pthread_kill(threads[1 - self], SIGUSR1);
  else
    write(to[self], &one, 8);
}

static void await(int self) {
  char bytes[8];
  int signal;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  if (is("queue"))
    mq_receive(queue[self], bytes, 8, NULL);
  else if (is("signal"))
    sigwait(&set, &signal);
  else
    read(from[self], bytes, 8);
}

static void take_turns(int self) {
  for (uint64_t number = 1; number <= TURNS; number++) {
    if (self == 1)
      await(1);
    if (self == 0) {
      pool->first = number; /* first */
#ifndef BROKEN
      persist(&pool->first);
#endif
      tell(0);
      await(0);
    } else {
      pool->second = number; /* second */
      persist(&pool->second);
      tell(1);
    }
  }
}

static struct {
  atomic_int is_wanted __attribute__((aligned(64)));
} by[2];
static atomic_int turn __attribute__((aligned(64)));

static void lock(int self) {
  if (is("unlocked"))
    return;
  by[self].is_wanted = 1;
  if (is("peterson")) {
    turn = 1 - self;
    while (by[1 - self].is_wanted && turn == 1 - self)
      ;
    return;
  }
  while (by[1 - self].is_wanted) /* Dekker's */
    if (turn != self) {
      by[self].is_wanted = 0;
      while (turn != self)
        ;
      by[self].is_wanted = 1;
    }
}

static void unlock(int self) {
  if (is("dekker"))
    turn = 1 - self;
  by[self].is_wanted = 0;
}

static void work(int rounds) {
  for (volatile int round = 0; round < rounds; round++)
    ;
}

static void count(int self) {
  for (int times = 0; times < TURNS; times++) {
    work(self * SKEW + times * 40);
    lock(self);
    pool->first = pool->first + 1;
#ifndef BROKEN
    persist(&pool->first);
#endif
    pool->second = pool->first;
    persist(&pool->second);
#ifdef BROKEN
    persist(&pool->first);
#endif
    unlock(self);
  }
}

/* Nobody reads what the other one stores. */
static void be_inside(int self) {
  volatile uint64_t *own = self == 0 ? &pool->first : &pool->second;
  for (int times = 0; times < TURNS; times++) {
    work(self * SKEW + times * 40);
    lock(self);
    *own = 1;
    persist(own);
    work(200);
    *own = 0;
#ifndef BROKEN
    persist(own);
#endif
    unlock(self);
  }
}

static void apart(int self) {
  for (uint64_t number = 1; number <= TURNS; number++) {
    volatile uint64_t *own = self == 0 ? &pool->first : &pool->second;
    *own = number;
    persist(own);
  }
}

static void *run(void *number) {
  int self = (int)(intptr_t)number;
  if (is("apart"))
    apart(self);
  else if (is("inside"))
    be_inside(self);
  else if (is("dekker") || is("peterson"))
    count(self);
  else
    take_turns(self);
  return NULL;
}

static void prepare(void) {
  int pair[2];
  if (is("socket") && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0) {
    to[0] = from[0] = pair[0];
    to[1] = from[1] = pair[1];
  } else if (is("eventfd")) {
    to[0] = from[1] = eventfd(0, 0);
    to[1] = from[0] = eventfd(0, 0);
  } else if (is("pipe")) {
    for (int self = 0; self < 2 && pipe(pair) == 0; self++) {
      to[self] = pair[1];
      from[1 - self] = pair[0];
    }
  }
  for (int self = 0; is("queue") && self < 2; self++) {
    struct mq_attr attributes = {.mq_maxmsg = 4, .mq_msgsize = 8};
    char name[64];
    snprintf(name, sizeof name, "/fencepost-ordered-%d-%d", (int)getpid(), self);
    queue[self] = mq_open(name, O_CREAT | O_RDWR, 0600, &attributes);
    mq_unlink(name);
  }
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  pthread_sigmask(SIG_BLOCK, &set, NULL);
}

static int check(void) {
  uint64_t first = pool->first, second = pool->second;
  if (pool->magic != 7)
    return 2;
  if (is("inside") ? !first || !second : is("apart") || second <= first && first <= second + 1)
    return 0;
  printf("%lu and %lu\n", first, second);
  return 1;
}

int main(int count, char **arguments) {
  how = arguments[2];
  int file = open(arguments[1], O_RDWR | O_CREAT, 0644);
  if (count == 3 && (ftruncate(file, BYTES) != 0 || pwrite(file, "\7", 1, 0) != 1))
    return 3;
  pool = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (count > 3)
    return check();
  prepare();
  threads[0] = pthread_self();
  pthread_create(&threads[1], NULL, run, (void *)1);
  run(NULL);
  pthread_join(threads[1], NULL);
  return 0;
}
