// SPDX-License-Identifier: Apache-2.0
//
// Conjugate gradients for Poisson's equation on a square of -n × -n points (five-point stencil,
// zero around it), with the solver's state kept so that a run can go on after a power cut.
//
//   --persist none        no state is kept
//   --persist checkpoint  every -k iterations the threads copy x, r and p into a slot
//   --persist iteration   x, r and p live in the slots: each iteration reads one and writes the
//                         other, so what is kept costs flushes, but no copy
//
// There are two slots. All threads flush and fence their rows of the slot that is not valid; then,
// behind a barrier, the number of slots ever finished is persisted: its lowest bit says which slot
// is valid. Sums are made in the order of the threads, so a run that was cut off comes to the same
// bits as one that was not.
#include <getopt.h>
#include <math.h>

#include "crash.h"
#include "pool.h"
#include "scramble.h"
#include "team.h"

static const char usage[] =
    "cg [-n POINTS] [-i ITERATIONS] [-k ITERATIONS] [-p THREADS] "
    "[--persist none|checkpoint|iteration] [--flush none|clflush|clflushopt|clwb] [--pool FILE] "
    "[--crash-at N] [--check] [--mistake early-commit|one-slot]";

enum { POINTS_MAX = 1 << 14, ITERATIONS_MAX = 1 << 20, SLOTS = 2 };

static const uint64_t magic = UINT64_C(0x312d4752474a4f43); // "COJGRG-1"
static const double tolerance = 1e-10; // of the residual, relative to that of x = 0

enum persist_mode { PERSIST_NONE, PERSIST_CHECKPOINT, PERSIST_ITERATION };
static const char *const persist_modes[] = {"none", "checkpoint", "iteration"};

enum mistake {
  NO_MISTAKE,
  EARLY_COMMIT, // a slot is declared valid before the other threads have made theirs durable
  ONE_SLOT,     // there is but one slot, which is overwritten
};
static const char *const mistakes[] = {"none", "early-commit", "one-slot"};

struct vectors {
  double *x, *r, *p; // solution, residual, direction
};

struct slot_head {
  alignas(LINE_BYTES) uint64_t iterations;
  double rho; // r · r
};

struct pool {
  struct pool_header header;
  alignas(LINE_BYTES) uint64_t slots_finished;
  struct slot_head heads[SLOTS];
  alignas(LINE_BYTES) double values[]; // of each slot: x, r, p
};

struct partial_sum {
  alignas(LINE_BYTES) double value;
};

struct solver {
  size_t side, points;
  unsigned threads;
  uint64_t iterations_max, interval;
  enum persist_mode mode;
  enum mistake mistake;
  enum flush flush;
  struct pool *pool;
  struct vectors slots[SLOTS], work; // what `work` points to is no slot
  double *image;                     // A p
  struct partial_sum *directions, *residuals;
  pthread_barrier_t barrier;
  // Where the run begins, and where it has come to.
  uint64_t iterations;
  double rho, rho_of_zero;
};

static size_t first_row(const struct solver *solver, unsigned thread) {
  return solver->side * thread / solver->threads;
}

static double right_side(size_t point) { return (double)(scramble(point) >> 11) * 0x1p-53 - 0.5; }

// One point of A v.
static double stencil(const struct solver *solver, const double *v, size_t row, size_t column) {
  size_t side = solver->side, at = row * side + column;
  double sum = 4 * v[at];
  if (row > 0)
    sum -= v[at - side];
  if (row + 1 < side)
    sum -= v[at + side];
  if (column > 0)
    sum -= v[at - 1];
  if (column + 1 < side)
    sum -= v[at + 1];
  return sum;
}

static double total(const struct solver *solver, const struct partial_sum *sums) {
  double sum = 0;
  for (unsigned thread = 0; thread < solver->threads; thread++)
    sum += sums[thread].value;
  return sum;
}

static unsigned valid_slot(const struct solver *solver, uint64_t slots_finished) {
  return solver->mistake == ONE_SLOT ? 0 : slots_finished % SLOTS;
}

// The state when so many slots have been finished.
static const struct vectors *state(const struct solver *solver, uint64_t slots_finished) {
  return solver->mode == PERSIST_ITERATION ? &solver->slots[valid_slot(solver, slots_finished)]
                                           : &solver->work;
}

// Makes a thread's rows of a slot durable, copied from where the solver works if that is elsewhere.
static void keep_rows(struct solver *solver, unsigned thread, unsigned slot) {
  size_t begin = first_row(solver, thread) * solver->side;
  size_t bytes = (first_row(solver, thread + 1) * solver->side - begin) * sizeof(double);
  double *const to[] = {solver->slots[slot].x, solver->slots[slot].r, solver->slots[slot].p};
  double *const from[] = {solver->work.x, solver->work.r, solver->work.p};
  for (size_t i = 0; i < sizeof to / sizeof *to; i++) {
    if (solver->mode == PERSIST_CHECKPOINT)
      memcpy(to[i] + begin, from[i] + begin, bytes);
    flush_range(solver->flush, to[i] + begin, bytes);
  }
  fence(solver->flush);
}

// By the first thread, when the rows of all are durable.
static void commit(struct solver *solver, unsigned slot, uint64_t iterations, double rho) {
  solver->pool->heads[slot] = (struct slot_head){.iterations = iterations, .rho = rho};
  persist(solver->flush, &solver->pool->heads[slot], sizeof *solver->pool->heads);
  solver->pool->slots_finished++;
  persist(solver->flush, &solver->pool->slots_finished, sizeof solver->pool->slots_finished);
  crash_point();
}

static void solve(unsigned thread, void *problem) {
  struct solver *solver = problem;
  size_t begin = first_row(solver, thread), end = first_row(solver, thread + 1);
  size_t side = solver->side;
  uint64_t iterations = solver->iterations, slots_finished = solver->pool->slots_finished;
  double rho = solver->rho;
  while (iterations < solver->iterations_max && rho > tolerance * tolerance * solver->rho_of_zero) {
    unsigned slot = valid_slot(solver, slots_finished + 1);
    const struct vectors *from = state(solver, slots_finished);
    const struct vectors *to = state(solver, slots_finished + 1);

    double sum = 0;
    for (size_t row = begin; row < end; row++)
      for (size_t column = 0; column < side; column++) {
        size_t at = row * side + column;
        solver->image[at] = stencil(solver, from->p, row, column);
        sum += from->p[at] * solver->image[at];
      }
    solver->directions[thread].value = sum;
    pthread_barrier_wait(&solver->barrier);

    double step = rho / total(solver, solver->directions);
    sum = 0;
    for (size_t at = begin * side; at < end * side; at++) {
      to->x[at] = from->x[at] + step * from->p[at];
      to->r[at] = from->r[at] - step * solver->image[at];
      sum += to->r[at] * to->r[at];
    }
    solver->residuals[thread].value = sum;
    pthread_barrier_wait(&solver->barrier);

    double rho_before = rho;
    rho = total(solver, solver->residuals);
    iterations++;
    for (size_t at = begin * side; at < end * side; at++)
      to->p[at] = to->r[at] + rho / rho_before * from->p[at];

    bool is_kept = solver->mode == PERSIST_ITERATION ||
                   (solver->mode == PERSIST_CHECKPOINT && iterations % solver->interval == 0);
    if (is_kept) {
      if (thread == 0 && solver->mistake == EARLY_COMMIT)
        commit(solver, slot, iterations, rho);
      keep_rows(solver, thread, slot);
      slots_finished++;
    }
    pthread_barrier_wait(&solver->barrier);
    // The slot that is valid no more is written behind the next barrier at the earliest.
    if (is_kept && thread == 0 && solver->mistake != EARLY_COMMIT)
      commit(solver, slot, iterations, rho);
  }
  if (thread == 0) {
    solver->iterations = iterations;
    solver->rho = rho;
  }
}

static double dot(const struct solver *solver, const double *a, const double *b) {
  double sum = 0;
  for (unsigned thread = 0; thread < solver->threads; thread++) {
    double partial = 0;
    for (size_t at = first_row(solver, thread) * solver->side;
         at < first_row(solver, thread + 1) * solver->side; at++)
      partial += a[at] * b[at];
    sum += partial;
  }
  return sum;
}

// What is wrong with a state, NULL if nothing is: r must be b - A x, and its square and its product
// with p what the iteration leaves them.
static const char *fault_of(const struct solver *solver, const struct vectors *vectors,
                            double rho) {
  double difference = 0;
  for (size_t row = 0; row < solver->side; row++)
    for (size_t column = 0; column < solver->side; column++) {
      size_t at = row * solver->side + column;
      double error = right_side(at) - stencil(solver, vectors->x, row, column) - vectors->r[at];
      difference += error * error;
    }
  if (!(difference <= 1e-20 * solver->rho_of_zero))
    return "the residual is not that of the solution";
  if (dot(solver, vectors->r, vectors->r) != rho)
    return "the residual's square is another";
  if (!(fabs(dot(solver, vectors->r, vectors->p) - rho) <= 1e-6 * rho))
    return "the direction is not that of the residual";
  return NULL;
}

static double *new_vector(size_t points) {
  double *vector = aligned_alloc(LINE_BYTES, (points * sizeof(double) + LINE_BYTES - 1) /
                                                 LINE_BYTES * LINE_BYTES);
  if (vector == NULL) {
    fprintf(stderr, "no memory for %zu bytes\n", points * sizeof(double));
    exit(EXIT_FAILURE);
  }
  return vector;
}

struct arguments {
  uint64_t side, iterations, interval;
  unsigned threads;
  enum persist_mode mode;
  enum mistake mistake;
  enum flush flush;
  const char *pool;
  bool is_check_only;
};

// Opens the pool, or formats one, with x = 0 in its first slot; whether a run has left it.
static void open_state(struct solver *solver, const struct arguments *arguments) {
  size_t slot_points = (solver->points + 7) / 8 * 8 * 3;
  bool has_slots = solver->mode != PERSIST_NONE;
  size_t bytes = sizeof(struct pool) + (has_slots ? SLOTS * slot_points * sizeof(double) : 0);
  solver->pool = pool_open(arguments->pool, bytes, arguments->is_check_only);
  for (unsigned slot = 0; slot < SLOTS && has_slots; slot++) {
    double *x = solver->pool->values + slot * slot_points;
    solver->slots[slot] = (struct vectors){x, x + slot_points / 3, x + 2 * slot_points / 3};
  }
  if (solver->mode != PERSIST_ITERATION)
    solver->work = (struct vectors){new_vector(solver->points), new_vector(solver->points),
                                    new_vector(solver->points)};

  double *b = new_vector(solver->points);
  for (size_t at = 0; at < solver->points; at++)
    b[at] = right_side(at);
  solver->rho_of_zero = dot(solver, b, b);
  uint64_t parameters[POOL_PARAMETERS] = {solver->side, solver->threads, solver->mode,
                                          solver->interval, solver->mistake};
  if (!pool_is_formatted(&solver->pool->header, arguments->pool, magic, parameters)) {
    struct vectors *first = has_slots ? &solver->slots[0] : &solver->work;
    memset(first->x, 0, solver->points * sizeof(double));
    memcpy(first->r, b, solver->points * sizeof(double));
    memcpy(first->p, b, solver->points * sizeof(double));
    solver->pool->slots_finished = 0;
    solver->pool->heads[0] = (struct slot_head){.iterations = 0, .rho = solver->rho_of_zero};
    flush_range(solver->flush, solver->pool, bytes);
    fence(solver->flush);
    pool_finish_format(&solver->pool->header, magic, parameters, solver->flush);
  }
  free(b);
  if (!has_slots) {
    solver->rho = solver->rho_of_zero;
    return;
  }
  unsigned valid = valid_slot(solver, solver->pool->slots_finished);
  solver->iterations = solver->pool->heads[valid].iterations;
  solver->rho = solver->pool->heads[valid].rho;
  const struct vectors *kept = &solver->slots[valid];
  if (solver->mode == PERSIST_CHECKPOINT) {
    memcpy(solver->work.x, kept->x, solver->points * sizeof(double));
    memcpy(solver->work.r, kept->r, solver->points * sizeof(double));
    memcpy(solver->work.p, kept->p, solver->points * sizeof(double));
  }
}

static unsigned name_option(const char *option, const char *text, const char *const *names,
                            unsigned count) {
  for (unsigned i = 0; i < count; i++)
    if (strcmp(names[i], text) == 0)
      return i;
  usage_error(usage, "%s does not know '%s'", option, text);
}

static struct arguments parse_arguments(int count, char **values) {
  static const struct option options[] = {{"flush", required_argument, NULL, 'f'},
                                          {"persist", required_argument, NULL, 'm'},
                                          {"pool", required_argument, NULL, 'P'},
                                          {"crash-at", required_argument, NULL, 'c'},
                                          {"check", no_argument, NULL, 'C'},
                                          {"mistake", required_argument, NULL, 'w'},
                                          {0}};
  struct arguments arguments = {.side = 128,
                                .iterations = 50,
                                .interval = 10,
                                .threads = 1,
                                .mode = PERSIST_CHECKPOINT,
                                .flush = FLUSH_DEFAULT};
  for (int option; (option = getopt_long(count, values, "n:i:k:p:", options, NULL)) != -1;)
    switch (option) {
    case 'n':
      arguments.side = number_option(usage, "-n", optarg, 2, POINTS_MAX);
      break;
    case 'i':
      arguments.iterations = number_option(usage, "-i", optarg, 1, ITERATIONS_MAX);
      break;
    case 'k':
      arguments.interval = number_option(usage, "-k", optarg, 1, ITERATIONS_MAX);
      break;
    case 'p':
      arguments.threads = (unsigned)number_option(usage, "-p", optarg, 1, TEAM_THREADS_MAX);
      break;
    case 'f':
      arguments.flush = flush_option(usage, optarg);
      break;
    case 'm':
      arguments.mode = name_option("--persist", optarg, persist_modes, 3);
      break;
    case 'w':
      arguments.mistake = name_option("--mistake", optarg, mistakes, 3);
      break;
    case 'P':
      arguments.pool = optarg;
      break;
    case 'c':
      crash_at = number_option(usage, "--crash-at", optarg, 1, UINT64_MAX);
      break;
    case 'C':
      arguments.is_check_only = true;
      break;
    default:
      usage_error(usage, "wrong option");
    }
  if (optind < count)
    usage_error(usage, "unexpected argument '%s'", values[optind]);
  if (arguments.threads > arguments.side)
    usage_error(usage, "-p %u is more than the %" PRIu64 " rows", arguments.threads,
                arguments.side);
  if (arguments.is_check_only && (arguments.pool == NULL || arguments.mode == PERSIST_NONE))
    usage_error(usage, "--check needs --pool, and a --persist that keeps something");
  if (arguments.mode == PERSIST_NONE && arguments.pool != NULL)
    usage_error(usage, "--persist none keeps nothing: it takes no --pool");
  return arguments;
}

// Of every bit of the solution.
static uint64_t checksum(const struct solver *solver, const double *x) {
  uint64_t sum = 0;
  for (size_t at = 0; at < solver->points; at++) {
    uint64_t bits;
    memcpy(&bits, &x[at], sizeof bits);
    sum = scramble(sum ^ bits);
  }
  return sum;
}

int main(int count, char **values) {
  struct arguments arguments = parse_arguments(count, values);
  struct solver solver = {.side = arguments.side,
                          .points = arguments.side * arguments.side,
                          .threads = arguments.threads,
                          .iterations_max = arguments.iterations,
                          .interval = arguments.interval,
                          .mode = arguments.mode,
                          .mistake = arguments.mistake,
                          .flush = arguments.flush};
  open_state(&solver, &arguments);
  uint64_t resumed = solver.iterations;
  if (!arguments.is_check_only) {
    solver.image = new_vector(solver.points);
    solver.directions = calloc(solver.threads + 1, sizeof *solver.directions);
    solver.residuals = calloc(solver.threads + 1, sizeof *solver.residuals);
    pthread_barrier_init(&solver.barrier, NULL, solver.threads);
    team_run(solver.threads, solve, &solver);
  }
  const struct vectors *vectors = state(&solver, solver.pool->slots_finished);
  const char *fault = fault_of(&solver, vectors, solver.rho);
  printf("cg: points=%zu threads=%u persist=%s flush=%s resumed=%" PRIu64 " iterations=%" PRIu64
         " residual=%.1e checksum=%016" PRIx64 " %s%s\n",
         solver.points, solver.threads, persist_modes[solver.mode], flush_names[solver.flush],
         resumed, solver.iterations, sqrt(solver.rho / solver.rho_of_zero),
         checksum(&solver, vectors->x),
         fault == NULL ? "ok" : "WRONG: ", fault == NULL ? "" : fault);
  return fault == NULL ? EXIT_SUCCESS : EXIT_FAILURE;
}
