/* Threads that say themselves what they use: stream SECONDS WARM_UP CHANNEL:THREADS[:SLEEP_US]…
 * Each spins, reports 4 KiB for each round, and sleeps for SLEEP_US after each 10 rounds. Prints,
 * for each thread, its channel and the bytes that it reported in SECONDS after WARM_UP. With `-`
 * for SECONDS, they run until standard input ends, and the bytes are those since its last line.
 * Without a launcher, its environment says where it joins. */
#include <mchannel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { THREADS_MAX = 256, BYTES = 4096, ROUNDS = 10, SPINS = 6000 };

struct stream {
  const char *channel;
  long sleep_us;
  _Atomic unsigned long bytes;
  pthread_t thread;
};

static struct stream streams[THREADS_MAX];
static atomic_int is_over;

static void sleep_for(double seconds) {
  struct timespec left = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
  while (nanosleep(&left, &left) != 0)
    ;
}

static void *run(void *argument) {
  struct stream *stream = argument;
  if (mchannel_open(stream->channel) != 0) {
    fprintf(stderr, "stream: no channel %s\n", stream->channel);
    exit(1);
  }
  while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
    for (int round = 0; round < ROUNDS; round++) {
      for (volatile int spin = 0; spin < SPINS; spin++)
        ;
      mchannel_account(BYTES);
      atomic_fetch_add_explicit(&stream->bytes, BYTES, memory_order_relaxed);
    }
    if (stream->sleep_us > 0)
      sleep_for((double)stream->sleep_us * 1e-6);
  }
  return NULL;
}

int main(int count, char **arguments) {
  if (count < 4)
    return 2;
  int joined = mchannel_init(NULL);
  if (joined != 0) {
    fprintf(stderr, "stream: mchannel_init: %d\n", joined);
    return 1;
  }
  int threads = 0;
  for (int at = 3; at < count; at++) {
    char *name = strtok(arguments[at], ":"), *number = strtok(NULL, ":"),
         *sleep = strtok(NULL, ":");
    for (int one = 0; one < atoi(number ? number : "1") && threads < THREADS_MAX; one++) {
      streams[threads].channel = name;
      streams[threads++].sleep_us = sleep ? atol(sleep) : 0;
    }
  }
  for (int at = 0; at < threads; at++)
    pthread_create(&streams[at].thread, NULL, run, &streams[at]);
  static unsigned long before[THREADS_MAX];
  sleep_for(atof(arguments[2]));
  int is_told = strcmp(arguments[1], "-") == 0, line;
  struct timespec begun, ended;
  do {
    for (int at = 0; at < threads; at++)
      before[at] = atomic_load(&streams[at].bytes);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    while (is_told && (line = getchar()) != EOF && line != '\n')
      ;
  } while (is_told && line != EOF);
  if (!is_told)
    sleep_for(atof(arguments[1]));
  for (int at = 0; at < threads; at++)
    before[at] = atomic_load(&streams[at].bytes) - before[at];
  clock_gettime(CLOCK_MONOTONIC, &ended);
  double seconds =
      (double)(ended.tv_sec - begun.tv_sec) + (double)(ended.tv_nsec - begun.tv_nsec) * 1e-9;
  atomic_store(&is_over, 1);
  for (int at = 0; at < threads; at++)
    pthread_join(streams[at].thread, NULL);
  for (int at = 0; at < threads; at++)
    printf("%s %lu %.6f\n", streams[at].channel, before[at], seconds);
  return 0;
}
