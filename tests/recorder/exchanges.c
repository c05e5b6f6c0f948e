/* SPDX-License-Identifier: Apache-2.0 */
/* Two threads, or two processes, give each other turns in one of the ways in which the kernel can
 * be waited at, and then wait until a time limit where there is one. Prints what came of it.
 *
 *   exchanges WAY threads|processes FILE */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 12
#define LIMIT_NS 30000000

struct shared {
  _Atomic int turn, inside, met;
  pid_t process[2];
};

static struct shared *shared;
static pthread_t thread[2];
static int processes, queue, semaphores, file[2];
static mqd_t messages[2];
static _Thread_local volatile sig_atomic_t handled;
static sigset_t without_user;

static void work(int rank, int round) {
  static _Thread_local volatile long sum;
  for (int i = 0; i < 3000 * (1 + (rank + round) % 3); i++)
    sum += i;
}

static void handle(int number) {
  (void)number;
  handled++;
}

/* --- the ways: to give the other its turn, to await one's own, and to run out of time --- */

static void send_signal(int to) {
  if (processes)
    kill(shared->process[to], SIGUSR1);
  else
    pthread_kill(thread[to], SIGUSR1);
}

static int await_signal(int rank) {
  sigset_t set;
  siginfo_t information;
  (void)rank;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  return sigwaitinfo(&set, &information) == SIGUSR1;
}

static int miss_signal(int rank) {
  sigset_t set;
  struct timespec limit = {.tv_nsec = LIMIT_NS};
  (void)rank;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  return sigtimedwait(&set, NULL, &limit);
}

/* Each of these waits with a mask that lets the signal's handler run. */
static int by_sigsuspend(struct timespec *limit) {
  (void)limit;
  return sigsuspend(&without_user);
}

static int by_ppoll(struct timespec *limit) { return ppoll(NULL, 0, limit, &without_user); }

static int by_pselect(struct timespec *limit) {
  return pselect(0, NULL, NULL, NULL, limit, &without_user);
}

static int by_epoll(struct timespec *limit) {
  struct epoll_event event;
  int set = epoll_create1(0);
  int result = epoll_pwait(set, &event, 1, limit == NULL ? -1 : LIMIT_NS / 1000000, &without_user);
  close(set);
  return result;
}

static int (*masked)(struct timespec *limit);

static int await_handler(int rank) {
  sigset_t now;
  int before = handled;
  (void)rank;
  errno = 0;
  int is_over = masked(NULL) == -1 && errno == EINTR && handled == before + 1;
  pthread_sigmask(SIG_BLOCK, NULL, &now);
  return is_over && sigismember(&now, SIGUSR1);
}

static int miss_handler(int rank) {
  (void)rank;
  return masked == by_sigsuspend ? 0 : masked(&(struct timespec){.tv_nsec = LIMIT_NS});
}

struct message {
  long type;
  char text[16];
};

static void send_message(int to) {
  struct message message = {.type = to + 1, .text = "turn"};
  msgsnd(queue, &message, sizeof(message.text), 0);
}

static int await_message(int rank) {
  struct message message;
  return msgrcv(queue, &message, sizeof(message.text), rank + 1, 0) == sizeof(message.text) &&
         message.type == rank + 1 && strcmp(message.text, "turn") == 0;
}

static void send_posix_message(int to) { mq_send(messages[to], "turn", 5, 0); }

static int await_posix_message(int rank) {
  char text[16];
  return mq_receive(messages[rank], text, sizeof(text), NULL) == 5 && strcmp(text, "turn") == 0;
}

static int miss_posix_message(int rank) {
  struct timespec limit;
  char text[16];
  clock_gettime(CLOCK_REALTIME, &limit);
  limit.tv_sec++;
  return (int)mq_timedreceive(messages[rank], text, sizeof(text), NULL, &limit);
}

static void post(int to) {
  struct sembuf operation = {.sem_num = (unsigned short)to, .sem_op = 1};
  semop(semaphores, &operation, 1);
}

static int await_post(int rank) {
  struct sembuf operation = {.sem_num = (unsigned short)rank, .sem_op = -1};
  return semop(semaphores, &operation, 1) == 0;
}

static int miss_post(int rank) {
  struct sembuf operation = {.sem_num = (unsigned short)rank, .sem_op = -1};
  return semtimedop(semaphores, &operation, 1, &(struct timespec){.tv_nsec = LIMIT_NS});
}

/* Locks have no turns: both want one, and hold it while they work. */
static int by_flock(int rank, int locks) { return flock(file[rank], locks ? LOCK_EX : LOCK_UN); }

static int by_fcntl(int command, int rank, int locks) {
  struct flock lock = {.l_type = locks ? F_WRLCK : F_UNLCK, .l_whence = SEEK_SET, .l_len = 1};
  return fcntl(file[rank], command, &lock);
}

static int by_setlk(int rank, int locks) { return by_fcntl(F_SETLKW, rank, locks); }
static int by_ofd(int rank, int locks) { return by_fcntl(F_OFD_SETLKW, rank, locks); }

static int (*lock)(int rank, int locks);

static void unlock_for(int to) { (void)to; }

static int hold_lock(int rank) {
  int is_alone = lock(rank, 1) == 0 && atomic_fetch_add(&shared->inside, 1) == 0;
  work(rank, rank);
  usleep(100);
  atomic_fetch_sub(&shared->inside, 1);
  return is_alone && lock(rank, 0) == 0;
}

/* The second process is ended by the first. */
static void (*give)(int to);
static int (*await)(int rank);
static int (*miss)(int rank);

static struct way {
  const char *name;
  void (*give)(int to);
  int (*await)(int rank);
  int (*miss)(int rank);
  int (*masked)(struct timespec *limit);
  int (*lock)(int rank, int locks);
} ways[] = {
    {"sigwait", send_signal, await_signal, miss_signal, NULL, NULL},
    {"sigsuspend", send_signal, await_handler, miss_handler, by_sigsuspend, NULL},
    {"ppoll", send_signal, await_handler, miss_handler, by_ppoll, NULL},
    {"pselect", send_signal, await_handler, miss_handler, by_pselect, NULL},
    {"epoll", send_signal, await_handler, miss_handler, by_epoll, NULL},
    {"messages", send_message, await_message, NULL, NULL, NULL},
    {"mq", send_posix_message, await_posix_message, miss_posix_message, NULL, NULL},
    {"semaphores", post, await_post, miss_post, NULL, NULL},
    {"flock", unlock_for, hold_lock, NULL, NULL, by_flock},
    {"setlk", unlock_for, hold_lock, NULL, NULL, by_setlk},
    {"ofd", unlock_for, hold_lock, NULL, NULL, by_ofd},
};

static void *take_turns(void *argument) {
  int rank = (int)(intptr_t)argument, came = 0, missed = 0;
  for (int round = 0; round < ROUNDS; round++) {
    if (rank == 1 || round > 0)
      came += await(rank);
    work(rank, round);
    if (rank == 0 || round < ROUNDS - 1)
      give(!rank);
  }
  if (miss != NULL && miss(rank) == -1)
    missed = errno;
  atomic_fetch_add(&shared->met, came * 1000 + missed * (miss != NULL));
  return NULL;
}

static void open_all(const char *path) {
  struct mq_attr attributes = {.mq_maxmsg = 1, .mq_msgsize = 16};
  queue = msgget(IPC_PRIVATE, 0600);
  semaphores = semget(IPC_PRIVATE, 2, 0600);
  for (int i = 0; i < 2; i++) {
    messages[i] = mq_open(strrchr(path, '/'), O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
    mq_unlink(strrchr(path, '/'));
    file[i] = open(path, O_CREAT | O_RDWR, 0600);
  }
}

int main(int count, char **argument) {
  struct way *way = NULL;
  for (size_t i = 0; count == 4 && i < sizeof(ways) / sizeof(*ways); i++) {
    if (strcmp(argument[1], ways[i].name) == 0)
      way = &ways[i];
  }
  if (way == NULL)
    return 2;
  give = way->give;
  await = way->await;
  miss = way->miss;
  masked = way->masked;
  lock = way->lock;
  processes = strcmp(argument[2], "processes") == 0;
  shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  sigset_t user;
  sigemptyset(&user);
  sigaddset(&user, SIGUSR1);
  sigaddset(&user, SIGUSR2);
  pthread_sigmask(SIG_BLOCK, &user, &without_user);
  sigaction(SIGUSR1, &(struct sigaction){.sa_handler = handle}, NULL);
  open_all(argument[3]);
  thread[0] = pthread_self();
  shared->process[0] = getpid();
  if (!processes) {
    pthread_create(&thread[1], NULL, take_turns, (void *)1);
    take_turns((void *)0);
    pthread_join(thread[1], NULL);
  } else {
    pid_t child = fork();
    shared->process[1] = child == 0 ? getpid() : child;
    take_turns((void *)(intptr_t)(child == 0));
    if (child == 0)
      _exit(0);
    waitpid(child, NULL, 0);
  }
  msgctl(queue, IPC_RMID, NULL);
  semctl(semaphores, 0, IPC_RMID);
  printf("%d\n", shared->met);
  return 0;
}
