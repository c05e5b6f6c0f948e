// SPDX-License-Identifier: Apache-2.0
//
// What a run is asked to do: the options of all programs of this folder, and what of them a pool
// keeps, so that `--recover` needs no more than the file.
#ifndef SETTINGS_H
#define SETTINGS_H

#include <getopt.h>

#include "options.h"
#include "placement.h"
#include "team.h"
#include "transaction.h"

#ifndef THREADS_MAX
#define THREADS_MAX 1
#endif

enum modify { MODIFY_DATA, MODIFY_META, MODIFY_HYBRID };

static const char *const modify_names[] = {"data", "meta", "hybrid"};

static const struct set_size {
  const char *name;
  uint64_t bytes;
} set_sizes[] = {{"tiny", 29491}, {"small", 471859}, {"medium", 1887436}, {"large", 8388608}};

// A node's line and its payload's.
enum { ELEMENT_BYTES = 2 * LINE_BYTES, OPERATIONS_MAX = 1 << 30, COPIES_MAX = 64 };

#define SET_BYTES_MIN (UINT64_C(4) * ELEMENT_BYTES)
#define SET_BYTES_MAX (UINT64_C(1) << 32)

struct settings {
  uint64_t set_bytes, operations, seed;
  unsigned threads, read_percent, log_percent;
  unsigned copies; // sets, each with its own threads
  enum log log;
  enum modify modify;
  const char *file;
  bool is_recovery;
};

static const char usage[] =
    PROGRAM " [--flush none|clflush|clflushopt|clwb|civac|cvac|cvap] [--fences-per-flush 1|2] "
            "[--log none|undo|redo] [--log-percent P] [--modify data|meta|hybrid] "
            "[--read-percent P] [--set-size tiny|small|medium|large] [--set-bytes N] "
            "[--operations N] [--seed N] "
#if THREADS_MAX > 1
            "[--threads N] "
#else
            "[--copies N] "
#endif
            "[--study-placement] [--file FILE [--recover]]";

// The position of a word in a list of names, or the end of the program.
static inline unsigned name_option(const char *option, const char *text, const char *const *names,
                                   unsigned count) {
  char all[128] = "";
  for (unsigned i = 0; i < count; i++) {
    if (strcmp(text, names[i]) == 0)
      return i;
    strcat(strcat(all, i == 0 ? "" : i + 1 == count ? " or " : ", "), names[i]);
  }
  usage_error(usage, "%s takes %s, not '%s'", option, all, text);
}

static inline uint64_t set_size_option(const char *text) {
  const char *names[4];
  for (unsigned i = 0; i < 4; i++)
    names[i] = set_sizes[i].name;
  return set_sizes[name_option("--set-size", text, names, 4)].bytes;
}

static inline unsigned percent_option(const char *option, const char *text) {
  return (unsigned)number_option(usage, option, text, 0, 100);
}

// Longer options have no letter.
enum option_code {
  OPTION_FLUSH = 256,
  OPTION_FENCES,
  OPTION_LOG,
  OPTION_LOG_PERCENT,
  OPTION_MODIFY,
  OPTION_READ_PERCENT,
  OPTION_SET_SIZE,
  OPTION_SET_BYTES,
  OPTION_OPERATIONS,
  OPTION_SEED,
  OPTION_THREADS,
  OPTION_COPIES,
  OPTION_STUDY,
  OPTION_RECOVER,
  OPTION_FILE,
};

static const struct option long_options[] = {
    {"flush", required_argument, NULL, OPTION_FLUSH},
    {"fences-per-flush", required_argument, NULL, OPTION_FENCES},
    {"log", required_argument, NULL, OPTION_LOG},
    {"log-percent", required_argument, NULL, OPTION_LOG_PERCENT},
    {"modify", required_argument, NULL, OPTION_MODIFY},
    {"read-percent", required_argument, NULL, OPTION_READ_PERCENT},
    {"set-size", required_argument, NULL, OPTION_SET_SIZE},
    {"set-bytes", required_argument, NULL, OPTION_SET_BYTES},
    {"operations", required_argument, NULL, OPTION_OPERATIONS},
    {"seed", required_argument, NULL, OPTION_SEED},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"copies", required_argument, NULL, OPTION_COPIES},
    {"study-placement", no_argument, NULL, OPTION_STUDY},
    {"recover", no_argument, NULL, OPTION_RECOVER},
    {"file", required_argument, NULL, OPTION_FILE},
    {0}};

// Takes one option; what it does not know ends the program.
static inline void take_option(struct settings *settings, int option, const char *text) {
  switch (option) {
  case OPTION_FLUSH:
    placement.flush = flush_option(usage, text);
    break;
  case OPTION_FENCES:
    placement.fences_per_flush = (unsigned)number_option(usage, "--fences-per-flush", text, 1, 2);
    break;
  case OPTION_LOG:
    settings->log = (enum log)name_option("--log", text, log_names, 3);
    break;
  case OPTION_LOG_PERCENT:
    settings->log_percent = percent_option("--log-percent", text);
    break;
  case OPTION_MODIFY:
    settings->modify = (enum modify)name_option("--modify", text, modify_names, 3);
    break;
  case OPTION_READ_PERCENT:
    settings->read_percent = percent_option("--read-percent", text);
    break;
  case OPTION_SET_SIZE:
    settings->set_bytes = set_size_option(text);
    break;
  case OPTION_SET_BYTES:
    settings->set_bytes = number_option(usage, "--set-bytes", text, SET_BYTES_MIN, SET_BYTES_MAX);
    break;
  case OPTION_OPERATIONS:
    settings->operations = number_option(usage, "--operations", text, 0, OPERATIONS_MAX);
    break;
  case OPTION_SEED:
    settings->seed = number_option(usage, "--seed", text, 0, UINT32_MAX);
    break;
  case OPTION_THREADS:
    if (THREADS_MAX == 1)
      usage_error(usage, "--threads: " PROGRAM " has one thread; bst_p takes more");
    settings->threads = (unsigned)number_option(usage, "--threads", text, 1, THREADS_MAX);
    break;
  case OPTION_COPIES:
    if (THREADS_MAX > 1)
      usage_error(usage, "--copies: " PROGRAM " has one set; the others take more");
    settings->copies = (unsigned)number_option(usage, "--copies", text, 1, COPIES_MAX);
    break;
  case OPTION_STUDY:
    placement.is_of_study = true;
    break;
  case OPTION_RECOVER:
    settings->is_recovery = true;
    break;
  case OPTION_FILE:
    settings->file = text;
    break;
  default:
    usage_error(usage, "wrong option");
  }
}

static inline struct settings parse_settings(int count, char **values) {
  enum { UNSET = 101 };
  struct settings settings = {.set_bytes = set_sizes[0].bytes,
                              .operations = 10000,
                              .seed = 1,
                              .threads = 1,
                              .copies = 1,
                              .read_percent = 50,
                              .log_percent = UNSET};
  for (int option; (option = getopt_long(count, values, "", long_options, NULL)) != -1;)
    take_option(&settings, option, optarg);
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (settings.is_recovery && settings.file == NULL)
    usage_error(usage, "--recover needs --file");
  if (settings.copies > 1 && settings.file != NULL)
    usage_error(usage, "--copies: a file holds one set");
  if (settings.log == LOG_NONE && settings.log_percent != UNSET)
    usage_error(usage, "--log-percent needs --log undo or --log redo");
  if (settings.log_percent == UNSET)
    settings.log_percent = 100;
  if (settings.set_bytes / (2 * ELEMENT_BYTES) < settings.threads)
    usage_error(usage, "--set-bytes %" PRIu64 " is too small a set for %u threads",
                settings.set_bytes, settings.threads);
  if (placement.is_of_study && placement.fences_per_flush == 0)
    placement.fences_per_flush = 2;
  if (settings.is_recovery && placement.flush == FLUSH_NONE)
    placement.flush = FLUSH_DEFAULT;
  return settings;
}

// What decides the layout of a pool and the operations that were performed on it.
static inline void settings_to_parameters(const struct settings *settings, uint64_t *parameters) {
  parameters[0] = settings->set_bytes;
  parameters[1] = settings->operations;
  parameters[2] = settings->seed;
  parameters[3] = settings->threads;
  parameters[4] = settings->read_percent | (uint64_t)settings->log_percent << 32;
  parameters[5] = (uint64_t)settings->log | (uint64_t)settings->modify << 32;
  parameters[6] = 0;
}

// False if no run can have left these.
static inline bool settings_from_parameters(struct settings *settings, const uint64_t *parameters) {
  settings->set_bytes = parameters[0];
  settings->operations = parameters[1];
  settings->seed = parameters[2];
  settings->threads = (unsigned)parameters[3];
  settings->read_percent = (unsigned)parameters[4];
  settings->log_percent = (unsigned)(parameters[4] >> 32);
  settings->log = (enum log)parameters[5];
  settings->modify = (enum modify)(parameters[5] >> 32);
  return settings->set_bytes >= SET_BYTES_MIN && settings->set_bytes <= SET_BYTES_MAX &&
         settings->operations <= OPERATIONS_MAX && settings->threads >= 1 &&
         settings->threads <= THREADS_MAX && settings->log <= LOG_REDO &&
         settings->modify <= MODIFY_HYBRID && settings->read_percent <= 100 &&
         settings->log_percent <= 100;
}

#endif
