// What the programs of this folder have to do with time (linked with --wrap), so that a record does
// not follow the clock and the kernel of whoever records.
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// The system call itself: the kernel's own code for it in the process (vDSO) is another with each
// kernel, and takes another way with each time. The reference had none either.
int __wrap_clock_gettime(clockid_t clock, struct timespec *time) {
  return (int)syscall(SYS_clock_gettime, clock, time);
}

// Prints the argument of one conversion, `%` to its letter. Measured times and what is computed from
// them are printed as zero: how long printing takes, and what it leaves in the caches for the next
// point, then is always the same.
static void print_argument(const char *conversion, int is_time, va_list *arguments) {
  char letter = conversion[strlen(conversion) - 1];
  if (letter == 's')
    fprintf(stdout, conversion, va_arg(*arguments, const char *));
  else if (letter == 'f' || letter == 'g')
    fprintf(stdout, conversion, is_time ? (va_arg(*arguments, double), 0.0) : va_arg(*arguments, double));
  else if (strchr(conversion, 'l'))
    fprintf(stdout, conversion, is_time ? (va_arg(*arguments, long), 0L) : va_arg(*arguments, long));
  else
    fprintf(stdout, conversion, va_arg(*arguments, int));
}

int __wrap_printf(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  const char *label = format;
  for (const char *at = format; *at; at++) {
    if (*at == ' ')
      label = at + 1;
    if (*at != '%') {
      putc(*at, stdout);
      continue;
    }
    char conversion[16] = {0};
    size_t length = strcspn(at, "sdfgux") + 1;
    memcpy(conversion, at, length < sizeof conversion ? length : sizeof conversion - 1);
    // cyc=, cyc/hop=, ns/hop=, B/cyc=, GB/s=
    int is_time = !strncmp(label, "cyc", 3) || !strncmp(label, "ns/", 3) || !strncmp(label, "B/cyc", 5) || !strncmp(label, "GB/s", 4);
    print_argument(conversion, is_time, &arguments);
    at += length - 1;
  }
  va_end(arguments);
  return 0;
}
