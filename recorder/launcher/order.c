/* SPDX-License-Identifier: Apache-2.0 */
#include "order.h"

#include "complaint.h"
#include "library_path.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t finder; /* 0: nobody */

void order_give_up(void) {
  if (finder > 0)
    kill(finder, SIGKILL);
}

void order_add(const char *record, const char *first_of_tree, unsigned processes) {
  char program[PATH_MAX], count[16];
  if (!library_path_find(program, "fencepost-order"))
    return;
  snprintf(count, sizeof(count), "%u", processes);
  pid_t launcher = getpid(), child = fork();
  if (child == 0) {
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == launcher)
      execl(program, program, record, first_of_tree, count, NULL);
    _exit(EXIT_OURS);
  }
  int status = 0;
  finder = child;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
    ;
  finder = 0;
  if (child < 0 || status != 0)
    complain(
        "%s: what of its order a replay keeps was not found; replays find it when they open it",
        record);
}
