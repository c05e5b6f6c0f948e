/* SPDX-License-Identifier: Apache-2.0 */
#include "recorded_process.h"

#include "complaint.h"
#include "stack_place.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/wait.h>
#include <unistd.h>

/* For the signal handler. */
static volatile sig_atomic_t process;
static struct control_area *the_control;

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
  return control;
}

/* Folder of the libraries, beside the launcher. */
static void library_path(char path[PATH_MAX], const char *name) {
  char self[PATH_MAX];
  ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
  if (length < 0)
    fail(EXIT_OURS, "/proc/self/exe: %s", strerror(errno));
  self[length] = '\0';
  *strrchr(self, '/') = '\0';
  if (snprintf(path, PATH_MAX, "%s/lib/%s", self, name) >= PATH_MAX || access(path, R_OK) != 0)
    fail(EXIT_OURS, "%s is missing; run `make setup`", path);
}

static void set_environment(const struct program *program, int control_descriptor) {
  char client[PATH_MAX], options[2 * PATH_MAX];
  library_path(client, "libfencepost-recorder.so");
  if (strpbrk(client, ";\"") != NULL)
    fail(EXIT_OURS, "%s: a path with ; or \" cannot be given to the engine", client);
  /* Blocks are what they are in the program: no jumps and calls left out (elision), and short
   * enough for the client's tables. Putting hot blocks together into traces costs more than it
   * gains where each block carries as much of ours. */
  snprintf(options, sizeof(options),
           "-code_api -disable_traces -max_elide_jmp 0 -max_elide_call 0 -max_bb_instrs 128 "
           "-msgbox_mask 0 "
           "-client_lib64 \"%s;0;/proc/%d/fd/%d\"",
           client, (int)getppid(), control_descriptor);
  setenv("DYNAMORIO_OPTIONS", options, 1);
  setenv("DYNAMORIO_RUNUNDER", "1", 1);
  setenv("DYNAMORIO_EXE_PATH", program->path, 1);
}

/* In the child: becomes the program, under the engine. Only returns, with errno, when that fails.
 */
static void become(const struct program *program, struct control_area *control,
                   int control_descriptor) {
  char engine[PATH_MAX];
  int persona = personality(0xffffffff);
  if (persona == -1 || personality((unsigned long)persona | ADDR_NO_RANDOMIZE) == -1)
    fail(EXIT_OURS,
         "address-space randomisation cannot be switched off here (personality: %s); "
         "a container needs a seccomp profile that allows it",
         strerror(errno));
  library_path(engine, "libdynamorio.so");
  set_environment(program, control_descriptor);
  stack_place_fix(engine);
  control->process[0].process = getpid();
  execv(engine, program->arguments);
}

/* What was sent to us alone is meant for the program; what the terminal sends, it has already got.
 * When the program has ended, all signals are for those of its children that have not. */
static void forward(int signal, siginfo_t *information, void *context) {
  (void)context;
  int error = errno;
  if (process > 0) {
    if (information->si_code != SI_KERNEL)
      kill(process, signal);
  } else {
    unsigned count = control_area_count(the_control);
    for (unsigned i = 1; i < count; i++) {
      const struct process_control *child = &the_control->process[i];
      if (child->process > 0 && !child->is_sealed)
        kill(child->process, signal);
    }
  }
  errno = error;
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
}

void recorded_process_start(const struct program *program, struct control_area *control,
                            int control_descriptor) {
  sigset_t held, before;
  /* No signal is lost between the start of the program and the moment we know it. */
  sigemptyset(&held);
  for (size_t i = 0; i < FORWARDED_COUNT; i++)
    sigaddset(&held, forwarded[i]);
  sigprocmask(SIG_BLOCK, &held, &before);
  pid_t child = fork();
  if (child < 0)
    fail(EXIT_OURS, "fork: %s", strerror(errno));
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, NULL);
    become(program, control, control_descriptor);
    int error = errno;
    complain("the engine could not be started: %s", strerror(error));
    _exit(EXIT_OURS);
  }
  process = child;
  the_control = control;
  forward_signals();
  sigprocmask(SIG_SETMASK, &before, NULL);
}

void recorded_process_has_ended(void) { process = 0; }

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
