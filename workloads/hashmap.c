// SPDX-License-Identifier: Apache-2.0
//
// Persistent hash map under a mix of puts and gets, with one reader-writer lock for each bucket.
//
// Buckets are chains of nodes of one cache line. A put never changes a reachable node: it fills a
// spare one, persists it together with its intent, and then persists the one link that puts it in
// the place of the old node, which becomes the thread's spare. Each key counts its versions.
//
// The intent (which operation, which key, which version it makes) is a line of the thread's own. It
// is durable before the link, so recovery knows exactly what was done: all operations before the
// one that the thread's last intent names, and that one if its key has reached its version. The sum
// of all versions must then equal the number of puts done, after a crash as after a whole run.
#include <getopt.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "broken.h"
#include "crash.h"
#include "options.h"
#include "persist.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"

static const char usage[] =
    "hashmap [-t THREADS] [-n OPERATIONS] [-k KEYS] [-g PERCENT_GETS] "
    "[--flush none|clflush|clflushopt|clwb] [--pool FILE] [--crash-at N] [--check]";

static const uint64_t magic = UINT64_C(0x312d50414d485350); // "PSHMAP-1"

enum {
  OPERATIONS_MAX = 1 << 30,
  KEYS_MAX = 1 << 24,
  KEYS_PER_BUCKET = 2,
  VALUE_WORDS = HAS_TWO_LINES ? 12 : 4,
};

// A link is a position in the pool's array of nodes; node 0 is never used, so 0 ends a chain.
typedef uint64_t node_index;

struct node {
  alignas(LINE_BYTES) node_index next;
  uint64_t key;
  uint64_t version; // counts the puts of this key from 1
  uint64_t value[VALUE_WORDS];
  uint64_t checksum;
};

// Two slots take turns, so that the one before stays whole while the next is written. Stores to one
// line become durable in their order: a slot whose operation is durable is complete.
struct intent {
  alignas(LINE_BYTES) struct intent_slot {
    uint64_t key;
    uint64_t version;
    _Atomic uint64_t operation; // counted from 1; 0: none yet
  } slots[2];
};

struct operation {
  uint64_t key;
  bool is_put;
};

struct thread_state {
  alignas(LINE_BYTES) node_index spare;
  uint64_t operations_done; // when this run begins
  uint64_t intents;         // the next one goes to the slot of this parity
  bool is_value_broken;
};

struct hashmap {
  unsigned threads, percent_gets;
  uint64_t operations, keys, buckets;
  enum flush flush;
  // In the pool:
  struct intent *intents;
  node_index *heads; // by bucket
  struct node *nodes;
  // Volatile:
  uint64_t nodes_total; // one for each key and a spare one for each thread, after node 0
  node_index *unused;
  _Atomic uint64_t unused_taken;
  pthread_rwlock_t *locks; // by bucket
  struct thread_state *states;
};

static uint64_t share(uint64_t operations, unsigned threads, unsigned thread) {
  return operations / threads + (thread < operations % threads);
}

// What a thread does in its n-th operation, counted from 0.
static struct operation operation_of(const struct hashmap *map, unsigned thread, uint64_t n) {
  uint64_t bits = scramble((uint64_t)thread << 40 | n);
  return (struct operation){.key = (bits >> 16) % map->keys,
                            .is_put = bits % 0x10000 * 100 >= map->percent_gets * 0x10000ull};
}

static uint64_t bucket_of(const struct hashmap *map, uint64_t key) {
  return scramble(key) % map->buckets;
}

static uint64_t node_checksum(const struct node *node) {
  uint64_t sum = scramble(node->key) ^ node->version;
  for (size_t i = 0; i < VALUE_WORDS; i++)
    sum = scramble(sum ^ node->value[i]);
  return sum;
}

// The link that leads to the node of a key, or to the end of its chain.
static node_index *find(const struct hashmap *map, uint64_t key) {
  node_index *link = &map->heads[bucket_of(map, key)];
  while (*link != 0 && map->nodes[*link].key != key)
    link = &map->nodes[*link].next;
  return link;
}

static node_index take_spare(struct hashmap *map, struct thread_state *state) {
  node_index spare = state->spare;
  state->spare = 0;
  return spare != 0 ? spare : map->unused[atomic_fetch_add(&map->unused_taken, 1)];
}

static void write_intent(const struct hashmap *map, unsigned thread, uint64_t operation,
                         const struct node *node) {
  struct intent_slot *slot = &map->intents[thread].slots[map->states[thread].intents++ % 2];
  slot->key = node->key;
  slot->version = node->version;
  atomic_store_explicit(&slot->operation, operation + 1, memory_order_release);
  if (BROKEN != INTENT_NOT_FLUSHED)
    flush_range(map->flush, slot, sizeof *slot);
}

// Makes a filled node and the thread's intent durable; what is broken in some builds is said in
// broken.h.
static void persist_node(const struct hashmap *map, unsigned thread, uint64_t operation,
                         struct node *node) {
  if (BROKEN == FLUSH_BEFORE_STORE)
    node->checksum = ~node->checksum;
  if (BROKEN == FENCE_BEFORE_FLUSH)
    fence(map->flush);
  if (BROKEN == WRONG_LINE)
    flush_range(map->flush, node + 1, sizeof *node);
  else if (BROKEN == FIRST_LINE_ONLY)
    flush_range(map->flush, node, 1);
  else if (BROKEN != NODE_NOT_FLUSHED)
    flush_range(map->flush, node, sizeof *node);
  if (BROKEN == FLUSH_BEFORE_STORE)
    node->checksum = ~node->checksum;
  write_intent(map, thread, operation, node);
  if (BROKEN != NO_FENCE && BROKEN != FENCE_BEFORE_FLUSH && BROKEN != ONE_FENCE)
    fence(map->flush);
}

static void put(struct hashmap *map, unsigned thread, uint64_t operation, uint64_t key) {
  struct thread_state *state = &map->states[thread];
  node_index index = take_spare(map, state);
  struct node *node = &map->nodes[index];
  node->key = key;
  for (size_t i = 0; i < VALUE_WORDS; i++)
    node->value[i] = scramble((uint64_t)thread << 40 | operation) + i;

  pthread_rwlock_t *lock = &map->locks[bucket_of(map, key)];
  pthread_rwlock_wrlock(lock);
  node_index *link = find(map, key);
  node_index replaced = *link;
  node->next = replaced == 0 ? 0 : map->nodes[replaced].next;
  node->version = replaced == 0 ? 1 : map->nodes[replaced].version + 1;
  node->checksum = node_checksum(node);
  if (BROKEN == TWICE_IN_ONE_LINE) {
    node->checksum = ~node->checksum;
    node->checksum = ~*(volatile uint64_t *)&node->checksum;
  }
  if (BROKEN == IN_PLACE && replaced != 0) {
    node->next = map->nodes[replaced].next;
    map->nodes[replaced] = *node;
    node = &map->nodes[index = replaced];
  }
  if (BROKEN == LINK_BEFORE_NODE) {
    *(volatile node_index *)link = index;
    persist(map->flush, link, sizeof *link);
  }
  if (BROKEN == ONE_FENCE)
    *(volatile node_index *)link = index;
  persist_node(map, thread, operation, node);
  crash_point();

  if (BROKEN != LINK_BEFORE_NODE && BROKEN != ONE_FENCE)
    *(volatile node_index *)link = index;
  if (BROKEN != LINK_NOT_FLUSHED)
    persist(map->flush, link, sizeof *link);
  crash_point();
  pthread_rwlock_unlock(lock);
  state->spare = BROKEN == IN_PLACE && index == replaced ? 0 : replaced;
}

static void get(struct hashmap *map, unsigned thread, uint64_t key) {
  pthread_rwlock_t *lock = &map->locks[bucket_of(map, key)];
  pthread_rwlock_rdlock(lock);
  node_index index = *find(map, key);
  if (index != 0 && map->nodes[index].checksum != node_checksum(&map->nodes[index]))
    map->states[thread].is_value_broken = true;
  pthread_rwlock_unlock(lock);
}

static void work(unsigned thread, void *problem) {
  struct hashmap *map = problem;
  uint64_t end = share(map->operations, map->threads, thread);
  for (uint64_t n = map->states[thread].operations_done; n < end; n++) {
    struct operation operation = operation_of(map, thread, n);
    if (operation.is_put)
      put(map, thread, n, operation.key);
    else
      get(map, thread, operation.key);
  }
}

// What the chains and the intents say.
struct contents {
  uint64_t keys, versions, puts;
  bool *is_reachable; // by node
  const char *fault;  // NULL: none
};

static struct contents fault(struct contents contents, const char *what) {
  contents.fault = what;
  return contents;
}

static void *allocate(size_t count, size_t bytes) {
  void *memory =
      aligned_alloc(LINE_BYTES, (count * bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES);
  if (memory == NULL) {
    perror("no memory");
    exit(EXIT_FAILURE);
  }
  return memset(memory, 0, count * bytes);
}

static struct contents walk_chains(const struct hashmap *map) {
  struct contents contents = {.is_reachable = allocate(map->nodes_total, sizeof(bool))};
  for (uint64_t bucket = 0; bucket < map->buckets; bucket++)
    for (node_index index = map->heads[bucket]; index != 0; index = map->nodes[index].next) {
      if (index >= map->nodes_total)
        return fault(contents, "a link leads out of the pool");
      const struct node *node = &map->nodes[index];
      if (contents.is_reachable[index])
        return fault(contents, "a node is linked twice");
      contents.is_reachable[index] = true;
      if (node->checksum != node_checksum(node))
        return fault(contents, "a linked node is incomplete");
      if (node->key >= map->keys || bucket_of(map, node->key) != bucket)
        return fault(contents, "a key is in the wrong bucket");
      if (map->nodes[*find(map, node->key)].version != node->version)
        return fault(contents, "a key has two nodes");
      contents.keys++;
      contents.versions += node->version;
    }
  return contents;
}

static struct intent_slot *last_intent(const struct hashmap *map, unsigned thread) {
  struct intent_slot *slots = map->intents[thread].slots;
  return &slots[slots[1].operation > slots[0].operation];
}

// Whether the put that an intent announces was done, or there is none.
static bool is_fulfilled(const struct hashmap *map, const struct intent_slot *intent) {
  return intent->operation == 0 || map->nodes[*find(map, intent->key)].version >= intent->version;
}

// How many operations of a thread were done. Gets leave no trace: those after the last put that was
// done are made again.
static uint64_t operations_done(const struct hashmap *map, unsigned thread) {
  const struct intent_slot *last = last_intent(map, thread);
  return last->operation - !is_fulfilled(map, last);
}

static struct contents check(const struct hashmap *map) {
  struct contents contents = walk_chains(map);
  if (contents.fault != NULL)
    return contents;
  for (unsigned thread = 0; thread < map->threads; thread++) {
    uint64_t done = operations_done(map, thread);
    if (done > share(map->operations, map->threads, thread))
      return fault(contents, "an intent that was never written");
    for (uint64_t n = 0; n < done; n++)
      contents.puts += operation_of(map, thread, n).is_put;
    if (map->states[thread].is_value_broken)
      return fault(contents, "a get found an incomplete value");
  }
  if (contents.versions < contents.puts)
    return fault(contents, "a finished put is lost");
  if (contents.versions > contents.puts)
    return fault(contents, "a put was done that never began");
  return contents;
}

// Withdraws the intents that were not fulfilled, lest another thread's put of that key fulfils them
// in appearance, and makes the volatile part from what the pool holds.
static void recover(struct hashmap *map, const struct contents *contents) {
  uint64_t unused = 0;
  map->unused = allocate(map->nodes_total, sizeof *map->unused);
  for (node_index index = 1; index < map->nodes_total; index++)
    if (!contents->is_reachable[index])
      map->unused[unused++] = index;
  map->locks = allocate(map->buckets, sizeof *map->locks);
  for (uint64_t bucket = 0; bucket < map->buckets; bucket++)
    pthread_rwlock_init(&map->locks[bucket], NULL);
  for (unsigned thread = 0; thread < map->threads; thread++) {
    struct intent_slot *last = last_intent(map, thread);
    map->states[thread].operations_done = operations_done(map, thread);
    if (!is_fulfilled(map, last)) {
      last->operation = 0;
      persist(map->flush, last, sizeof *last);
    }
    map->states[thread].intents = last_intent(map, thread) == map->intents[thread].slots;
  }
}

static void open_pool(struct hashmap *map, const char *path, bool is_scratch) {
  map->buckets = (map->keys + KEYS_PER_BUCKET - 1) / KEYS_PER_BUCKET;
  map->nodes_total = 1 + map->keys + map->threads;
  map->states = allocate(map->threads, sizeof *map->states);
  size_t heads_bytes =
      (map->buckets * sizeof *map->heads + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
  size_t index_bytes = map->threads * sizeof *map->intents + heads_bytes;
  struct pool_header *header = pool_open(
      path, sizeof *header + index_bytes + map->nodes_total * sizeof *map->nodes, is_scratch);
  map->intents = (struct intent *)(header + 1);
  map->heads = (node_index *)(map->intents + map->threads);
  map->nodes = (struct node *)((char *)map->heads + heads_bytes);
  const uint64_t parameters[POOL_PARAMETERS] = {map->threads, map->operations, map->keys,
                                                map->percent_gets};
  if (pool_is_formatted(header, path, magic, parameters))
    return;
  // An empty map is all zeros: no intents and only ends of chains.
  memset(map->intents, 0, index_bytes);
  persist(map->flush, map->intents, index_bytes);
  pool_finish_format(header, magic, parameters, map->flush);
}

struct arguments {
  struct hashmap map;
  const char *pool;
  bool is_check_only;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'x'},
                                          {"check", no_argument, NULL, 'c'},
                                          {0}};
  struct arguments arguments = {.map = {.threads = 1,
                                        .operations = 10000,
                                        .keys = 1000,
                                        .percent_gets = 50,
                                        .flush = FLUSH_CLFLUSH}};
  struct hashmap *map = &arguments.map;
  for (int option; (option = getopt_long(count, values, "t:n:k:g:", options, NULL)) != -1;)
    switch (option) {
    case 't':
      map->threads = (unsigned)number_option(usage, "-t", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'n':
      map->operations = number_option(usage, "-n", optarg, 1, OPERATIONS_MAX);
      break;
    case 'k':
      map->keys = number_option(usage, "-k", optarg, 1, KEYS_MAX);
      break;
    case 'g':
      map->percent_gets = (unsigned)number_option(usage, "-g", optarg, 0, 100);
      break;
    case 'f':
      map->flush = flush_option(usage, optarg);
      break;
    case 'P':
      arguments.pool = optarg;
      break;
    case 'x':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    case 'c':
      arguments.is_check_only = true;
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (arguments.is_check_only && arguments.pool == NULL)
    usage_error(usage, "--check needs --pool");
  return arguments;
}

static int report(const struct hashmap *map, const struct contents *contents, uint64_t resumed) {
  const char *what = contents->fault;
  printf("hashmap: threads=%u flush=%s keys=%" PRIu64 " puts=%" PRIu64 " resumed=%" PRIu64
         " %s%s\n",
         map->threads, flush_names[map->flush], contents->keys, contents->versions, resumed,
         what == NULL ? "ok" : "WRONG: ", what == NULL ? "" : what);
  return what == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct hashmap *map = &arguments.map;
  open_pool(map, arguments.pool, arguments.is_check_only);
  struct contents before = check(map);
  if (before.fault != NULL || arguments.is_check_only)
    return report(map, &before, 0);
  recover(map, &before);

  team_run(map->threads, work, map);

  struct contents after = check(map);
  uint64_t puts = 0;
  for (unsigned thread = 0; thread < map->threads; thread++)
    for (uint64_t n = 0; n < share(map->operations, map->threads, thread); n++)
      puts += operation_of(map, thread, n).is_put;
  if (after.fault == NULL && after.versions != puts)
    after.fault = "puts are left over";
  return report(map, &after, before.versions);
}
