/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a program one instruction at a time and prints the address of each between the first ROI
 * markers, as eight bytes; a repeated string instruction comes once. What the recorder claims is
 * held against it. */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static const uint64_t begin_marker = 0x5043000100841f0f, end_marker = 0x5043000200841f0f;

static uint64_t code_at(pid_t child, uint64_t address) {
  errno = 0;
  return (uint64_t)ptrace(PTRACE_PEEKTEXT, child, address, NULL);
}

int main(int count, char **arguments) {
  int status, is_inside = 0;
  if (count < 2)
    return 2;
  pid_t child = fork();
  if (child == 0) {
    personality(ADDR_NO_RANDOMIZE);
    ptrace(PTRACE_TRACEME, 0, NULL, NULL);
    close(1);
    execv(arguments[1], arguments + 1);
    _exit(127);
  }
  uint64_t previous = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    struct user_regs_struct registers;
    ptrace(PTRACE_GETREGS, child, NULL, &registers);
    uint64_t code = code_at(child, registers.rip);
    is_inside = is_inside || code == begin_marker;
    /* A repeated string instruction stops once for each element, at itself. */
    uint8_t first = (uint8_t)code;
    int is_repeated = registers.rip == previous && (first == 0xf2 || first == 0xf3);
    if (is_inside && !is_repeated)
      fwrite(&registers.rip, sizeof(uint64_t), 1, stdout);
    previous = registers.rip;
    if (is_inside && code == end_marker)
      break;
    ptrace(PTRACE_SINGLESTEP, child, NULL, NULL);
  }
  ptrace(PTRACE_KILL, child, NULL, NULL);
  return is_inside ? 0 : 1;
}
