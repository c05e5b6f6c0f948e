// SPDX-License-Identifier: Apache-2.0
//
// The program around a structure: makes or opens the pool, recovers what an earlier run left, goes
// on from there, and checks the outcome. Included last by each structure's source.
#ifndef BENCHMARK_H
#define BENCHMARK_H

#include "shadow.h"

static void lay_out(struct set *set) {
  const struct settings *settings = &set->settings;
  set->triples = settings->set_bytes / (2 * ELEMENT_BYTES);
  set->keys = 3 * set->triples;
  set->pool_bytes = sizeof(struct pool_header) + settings->threads * sizeof(struct log_area) +
                    (set->keys + 1) * ELEMENT_BYTES + structure_bytes(set) + LINE_BYTES;
}

static void find_parts(struct set *set) {
  set->logs = (struct log_area *)(set->header + 1);
  set->nodes = (struct node *)(set->logs + set->settings.threads);
  set->payloads = (struct payload *)(set->nodes + set->keys + 1);
  set->structure = set->payloads + set->keys + 1;
  set->workers = set_allocate(set->settings.threads, sizeof *set->workers);
  for (unsigned thread = 0; thread < set->settings.threads; thread++) {
    struct transaction *transaction = &set->workers[thread].transaction;
    transaction->pool = (uint64_t *)set->header;
    transaction->area = &set->logs[thread];
  }
}

// Everything is unused, and the first is taken first.
static void all_unused(const struct set *set, struct unused *unused) {
  *unused = (struct unused){set_allocate(set->keys, sizeof(uint64_t)), 0};
  for (uint64_t index = set->keys; index > 0; index--)
    give_unused(unused, index);
}

// The set at first, not flushed operation by operation but as a whole.
static void format(struct set *set, const uint64_t *parameters) {
  enum flush flush = placement.flush;
  placement.flush = FLUSH_NONE;
  memset((void *)(set->header + 1), 0, set->pool_bytes - sizeof *set->header - LINE_BYTES);
  all_unused(set, &set->workers[0].nodes);
  all_unused(set, &set->workers[0].payloads);
  fill(set, &set->workers[0]);
  free(set->workers[0].nodes.indices);
  free(set->workers[0].payloads.indices);
  placement.flush = flush;
  persist(flush, set->header, set->pool_bytes);
  pool_finish_format(set->header, magic, parameters, flush);
}

// Deals out what no element uses: to each thread as much as its keys that are not there may need.
static void deal_out(struct set *set, const struct contents *contents) {
  uint64_t node = 1, payload = 1;
  for (unsigned thread = 0; thread < set->settings.threads; thread++) {
    struct worker *worker = &set->workers[thread];
    uint64_t wanted = 0, own = 0;
    for (uint64_t key = 0; key < set->keys; key++)
      if (thread_of_key(set, key) == thread) {
        own++;
        wanted += !contents->keys[key].is_present;
      }
    worker->nodes = (struct unused){set_allocate(own, sizeof(uint64_t)), 0};
    worker->payloads = (struct unused){set_allocate(own, sizeof(uint64_t)), 0};
    for (; worker->nodes.count < wanted; node++)
      if (!contents->is_node_used[node])
        give_unused(&worker->nodes, node);
    for (; worker->payloads.count < wanted; payload++)
      if (!contents->is_payload_used[payload])
        give_unused(&worker->payloads, payload);
  }
}

// Replays or rolls back the logs, then mends what operations without a log have left half done.
static const char *recover(struct set *set) {
  const char *fault = NULL;
  for (unsigned thread = 0; thread < set->settings.threads; thread++) {
    const char *own =
        transaction_recover(&set->workers[thread].transaction, set->settings.log, set->pool_bytes);
    fault = fault == NULL ? own : fault;
  }
  bool is_all_logged = set->settings.log != LOG_NONE && set->settings.log_percent == 100;
  if (fault == NULL && !is_all_logged && BROKEN != NOT_MENDED)
    repair_structure(set);
  return fault;
}

// What the pool holds, compared with the shadow; how many operations that is, by thread and in all.
static struct contents examine(struct set *set, uint64_t *done) {
  struct contents contents = contents_new(set);
  walk_structure(set, &contents);
  if (contents.fault != NULL)
    return contents;
  struct shadow shadow = shadow_new(set);
  *done = 0;
  for (unsigned thread = 0; thread < set->settings.threads; thread++) {
    uint64_t held = operations_held(set, &contents, &shadow, thread);
    set->workers[thread].first_operation = held;
    *done += held;
  }
  free(shadow.keys);
  return contents;
}

// The members of the team are those of the first set, then those of the next.
static void work(unsigned member, void *problem) {
  struct set *sets = problem;
  unsigned threads = sets->settings.threads, thread = member % threads;
  struct set *set = &sets[member / threads];
  uint64_t end = share(set->settings.operations, threads, thread);
  for (uint64_t n = set->workers[thread].first_operation; n < end; n++) {
    struct operation operation = operation_of(&set->settings, thread, n);
    perform(set, thread, &operation);
  }
}

static int report(const struct set *set, const struct contents *contents) {
  const struct settings *settings = &set->settings;
  printf(PROGRAM ": threads=%u flush=%s log=%s modify=%s bytes=%" PRIu64 " elements=%" PRIu64
                 " operations=%" PRIu64 " resumed=%" PRIu64 " %s%s\n",
         settings->threads, flush_names[placement.flush], log_names[settings->log],
         modify_names[settings->modify], settings->set_bytes, contents->elements,
         settings->operations, set->resumed, contents->fault == NULL ? "ok" : "WRONG: ",
         contents->fault == NULL ? "" : contents->fault);
  return contents->fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

// Opens the pool that a run has left, with that run's settings. False if it was never finished
// being made. Through the mapping alone, so that `fencepost crash` sees what is read.
static bool open_left(struct set *set) {
  const char *file = set->settings.file;
  struct stat status;
  if (stat(file, &status) != 0)
    pool_failure("cannot open the pool", file);
  if ((size_t)status.st_size < sizeof *set->header)
    pool_mismatch(file, "not a pool of this program (it is too short)");
  set->header = pool_open(file, (size_t)status.st_size, false);
  if (set->header->magic == 0)
    return false;
  if (set->header->magic != magic ||
      !settings_from_parameters(&set->settings, set->header->parameters))
    pool_mismatch(file, "not a pool of this program");
  lay_out(set);
  if (set->pool_bytes != (size_t)status.st_size)
    pool_mismatch(file, "not a pool of this program (its size differs)");
  return true;
}

static void open_or_make(struct set *set) {
  uint64_t parameters[POOL_PARAMETERS];
  settings_to_parameters(&set->settings, parameters);
  lay_out(set);
  set->header = pool_open(set->settings.file, set->pool_bytes, false);
  find_parts(set);
  if (!pool_is_formatted(set->header, set->settings.file, magic, parameters))
    format(set, parameters);
}

// Makes a set or takes up what a run has left of it. False if that is all, with the exit status.
static bool begin(struct set *set, int *status) {
  *status = EXIT_SUCCESS;
  if (!set->settings.is_recovery) {
    open_or_make(set);
  } else if (open_left(set)) {
    find_parts(set);
  } else {
    printf(PROGRAM ": the pool was never finished being made: nothing to recover\n");
    return false;
  }

  const char *fault = recover(set);
  struct contents before = {.fault = fault};
  if (fault == NULL)
    before = examine(set, &set->resumed);
  if (before.fault != NULL || set->settings.is_recovery) {
    *status = report(set, &before);
    return false;
  }
  deal_out(set, &before);
  contents_free(&before);
  return true;
}

// Whether a set is right after all operations, as an exit status.
static int end(struct set *set) {
  uint64_t done = 0;
  struct contents after = examine(set, &done);
  if (after.fault == NULL && done != set->settings.operations)
    after.fault = "operations are missing";
  return report(set, &after);
}

int main(int count, char **values) {
  struct settings settings = parse_settings(count, values);
  prepare_locks();
  struct set *sets = set_allocate(settings.copies, sizeof *sets);
  int status = EXIT_SUCCESS;
  for (unsigned copy = 0; copy < settings.copies; copy++) {
    sets[copy].settings = settings;
    sets[copy].settings.seed = settings.seed + copy;
    if (!begin(&sets[copy], &status))
      return status;
  }

  team_run(settings.copies * settings.threads, work, sets);

  for (unsigned copy = 0; copy < settings.copies; copy++)
    status |= end(&sets[copy]);
  return status;
}

#endif
