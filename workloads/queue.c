// SPDX-License-Identifier: Apache-2.0
//
// Persistent first-in first-out queue with several producers and consumers.
//
// A linked list with a lock at each end. A producer fills a node and persists it, then, under the
// tail's lock, links it behind the last node and persists the link: from then on the item is in the
// queue. A consumer moves the head, under the head's lock, and persists it: from then on the item
// is taken. The tail, the locks and the semaphore are volatile and made again by the next run.
// Nodes are not used twice, so the list is also the history from which recovery counts what was
// done.
//
// Recovery accepts exactly the states that a power cut may leave. Each thread acknowledges an
// operation in a line of its own after the operation is durable, so an acknowledged one must be
// found done, and at most one a thread may be found done but not acknowledged.
#include <getopt.h>
#include <pthread.h>
#include <semaphore.h>
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
    "queue [-t PRODUCERS] [-c CONSUMERS] [-n ITEMS] [--flush none|clflush|clflushopt|clwb] "
    "[--pool FILE] [--crash-at N] [--check]";

static const uint64_t magic = UINT64_C(0x312d455545555150); // "PQUEUE-1"

enum { ITEMS_MAX = 1 << 26, PAYLOAD_WORDS = HAS_TWO_LINES ? 12 : 4 };

// A link is the position of a node in the pool's array of nodes; 0 is the node that starts the
// list.
typedef uint64_t node_index;

struct node {
  alignas(LINE_BYTES) _Atomic node_index next; // 0: none
  uint64_t producer;
  uint64_t sequence; // counts the producer's items from 0
  uint64_t payload[PAYLOAD_WORDS];
  uint64_t checksum;
};

// One line for each thread: how many operations it has acknowledged.
struct acknowledged {
  alignas(LINE_BYTES) uint64_t operations;
};

struct queue {
  unsigned producers, consumers;
  uint64_t items;
  enum flush flush;
  // In the pool:
  node_index *head; // the node whose successor is the next item to take
  struct acknowledged *enqueued, *dequeued;
  struct node *nodes;
  // Volatile:
  node_index tail;
  pthread_mutex_t head_lock, tail_lock;
  sem_t items_waiting;
  uint64_t *sequence_expected; // by producer; under the head's lock
  uint64_t items_resumed;
  _Atomic bool is_order_broken;
};

// Items are shared out evenly; the first threads take what remains.
static uint64_t share(uint64_t items, unsigned threads, unsigned thread) {
  return items / threads + (thread < items % threads);
}

static node_index node_of(const struct queue *queue, unsigned producer, uint64_t sequence) {
  uint64_t remainder = queue->items % queue->producers;
  uint64_t before =
      queue->items / queue->producers * producer + (producer < remainder ? producer : remainder);
  return 1 + before + sequence;
}

static uint64_t node_checksum(const struct node *node) {
  uint64_t sum = scramble(node->producer) ^ node->sequence;
  for (size_t i = 0; i < PAYLOAD_WORDS; i++)
    sum = scramble(sum ^ node->payload[i]);
  return sum;
}

static void fill_node(struct node *node, uint64_t producer, uint64_t sequence) {
  atomic_store_explicit(&node->next, 0, memory_order_relaxed);
  node->producer = producer;
  node->sequence = sequence;
  for (size_t i = 0; i < PAYLOAD_WORDS; i++)
    node->payload[i] = scramble(producer << 32 | sequence) + i;
  node->checksum = node_checksum(node);
}

static void acknowledge(const struct queue *queue, struct acknowledged *acknowledged) {
  acknowledged->operations++;
  persist(queue->flush, acknowledged, sizeof *acknowledged);
  crash_point();
}

// Makes a filled node durable; what is broken in some builds is said in broken.h.
static void persist_node(const struct queue *queue, struct node *node) {
  if (BROKEN == FLUSH_BEFORE_STORE || BROKEN == TWICE_IN_ONE_LINE)
    node->checksum = ~node->checksum;
  if (BROKEN == TWICE_IN_ONE_LINE)
    node->checksum = ~*(volatile uint64_t *)&node->checksum;
  if (BROKEN == FENCE_BEFORE_FLUSH)
    fence(queue->flush);
  switch (BROKEN) {
  case NODE_NOT_FLUSHED:
    break;
  case WRONG_LINE:
    persist(queue->flush, node + 1, sizeof *node);
    break;
  case FIRST_LINE_ONLY:
    persist(queue->flush, node, 1);
    break;
  case NO_FENCE:
  case FENCE_BEFORE_FLUSH:
  case ONE_FENCE:
    flush_range(queue->flush, node, sizeof *node);
    break;
  case FLUSH_BEFORE_STORE:
    flush_range(queue->flush, node, sizeof *node);
    node->checksum = ~node->checksum;
    fence(queue->flush);
    break;
  default:
    persist(queue->flush, node, sizeof *node);
  }
}

static void enqueue(struct queue *queue, unsigned producer, uint64_t sequence) {
  node_index index = node_of(queue, producer, sequence);
  struct node *node = &queue->nodes[index];
  fill_node(node, producer, sequence);
  bool is_node_first = BROKEN != NO_FENCE && BROKEN != FENCE_BEFORE_FLUSH && BROKEN != ONE_FENCE &&
                       BROKEN != LINK_BEFORE_NODE;
  if (is_node_first)
    persist_node(queue, node);
  crash_point();

  pthread_mutex_lock(&queue->tail_lock);
  struct node *last = &queue->nodes[queue->tail];
  // Taking a lock orders as a fence does: where the fence is missing, the node is persisted here.
  if (BROKEN == NO_FENCE || BROKEN == FENCE_BEFORE_FLUSH)
    persist_node(queue, node);
  if (BROKEN == ACKNOWLEDGED_EARLY) {
    acknowledge(queue, &queue->enqueued[producer]);
    queue->enqueued[producer].operations--;
  }
  atomic_store_explicit(&last->next, index, memory_order_release);
  if (BROKEN == ONE_FENCE)
    persist_node(queue, node);
  if (BROKEN != LINK_NOT_FLUSHED)
    persist(queue->flush, &last->next, sizeof last->next);
  if (BROKEN == LINK_BEFORE_NODE)
    persist_node(queue, node);
  crash_point();
  queue->tail = index;
  pthread_mutex_unlock(&queue->tail_lock);

  // Only now: a consumer must not take an item whose link may still be lost.
  sem_post(&queue->items_waiting);
  acknowledge(queue, &queue->enqueued[producer]);
}

static void dequeue(struct queue *queue, unsigned consumer) {
  while (sem_wait(&queue->items_waiting) != 0)
    ; // interrupted by a signal
  pthread_mutex_lock(&queue->head_lock);
  node_index index = atomic_load_explicit(&queue->nodes[*queue->head].next, memory_order_acquire);
  const struct node *node = &queue->nodes[index];
  if (node->checksum != node_checksum(node) ||
      node->sequence != queue->sequence_expected[node->producer]++)
    queue->is_order_broken = true;
  *queue->head = index;
  if (BROKEN != HEAD_NOT_FLUSHED)
    persist(queue->flush, queue->head, sizeof *queue->head);
  crash_point();
  pthread_mutex_unlock(&queue->head_lock);
  acknowledge(queue, &queue->dequeued[consumer]);
}

// The first threads produce, the others consume.
static void work(unsigned thread, void *problem) {
  struct queue *queue = problem;
  if (thread < queue->producers) {
    uint64_t end = share(queue->items, queue->producers, thread);
    for (uint64_t sequence = queue->enqueued[thread].operations; sequence < end; sequence++)
      enqueue(queue, thread, sequence);
  } else {
    unsigned consumer = thread - queue->producers;
    uint64_t count = share(queue->items - queue->items_resumed, queue->consumers, consumer);
    for (uint64_t i = 0; i < count; i++)
      dequeue(queue, consumer);
  }
}

// What a walk along the list finds.
struct history {
  uint64_t *linked; // by producer: items in the list
  uint64_t *taken;  // by producer: items up to the head
  uint64_t linked_total, taken_total;
  node_index last;
  uint64_t checksum; // over all items, in no order
};

static struct history new_history(const struct queue *queue) {
  struct history history = {.linked = calloc(queue->producers, sizeof *history.linked),
                            .taken = calloc(queue->producers, sizeof *history.taken)};
  if (!history.linked || !history.taken) {
    perror("no memory for the recovery");
    exit(EXIT_FAILURE);
  }
  return history;
}

static const char *add_node(const struct queue *queue, struct history *history, node_index index) {
  if (index > queue->items)
    return "a link leads out of the pool";
  const struct node *node = &queue->nodes[index];
  if (node->checksum != node_checksum(node))
    return "a linked node is incomplete";
  if (node->producer >= queue->producers)
    return "a linked node has no producer";
  // Each node has one place in the list, so the walk also ends if links form a circle.
  if (node->sequence != history->linked[node->producer] ||
      index != node_of(queue, (unsigned)node->producer, node->sequence))
    return "a producer's items are out of order";
  history->linked[node->producer]++;
  history->linked_total++;
  history->checksum += node->checksum;
  history->last = index;
  return NULL;
}

static const char *walk(const struct queue *queue, struct history *history) {
  bool is_head_found = false;
  for (node_index index = 0;;) {
    if (index == *queue->head) {
      is_head_found = true;
      history->taken_total = history->linked_total;
      memcpy(history->taken, history->linked, queue->producers * sizeof *history->taken);
    }
    index = atomic_load_explicit(&queue->nodes[index].next, memory_order_relaxed);
    if (index == 0)
      break;
    const char *fault = add_node(queue, history, index);
    if (fault != NULL)
      return fault;
  }
  return is_head_found ? NULL : "the head is not in the list";
}

// Compares what was done with what was acknowledged. Returns what is wrong, NULL if nothing is.
static const char *check(const struct queue *queue, struct history *history) {
  const char *fault = walk(queue, history);
  if (fault != NULL)
    return fault;
  for (unsigned producer = 0; producer < queue->producers; producer++) {
    uint64_t enqueued = queue->enqueued[producer].operations;
    if (history->linked[producer] < enqueued)
      return "an acknowledged item is lost";
    if (history->linked[producer] > enqueued + 1)
      return "more items than were begun";
  }
  uint64_t dequeued = 0;
  for (unsigned consumer = 0; consumer < queue->consumers; consumer++)
    dequeued += queue->dequeued[consumer].operations;
  if (history->taken_total < dequeued)
    return "an acknowledged taking is lost";
  if (history->taken_total > dequeued + queue->consumers)
    return "more items taken than were begun";
  return NULL;
}

// Acknowledges what was done without being acknowledged and makes the volatile part.
static void recover(struct queue *queue, struct history *history) {
  for (unsigned producer = 0; producer < queue->producers; producer++)
    queue->enqueued[producer].operations = history->linked[producer];
  uint64_t dequeued = 0;
  for (unsigned consumer = 1; consumer < queue->consumers; consumer++)
    dequeued += queue->dequeued[consumer].operations;
  // Whose taking it was is not known and does not matter: only the sum does.
  queue->dequeued[0].operations = history->taken_total - dequeued;
  persist(queue->flush, queue->enqueued,
          (queue->producers + queue->consumers) * sizeof *queue->enqueued);
  queue->tail = history->last;
  queue->items_resumed = history->taken_total;
  queue->sequence_expected = history->taken;
  queue->is_order_broken = false;
  pthread_mutex_init(&queue->head_lock, NULL);
  pthread_mutex_init(&queue->tail_lock, NULL);
  sem_init(&queue->items_waiting, 0, (unsigned)(history->linked_total - history->taken_total));
}

static void open_pool(struct queue *queue, const char *path, bool is_scratch) {
  unsigned threads = queue->producers + queue->consumers;
  size_t bytes = sizeof(struct pool_header) + (1 + threads) * sizeof(struct acknowledged) +
                 (queue->items + 1) * sizeof(struct node);
  struct pool_header *header = pool_open(path, bytes, is_scratch);
  queue->enqueued = (struct acknowledged *)(header + 1);
  queue->dequeued = queue->enqueued + queue->producers;
  queue->head = &queue->dequeued[queue->consumers].operations;
  queue->nodes = (struct node *)(queue->dequeued + queue->consumers + 1);
  const uint64_t parameters[POOL_PARAMETERS] = {queue->producers, queue->consumers, queue->items};
  if (pool_is_formatted(header, path, magic, parameters))
    return;
  // An empty queue is all zeros: no acknowledgements, the head at the node that starts the list.
  memset(queue->enqueued, 0, (1 + threads) * sizeof *queue->enqueued + sizeof *queue->nodes);
  persist(queue->flush, queue->enqueued,
          (1 + threads) * sizeof *queue->enqueued + sizeof *queue->nodes);
  pool_finish_format(header, magic, parameters, queue->flush);
}

struct arguments {
  struct queue queue;
  const char *pool;
  bool is_check_only;
};

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'x'},
                                          {"check", no_argument, NULL, 'k'},
                                          {0}};
  struct arguments arguments = {
      .queue = {.producers = 2, .consumers = 1, .items = 1000, .flush = FLUSH_CLFLUSH}};
  struct queue *queue = &arguments.queue;
  for (int option; (option = getopt_long(count, values, "t:c:n:", options, NULL)) != -1;)
    switch (option) {
    case 't':
      queue->producers = (unsigned)number_option(usage, "-t", optarg, 1, TEAM_THREADS_MAX / 2);
      break;
    case 'c':
      queue->consumers = (unsigned)number_option(usage, "-c", optarg, 1, TEAM_THREADS_MAX / 2);
      break;
    case 'n':
      queue->items = number_option(usage, "-n", optarg, 1, ITEMS_MAX);
      break;
    case 'f':
      queue->flush = flush_option(usage, optarg);
      break;
    case 'P':
      arguments.pool = optarg;
      break;
    case 'x':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    case 'k':
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

static int report(const struct queue *queue, const struct history *history, const char *fault) {
  printf("queue: producers=%u consumers=%u flush=%s enqueued=%" PRIu64 " dequeued=%" PRIu64
         " resumed=%" PRIu64 " checksum=%016" PRIx64 " %s%s\n",
         queue->producers, queue->consumers, flush_names[queue->flush], history->linked_total,
         history->taken_total, queue->items_resumed, history->checksum,
         fault == NULL ? "ok" : "WRONG: ", fault == NULL ? "" : fault);
  return fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct queue *queue = &arguments.queue;
  open_pool(queue, arguments.pool, arguments.is_check_only);
  struct history before = new_history(queue);
  const char *fault = check(queue, &before);
  if (fault != NULL || arguments.is_check_only)
    return report(queue, &before, fault);
  recover(queue, &before);

  team_run(queue->producers + queue->consumers, work, queue);

  struct history after = new_history(queue);
  fault = check(queue, &after);
  if (fault == NULL && queue->is_order_broken)
    fault = "an item was taken out of order";
  if (fault == NULL && (after.linked_total != queue->items || after.taken_total != queue->items))
    fault = "items are left over";
  return report(queue, &after, fault);
}
