/* SPDX-License-Identifier: Apache-2.0 */
#include "arguments.h"

#include "complaint.h"
#include "pm_selector.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: fencepost-record [-o FILE] [--roi START:STOP [--warm N]] [--values --pm SELECTOR]\n"
    "                        [--every N --keep M [--warm N]]\n"
    "                        [--children] [--seed N] [--schedule N] [--real-time]\n"
    "                        [--sysroot FOLDER] -- PROGRAM [ARGUMENT...]\n"
    "\n"
    "Runs PROGRAM and records what it does to memory.\n"
    "\n"
    "  -o FILE           the record (default: PROGRAM.fencepost in this folder)\n"
    "  --roi START:STOP  record a region alone: between functions, or instruction counts\n"
    "  --warm N          so many instructions before it, too, untimed; all: the whole program\n"
    "  --every N         record windows of the program, one in so many instructions\n"
    "  --keep M          … so many instructions long\n"
    "  --values          record what is written to persistent memory too (needs --pm)\n"
    "  --pm SELECTOR     what is persistent memory: heap, file:PATTERN or range:LO-HI\n"
    "  --children        record child processes too: N.fencepost's first child in N.1.fencepost\n"
    "  --list            print each record, and the program that it is of, on standard error\n"
    "  --seed N          what PROGRAM sees of chance: another seed, other random bytes (default: "
    "0)\n"
    "  --schedule N      the order of threads: 1 is the likeliest, others are drawn (default: 1)\n"
    "  --real-time       clocks and sleeps are real, for a server whose clients are not recorded\n"
    "  --sysroot FOLDER  where the loader and libraries of an AArch64 program are (default:\n"
    "                    QEMU_LD_PREFIX, or else /usr/aarch64-linux-gnu)\n"
    "  --starter PID     who started this: when it has ended, PROGRAM is killed and there is no "
    "record\n"
    "  --temporary       … nor the folder that was to hold it\n"
    "  --compare-addresses  of an AArch64 program, compare each address with QEMU's own\n"
    "\n"
    "The exit code is the program's; 125 means that the recorder failed, 126 that PROGRAM\n"
    "cannot be executed, 127 that it was not found, 2 that these options are wrong.\n";

/* The value of the option at argv[*at], given as "--name=value" or in the next argument. */
static const char *option_value(const char *name, int argc, char **argv, int *at) {
  const char *equals = strchr(argv[*at], '=');
  if (strncmp(argv[*at], "--", 2) == 0 && equals != NULL)
    return equals + 1;
  if (*at + 1 >= argc || strcmp(argv[*at + 1], "--") == 0)
    fail(EXIT_WRONG_OPTIONS, "%s needs a value (see --help)", name);
  return argv[++*at];
}

static bool is_option(const char *argument, const char *name) {
  size_t length = strlen(name);
  return strncmp(argument, name, length) == 0 &&
         (argument[length] == '\0' || (strncmp(name, "--", 2) == 0 && argument[length] == '='));
}

/* Two names, or two rising counts, with a colon between. */
static bool is_region(const char *text) {
  const char *colon = strchr(text, ':');
  if (colon == NULL || colon == text || colon[1] == '\0' || strchr(colon + 1, ':') != NULL)
    return false;
  size_t start_digits = strspn(text, "0123456789"), stop_digits = strspn(colon + 1, "0123456789");
  bool start_counts = text + start_digits == colon, stop_counts = colon[1 + stop_digits] == '\0';
  if (start_counts != stop_counts)
    return false;
  return !start_counts || strtoull(text, NULL, 10) < strtoull(colon + 1, NULL, 10);
}

static int process_of(const char *text) {
  char *end;
  long process = strtol(text, &end, 10);
  if (*end != '\0' || process <= 0 || process > INT_MAX)
    fail(EXIT_WRONG_OPTIONS, "--starter %s: the id of a process", text);
  return (int)process;
}

static uint64_t number_of(const char *option, const char *text, uint64_t least) {
  char *end;
  errno = 0;
  uint64_t number = strtoull(text, &end, 10);
  if (*end != '\0' || end == text || text[0] == '-' || errno != 0 || number < least)
    fail(EXIT_WRONG_OPTIONS, "%s %s: a number from %llu on", option, text,
         (unsigned long long)least);
  return number;
}

static void check_selector(const char *text) {
  struct pm_selector selector;
  const char *problem = text == NULL ? NULL : pm_selector_parse(&selector, text);
  if (problem != NULL)
    fail(EXIT_WRONG_OPTIONS, "--pm %s: %s", text, problem);
}

/* Of windows, the first one is a region, in the middle of so many instructions. */
static void set_windows(struct arguments *arguments) {
  if (arguments->every == 0 && arguments->keep == 0)
    return;
  if (arguments->every == 0 || arguments->keep == 0)
    fail(EXIT_WRONG_OPTIONS,
         "--every N and --keep M are given together: windows of M instructions, "
         "one in N");
  if (arguments->roi != NULL || arguments->values || arguments->children)
    fail(EXIT_WRONG_OPTIONS, "--every is for one process and the whole program: it goes with none "
                             "of --roi, --values and --children");
  if (arguments->warm > arguments->every || arguments->keep > arguments->every - arguments->warm)
    fail(EXIT_WRONG_OPTIONS, "--every %llu: windows of --keep and --warm instructions have to fit",
         (unsigned long long)arguments->every);
  unsigned long long start = (arguments->every - arguments->keep) / 2;
  char *region;
  if (asprintf(&region, "%llu:%llu", start, start + (unsigned long long)arguments->keep) < 0)
    fail(EXIT_OURS, "out of memory");
  arguments->roi = region;
}

static void check(const struct arguments *arguments) {
  if (arguments->program[0] == NULL)
    fail(EXIT_WRONG_OPTIONS, "no program to record (see --help)");
  if (arguments->values && arguments->pm == NULL)
    fail(EXIT_WRONG_OPTIONS, "--values needs --pm SELECTOR: which memory's values to record");
  if (arguments->pm != NULL && !arguments->values)
    fail(EXIT_WRONG_OPTIONS, "--pm is of no use here without --values: what is persistent memory "
                             "is chosen when simulating");
  check_selector(arguments->pm);
  if (arguments->roi != NULL && !is_region(arguments->roi))
    fail(EXIT_WRONG_OPTIONS,
         "--roi %s: START:STOP, two functions or two counts of instructions, "
         "the second larger",
         arguments->roi);
  bool is_counted = arguments->roi != NULL && strspn(arguments->roi, "0123456789") > 0;
  if (arguments->warm != 0 && arguments->roi == NULL)
    fail(EXIT_WRONG_OPTIONS, "--warm is of no use without --roi START:STOP: all is recorded");
  if (arguments->warm != 0 && arguments->values)
    fail(EXIT_WRONG_OPTIONS, "--warm is of no use with --values: all is recorded");
  if (arguments->warm != 0 && arguments->warm != CONTROL_WARM_ALL && !is_counted)
    fail(EXIT_WRONG_OPTIONS,
         "--warm %llu needs a region between counts of instructions; before a "
         "function, --warm all records everything",
         (unsigned long long)arguments->warm);
  if (arguments->output != NULL && arguments->output[0] == '\0')
    fail(EXIT_WRONG_OPTIONS, "-o needs the name of a file");
}

void arguments_parse(struct arguments *arguments, int argc, char **argv) {
  int at = 1;
  memset(arguments, 0, sizeof(*arguments));
  arguments->schedule = 1;
  for (; at < argc; at++) {
    const char *argument = argv[at];
    if (strcmp(argument, "--") == 0) {
      at++;
      break;
    }
    if (argument[0] != '-')
      break;
    if (is_option(argument, "-o") || is_option(argument, "--output")) {
      arguments->output = option_value("-o", argc, argv, &at);
    } else if (is_option(argument, "--roi")) {
      arguments->roi = option_value("--roi", argc, argv, &at);
    } else if (is_option(argument, "--warm")) {
      const char *warm = option_value("--warm", argc, argv, &at);
      arguments->warm = strcmp(warm, "all") == 0 ? CONTROL_WARM_ALL : number_of("--warm", warm, 0);
    } else if (is_option(argument, "--every")) {
      arguments->every = number_of("--every", option_value("--every", argc, argv, &at), 1);
    } else if (is_option(argument, "--keep")) {
      arguments->keep = number_of("--keep", option_value("--keep", argc, argv, &at), 1);
    } else if (is_option(argument, "--pm")) {
      if (arguments->pm != NULL)
        fail(EXIT_WRONG_OPTIONS, "--pm can be given once");
      arguments->pm = option_value("--pm", argc, argv, &at);
    } else if (is_option(argument, "--sysroot")) {
      arguments->sysroot = option_value("--sysroot", argc, argv, &at);
    } else if (strcmp(argument, "--values") == 0) {
      arguments->values = true;
    } else if (strcmp(argument, "--children") == 0) {
      arguments->children = true;
    } else if (strcmp(argument, "--list") == 0) {
      arguments->lists = true;
    } else if (is_option(argument, "--starter")) {
      arguments->starter = process_of(option_value("--starter", argc, argv, &at));
    } else if (is_option(argument, "--seed")) {
      arguments->seed = number_of("--seed", option_value("--seed", argc, argv, &at), 0);
    } else if (is_option(argument, "--schedule")) {
      arguments->schedule = number_of("--schedule", option_value("--schedule", argc, argv, &at), 1);
    } else if (strcmp(argument, "--real-time") == 0) {
      arguments->real_time = true;
    } else if (strcmp(argument, "--temporary") == 0) {
      arguments->is_temporary = true;
    } else if (strcmp(argument, "--compare-addresses") == 0) {
      arguments->compare_addresses = true;
    } else if (strcmp(argument, "--version") == 0) {
      printf("fencepost-record %s (DynamoRIO %s)\n", RECORDER_VERSION, ENGINE_VERSION);
      exit(0);
    } else if (strcmp(argument, "--help") == 0 || strcmp(argument, "-h") == 0) {
      fputs(usage, stdout);
      exit(0);
    } else {
      fail(EXIT_WRONG_OPTIONS, "unknown option %s (see --help)", argument);
    }
  }
  arguments->program = argv + at;
  set_windows(arguments);
  check(arguments);
}
