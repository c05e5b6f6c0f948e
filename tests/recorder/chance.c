/* SPDX-License-Identifier: Apache-2.0 */
/* Prints what differs from run to run: random bytes in each way that there is, then clocks. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/times.h>
#include <time.h>
#include <unistd.h>

int main(void) {
  uint64_t word = 0;
  struct timespec time;
  struct timeval day;
  struct tms times_taken;
  struct rusage usage;
  if (getrandom(&word, sizeof(word), 0) != sizeof(word))
    return 2;
  printf("getrandom %jx\n", (uintmax_t)word);
  int file = open("/dev/urandom", O_RDONLY);
  if (read(file, &word, sizeof(word)) != sizeof(word))
    return 3;
  printf("urandom %jx\n", (uintmax_t)word);
  char identifier[100];
  file = open("/proc/sys/kernel/random/uuid", O_RDONLY);
  if (read(file, identifier, 10) != 10 || read(file, identifier, sizeof(identifier)) != 27 ||
      lseek(file, 0, SEEK_SET) != 0 || read(file, identifier, sizeof(identifier)) != 37 ||
      read(file, identifier + 37, 1) != 0 || identifier[14] != '4' || identifier[36] != '\n')
    return 4;
  identifier[36] = 0;
  printf("identifier %s\n", identifier);
  memcpy(&word, (void *)getauxval(AT_RANDOM), sizeof(word));
  printf("auxiliary %jx\n", (uintmax_t)word);
  for (clockid_t clock = CLOCK_REALTIME; clock <= CLOCK_BOOTTIME; clock++) {
    clock_gettime(clock, &time);
    printf("clock %jd %ld\n", (intmax_t)time.tv_sec, time.tv_nsec);
  }
  gettimeofday(&day, NULL);
  clock_t ticks = times(&times_taken);
  getrusage(RUSAGE_SELF, &usage);
  printf("times %ld %ld %ld %ld\n", (long)day.tv_usec, (long)ticks, (long)times_taken.tms_utime,
         (long)usage.ru_utime.tv_usec);
  printf("stamp %llu\n", __builtin_ia32_rdtsc());
  return 0;
}
