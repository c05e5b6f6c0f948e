/* SPDX-License-Identifier: Apache-2.0 */
#include "whole_transfers.h"

#include "dr_api.h"

#include "raw_system_call.h"
#include "thread.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* The engine's (engine/patches/waits_for_blocked_signals.patch). */
extern bool dr_syscall_was_cut(void *drcontext);

enum { DESCRIPTOR, BUFFER, BYTES, FLAGS }; /* the calls' arguments */

static bool is_transfer(int number) {
  return number == SYS_write || number == SYS_sendto || number == SYS_recvfrom;
}

static bool is_stream(uint64_t descriptor) {
  int type = 0;
  socklen_t bytes = sizeof(type);
  return raw_system_call_of_5(SYS_getsockopt, descriptor, SOL_SOCKET, SO_TYPE, (uintptr_t)&type,
                              (uintptr_t)&bytes) == 0 &&
         type == SOCK_STREAM;
}

/* Whether a stop of the engine's alone is why the kernel transferred less than was asked for. */
static bool is_cut(void *drcontext, const struct transfer *transfer) {
  struct stat status;
  uint64_t descriptor = transfer->descriptor;
  if (!dr_syscall_was_cut(drcontext))
    return false;
  long flags = raw_system_call(SYS_fcntl, descriptor, F_GETFL, 0);
  if (flags < 0 || (flags & O_NONBLOCK) != 0)
    return false;
  if (transfer->number != SYS_write && (transfer->flags & MSG_DONTWAIT) != 0)
    return false;
  if (transfer->number == SYS_recvfrom)
    return (transfer->flags & (MSG_WAITALL | MSG_PEEK)) == MSG_WAITALL && is_stream(descriptor);
  return raw_system_call(SYS_fstat, descriptor, (uintptr_t)&status, 0) == 0 &&
         (S_ISFIFO(status.st_mode) || (S_ISSOCK(status.st_mode) && is_stream(descriptor)));
}

bool whole_transfer_before(void *drcontext, struct thread *thread, int number) {
  struct transfer *transfer = &thread->transfer;
  if (transfer->done > 0)
    return true;
  transfer->is_made = is_transfer(number);
  if (transfer->is_made) {
    transfer->number = number;
    transfer->descriptor = dr_syscall_get_param(drcontext, DESCRIPTOR);
    transfer->buffer = dr_syscall_get_param(drcontext, BUFFER);
    transfer->bytes = dr_syscall_get_param(drcontext, BYTES);
    transfer->flags = dr_syscall_get_param(drcontext, FLAGS);
  }
  return false;
}

/* The program's registers, as the kernel would have left them. */
static void end_call(void *drcontext, const struct transfer *transfer, int64_t result) {
  dr_mcontext_t registers = {.size = sizeof(registers), .flags = DR_MC_INTEGER};
  dr_get_mcontext(drcontext, &registers);
  registers.xsi = transfer->buffer;
  registers.xdx = transfer->bytes;
  registers.xax = (reg_t)result;
  dr_set_mcontext(drcontext, &registers);
}

bool whole_transfer_after(void *drcontext, struct thread *thread, int number, int64_t *result) {
  struct transfer *transfer = &thread->transfer;
  if (!transfer->is_made)
    return false;
  if (*result > 0 && transfer->done + (uint64_t)*result < transfer->bytes &&
      is_cut(drcontext, transfer)) {
    transfer->done += (uint64_t)*result;
    dr_syscall_set_sysnum(drcontext, number);
    dr_syscall_set_param(drcontext, BUFFER, transfer->buffer + transfer->done);
    dr_syscall_set_param(drcontext, BYTES, transfer->bytes - transfer->done);
    dr_syscall_invoke_another(drcontext);
    return true;
  }
  transfer->is_made = false;
  if (transfer->done > 0) {
    *result = (int64_t)transfer->done + (*result > 0 ? *result : 0);
    transfer->done = 0;
    end_call(drcontext, transfer, *result);
  }
  return false;
}
