/* Asks the kernel's page at the end of the address space for the time, as old programs do. */
#include <stdint.h>
#include <stdio.h>
#include <sys/time.h>
#include <time.h>

#define PAGE 0xffffffffff600000

int main(void) {
  struct timeval day = {0};
  int (*get_day)(struct timeval *, void *) = (void *)(uintptr_t)PAGE;
  time_t (*get_time)(time_t *) = (void *)(uintptr_t)(PAGE + 1024);
  time_t time = get_time(NULL);
  printf("%d %d\n", get_day(&day, NULL) == 0 && day.tv_sec > 1000, time > 1000);
  return 0;
}
