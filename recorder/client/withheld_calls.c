/* SPDX-License-Identifier: Apache-2.0 */
#include "withheld_calls.h"

#include "arena.h"
#include "descriptor_limit.h"
#include "frame.h"
#include "lifeline.h"
#include "raw_system_call.h"
#include "recording.h"

#include <errno.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#define PROTECTED_MAX 256u
#define SIGNAL_MAX 64u
#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#endif

static struct {
  uint64_t start, end;
} protected_range[PROTECTED_MAX];
static uint32_t protected_ranges;

/* What the program believes its limits to be, where they are not. */
static struct {
  bool is_set;
  struct rlimit limit;
} believed[RLIM_NLIMITS];

void withheld_calls_protect(uint64_t start, uint64_t end) {
  if (protected_ranges == PROTECTED_MAX)
    return;
  protected_range[protected_ranges].start = start;
  protected_range[protected_ranges++].end = end;
}

static bool is_ours(uint64_t address) {
  byte *at = (byte *)(ptr_uint_t)address;
  return dr_memory_is_dr_internal(at) || dr_memory_is_in_client(at);
}

static bool hits_ours(uint64_t start, uint64_t length) {
  uint64_t end = start + length;
  if (length == 0 || end < start)
    return false;
  for (uint32_t i = 0; i < protected_ranges; i++) {
    if (start < protected_range[i].end && end > protected_range[i].start)
      return true;
  }
  return pages_overlap((const void *)(ptr_uint_t)start, length) || is_ours(start) ||
         is_ours(end - 1);
}

static void note(enum withheld what) {
  __atomic_or_fetch(&recording.control->withheld, what, __ATOMIC_RELAXED);
}

static bool withhold(void *drcontext, enum withheld what, int64_t result) {
  note(what);
  dr_syscall_set_result(drcontext, (reg_t)result);
  return true;
}

static bool limits_us(uint64_t resource) {
  return resource == RLIMIT_AS || resource == RLIMIT_DATA || resource == RLIMIT_FSIZE ||
         resource == RLIMIT_NOFILE;
}

static struct rlimit believed_limit(uint64_t resource) {
  struct rlimit limit = believed[resource].limit;
  if (resource == RLIMIT_NOFILE)
    return descriptor_limit();
  if (!believed[resource].is_set)
    raw_system_call(SYS_getrlimit, (reg_t)resource, (reg_t)&limit, 0);
  return limit;
}

static bool may_raise_limits(void) {
  struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
  struct __user_cap_data_struct capabilities[_LINUX_CAPABILITY_U32S_3] = {{0}};
  raw_system_call(SYS_capget, (reg_t)&header, (reg_t)capabilities, 0);
  return (capabilities[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE)) !=
         0;
}

/* The limit as the program knows it, to where it wants it; 0 or a negative errno. */
static int64_t tell_limit(uint64_t resource, uint64_t to) {
  struct rlimit limit = believed_limit(resource);
  size_t written;
  return dr_safe_write((void *)(ptr_uint_t)to, sizeof(limit), &limit, &written) ? 0 : -EFAULT;
}

/* `from` and `to`, where not 0, are the program's new and old limit. */
static bool withhold_limit(void *drcontext, uint64_t resource, uint64_t from, uint64_t to) {
  struct rlimit limit;
  size_t read;
  if (!limits_us(resource) ||
      (from == 0 && !believed[resource].is_set && resource != RLIMIT_NOFILE))
    return false;
  bool is_new = from != 0;
  int64_t result = 0;
  if (is_new && !dr_safe_read((void *)(ptr_uint_t)from, sizeof(limit), &limit, &read))
    result = -EFAULT;
  else if (is_new && limit.rlim_cur > limit.rlim_max)
    result = -EINVAL;
  else if (is_new && limit.rlim_max > believed_limit(resource).rlim_max && !may_raise_limits())
    result = -EPERM;
  if (result == 0 && to != 0)
    result = tell_limit(resource, to);
  if (resource == RLIMIT_NOFILE) {
    if (result == 0 && is_new)
      descriptor_limit_set(limit);
    dr_syscall_set_result(drcontext, (reg_t)result);
    return true;
  }
  if (result == 0 && is_new) {
    believed[resource].limit = limit;
    believed[resource].is_set = true;
  }
  return withhold(drcontext, WITHHELD_LIMIT, result);
}

static bool is_own_process(uint64_t process) {
  return process == 0 || (int32_t)process == process_id_of_caller();
}

static bool withhold_mapping(void *drcontext, const uint64_t *argument) {
  bool is_forced = (argument[3] & MAP_FIXED) != 0 && (argument[3] & MAP_FIXED_NOREPLACE) == 0;
  return is_forced && hits_ours(argument[0], argument[1]) &&
         withhold(drcontext, WITHHELD_MEMORY, -ENOMEM);
}

/* The program finds descriptors of the recorder in /proc alone, and they are not there for it. */
static bool withhold_descriptor(void *drcontext, uint64_t descriptor) {
  if (!frame_is_record((int)descriptor) && !lifeline_is((int)descriptor))
    return false;
  dr_syscall_set_result(drcontext, (reg_t)-EBADF);
  return true;
}

/* Of the program's first thread the launcher has set the signal that comes when its parent dies,
 * and that parent is the launcher. What it asks for is only remembered: with the launcher it is
 * killed.
 */
static bool withhold_death_signal(void *drcontext, uint64_t option, uint64_t argument) {
  struct process_control *first = &recording.area->process[0];
  int64_t result = 0;
  size_t written;
  if (raw_system_call(SYS_gettid, 0, 0, 0) != first->process)
    return false;
  if (option == PR_GET_PDEATHSIG) {
    if (!dr_safe_write((void *)(ptr_uint_t)argument, sizeof(first->death_signal),
                       &first->death_signal, &written))
      result = -EFAULT;
  } else if (argument > SIGNAL_MAX) {
    result = -EINVAL;
  } else {
    first->death_signal = (int32_t)argument;
  }
  dr_syscall_set_result(drcontext, (reg_t)result);
  return true;
}

static bool withhold_process_control(void *drcontext, uint64_t option, uint64_t argument) {
  switch (option) {
  case PR_SET_SECCOMP:
  case PR_SET_SYSCALL_USER_DISPATCH:
    return withhold(drcontext, WITHHELD_FILTER, -EINVAL);
  case PR_SET_PDEATHSIG:
  case PR_GET_PDEATHSIG:
    return withhold_death_signal(drcontext, option, argument);
  default:
    return false;
  }
}

bool withheld_call(void *drcontext, int number) {
  uint64_t argument[5];
  int64_t error;
  for (int i = 0; i < 5; i++)
    argument[i] = dr_syscall_get_param(drcontext, i);
  if (!descriptor_limit_allows(number, argument, &error)) {
    dr_syscall_set_result(drcontext, (reg_t)error);
    return true;
  }
  switch (number) {
  case SYS_munmap:
  case SYS_mprotect:
  case SYS_pkey_mprotect:
  case SYS_madvise:
    return hits_ours(argument[0], argument[1]) && withhold(drcontext, WITHHELD_MEMORY, -EINVAL);
  case SYS_mremap:
    return (hits_ours(argument[0], argument[1]) ||
            ((argument[3] & MREMAP_FIXED) != 0 && hits_ours(argument[4], argument[2]))) &&
           withhold(drcontext, WITHHELD_MEMORY, -EINVAL);
  case SYS_mmap:
    return withhold_mapping(drcontext, argument);
  case SYS_setrlimit:
    return withhold_limit(drcontext, argument[0], argument[1], 0);
  case SYS_getrlimit:
    return withhold_limit(drcontext, argument[0], 0, argument[1]);
  case SYS_prlimit64:
    return is_own_process(argument[0]) &&
           withhold_limit(drcontext, argument[1], argument[2], argument[3]);
  case SYS_write:
  case SYS_pwrite64:
  case SYS_writev:
  case SYS_pwritev:
  case SYS_pwritev2:
  case SYS_ftruncate:
  case SYS_fallocate:
  case SYS_lseek:
  case SYS_fcntl:
  case SYS_ioctl:
  case SYS_flock:
  case SYS_dup:
  case SYS_dup2:
  case SYS_dup3:
  case SYS_sendfile:
    return withhold_descriptor(drcontext, argument[0]);
  case SYS_copy_file_range:
  case SYS_splice:
    return withhold_descriptor(drcontext, argument[2]);
  case SYS_seccomp:
    return (argument[0] == SECCOMP_SET_MODE_STRICT || argument[0] == SECCOMP_SET_MODE_FILTER) &&
           withhold(drcontext, WITHHELD_FILTER, -EINVAL);
  case SYS_prctl:
    return withhold_process_control(drcontext, argument[0], argument[1]);
  default:
    return false;
  }
}
