"""`--persist sync`: what a thread wrote is flushed before it synchronises, and nothing inside."""

import subprocess
from pathlib import Path

from fencepost.api import explain
from installed import FENCEPOST

THREADS, ROUNDS, LINES = 4, 10, 8

# A barrier made of a mutex and a condition, its counter in the memory that is persistent. Each
# statement that matters has a line of its own.
PROGRAM = f"""
#include <pthread.h>
#include <stdlib.h>
struct barrier {{
  pthread_mutex_t mutex;
  pthread_cond_t condition;
  char apart[64];
  volatile long arrived, round;
}};
static struct barrier *barrier;
static char *lines;
static void meet(void) {{
  pthread_mutex_lock(&barrier->mutex); /* lock */
  long round = barrier->round;
  if (++barrier->arrived == {THREADS}) {{
    barrier->arrived = 0;
    barrier->round++;
    pthread_cond_broadcast(&barrier->condition); /* broadcast */
  }} else {{
    while (barrier->round == round)
      pthread_cond_wait(&barrier->condition, &barrier->mutex); /* wait */
  }}
  pthread_mutex_unlock(&barrier->mutex); /* unlock */
}}
static void *work(void *own) {{
  for (int round = 0; round < {ROUNDS}; round++) {{
    for (int line = 0; line < {LINES}; line++)
      ((volatile char *)own)[64 * line] = (char)round;
    meet();
  }}
  return NULL;
}}
int main(void) {{
  pthread_t thread[{THREADS}];
  barrier = aligned_alloc(64, sizeof(struct barrier) / 64 * 64 + 64);
  pthread_mutex_init(&barrier->mutex, NULL);
  pthread_cond_init(&barrier->condition, NULL);
  barrier->arrived = barrier->round = 0;
  lines = aligned_alloc(64, {THREADS} * {LINES} * 64);
  for (int i = 0; i < {THREADS}; i++)
    pthread_create(&thread[i], NULL, work, lines + i * {LINES} * 64);
  for (int i = 0; i < {THREADS}; i++)
    pthread_join(thread[i], NULL);
  return 0;
}}
"""


def line_of(remark: str) -> int:
    return 1 + next(
        number for number, line in enumerate(PROGRAM.splitlines()) if f"/* {remark} */" in line
    )


def test_nothing_written_before_a_barrier_made_of_a_mutex_is_flushed_under_it(
    tmp_path: Path,
) -> None:
    (tmp_path / "meets.c").write_text(PROGRAM)
    compiler = ["gcc", "-O1", "-g", "-pthread", "-Wl,-z,now", "-o", "meets", "meets.c"]
    subprocess.run(compiler, cwd=tmp_path, check=True)
    command = [FENCEPOST, "record", "-o", "meets.fencepost", "--", "./meets"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, timeout=120)
    found = explain("pcs-table1", tmp_path / "meets.fencepost", persist="sync").document
    flushed: dict[int, int] = {}
    for site in found["sites"]:
        frames = site["place"]["frames"] if site["place"] else []
        if site["is_inserted"] and frames and (frames[0]["file"] or "").endswith("meets.c"):
            lines = site["schemes"]["nopb"]["lines"]
            flushed[frames[0]["line"]] = flushed.get(frames[0]["line"], 0) + lines
    # Under the lock each arrival writes the line with the counters alone, once: a path's own stores
    # to the mutex and the condition are not the program's.
    behind = sum(flushed.get(line_of(remark), 0) for remark in ("wait", "broadcast", "unlock"))
    assert flushed[line_of("lock")] == THREADS * ROUNDS * LINES
    assert behind == THREADS * ROUNDS, flushed
