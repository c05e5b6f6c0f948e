// SPDX-License-Identifier: Apache-2.0
//
// What the program is told: how long the arrays are and where they lie, which threads work on them
// and how, and what is made durable.
#ifndef STREAM_SETTINGS_H
#define STREAM_SETTINGS_H

#include <getopt.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "options.h"
#include "team.h"

static const char usage[] =
    "stream [--elements N] [--repetitions N] [--threads N] [--cpus LIST] [--first-touch on|off] "
    "[--stores ordinary|non-temporal|library] [--nodes LIST] [--policy bind|interleave] "
    "[--pool-in-memory | --pool-folder FOLDER | --pool FILE] [--access pointer|d_rw] "
    "[--persist none|kernel|block:N|transaction[:N]] [--prepare | --check] "
    "[--libnuma NAME] [--libpmemobj NAME] [--about]";

enum {
  LINE_ELEMENTS = LINE_BYTES / sizeof(double),
  // A repetition leaves 0.96 of each value (arrays.h): after this many they are normal numbers
  // still.
  REPETITIONS_MAX = 1000,
  NODES_MAX = 64,
  TRANSACTION_ELEMENTS = 4096,
};
#define ELEMENTS_MAX (UINT64_C(1) << 36)

enum stores { STORES_ORDINARY, STORES_NON_TEMPORAL, STORES_LIBRARY };
enum access { ACCESS_POINTER, ACCESS_D_RW };
enum policy { POLICY_BIND, POLICY_INTERLEAVE };
enum durable { DURABLE_NONE, DURABLE_KERNEL, DURABLE_BLOCK, DURABLE_TRANSACTION };
enum pool_place { POOL_NONE, POOL_IN_MEMORY, POOL_IN_FOLDER, POOL_FILE };

static const char *const stores_names[] = {"ordinary", "non-temporal", "library", NULL};
static const char *const access_names[] = {"pointer", "d_rw", NULL};
static const char *const policy_names[] = {"bind", "interleave", NULL};
static const char *const durable_names[] = {"none", "kernel", "block", "transaction", NULL};
static const char *const switch_names[] = {"off", "on", NULL};

struct settings {
  uint64_t elements; // of an array: whole lines
  unsigned repetitions, threads;
  int cpus[TEAM_THREADS_MAX]; // one for each thread, if any are given
  unsigned cpu_count;
  bool is_first_touch; // each thread touches its own part first; otherwise the first touches all
  enum stores stores;
  enum access access;
  unsigned nodes[NODES_MAX];
  unsigned node_count;
  enum policy policy;
  enum pool_place place;
  const char *path; // of the pool or its folder
  enum durable durable;
  uint64_t block; // elements that become durable together; 0: a thread's whole part
  bool is_preparation, is_check, is_about;
  const char *libnuma, *libpmemobj;
};

enum chosen {
  OPTION_ELEMENTS = 256,
  OPTION_REPETITIONS,
  OPTION_THREADS,
  OPTION_CPUS,
  OPTION_FIRST_TOUCH,
  OPTION_STORES,
  OPTION_NODES,
  OPTION_POLICY,
  OPTION_POOL_IN_MEMORY,
  OPTION_POOL_FOLDER,
  OPTION_POOL,
  OPTION_ACCESS,
  OPTION_PERSIST,
  OPTION_PREPARE,
  OPTION_CHECK,
  OPTION_LIBNUMA,
  OPTION_LIBPMEMOBJ,
  OPTION_ABOUT,
};

static const struct option long_options[] = {
    {"elements", required_argument, NULL, OPTION_ELEMENTS},
    {"repetitions", required_argument, NULL, OPTION_REPETITIONS},
    {"threads", required_argument, NULL, OPTION_THREADS},
    {"cpus", required_argument, NULL, OPTION_CPUS},
    {"first-touch", required_argument, NULL, OPTION_FIRST_TOUCH},
    {"stores", required_argument, NULL, OPTION_STORES},
    {"nodes", required_argument, NULL, OPTION_NODES},
    {"policy", required_argument, NULL, OPTION_POLICY},
    {"pool-in-memory", no_argument, NULL, OPTION_POOL_IN_MEMORY},
    {"pool-folder", required_argument, NULL, OPTION_POOL_FOLDER},
    {"pool", required_argument, NULL, OPTION_POOL},
    {"access", required_argument, NULL, OPTION_ACCESS},
    {"persist", required_argument, NULL, OPTION_PERSIST},
    {"prepare", no_argument, NULL, OPTION_PREPARE},
    {"check", no_argument, NULL, OPTION_CHECK},
    {"libnuma", required_argument, NULL, OPTION_LIBNUMA},
    {"libpmemobj", required_argument, NULL, OPTION_LIBPMEMOBJ},
    {"about", no_argument, NULL, OPTION_ABOUT},
    {0}};

static inline int name_option(const char *option, const char *text, const char *const *names) {
  for (int i = 0; names[i] != NULL; i++)
    if (strcmp(names[i], text) == 0)
      return i;
  char there[128] = "";
  for (int i = 0; names[i] != NULL; i++)
    snprintf(there + strlen(there), sizeof there - strlen(there), "%s%s", i > 0 ? ", " : "",
             names[i]);
  usage_error(usage, "%s: there is no '%s'; there is %s", option, text, there);
}

// Numbers with commas between them, such as 0,2,3; returns how many.
static inline unsigned list_option(const char *option, const char *text, unsigned most,
                                   uint64_t high, unsigned *numbers) {
  char *rest = strdup(text), *from = rest;
  unsigned count = 0;
  for (char *word; (word = strsep(&rest, ",")) != NULL; count++) {
    if (count == most)
      usage_error(usage, "%s takes at most %u numbers", option, most);
    numbers[count] = (unsigned)number_option(usage, option, word, 0, high);
  }
  free(from);
  return count;
}

static inline void take_persist(struct settings *settings, char *text) {
  char *colon = strchr(text, ':');
  if (colon != NULL)
    *colon = '\0';
  settings->durable = (enum durable)name_option("--persist", text, durable_names);
  bool takes_block = settings->durable == DURABLE_BLOCK || settings->durable == DURABLE_TRANSACTION;
  if (colon != NULL && !takes_block)
    usage_error(usage, "--persist %s takes no number", text);
  if (colon == NULL && settings->durable == DURABLE_BLOCK)
    usage_error(usage, "--persist block:N says how many elements become durable together");
  settings->block = settings->durable == DURABLE_TRANSACTION ? TRANSACTION_ELEMENTS : 0;
  if (colon != NULL)
    settings->block = number_option(usage, "--persist", colon + 1, 1, ELEMENTS_MAX);
}

static inline void take_place(struct settings *settings, enum pool_place place, const char *path) {
  if (settings->place != POOL_NONE)
    usage_error(usage, "one pool is enough: --pool-in-memory, --pool-folder or --pool");
  settings->place = place;
  settings->path = path;
}

static inline void take_option(struct settings *settings, int option, char *text) {
  switch (option) {
  case OPTION_ELEMENTS:
    settings->elements = number_option(usage, "--elements", text, LINE_ELEMENTS, ELEMENTS_MAX) /
                         LINE_ELEMENTS * LINE_ELEMENTS;
    break;
  case OPTION_REPETITIONS:
    settings->repetitions =
        (unsigned)number_option(usage, "--repetitions", text, 1, REPETITIONS_MAX);
    break;
  case OPTION_THREADS:
    settings->threads = (unsigned)number_option(usage, "--threads", text, 1, TEAM_THREADS_MAX);
    break;
  case OPTION_CPUS:
    settings->cpu_count =
        list_option("--cpus", text, TEAM_THREADS_MAX, CPU_SETSIZE - 1, (unsigned *)settings->cpus);
    break;
  case OPTION_FIRST_TOUCH:
    settings->is_first_touch = name_option("--first-touch", text, switch_names);
    break;
  case OPTION_STORES:
    settings->stores = (enum stores)name_option("--stores", text, stores_names);
    break;
  case OPTION_NODES:
    settings->node_count = list_option("--nodes", text, NODES_MAX, NODES_MAX - 1, settings->nodes);
    break;
  case OPTION_POLICY:
    settings->policy = (enum policy)name_option("--policy", text, policy_names);
    break;
  case OPTION_POOL_IN_MEMORY:
    take_place(settings, POOL_IN_MEMORY, NULL);
    break;
  case OPTION_POOL_FOLDER:
    take_place(settings, POOL_IN_FOLDER, text);
    break;
  case OPTION_POOL:
    take_place(settings, POOL_FILE, text);
    break;
  case OPTION_ACCESS:
    settings->access = (enum access)name_option("--access", text, access_names);
    break;
  case OPTION_PERSIST:
    take_persist(settings, text);
    break;
  case OPTION_PREPARE:
    settings->is_preparation = true;
    break;
  case OPTION_CHECK:
    settings->is_check = true;
    break;
  case OPTION_LIBNUMA:
    settings->libnuma = text;
    break;
  case OPTION_LIBPMEMOBJ:
    settings->libpmemobj = text;
    break;
  case OPTION_ABOUT:
    settings->is_about = true;
    break;
  default:
    usage_error(usage, "wrong option");
  }
}

static inline struct settings parse_settings(int count, char **values) {
  struct settings settings = {.elements = 1 << 20,
                              .repetitions = 10,
                              .threads = 1,
                              .is_first_touch = true,
                              .libnuma = "libnuma.so.1",
                              .libpmemobj = "libpmemobj.so.1"};
  for (int option; (option = getopt_long(count, values, "", long_options, NULL)) != -1;)
    take_option(&settings, option, optarg);
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (settings.cpu_count != 0 && settings.cpu_count != settings.threads)
    usage_error(usage, "--cpus names %u processors for %u threads", settings.cpu_count,
                settings.threads);
  if (settings.place == POOL_NONE && settings.access == ACCESS_D_RW)
    usage_error(usage, "--access d_rw is a way to reach a pool: name one by --pool-in-memory");
  if (settings.place == POOL_NONE && settings.durable != DURABLE_NONE)
    usage_error(usage, "--persist needs a pool: --pool-in-memory, --pool-folder or --pool");
  if (settings.access == ACCESS_D_RW && settings.stores != STORES_ORDINARY)
    usage_error(usage, "--access d_rw stores each element by itself: --stores ordinary");
  if ((settings.is_preparation || settings.is_check) && settings.place != POOL_FILE)
    usage_error(usage, "--prepare and --check need --pool FILE");
  if (settings.elements / LINE_ELEMENTS < settings.threads)
    usage_error(usage, "--elements %" PRIu64 " are too few for %u threads", settings.elements,
                settings.threads);
  return settings;
}

#endif
