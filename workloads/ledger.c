// SPDX-License-Identifier: Apache-2.0
//
// A ledger kept with libpmemobj: a list of bookings, their number and their sum, changed together
// in one transaction. After each booking the program acknowledges it, in a line of its own.
//
// The pool has to be there (`pmempool create obj --layout ledger --size 8M FILE`), or is made with
// --create; either way the library's own recovery runs when it is opened, and what the program then
// finds must hold: the list has as many bookings as are counted, with that sum, at least those that
// were acknowledged and at most one more.
//
// With --mistake the program makes one of the mistakes that are easy to make with transactions.
// libpmemobj flushes only where it takes the pool for persistent memory: set PMEM_IS_PMEM_FORCE=1.
#include <getopt.h>
#include <libpmemobj.h>
#include <stdalign.h>
#include <string.h>
#include <unistd.h>

#include "options.h"
#include "scramble.h"

static const char usage[] =
    "ledger --pool FILE [-n BOOKINGS] [--create] [--check] "
    "[--mistake no-snapshot|no-persist|early-acknowledgement|no-transaction]";

enum { BOOKINGS_MAX = 1 << 16 };

enum mistake {
  NONE,
  NO_SNAPSHOT,           // the sum is changed in the transaction, but is not added to it
  NO_PERSIST,            // an acknowledgement is stored and not persisted
  EARLY_ACKNOWLEDGEMENT, // a booking is acknowledged before its transaction
  NO_TRANSACTION,        // number and sum are changed and persisted without a transaction
};
static const char *const mistakes[] = {"none", "no-snapshot", "no-persist", "early-acknowledgement",
                                       "no-transaction"};

struct booking {
  PMEMoid next;
  uint64_t amount;
};

struct ledger {
  alignas(LINE_BYTES) PMEMoid last;
  uint64_t bookings;
  alignas(LINE_BYTES) uint64_t sum;
  alignas(LINE_BYTES) uint64_t acknowledged;
};

static uint64_t amount_of(uint64_t booking) { return scramble(booking) % 1000; }

__attribute__((noreturn)) static void give_up(const char *what) {
  fprintf(stderr, "ledger: %s: %s\n", what, pmemobj_errormsg());
  exit(EXIT_FAILURE);
}

static void acknowledge(PMEMobjpool *pool, struct ledger *ledger, enum mistake mistake) {
  ledger->acknowledged++;
  if (mistake != NO_PERSIST)
    pmemobj_persist(pool, &ledger->acknowledged, sizeof ledger->acknowledged);
}

// Puts a booking at the front of the list and counts it, all or nothing.
static void book(PMEMobjpool *pool, struct ledger *ledger, uint64_t amount, enum mistake mistake) {
  TX_BEGIN(pool) {
    PMEMoid allocated = pmemobj_tx_alloc(sizeof(struct booking), 1);
    struct booking *booking = pmemobj_direct(allocated);
    booking->next = ledger->last;
    booking->amount = amount;
    pmemobj_tx_add_range_direct(&ledger->last, sizeof ledger->last);
    ledger->last = allocated;
    if (mistake != NO_TRANSACTION) {
      pmemobj_tx_add_range_direct(&ledger->bookings, sizeof ledger->bookings);
      if (mistake != NO_SNAPSHOT)
        pmemobj_tx_add_range_direct(&ledger->sum, sizeof ledger->sum);
      ledger->bookings++;
      ledger->sum += amount;
    }
  }
  TX_ONABORT { give_up("a booking was refused"); }
  TX_END
  if (mistake == NO_TRANSACTION) {
    ledger->bookings++;
    ledger->sum += amount;
    pmemobj_persist(pool, &ledger->bookings, sizeof ledger->bookings);
    pmemobj_persist(pool, &ledger->sum, sizeof ledger->sum);
  }
}

// What is wrong with the ledger, NULL if nothing is.
static const char *fault_of(const struct ledger *ledger) {
  uint64_t bookings = 0, sum = 0;
  for (PMEMoid at = ledger->last; !OID_IS_NULL(at); bookings++) {
    const struct booking *booking = pmemobj_direct(at);
    if (bookings > BOOKINGS_MAX)
      return "the list has no end";
    sum += booking->amount;
    at = booking->next;
  }
  if (bookings != ledger->bookings)
    return "not as many bookings as are counted";
  if (sum != ledger->sum)
    return "the sum is wrong";
  if (ledger->bookings < ledger->acknowledged)
    return "an acknowledged booking is lost";
  if (ledger->bookings > ledger->acknowledged + 1)
    return "bookings that were never acknowledged";
  return NULL;
}

struct arguments {
  const char *pool;
  uint64_t bookings;
  enum mistake mistake;
  bool is_created, is_check_only;
};

static enum mistake mistake_option(const char *text) {
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++)
    if (strcmp(mistakes[i], text) == 0)
      return (enum mistake)i;
  usage_error(usage, "there is no mistake '%s'", text);
}

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"pool", required_argument, NULL, 'P'},
                                          {"create", no_argument, NULL, 'm'},
                                          {"check", no_argument, NULL, 'c'},
                                          {"mistake", required_argument, NULL, 'w'},
                                          {0}};
  struct arguments arguments = {.bookings = 10};
  for (int option; (option = getopt_long(count, values, "n:", options, NULL)) != -1;)
    switch (option) {
    case 'n':
      arguments.bookings = number_option(usage, "-n", optarg, 1, BOOKINGS_MAX);
      break;
    case 'P':
      arguments.pool = optarg;
      break;
    case 'm':
      arguments.is_created = true;
      break;
    case 'c':
      arguments.is_check_only = true;
      break;
    case 'w':
      arguments.mistake = mistake_option(optarg);
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (arguments.pool == NULL)
    usage_error(usage, "--pool is missing");
  return arguments;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  PMEMobjpool *pool = arguments.is_created
                          ? pmemobj_create(arguments.pool, "ledger", PMEMOBJ_MIN_POOL, 0644)
                          : pmemobj_open(arguments.pool, "ledger");
  if (pool == NULL)
    give_up(arguments.pool);
  struct ledger *ledger = pmemobj_direct(pmemobj_root(pool, sizeof(struct ledger)));
  if (ledger == NULL)
    give_up("no root object");

  const char *fault = fault_of(ledger);
  if (fault == NULL && !arguments.is_check_only) {
    ledger->acknowledged = ledger->bookings;
    pmemobj_persist(pool, &ledger->acknowledged, sizeof ledger->acknowledged);
    while (ledger->bookings < arguments.bookings) {
      if (arguments.mistake == EARLY_ACKNOWLEDGEMENT)
        acknowledge(pool, ledger, arguments.mistake);
      book(pool, ledger, amount_of(ledger->bookings), arguments.mistake);
      if (arguments.mistake != EARLY_ACKNOWLEDGEMENT)
        acknowledge(pool, ledger, arguments.mistake);
    }
    fault = fault_of(ledger);
  }
  printf("ledger: bookings=%" PRIu64 " sum=%" PRIu64 " %s%s\n", ledger->bookings, ledger->sum,
         fault == NULL ? "ok" : "WRONG: ", fault == NULL ? "" : fault);
  pmemobj_close(pool);
  return fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
