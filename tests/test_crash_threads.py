"""Threads that hand over through memory alone: `fencepost crash` keeps the order in which they did,
so a correct program has no violation, and what is missing in a broken one is found."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from installed import Fencepost

# What it does is its second argument; a third one makes it the check. With BROKEN the data of each
# step are not flushed before the next one says that they are there; with LATE the first thread
# makes its data durable only when the second, which goes by them, is done.
PROGRAM = r"""
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { LINE = 8, TURNS = 20 };
static volatile uint64_t *pool;
static atomic_uint turn;
static unsigned plain_turn;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t next = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;

static void persist(volatile void *line) {
  __builtin_ia32_clflush((const void *)line);
  __builtin_ia32_sfence();
}

static void persist_data(volatile void *line) {
#ifndef BROKEN
  persist(line);
#endif
}

static void *second(void *unused) {
  while (atomic_load_explicit(&turn, memory_order_acquire) == 0)
    ;
  pool[LINE] = 1;
  persist(&pool[LINE]);
  return unused;
}

/* Appends the next number, and then says how many there are. */
static void append(unsigned number) {
  pool[LINE * (number + 1)] = number + 1;
  persist_data(&pool[LINE * (number + 1)]);
  pool[0] = number + 1;
  persist(&pool[0]);
}

static void *in_turns(void *first) {
  for (unsigned number = (uintptr_t)first; number < TURNS; number += 2) {
    while (atomic_load(&turn) != number)
      ;
    append(number);
    atomic_store(&turn, number + 1);
  }
  return first;
}

static void *in_turns_by_condition(void *first) {
  for (unsigned number = (uintptr_t)first; number < TURNS; number += 2) {
    pthread_mutex_lock(&mutex);
    while (plain_turn != number)
      pthread_cond_wait(&next, &mutex);
    append(number);
    plain_turn = number + 1;
    pthread_cond_broadcast(&next);
    pthread_mutex_unlock(&mutex);
  }
  return first;
}

/* One appends under a lock while the other is at the barrier already. */
static void *in_turns_by_barrier(void *first) {
  for (unsigned number = 0; number < TURNS; number++) {
    if (number % 2 == (uintptr_t)first) {
      pthread_mutex_lock(&mutex);
      append(number);
      pthread_mutex_unlock(&mutex);
    }
    pthread_barrier_wait(&barrier);
  }
  return first;
}

/* Whoever gets the lock, by a locked instruction, appends. */
static void *with_lock(void *unused) {
  atomic_fetch_add(&turn, 2);
  while (atomic_load(&turn) < 4)
    ;
  for (int i = 0; i < TURNS / 2; i++) {
    for (unsigned is_free = 4; !atomic_compare_exchange_weak(&turn, &is_free, 5); is_free = 4)
      ;
    append(plain_turn++);
    if (i % 3 == 0)
      sched_yield();
    atomic_store_explicit(&turn, 4, memory_order_release);
  }
  return unused;
}

static int check(const char *how) {
  if (!strcmp(how, "hands-over"))
    return pool[LINE] == 1 && pool[0] != 1;
  for (uint64_t i = 0; i < pool[0]; i++)
    if (pool[LINE * (i + 1)] != i + 1)
      return 1;
  return 0;
}

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 8192))
    return 2;
  pool = mmap(0, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  const char *how = values[2];
  if (count > 3)
    return check(how);
  pthread_t one, two;
  if (!strcmp(how, "hands-over")) {
    pthread_create(&one, 0, second, 0);
    for (volatile int i = 0; i < 20000; i++)
      ;
    pool[0] = 1;
#ifndef LATE
    persist_data(&pool[0]);
#endif
    atomic_store_explicit(&turn, 1, memory_order_release);
    pthread_join(one, 0);
#ifdef LATE
    persist(&pool[0]);
#endif
    return 0;
  }
  void *(*work)(void *) = !strcmp(how, "in-turns")                ? in_turns
                          : !strcmp(how, "in-turns-by-condition") ? in_turns_by_condition
                          : !strcmp(how, "in-turns-by-barrier")   ? in_turns_by_barrier
                                                                  : with_lock;
  pthread_barrier_init(&barrier, 0, 2);
  pthread_create(&one, 0, work, (void *)0);
  pthread_create(&two, 0, work, (void *)1);
  return pthread_join(one, 0) || pthread_join(two, 0);
}
"""

WAYS = ["hands-over", "in-turns", "in-turns-by-condition", "in-turns-by-barrier", "with-lock"]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The program above, as it is and broken in two ways."""
    folder = tmp_path_factory.mktemp("threads")
    (folder / "threads.c").write_text(PROGRAM)
    options = {"correct": "-UBROKEN", "broken": "-DBROKEN", "late": "-DLATE"}
    for name, option in options.items():
        command = ["gcc", "-g", "-O1", "-pthread", option, "-o", name, "threads.c"]
        subprocess.run(command, cwd=folder, check=True)
    return {name: folder / name for name in options}


Explored = tuple[subprocess.CompletedProcess[str], dict[str, Any]]


@pytest.fixture
def explore(
    fencepost: Fencepost, programs: dict[str, Path], tmp_path: Path
) -> Callable[[str, str], Explored]:
    """Records and explores one of them."""

    def run(name: str, how: str) -> Explored:
        program = programs[name]
        own = ["--pm", "file:pool", "--check", f"{program} {{image}} {how} check"]
        few = ["--images", 8, "--no-reads", "--out", "found"]
        done = fencepost("crash", "pcs-table1", *own, *few, "--", program, "pool", how)
        return done, json.loads((tmp_path / "found" / "crash.json").read_text())

    return run


@pytest.mark.few(2)
@pytest.mark.parametrize("how", WAYS)
def test_a_correct_program_has_no_violation_and_all_instants(how, explore):
    done, result = explore("correct", how)
    assert done.returncode == 0 and result["violations"] == [], done.stdout
    assert result["warnings"] == [] and done.stderr.count("fencepost:") == 0, done.stderr
    # Each persist is before the next: an instant for each.
    assert result["counts"]["instants"] == (2 if how == "hands-over" else 40)


@pytest.mark.parametrize("how", ["hands-over", "with-lock"])
def test_a_missing_flush_is_found(how, explore):
    done, result = explore("broken", how)
    assert done.returncode == 1, done.stderr
    assert result["violations"][0]["fault"] == "missing_flush"


def test_a_thread_that_goes_by_what_another_makes_durable_later_is_found(explore):
    done, result = explore("late", "hands-over")
    assert done.returncode == 1, done.stderr
    (violation,) = result["violations"]
    assert violation["fault"] == "across_threads"
    stored = {
        label: violation[label]["source"]["frames"][0]["function"] for label in ("durable", "lost")
    }
    assert stored == {"durable": "second", "lost": "main"}
    (advice,) = [line for line in done.stdout.splitlines() if line.startswith("  mend ")]
    assert " be over before the thread that stores at second (" in advice, advice
