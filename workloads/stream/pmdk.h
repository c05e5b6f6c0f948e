// SPDX-License-Identifier: Apache-2.0
//
// App-Direct: the arrays are objects of a libpmemobj pool, which is loaded at run time, so that the
// program runs where there is none. Built without its headers, the program says so.
//
// A measured pool has no name: a file in memory or an unnamed one of a folder, which the kernel
// removes with the process, however that ends. One with a name is kept, for `--check`.
#ifndef STREAM_PMDK_H
#define STREAM_PMDK_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdalign.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arrays.h"
#include "broken.h"
#include "nodes.h"
#include "pool.h"
#include "settings.h"

static struct {
  void *handle; // NULL: see `missing`
  char missing[256];
  char path[512];
} pmdk;

// What a thread has made durable: so many blocks, counted over all kernels.
struct progress {
  alignas(LINE_BYTES) uint64_t blocks;
};

// WITHOUT_LIBPMEMOBJ: what is built where there are no headers, for its test.
#if __has_include(<libpmemobj.h>) && !defined(WITHOUT_LIBPMEMOBJ)
#include <libpmemobj.h>

TOID_DECLARE(double, 1);

#define POOL_LAYOUT "fencepost-stream"
static const uint64_t pool_magic = UINT64_C(0x6d61657274736466);

enum {
  // Beside the arrays: the library's own header, lanes and tables, and logs of transactions.
  POOL_EXTRA_BYTES = 64 << 20,
  // Of a pool whose images are checked one after the other: as small as the library takes.
  SMALL_ARRAYS_BYTES = 1 << 20,
};

struct root {
  struct pool_header header;
  struct progress progress[TEAM_THREADS_MAX];
  PMEMoid arrays[ARRAYS];
};

// What D_RW and D_RO use besides: a program that is linked with the library has these two from it.
// Here they are the program's, and the library takes them from it (exported.txt).
__thread struct _pobj_pcache _pobj_cached_pool;
int _pobj_cache_invalidate;

static struct {
  PMEMobjpool *(*create)(const char *, const char *, size_t, mode_t);
  PMEMobjpool *(*open)(const char *, const char *);
  void (*close)(PMEMobjpool *);
  const char *(*error)(void);
  const char *(*check_version)(unsigned, unsigned);
  PMEMoid (*root)(PMEMobjpool *, size_t);
  int (*alloc)(PMEMobjpool *, PMEMoid *, size_t, uint64_t, pmemobj_constr, void *);
  void (*persist)(PMEMobjpool *, const void *, size_t);
  PMEMobjpool *(*pool_by_oid)(PMEMoid);
  int (*is_pmem)(const void *, size_t);
  int (*tx_begin)(PMEMobjpool *, jmp_buf, ...);
  enum pobj_tx_stage (*tx_stage)(void);
  void (*tx_process)(void);
  int (*tx_end)(void);
  int (*tx_errno)(void);
  int (*tx_add)(const void *, size_t);
} library;

// Called by the inlined pmemobj_direct when it meets another pool than the last.
PMEMobjpool *pmemobj_pool_by_oid(PMEMoid oid) { return library.pool_by_oid(oid); }

// TX_BEGIN and TX_END name the functions.
#define pmemobj_tx_begin library.tx_begin
#define pmemobj_tx_stage library.tx_stage
#define pmemobj_tx_process library.tx_process
#define pmemobj_tx_end library.tx_end
#define pmemobj_tx_errno library.tx_errno

static struct {
  PMEMobjpool *pool;
  struct root *root;
} pool;
// As in STREAM, the arrays are known to the whole program.
static TOID(double) oid_a, oid_b, oid_c;

#define D_RW_LOOP(NAME, TO, VALUE)                                                                 \
  static void NAME##_d_rw(size_t begin, size_t end) {                                              \
    for (size_t j = begin; j < end; j++)                                                           \
      D_RW(TO)[j] = VALUE;                                                                         \
  }

D_RW_LOOP(copy, oid_c, D_RO(oid_a)[j])
D_RW_LOOP(scale, oid_b, factor *D_RO(oid_c)[j])
D_RW_LOOP(add, oid_c, D_RO(oid_a)[j] + D_RO(oid_b)[j])
D_RW_LOOP(triad, oid_a, D_RO(oid_b)[j] + factor * D_RO(oid_c)[j])

static void (*const d_rw_loops[KERNELS])(size_t, size_t) = {copy_d_rw, scale_d_rw, add_d_rw,
                                                            triad_d_rw};

// NULL if the library has none, which is said to be `missing` then.
static void *pmdk_symbol(const struct settings *settings, const char *name) {
  void *symbol = dlsym(pmdk.handle, name);
  if (symbol == NULL)
    snprintf(pmdk.missing, sizeof pmdk.missing, "%s: it has no %s", settings->libpmemobj, name);
  return symbol;
}

static void pmdk_load(const struct settings *settings) {
  // The library flushes only where it takes the file for persistent memory: one that lies in memory
  // is to cost what persistent memory would.
  if (settings->place == POOL_IN_MEMORY)
    setenv("PMEM_IS_PMEM_FORCE", "1", 0);
  pmdk.handle = dlopen(settings->libpmemobj, RTLD_NOW);
  if (pmdk.handle == NULL) {
    snprintf(pmdk.missing, sizeof pmdk.missing, "%s", dlerror());
    return;
  }
  Dl_info about;
  void *create = pmdk_symbol(settings, "pmemobj_create");
  if (create != NULL && dladdr(create, &about) != 0)
    snprintf(pmdk.path, sizeof pmdk.path, "%s", about.dli_fname);
  *(void **)&library.create = create;
  *(void **)&library.open = pmdk_symbol(settings, "pmemobj_open");
  *(void **)&library.close = pmdk_symbol(settings, "pmemobj_close");
  *(void **)&library.error = pmdk_symbol(settings, "pmemobj_errormsg");
  *(void **)&library.check_version = pmdk_symbol(settings, "pmemobj_check_version");
  *(void **)&library.root = pmdk_symbol(settings, "pmemobj_root");
  *(void **)&library.alloc = pmdk_symbol(settings, "pmemobj_alloc");
  *(void **)&library.persist = pmdk_symbol(settings, "pmemobj_persist");
  *(void **)&library.pool_by_oid = pmdk_symbol(settings, "pmemobj_pool_by_oid");
  *(void **)&library.is_pmem = pmdk_symbol(settings, "pmem_is_pmem");
  *(void **)&library.tx_begin = pmdk_symbol(settings, "pmemobj_tx_begin");
  *(void **)&library.tx_stage = pmdk_symbol(settings, "pmemobj_tx_stage");
  *(void **)&library.tx_process = pmdk_symbol(settings, "pmemobj_tx_process");
  *(void **)&library.tx_end = pmdk_symbol(settings, "pmemobj_tx_end");
  *(void **)&library.tx_errno = pmdk_symbol(settings, "pmemobj_tx_errno");
  *(void **)&library.tx_add = pmdk_symbol(settings, "pmemobj_tx_add_range_direct");
  if (pmdk.missing[0] == '\0') {
    const char *mismatch = library.check_version(PMEMOBJ_MAJOR_VERSION, PMEMOBJ_MINOR_VERSION);
    if (mismatch != NULL)
      snprintf(pmdk.missing, sizeof pmdk.missing, "%s", mismatch);
  }
  if (pmdk.missing[0] != '\0')
    pmdk.handle = NULL;
}

__attribute__((noreturn)) static void pmdk_failure(const char *what) {
  fprintf(stderr, "stream: %s: %s\n", what, library.error());
  exit(EXIT_USAGE);
}

static void pool_parameters(const struct settings *settings, uint64_t parameters[POOL_PARAMETERS]) {
  memset(parameters, 0, POOL_PARAMETERS * sizeof *parameters);
  parameters[0] = settings->elements;
  parameters[1] = settings->threads;
  parameters[2] = (uint64_t)settings->durable;
  parameters[3] = settings->block;
}

static size_t pool_bytes(const struct settings *settings) {
  size_t arrays = ARRAYS * settings->elements * sizeof(double);
  bool is_small = settings->place == POOL_FILE && arrays <= SMALL_ARRAYS_BYTES;
  return is_small ? PMEMOBJ_MIN_POOL : arrays + arrays / 64 + POOL_EXTRA_BYTES;
}

// A file without a name, or one whose name goes at once; with its blocks, so that a full disk is an
// error here and would be SIGBUS later.
static int unnamed_file(const struct settings *settings) {
  char path[4096];
  int file;
  if (settings->place == POOL_IN_MEMORY) {
    file = memfd_create("fencepost-stream", MFD_CLOEXEC);
  } else {
    file = open(settings->path, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file < 0 && (errno == EOPNOTSUPP || errno == EISDIR)) {
      snprintf(path, sizeof path, "%s/fencepost-stream-XXXXXX", settings->path);
      file = mkostemp(path, O_CLOEXEC);
      if (file >= 0)
        unlink(path);
    }
  }
  if (file < 0 || (errno = posix_fallocate(file, 0, (off_t)pool_bytes(settings))) != 0) {
    fprintf(stderr, "stream: no room for a pool of %zu bytes in %s: %s\n", pool_bytes(settings),
            settings->place == POOL_IN_MEMORY ? "memory" : settings->path, strerror(errno));
    exit(EXIT_USAGE);
  }
  return file;
}

static PMEMobjpool *pool_new(const struct settings *settings, const char **kind) {
  if (settings->place == POOL_FILE) {
    *kind = "file with a name";
    return library.create(settings->path, POOL_LAYOUT, pool_bytes(settings), 0600);
  }
  char path[64];
  int file = unnamed_file(settings);
  void *tried = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                     MAP_SHARED_VALIDATE | MAP_SYNC, file, 0);
  *kind = tried != MAP_FAILED                 ? "DAX file (MAP_SYNC)"
          : settings->place == POOL_IN_MEMORY ? "file in memory"
                                              : "file, not DAX";
  if (tried != MAP_FAILED)
    munmap(tried, (size_t)sysconf(_SC_PAGESIZE));
  snprintf(path, sizeof path, "/proc/self/fd/%d", file);
  return library.create(path, POOL_LAYOUT, 0, 0600); // which opens the file for itself
}

// The arrays of the pool: of a new one, or of one that `--prepare` has left. `kind` is what the
// file is, `is_new` whether its arrays have to be filled.
static void pool_arrays(const struct settings *settings, double *arrays[ARRAYS], const char **kind,
                        bool *is_new) {
  if (pmdk.handle == NULL) {
    fprintf(stderr, "stream: App-Direct needs libpmemobj: %s\n", pmdk.missing);
    exit(EXIT_USAGE);
  }
  uint64_t parameters[POOL_PARAMETERS];
  pool_parameters(settings, parameters);
  *is_new = settings->place != POOL_FILE || access(settings->path, F_OK) != 0;
  *kind = "file with a name";
  if (*is_new && settings->is_check)
    pool_mismatch(settings->path, "no such pool");
  nodes_place_all(settings, true);
  pool.pool = *is_new ? pool_new(settings, kind) : library.open(settings->path, POOL_LAYOUT);
  nodes_place_all(settings, false);
  if (pool.pool == NULL)
    pmdk_failure(settings->place == POOL_IN_MEMORY ? "file in memory" : settings->path);
  PMEMoid root = library.root(pool.pool, sizeof *pool.root);
  if (OID_IS_NULL(root))
    pmdk_failure("no root object");
  pool.root = pmemobj_direct(root);
  if (!*is_new && !pool_is_formatted(&pool.root->header, settings->path, pool_magic, parameters))
    pool_mismatch(settings->path, "not a whole pool: make it by --prepare");
  for (unsigned array = 0; array < ARRAYS; array++) {
    PMEMoid *oid = &pool.root->arrays[array];
    if (*is_new && library.alloc(pool.pool, oid, settings->elements * sizeof(double),
                                 TOID_TYPE_NUM(double), NULL, NULL) != 0)
      pmdk_failure("an array");
    arrays[array] = pmemobj_direct(*oid);
  }
  TOID_ASSIGN(oid_a, pool.root->arrays[0]);
  TOID_ASSIGN(oid_b, pool.root->arrays[1]);
  TOID_ASSIGN(oid_c, pool.root->arrays[2]);
}

// Says that the pool's arrays are filled and durable.
static void pool_finish(const struct settings *settings, double *arrays[ARRAYS]) {
  struct pool_header *header = &pool.root->header;
  for (unsigned array = 0; array < ARRAYS; array++)
    library.persist(pool.pool, arrays[array], settings->elements * sizeof(double));
  pool_parameters(settings, header->parameters);
  library.persist(pool.pool, header, sizeof *header);
  header->magic = pool_magic;
  library.persist(pool.pool, header, sizeof *header);
}

static bool pool_flushes(const double *array) { return library.is_pmem(array, LINE_BYTES) != 0; }

static struct progress *pool_progress(void) { return pool.root->progress; }

static void call_durable(struct progress *progress) {
  progress->blocks++;
  library.persist(pool.pool, progress, sizeof *progress);
}

// Makes durable what a block of a kernel has written, and says so in the pool.
static void pool_persist(struct progress *progress, const double *written, size_t count) {
  size_t bytes = count * sizeof *written;
  if (BROKEN == CALLED_EARLY)
    call_durable(progress);
  if (BROKEN == LAST_LINES_LEFT_OUT && bytes >= 2 * LINE_BYTES)
    bytes -= 2 * LINE_BYTES; // the array need not begin at a line
  if (BROKEN != FLUSH_LEFT_OUT)
    library.persist(pool.pool, written, bytes);
  if (BROKEN != CALLED_EARLY)
    call_durable(progress);
}

// Does a block of a kernel and counts it, both or neither.
static void pool_transaction(struct progress *progress, double *written, size_t count,
                             void (*act)(void *), void *argument) {
  TX_BEGIN(pool.pool) {
    if (BROKEN != NO_SNAPSHOT)
      library.tx_add(written, count * sizeof *written);
    library.tx_add(progress, sizeof *progress);
    act(argument);
    progress->blocks++;
  }
  TX_ONABORT { pmdk_failure("a transaction was refused"); }
  TX_END
}

static void pool_end(void) { library.close(pool.pool); }

#else

static void (*const d_rw_loops[KERNELS])(size_t, size_t) = {NULL};

static void pmdk_load(const struct settings *settings) {
  (void)settings;
  snprintf(pmdk.missing, sizeof pmdk.missing,
           "the program was built without its headers (Debian: libpmemobj-dev; then make setup)");
}

static void pool_arrays(const struct settings *settings, double *arrays[ARRAYS], const char **kind,
                        bool *is_new) {
  (void)settings, (void)arrays, (void)kind, (void)is_new;
  fprintf(stderr, "stream: App-Direct needs libpmemobj: %s\n", pmdk.missing);
  exit(EXIT_USAGE);
}

static void pool_finish(const struct settings *settings, double *arrays[ARRAYS]) {
  (void)settings, (void)arrays;
}

static bool pool_flushes(const double *array) { return array == NULL; }

static struct progress *pool_progress(void) { return NULL; }

static void pool_persist(struct progress *progress, const double *written, size_t count) {
  (void)progress, (void)written, (void)count;
}

static void pool_transaction(struct progress *progress, double *written, size_t count,
                             void (*act)(void *), void *argument) {
  (void)progress, (void)written, (void)count, (void)act, (void)argument;
}

static void pool_end(void) {}

#endif

#endif
