/* SPDX-License-Identifier: Apache-2.0 */
/* The memory that the launcher and every recorded process share. It outlives an exec, so a new
 * image goes on counting where the old one stopped; and the launcher reads from it what it has to
 * say when a process is gone. */
#ifndef CONTROL_AREA_H
#define CONTROL_AREA_H

#include "record_format.h"
#include "supply_table.h"
#include "tree.h"

#include <stdint.h>
#include <sys/resource.h>

#define CONTROL_MAGIC 0x4c525443435046ull
#define CONTROL_PATH_BYTES 4096
#define CONTROL_OPTION_BYTES 1024
/* The first and its children (--children). Pages of those that never come are never touched. */
#define CONTROL_PROCESSES_MAX 32768u

/* Children that are not recorded, as many as are counted and named; more of a name are cut. */
#define CONTROL_UNRECORDED_MAX 4096u
#define CONTROL_NAME_BYTES 60
#define CONTROL_WORD_BYTES 64
/* Everything before and behind the region is recorded, too. */
#define CONTROL_WARM_ALL UINT64_MAX
/* Of signals the launcher hands on, by number. */
#define CONTROL_SIGNALS 16

/* A record's name has this behind it until it is sealed. */
#define PARTIAL_SUFFIX ".partial"

/* One recorded process. */
struct process_control {
  int32_t process;                  /* kernel id; 0 while the entry is being made */
  int32_t parent;                   /* likewise */
  uint32_t forked_by;               /* number of who forked it, from 1; 0: it began otherwise */
  char program[CONTROL_NAME_BYTES]; /* that it ran last, without folders */
  uint64_t start_time; /* in clock ticks since the machine's start: an id may be used again */
  uint32_t is_sealed;  /* by the launcher */
  int32_t keeper;      /* kernel id of who writes what is left where it is killed; 0 for nobody */

  /* Counted by the client. */
  uint64_t clock;          /* process clock: the last one given out; or the tree's has it */
  uint32_t next_thread;    /* dense ids given out */
  uint32_t live_threads;   /* started, and last frame not yet written */
  uint32_t blocks;         /* blocks written: the next CODE frame starts at this + 1 */
  uint32_t code_sequence;  /* CODE frames written */
  uint64_t code_bytes;     /* decompressed CODE payload written */
  uint32_t images;         /* program images that were started */
  uint32_t write_error;    /* errno of the first frame that could not be written, or 0 */
  uint32_t stopped_reason; /* enum stop_reason, or 0 */
  uint32_t roi_boundaries; /* begins and ends of the region of interest that were reached */
  uint64_t instructions;   /* encoded, of all threads */

  uint32_t withheld; /* enum withheld: of what kinds system calls were withheld from the kernel */
  struct rlimit open_files;           /* as the program has it; the kernel has the engine's */
  uint64_t taken_ns[CONTROL_SIGNALS]; /* CLOCK_MONOTONIC when it last took each signal, or 0 */
  uint32_t keeps_no_ends;             /* its children vanish when they end: it ignores that */
  int32_t death_signal; /* that the first thread asked for, where the kernel has the launcher's */

  /* Where an exec takes the thread that called it. */
  uint32_t exec_pending;
  uint32_t exec_thread;
  uint32_t exec_sequence;
  uint64_t exec_position;
  uint64_t exec_clock; /* its estimated one */
  uint32_t has_place;  /* in the tree */

  /* How it ended, as far as recorded processes have seen it. */
  uint32_t has_exited;    /* it has asked for its end, with wait status `exit_status` */
  uint32_t is_waited_for; /* its parent has seen its end, with `waited_status` */
  uint32_t is_told;       /* its parent's record has its end */
  int32_t exit_status;
  int32_t waited_status;
  /* And as the launcher has, before anybody waited for it. */
  uint32_t is_seen_ended;
  int32_t seen_status;
};

/* A child of a recorded process that has no record of its own. */
struct unrecorded_child {
  int32_t process;        /* kernel id; 0 where there is none, and in all entries behind */
  uint32_t has_executed;  /* it is not what it was forked from any more */
  uint32_t shares_memory; /* some that can be written, with its parent */
  char name[CONTROL_NAME_BYTES];
};

struct control_area {
  uint64_t magic;
  /* Set by the launcher before the program starts. */
  char record_path[CONTROL_PATH_BYTES];  /* absolute; of the first process */
  char child_prefix[CONTROL_PATH_BYTES]; /* absolute; a child's number and the suffix follow */
  char child_suffix[CONTROL_PATH_BYTES];
  char program[CONTROL_PATH_BYTES]; /* as it is started */
  char isa[CONTROL_WORD_BYTES];     /* as the record names them */
  char engine[CONTROL_WORD_BYTES];
  char roi[CONTROL_OPTION_BYTES]; /* START:STOP, or empty */
  uint64_t every;                 /* region after region, so many instructions apart; 0: only one */
  uint64_t warm;                  /* instructions before it to record; CONTROL_WARM_ALL */
  char pm_selector[CONTROL_OPTION_BYTES]; /* or empty */
  char lifeline[CONTROL_WORD_BYTES];      /* a pipe of which the launcher has the other end */
  uint32_t values;
  uint32_t children;  /* record them too */
  uint32_t lists;     /* each record, for the user */
  uint32_t one_order; /* threads take turns */
  uint32_t real_time; /* they then see real clocks, and their sleeps take real time */
  uint64_t seed;      /* of what they see of chance */
  uint64_t schedule;  /* which order of their turns, from 1 */
  /* Set by the client: some process has had children or timers. */
  uint32_t is_among_others;
  char set_id_program[CONTROL_NAME_BYTES]; /* likewise: one that ran without its set-id bit */

  uint32_t processes; /* entries given out; more than there are when children were left out */
  struct process_control process[CONTROL_PROCESSES_MAX]; /* the first process is the first */
  struct unrecorded_child unrecorded[CONTROL_UNRECORDED_MAX];

  /* With --children, where threads take turns. */
  uint32_t has_tree;
  uint64_t clock; /* of all processes: one order */
  struct tree tree;
  struct supply_table supplies;
};

/* Why the client stopped recording although the process went on. */
enum stop_reason { STOP_NONE, STOP_WRITE_FAILED, STOP_TOO_MANY_BLOCKS, STOP_TOO_MANY_THREADS };

/* What a program may not take from the recorder in its process. */
enum withheld {
  WITHHELD_MEMORY = 1, /* its mappings */
  WITHHELD_LIMIT = 2,  /* memory and length of files */
  WITHHELD_FILTER = 4, /* its system calls */
};

#endif
