/* SPDX-License-Identifier: Apache-2.0 */
#include "vsyscall_page.h"

#include "baton.h"
#include "raw_system_call.h"
#include "system_calls.h"
#include "threads.h"
#include "virtual_time.h"

#include <signal.h>
#include <sys/syscall.h>

#define PAGE 0xffffffffff600000ull
#define ENTRY_BYTES 1024u

bool vsyscall_page_called(void *drcontext, dr_siginfo_t *information) {
  static const int numbers[] = {SYS_gettimeofday, SYS_time, SYS_getcpu};
  dr_mcontext_t *registers = information->mcontext;
  uint64_t offset = (uint64_t)(ptr_uint_t)registers->pc - PAGE, from;
  size_t read;
  if (information->sig != SIGSEGV || offset % ENTRY_BYTES != 0 || offset / ENTRY_BYTES >= 3 ||
      !dr_safe_read((void *)registers->xsp, sizeof(from), &from, &read))
    return false;
  struct thread *thread = thread_of(drcontext);
  struct system_call call = {.number = numbers[offset / ENTRY_BYTES],
                             .argument = {registers->xdi, registers->xsi, registers->xdx}};
  int64_t result;
  system_call_identify(&call);
  if (!baton_has(thread) || !virtual_time_call(thread, &call, &result))
    result = raw_system_call(call.number, registers->xdi, registers->xsi, registers->xdx);
  registers->xax = (reg_t)result;
  registers->xsp += sizeof(from);
  registers->pc = (app_pc)(ptr_uint_t)from;
  return true;
}
