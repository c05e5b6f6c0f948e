/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_process.h"

#include "complaint.h"
#include "library_path.h"
#include "order.h"
#include "process_state.h"
#include "stack_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* How long a program may take to end when it was told to. */
#define PATIENCE_SECONDS 60
/* What comes so soon after a signal is the same one: `timeout` sends it to us and to our group. */
#define SAME_SIGNAL_NS 1000000000ull
/* In which a program that has got the same signal itself takes it. */
#define OWN_COPY_NS 100000000

/* For the signal handlers. */
static volatile sig_atomic_t process;
static struct control_area *the_control;
static pid_t the_starter; /* or 0 */
/* What was sent to all last, and who has got it. */
static volatile sig_atomic_t sent_signal;
static volatile uint64_t sent_at_ns;
static volatile unsigned char has_got[CONTROL_PROCESSES_MAX];

/* As they were before we held them. */
static sigset_t unheld;

unsigned control_area_count(const struct control_area *control) {
  unsigned count = __atomic_load_n(&control->processes, __ATOMIC_SEQ_CST);
  return count < CONTROL_PROCESSES_MAX ? count : CONTROL_PROCESSES_MAX;
}

struct control_area *control_area_create(int *descriptor) {
  *descriptor = memfd_create("fencepost-control", MFD_CLOEXEC);
  if (*descriptor < 0 || ftruncate(*descriptor, sizeof(struct control_area)) != 0)
    fail(EXIT_OURS, "cannot make memory to share with the program: %s", strerror(errno));
  struct control_area *control =
      mmap(NULL, sizeof(struct control_area), PROT_READ | PROT_WRITE, MAP_SHARED, *descriptor, 0);
  if (control == MAP_FAILED)
    fail(EXIT_OURS, "cannot make memory to share with the program: %s", strerror(errno));
  control->magic = CONTROL_MAGIC;
  control->processes = 1;
  getrlimit(RLIMIT_NOFILE, &control->process[0].open_files);
  return control;
}

/* Both ends stay open until the launcher ends, however it does. */
static void make_lifeline(struct control_area *control) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0)
    fail(EXIT_OURS, "cannot make a pipe: %s", strerror(errno));
  snprintf(control->lifeline, sizeof(control->lifeline), "/proc/%d/fd/%d", (int)getpid(), ends[0]);
}

static void set_environment(const struct program *program, int control_descriptor) {
  char client[PATH_MAX], options[2 * PATH_MAX];
  library_path(client, "libfencepost-recorder.so");
  if (strpbrk(client, ";\"") != NULL)
    fail(EXIT_OURS, "%s: a path with ; or \" cannot be given to the engine", client);
  /* Blocks are what they are in the program: no jumps and calls left out (elision), and short
   * enough for the client's tables. Putting hot blocks together into traces costs more than it
   * gains where each block carries as much of ours. Where the engine stops all threads to free
   * code, it waits until they have stopped: after a limit it would free what one of them executes.
   */
  snprintf(options, sizeof(options),
           "-code_api -enable_full_api -disable_traces -max_elide_jmp 0 -max_elide_call 0 "
           "-max_bb_instrs 128 "
           "-synch_all_threads_max_loops %u "
           "-msgbox_mask 0 "
           "-client_lib64 \"%s;0;/proc/%d/fd/%d\"",
           UINT_MAX, client, (int)getppid(), control_descriptor);
  setenv("DYNAMORIO_OPTIONS", options, 1);
  setenv("DYNAMORIO_RUNUNDER", "1", 1);
  setenv("DYNAMORIO_EXE_PATH", program->path, 1);
}

/* In the child: becomes the program, under the engine. Only returns, with errno, when that fails.
 */
static void become(const struct program *program, const struct emulator *emulator,
                   struct control_area *control, int control_descriptor, pid_t launcher) {
  char engine[PATH_MAX];
  if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != launcher)
    fail(EXIT_OURS, "the launcher has ended before the program could start");
  int persona = personality(0xffffffff);
  if (persona == -1 || personality((unsigned long)persona | ADDR_NO_RANDOMIZE) == -1)
    fail(EXIT_OURS,
         "address-space randomisation cannot be switched off here (personality: %s); "
         "a container needs a seccomp profile that allows it",
         strerror(errno));
  control->process[0].process = getpid();
  if (emulator != NULL) {
    emulator_become(emulator, program, control_descriptor, launcher);
    return;
  }
  library_path(engine, "libdynamorio.so");
  set_environment(program, control_descriptor);
  stack_place_fix(engine);
  execv(engine, program->arguments);
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Sends the signal to a recorded process, but no second copy: SIGKILL apart, one that it has just
 * taken. */
static bool send_to(int id, const struct process_control *control, int signal) {
  if (signal < CONTROL_SIGNALS && signal != SIGKILL && control->taken_ns[signal] != 0 &&
      now_ns() < control->taken_ns[signal] + SAME_SIGNAL_NS)
    return true;
  return kill(id, signal) == 0;
}

/* Sends the signal to those children of the program that are recorded and have not ended; whether
 * there are any. */
static bool send_to_children(int signal) {
  bool are_any = false;
  unsigned count = control_area_count(the_control);
  for (unsigned i = 1; i < count; i++) {
    const struct process_control *child = &the_control->process[i];
    if (child->process > 0 && !child->is_sealed && !child->is_waited_for) {
      are_any = send_to(child->process, child, signal) || are_any;
      has_got[i] = true;
    }
  }
  return are_any;
}

static bool send_to_all(int signal) {
  bool is_program_there = process > 0;
  if (is_program_there)
    send_to(process, &the_control->process[0], signal);
  return send_to_children(signal) || is_program_there;
}

/* To the program, or when that has ended, to its children. */
static void send(int signal) {
  if (process > 0)
    kill(process, signal);
  else
    send_to_children(signal);
}

static void say(const char *message) {
  ssize_t written = write(STDERR_FILENO, message, strlen(message));
  (void)written; /* There is nobody else to tell. */
}

/* Those that come meanwhile, a while later. */
static void kill_all(void) {
  order_give_up();
  if (send_to_all(SIGKILL))
    say(recorded_process_is_abandoned()
            ? "fencepost-record: who wanted the record is gone; the program is killed\n"
            : "fencepost-record: the program was told to end and still runs; it is killed\n");
  alarm(PATIENCE_SECONDS);
}

static bool is_to_end(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP;
}

/* A program may live on after SIGINT and SIGHUP. One that does not end by SIGTERM is ended: after a
 * while, or when it is told again. */
static void tell(int signal) {
  order_give_up();
  static uint64_t told_at_ns; /* 0: not yet */
  uint64_t now = now_ns();
  if (signal == SIGTERM && told_at_ns != 0 && now > told_at_ns + SAME_SIGNAL_NS) {
    kill_all();
    return;
  }
  nanosleep(&(struct timespec){.tv_nsec = OWN_COPY_NS}, NULL);
  memset((void *)has_got, 0, sizeof(has_got));
  send_to_all(signal);
  sent_signal = signal;
  sent_at_ns = now_ns();
  if (signal == SIGTERM && told_at_ns == 0) {
    told_at_ns = now;
    alarm(PATIENCE_SECONDS);
  }
}

/* What was sent to us alone is meant for the program, and what would end it for all that is
 * recorded; what the terminal sends, it has already got, unless it has left our process group. */
static void forward(int signal, siginfo_t *information, void *context) {
  (void)context;
  int error = errno;
  bool is_ours_alone = information->si_code != SI_KERNEL;
  if (is_ours_alone && is_to_end(signal))
    tell(signal);
  else if (is_ours_alone || process <= 0 || getpgid(process) != getpgrp())
    send(signal);
  errno = error;
}

static void on_alarm(int signal) {
  (void)signal;
  int error = errno;
  kill_all();
  errno = error;
}

void recorded_process_tell_late(void) {
  if (sent_signal == 0 || now_ns() > sent_at_ns + SAME_SIGNAL_NS)
    return;
  unsigned count = control_area_count(the_control);
  for (unsigned i = 1; i < count; i++) {
    const struct process_control *child = &the_control->process[i];
    if (child->process <= 0 || child->is_sealed || has_got[i] ||
        process_is_running(child->parent, 0))
      continue;
    send_to(child->process, child, sent_signal);
    has_got[i] = true;
  }
}

static const int forwarded[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
#define FORWARDED_COUNT (sizeof(forwarded) / sizeof(forwarded[0]))

static void forward_signals(void) {
  for (size_t i = 0; i < FORWARDED_COUNT; i++) {
    struct sigaction current, action = {.sa_sigaction = forward, .sa_flags = SA_SIGINFO};
    sigfillset(&action.sa_mask);
    /* What is ignored stays ignored, in the program too. */
    if (sigaction(forwarded[i], NULL, &current) == 0 && current.sa_handler != SIG_IGN)
      sigaction(forwarded[i], &action, NULL);
  }
  struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
  sigfillset(&action.sa_mask);
  sigaction(SIGALRM, &action, NULL);
}

/* The kernel says when the starter is gone. */
static void end_with(pid_t starter) {
  the_starter = starter;
  if (starter != 0 && (prctl(PR_SET_PDEATHSIG, SIGALRM) != 0 || recorded_process_is_abandoned()))
    raise(SIGALRM);
}

void recorded_process_hold_signals(void) {
  sigset_t held;
  sigemptyset(&held);
  for (size_t i = 0; i < FORWARDED_COUNT; i++)
    sigaddset(&held, forwarded[i]);
  sigaddset(&held, SIGALRM);
  sigprocmask(SIG_BLOCK, &held, &unheld);
}

void recorded_process_start(const struct program *program, const struct emulator *emulator,
                            struct control_area *control, int control_descriptor, int starter) {
  make_lifeline(control);
  end_with(starter);
  /* We wait for our children, whatever whoever started us does for its own. */
  struct sigaction of_children, by_default = {.sa_handler = SIG_DFL};
  sigaction(SIGCHLD, &by_default, &of_children);
  pid_t launcher = getpid(), child = fork();
  if (child < 0)
    fail(EXIT_OURS, "fork: %s", strerror(errno));
  if (child == 0) {
    sigaction(SIGCHLD, &of_children, NULL);
    sigprocmask(SIG_SETMASK, &unheld, NULL);
    become(program, emulator, control, control_descriptor, launcher);
    int error = errno;
    complain("the engine could not be started: %s", strerror(error));
    _exit(EXIT_OURS);
  }
  process = child;
  the_control = control;
  forward_signals();
  sigdelset(&unheld, SIGALRM);
  sigprocmask(SIG_SETMASK, &unheld, NULL);
}

void recorded_process_has_ended(void) { process = 0; }

bool recorded_process_is_kept(const struct process_control *control) {
  int keeper = __atomic_load_n(&control->keeper, __ATOMIC_ACQUIRE);
  return keeper > 0 && process_is_running(keeper, 0);
}

void recorded_process_await_keeper(void) {
  while (recorded_process_is_kept(&the_control->process[0]))
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

bool recorded_process_is_abandoned(void) { return the_starter != 0 && getppid() != the_starter; }

int recorded_process_id(void) { return process; }

int recorded_process_wait(void) {
  int status;
  while (waitpid(process, &status, 0) < 0) {
    if (errno != EINTR)
      fail(EXIT_OURS, "waitpid: %s", strerror(errno));
  }
  recorded_process_has_ended();
  return status;
}
