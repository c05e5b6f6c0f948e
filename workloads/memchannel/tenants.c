// SPDX-License-Identifier: Apache-2.0
//
// Several programs in one process, each with threads and memory of its own, as tenants of a host
// share its way to a pool: stores under YCSB, stencils, graph kernels, and readers that load the
// way. The first thread of the first tenant says when what is timed begins and ends, so that the
// others run beside it all of the time; they need enough work for that. What it does first lets
// whatever paces the threads settle, and is a region of its own.
#include <getopt.h>
#include <pthread.h>
#include <string.h>

#include "graph.h"
#include "mica.h"
#include "options.h"
#include "reader.h"
#include "region.h"
#include "silo.h"
#include "stencil.h"

static const char usage[] =
    "tenants [-s UNITS_TO_SETTLE] [-n UNITS_TIMED] NAME[-WORKLOAD]:THREADS:UNITS:SIZE ...\n"
    "  mica-W and silo-W (W: A, B, C, D or F; SIZE records), bwaves and roms (points of an edge),\n"
    "  bc and pr (log2 of the vertices), stream and blocks (MB of a thread); UNITS of each thread";

static const struct tenant_kind *const kinds[] = {&mica_kind,   &silo_kind,  &bwaves_kind,
                                                  &roms_kind,   &bc_kind,    &pr_kind,
                                                  &stream_kind, &blocks_kind};

enum { TENANTS_MAX = 4, THREADS_MAX = 64 };

struct tenants {
  struct tenant of[TENANTS_MAX];
  unsigned count;
  uint64_t settling, timed;
  pthread_barrier_t barrier;
};

struct member {
  struct tenants *tenants;
  struct tenant *tenant;
  unsigned thread;
  pthread_t handle;
};

// The next part of an argument, up to `end`.
static char *part_of(char **text, char end) {
  char *part = *text;
  char *found = part == NULL ? NULL : strchr(part, end);
  if (found != NULL)
    *found = '\0';
  *text = found == NULL ? NULL : found + 1;
  return part;
}

static struct tenant tenant_option(char *text) {
  struct tenant tenant = {0};
  char *rest = text, *name = part_of(&rest, ':');
  char *threads = part_of(&rest, ':'), *units = part_of(&rest, ':'), *size = part_of(&rest, ':');
  if (size == NULL || rest != NULL)
    usage_error(usage, "'%s': a tenant is NAME:THREADS:UNITS:SIZE", text);
  char *workload = strchr(name, '-');
  if (workload != NULL)
    *workload++ = '\0';
  for (unsigned i = 0; i < sizeof kinds / sizeof *kinds; i++)
    if (strcmp(name, kinds[i]->name) == 0)
      tenant.kind = kinds[i];
  if (tenant.kind == NULL)
    usage_error(usage, "there is no tenant '%s'", name);
  bool is_named = workload != NULL && ycsb_is_workload(*workload) && workload[1] == '\0';
  if (tenant.kind->has_workload ? !is_named : workload != NULL)
    usage_error(usage, "%s: stores, and only they, take a workload: A, B, C, D or F", name);
  tenant.workload = workload == NULL ? '\0' : *workload;
  tenant.threads = (unsigned)number_option(usage, name, threads, 1, THREADS_MAX);
  tenant.units = number_option(usage, name, units, 1, UINT64_C(1) << 30);
  tenant.size = number_option(usage, name, size, 4, UINT64_C(1) << 28);
  if ((tenant.kind == &bc_kind || tenant.kind == &pr_kind) && tenant.size > 24)
    usage_error(usage, "%s: at most 2^24 vertices", name);
  return tenant;
}

// All tenants, made by one process apart; what it leaves of a tenant comes back through `shared`.
static bool load_all(void *argument) {
  struct tenants *tenants = argument;
  for (unsigned i = 0; i < tenants->count; i++) {
    struct tenant *tenant = &tenants->of[i];
    if (i > 0)
      tenant->requests = tenants->of[i - 1].requests;
    tenant->kind->load(tenant);
  }
  return true;
}

static bool check_all(void *argument) {
  const struct tenants *tenants = argument;
  bool is_right = true;
  for (unsigned i = 0; i < tenants->count; i++)
    if (!tenants->of[i].kind->is_right(&tenants->of[i])) {
      printf("%s: wrong\n", tenants->of[i].kind->name);
      is_right = false;
    }
  fflush(stdout);
  return is_right;
}

static void work(struct member *member) {
  struct tenants *tenants = member->tenants;
  struct tenant *tenant = member->tenant;
  bool is_clock = tenant == tenants->of && member->thread == 0;
  uint64_t measured_end = tenants->settling + tenants->timed;
  for (uint64_t unit = 0; unit < tenant->units; unit++) {
    if (is_clock && unit == tenants->settling && unit > 0)
      region_next();
    if (is_clock && unit == measured_end)
      region_end();
    tenant->kind->work(tenant, member->thread, unit);
  }
  if (is_clock && tenant->units == measured_end)
    region_end();
}

static void *run(void *argument) {
  struct member *member = argument;
  // Between these two the first thread begins the region, after the start of every other.
  pthread_barrier_wait(&member->tenants->barrier);
  pthread_barrier_wait(&member->tenants->barrier);
  work(member);
  return NULL;
}

static void run_all(struct tenants *tenants) {
  static struct member members[TENANTS_MAX * THREADS_MAX];
  unsigned count = 0;
  for (unsigned i = 0; i < tenants->count; i++)
    for (unsigned thread = 0; thread < tenants->of[i].threads; thread++)
      members[count++] =
          (struct member){.tenants = tenants, .tenant = &tenants->of[i], .thread = thread};
  pthread_barrier_init(&tenants->barrier, NULL, count);
  for (unsigned i = 1; i < count; i++)
    if (pthread_create(&members[i].handle, NULL, run, &members[i]) != 0) {
      perror("cannot start a thread");
      exit(EXIT_FAILURE);
    }
  pthread_barrier_wait(&tenants->barrier);
  region_begin();
  pthread_barrier_wait(&tenants->barrier);
  work(&members[0]);
  for (unsigned i = 1; i < count; i++)
    pthread_join(members[i].handle, NULL);
}

int main(int argc, char **argv) {
  // Shared, so that the process that loads can say where everything is.
  struct arena first = arena_map(0);
  struct tenants *tenants = arena_take(&first, sizeof *tenants);
  for (int option; (option = getopt(argc, argv, "s:n:")) != -1;) {
    if (option == 's')
      tenants->settling = number_option(usage, "-s", optarg, 0, UINT64_C(1) << 30);
    else if (option == 'n')
      tenants->timed = number_option(usage, "-n", optarg, 1, UINT64_C(1) << 30);
    else
      usage_error(usage, "unknown option");
  }
  if (optind == argc || argc - optind > TENANTS_MAX)
    usage_error(usage, "1 to %d tenants", TENANTS_MAX);
  for (int at = optind; at < argc; at++) {
    struct tenant *tenant = &tenants->of[tenants->count++];
    *tenant = tenant_option(argv[at]);
    tenant->arena = arena_map(tenants->count);
  }
  uint64_t units = tenants->of[0].units;
  if (tenants->settling >= units || tenants->timed > units - tenants->settling)
    usage_error(usage, "the first tenant's threads have %lu units, fewer than -s and -n ask for",
                (unsigned long)units);
  if (tenants->timed == 0)
    tenants->timed = units - tenants->settling;
  tenants->of[0].requests = first;
  if (!arena_apart(load_all, tenants)) {
    fputs("could not load the tenants\n", stderr);
    return EXIT_FAILURE;
  }
  run_all(tenants);
  bool is_right = arena_apart(check_all, tenants);
  puts(is_right ? "right" : "wrong");
  return is_right ? EXIT_SUCCESS : EXIT_FAILURE;
}
