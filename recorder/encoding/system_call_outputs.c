/* SPDX-License-Identifier: Apache-2.0 */
#include "system_call_outputs.h"

#include "instruction_set.h"
#include "platform.h"

#include <asm/ioctls.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/futex.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/uio.h>
#include <sys/utsname.h>

/* How long the output is that an argument points to. */
enum extent {
  FIXED,        /* `amount` bytes */
  RESULT,       /* as many elements of `amount` bytes as the call returned */
  COUNT,        /* as many elements as the next argument says */
  SIZE_BEHIND,  /* as many bytes as stand, now, where the next argument points to */
  BITS,         /* as many bits as the first argument says */
  VECTORS,      /* a list of buffers, the next argument its length; together RESULT bytes */
  MESSAGE,      /* a struct msghdr, with RESULT bytes in its buffers */
  MESSAGES,     /* as many struct mmsghdr as the call returned */
  EPOLL_EVENTS, /* as many struct epoll_event, which differ in size */
};

struct output {
  uint16_t number;
  uint8_t argument; /* that points to it; NULL means no output */
  uint8_t extent;
  uint32_t amount;
};

/* As the kernel lays them out, where that differs from the C library's. */
#define KERNEL_SIGSET_BYTES 8
#define KERNEL_SIGACTION_BYTES 32
#define KERNEL_STAT_BYTES 144 /* AArch64's is shorter: what lies behind it stays as it is */
#define KERNEL_STATX_BYTES 256
#define KERNEL_TIMESPEC_BYTES 16
#define KERNEL_SIGINFO_BYTES 128
#define KERNEL_SIGSTACK_BYTES 24
#define KERNEL_FLOCK_BYTES 32

static const struct output outputs[] = {
    {SYS_read, 1, RESULT, 1},
    {SYS_pread64, 1, RESULT, 1},
    {SYS_readv, 1, VECTORS, 0},
    {SYS_preadv, 1, VECTORS, 0},
    {SYS_preadv2, 1, VECTORS, 0},
    {SYS_process_vm_readv, 1, VECTORS, 0},
    {SYS_recvfrom, 1, RESULT, 1},
    {SYS_recvfrom, 4, SIZE_BEHIND, 0},
    {SYS_recvfrom, 5, FIXED, 4},
    {SYS_recvmsg, 1, MESSAGE, 0},
    {SYS_recvmmsg, 1, MESSAGES, 0},
    {SYS_getrandom, 0, RESULT, 1},
    {SYS_getdents, 1, RESULT, 1},
    {SYS_getdents64, 1, RESULT, 1},
    {SYS_readlink, 1, RESULT, 1},
    {SYS_readlinkat, 2, RESULT, 1},
    {SYS_getcwd, 0, RESULT, 1},
    {SYS_getxattr, 2, RESULT, 1},
    {SYS_lgetxattr, 2, RESULT, 1},
    {SYS_fgetxattr, 2, RESULT, 1},
    {SYS_listxattr, 1, RESULT, 1},
    {SYS_llistxattr, 1, RESULT, 1},
    {SYS_flistxattr, 1, RESULT, 1},
    {SYS_mq_timedreceive, 1, RESULT, 1},
    {SYS_mq_timedreceive, 3, FIXED, 4},
    {SYS_syslog, 1, RESULT, 1},
    {SYS_stat, 1, FIXED, KERNEL_STAT_BYTES},
    {SYS_fstat, 1, FIXED, KERNEL_STAT_BYTES},
    {SYS_lstat, 1, FIXED, KERNEL_STAT_BYTES},
    {SYS_newfstatat, 2, FIXED, KERNEL_STAT_BYTES},
    {SYS_statx, 4, FIXED, KERNEL_STATX_BYTES},
    {SYS_statfs, 1, FIXED, sizeof(struct statfs)},
    {SYS_fstatfs, 1, FIXED, sizeof(struct statfs)},
    {SYS_uname, 0, FIXED, sizeof(struct utsname)},
    {SYS_sysinfo, 0, FIXED, sizeof(struct sysinfo)},
    {SYS_times, 0, FIXED, sizeof(struct tms)},
    {SYS_getrusage, 1, FIXED, sizeof(struct rusage)},
    {SYS_time, 0, FIXED, 8},
    {SYS_gettimeofday, 0, FIXED, 16},
    {SYS_gettimeofday, 1, FIXED, 8},
    {SYS_clock_gettime, 1, FIXED, KERNEL_TIMESPEC_BYTES},
    {SYS_clock_getres, 1, FIXED, KERNEL_TIMESPEC_BYTES},
    {SYS_sched_rr_get_interval, 1, FIXED, KERNEL_TIMESPEC_BYTES},
    {SYS_adjtimex, 0, FIXED, sizeof(struct timex)},
    {SYS_clock_adjtime, 1, FIXED, sizeof(struct timex)},
    {SYS_timer_create, 2, FIXED, 4},
    {SYS_timer_gettime, 1, FIXED, 2 * KERNEL_TIMESPEC_BYTES},
    {SYS_timer_settime, 3, FIXED, 2 * KERNEL_TIMESPEC_BYTES},
    {SYS_timerfd_gettime, 1, FIXED, 2 * KERNEL_TIMESPEC_BYTES},
    {SYS_timerfd_settime, 3, FIXED, 2 * KERNEL_TIMESPEC_BYTES},
    {SYS_getitimer, 1, FIXED, 32},
    {SYS_setitimer, 2, FIXED, 32},
    {SYS_pipe, 0, FIXED, 8},
    {SYS_pipe2, 0, FIXED, 8},
    {SYS_socketpair, 3, FIXED, 8},
    {SYS_rt_sigaction, 2, FIXED, KERNEL_SIGACTION_BYTES},
    {SYS_rt_sigprocmask, 2, FIXED, KERNEL_SIGSET_BYTES},
    {SYS_rt_sigpending, 0, FIXED, KERNEL_SIGSET_BYTES},
    {SYS_rt_sigtimedwait, 1, FIXED, KERNEL_SIGINFO_BYTES},
    {SYS_sigaltstack, 1, FIXED, KERNEL_SIGSTACK_BYTES},
    {SYS_getrlimit, 1, FIXED, sizeof(struct rlimit)},
    {SYS_prlimit64, 3, FIXED, sizeof(struct rlimit)},
    {SYS_sched_getaffinity, 2, RESULT, 1},
    {SYS_sched_getparam, 1, FIXED, 4},
    {SYS_sched_getattr, 1, FIXED, 48},
    {SYS_getcpu, 0, FIXED, 4},
    {SYS_getcpu, 1, FIXED, 4},
    {SYS_getgroups, 1, RESULT, 4},
    {SYS_getresuid, 0, FIXED, 4},
    {SYS_getresuid, 1, FIXED, 4},
    {SYS_getresuid, 2, FIXED, 4},
    {SYS_getresgid, 0, FIXED, 4},
    {SYS_getresgid, 1, FIXED, 4},
    {SYS_getresgid, 2, FIXED, 4},
    {SYS_capget, 1, FIXED, 24},
    {SYS_epoll_wait, 1, EPOLL_EVENTS, 0},
    {SYS_epoll_pwait, 1, EPOLL_EVENTS, 0},
    {SYS_epoll_pwait2, 1, EPOLL_EVENTS, 0},
    {SYS_poll, 0, COUNT, sizeof(struct pollfd)},
    {SYS_ppoll, 0, COUNT, sizeof(struct pollfd)},
    {SYS_ppoll, 2, FIXED, KERNEL_TIMESPEC_BYTES},
    {SYS_select, 1, BITS, 0},
    {SYS_select, 2, BITS, 0},
    {SYS_select, 3, BITS, 0},
    {SYS_select, 4, FIXED, 16},
    {SYS_pselect6, 1, BITS, 0},
    {SYS_pselect6, 2, BITS, 0},
    {SYS_pselect6, 3, BITS, 0},
    {SYS_pselect6, 4, FIXED, KERNEL_TIMESPEC_BYTES},
    {SYS_accept, 1, SIZE_BEHIND, 0},
    {SYS_accept, 2, FIXED, 4},
    {SYS_accept4, 1, SIZE_BEHIND, 0},
    {SYS_accept4, 2, FIXED, 4},
    {SYS_getsockname, 1, SIZE_BEHIND, 0},
    {SYS_getsockname, 2, FIXED, 4},
    {SYS_getpeername, 1, SIZE_BEHIND, 0},
    {SYS_getpeername, 2, FIXED, 4},
    {SYS_getsockopt, 3, SIZE_BEHIND, 0},
    {SYS_getsockopt, 4, FIXED, 4},
    {SYS_wait4, 1, FIXED, 4},
    {SYS_wait4, 3, FIXED, sizeof(struct rusage)},
    {SYS_waitid, 2, FIXED, KERNEL_SIGINFO_BYTES},
    {SYS_waitid, 4, FIXED, sizeof(struct rusage)},
    {SYS_io_setup, 1, FIXED, 8},
    {SYS_io_getevents, 3, RESULT, sizeof(struct io_event)},
    {SYS_sendfile, 2, FIXED, 8},
    {SYS_splice, 1, FIXED, 8},
    {SYS_splice, 3, FIXED, 8},
    {SYS_copy_file_range, 1, FIXED, 8},
    {SYS_copy_file_range, 3, FIXED, 8},
    {SYS_mincore, 2, FIXED, 0}, /* its length is in pages (extent_bytes) */
};
#define OUTPUT_COUNT (sizeof(outputs) / sizeof(outputs[0]))

struct visit {
  void (*visit)(uint64_t start, uint64_t bytes, void *user_data);
  void *user_data;
};

static bool copy_from(void *to, uint64_t from, size_t bytes) {
  size_t read;
  return platform_read((const void *)(uintptr_t)from, bytes, to, &read);
}

static void visit_piece(const struct visit *visit, uint64_t start, uint64_t bytes) {
  if (start != 0 && bytes != 0)
    visit->visit(start, bytes, visit->user_data);
}

static void visit_vectors(const struct visit *visit, uint64_t list, uint64_t count,
                          uint64_t bytes) {
  for (uint64_t i = 0; i < count && bytes > 0; i++) {
    struct iovec vector;
    if (!copy_from(&vector, list + i * sizeof(vector), sizeof(vector)))
      return;
    uint64_t part = vector.iov_len < bytes ? vector.iov_len : bytes;
    visit_piece(visit, (uint64_t)(uintptr_t)vector.iov_base, part);
    bytes -= part;
  }
}

static void visit_message(const struct visit *visit, uint64_t at, uint64_t bytes) {
  struct msghdr message;
  if (!copy_from(&message, at, sizeof(message)))
    return;
  visit_vectors(visit, (uint64_t)(uintptr_t)message.msg_iov, message.msg_iovlen, bytes);
  visit_piece(visit, (uint64_t)(uintptr_t)message.msg_name, message.msg_namelen);
  visit_piece(visit, (uint64_t)(uintptr_t)message.msg_control, message.msg_controllen);
  visit_piece(visit, at, sizeof(message));
}

static void visit_messages(const struct visit *visit, uint64_t at, uint64_t count) {
  for (uint64_t i = 0; i < count; i++, at += sizeof(struct mmsghdr)) {
    uint32_t bytes;
    if (!copy_from(&bytes, at + sizeof(struct msghdr), sizeof(bytes)))
      return;
    visit_message(visit, at, bytes);
    visit_piece(visit, at + sizeof(struct msghdr), sizeof(bytes));
  }
}

static uint64_t extent_bytes(const struct output *output, const struct system_call *call,
                             uint64_t result) {
  const uint64_t *argument = call->argument;
  uint32_t size = 0;
  if (output->number == SYS_mincore)
    return (argument[1] + platform_page_bytes() - 1) / platform_page_bytes();
  switch (output->extent) {
  case FIXED:
    return output->amount;
  case RESULT:
    return result * output->amount;
  case EPOLL_EVENTS:
    return result * instruction_set.epoll_event_bytes;
  case COUNT:
    return (uint32_t)argument[output->argument + 1] * (uint64_t)output->amount;
  case SIZE_BEHIND:
    return copy_from(&size, argument[output->argument + 1], sizeof(size)) ? size : 0;
  case BITS:
    return ((uint32_t)argument[0] + 63) / 64 * 8;
  default:
    return 0;
  }
}

static void visit_output(const struct visit *visit, const struct output *output,
                         const struct system_call *call, uint64_t result) {
  uint64_t start = call->argument[output->argument];
  if (start == 0)
    return;
  if (output->extent == VECTORS)
    visit_vectors(visit, start, call->argument[output->argument + 1], result);
  else if (output->extent == MESSAGE)
    visit_message(visit, start, result);
  else if (output->extent == MESSAGES)
    visit_messages(visit, start, result);
  else
    visit_piece(visit, start, extent_bytes(output, call, result));
}

/* Calls whose outputs depend on what is asked of them. */
static void visit_special(const struct visit *visit, const struct system_call *call) {
  const uint64_t *argument = call->argument;
  switch (call->x86_64) {
  case SYS_futex:
    if (((int)argument[1] & FUTEX_CMD_MASK) == FUTEX_WAKE_OP)
      visit_piece(visit, argument[4], 4);
    else if (((int)argument[1] & FUTEX_CMD_MASK) >= FUTEX_LOCK_PI &&
             ((int)argument[1] & FUTEX_CMD_MASK) <= FUTEX_TRYLOCK_PI)
      visit_piece(visit, argument[0], 4);
    break;
  case SYS_ioctl:
    if (argument[1] == TCGETS)
      visit_piece(visit, argument[2], sizeof(struct termios));
    else if (argument[1] == TIOCGWINSZ)
      visit_piece(visit, argument[2], 8);
    else if (argument[1] == FIONREAD || argument[1] == TIOCGPGRP)
      visit_piece(visit, argument[2], 4);
    else if ((argument[1] >> _IOC_DIRSHIFT & _IOC_READ) != 0) /* It says itself how much. */
      visit_piece(visit, argument[2], argument[1] >> _IOC_SIZESHIFT & _IOC_SIZEMASK);
    break;
  case SYS_fcntl:
    if (argument[1] == F_GETLK || argument[1] == F_OFD_GETLK)
      visit_piece(visit, argument[2], KERNEL_FLOCK_BYTES);
    break;
  case SYS_clone:
    visit_piece(visit, argument[2], 4);
    visit_piece(visit, argument[3], 4);
    break;
  default:
    break;
  }
}

void system_call_outputs_each(const struct system_call *call, int64_t result,
                              void (*visit)(uint64_t start, uint64_t bytes, void *user_data),
                              void *user_data) {
  struct visit all = {visit, user_data};
  for (size_t i = 0; i < OUTPUT_COUNT; i++) {
    if (outputs[i].number == call->x86_64)
      visit_output(&all, &outputs[i], call, (uint64_t)result);
  }
  visit_special(&all, call);
}
