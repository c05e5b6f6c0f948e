/* SPDX-License-Identifier: Apache-2.0 */
/* Does, by name, what could take the recorder's descriptors, memory or signals away, then stores to
 * memory and ends with 7: the recording must not notice, or must end with a reason. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile uint64_t words[4096];

static void work(void) {
  for (int round = 0; round < 100; round++)
    for (int i = 0; i < 4096; i++)
      words[i] += (uint64_t)i;
}

static void must(int condition) {
  if (!condition)
    _exit(100);
}

static void close_range_open(void) { must(close_range(5, ~0u, 0) == 0); }

static void close_range_all(void) { must(close_range(0, ~0u, 0) == 0); }

static void close_range_unshared(void) { must(close_range(3, ~0u, CLOSE_RANGE_UNSHARE) == 0); }

static void close_range_on_exec(void) { must(close_range(3, ~0u, CLOSE_RANGE_CLOEXEC) == 0); }

static void close_range_wrong(void) {
  must(close_range(9, 3, 0) == -1 && errno == EINVAL);
  must(close_range(3, 9, 1u << 20) == -1 && errno == EINVAL);
}

static void close_from(void) { closefrom(3); }

static void close_each(void) {
  for (int i = 3; i < (int)sysconf(_SC_OPEN_MAX) && i < 1 << 21; i++)
    close(i);
}

/* Calls what it is given for each descriptor that is open. */
static void each_descriptor(void (*visit)(int)) {
  int found[256], count = 0;
  DIR *folder = opendir("/proc/self/fd");
  must(folder != NULL);
  for (struct dirent *entry; (entry = readdir(folder)) != NULL && count < 256;)
    if (entry->d_name[0] != '.')
      found[count++] = atoi(entry->d_name);
  closedir(folder);
  for (int i = 0; i < count; i++)
    visit(found[i]);
}

static void close_one(int descriptor) {
  if (descriptor > 2)
    close(descriptor);
}
static void close_listed(void) { each_descriptor(close_one); }

static void replace_one(int descriptor) {
  if (descriptor > 2) {
    dup2(0, descriptor);
    dup3(0, descriptor, O_CLOEXEC);
  }
}
static void dup_over(void) { each_descriptor(replace_one); }

static void set_flags_of_one(int descriptor) {
  if (descriptor > 2) {
    fcntl(descriptor, F_SETFL, O_NONBLOCK);
    fcntl(descriptor, F_SETFD, FD_CLOEXEC);
    lseek(descriptor, 0, SEEK_SET);
  }
}
static void fcntl_flags(void) { each_descriptor(set_flags_of_one); }

static void fcntl_dup(void) {
  for (int i = 3; i < 1 << 20; i += i)
    fcntl(0, F_DUPFD, i);
}

static void truncate_one(int descriptor) {
  if (descriptor > 2 && ftruncate(descriptor, 0) != 0)
    return;
}
static void truncate_listed(void) { each_descriptor(truncate_one); }

static void limit(int resource, rlim_t value) {
  struct rlimit limit = {value, value};
  must(setrlimit(resource, &limit) == 0);
}
static void limit_files(void) { limit(RLIMIT_NOFILE, 8); }
static void files_are_limited(void) {
  int ends[2];
  struct rlimit told;
  must(open("/dev/null", O_RDONLY) == -1 && errno == EMFILE);
  must(dup(0) == -1 && errno == EMFILE);
  must(socket(AF_UNIX, SOCK_STREAM, 0) == -1 && errno == EMFILE);
  must(dup2(0, 5) == -1 && errno == EBADF);
  must(fcntl(0, F_DUPFD, 5) == -1 && errno == EINVAL);
  must(fcntl(0, F_DUPFD, 2) == -1 && errno == EMFILE);
  must(getrlimit(RLIMIT_NOFILE, &told) == 0 && told.rlim_cur == 5 && told.rlim_max == 5);
  close(3);
  must(pipe(ends) == -1 && errno == EMFILE && dup2(0, 3) == 3);
}
static void limit_open_files(void) {
  struct rlimit limited, before;
  closefrom(3);
  must(getrlimit(RLIMIT_NOFILE, &before) == 0);
  limited = before;
  limited.rlim_cur = 4;
  must(setrlimit(RLIMIT_NOFILE, &limited) == 0);
  must(open("/dev/null", O_RDONLY) == 3 && dup(0) == -1 && errno == EMFILE);
  must(dup(9) == -1 && errno == EBADF);
  must(setrlimit(RLIMIT_NOFILE, &before) == 0 && dup(0) == 4);
  limit(RLIMIT_NOFILE, 5);
  files_are_limited();
}
static void limit_in_child(void) {
  limit_open_files();
  pid_t child = fork();
  int status;
  if (child == 0) {
    files_are_limited();
    _exit(0);
  }
  must(waitpid(child, &status, 0) == child && status == 0);
}
static void limit_after_exec(void) {
  struct rlimit told;
  must(getrlimit(RLIMIT_NOFILE, &told) == 0);
  closefrom(3);
  if (told.rlim_cur == 5) {
    must(dup(0) == 3 && dup(0) == 4);
    files_are_limited();
    return;
  }
  limit(RLIMIT_NOFILE, 5);
  execl(program_invocation_name, program_invocation_name, "limit_after_exec", (char *)NULL);
}
static void limit_file_size(void) { limit(RLIMIT_FSIZE, 0); }
static void limit_memory(void) { limit(RLIMIT_AS, 1 << 20); }
static void limit_data(void) { limit(RLIMIT_DATA, 1 << 20); }
static void limit_processes(void) { limit(RLIMIT_NPROC, 0); }
static void limit_stack(void) { limit(RLIMIT_STACK, 1 << 16); }

static void limit_told(void) {
  struct rlimit told;
  limit(RLIMIT_FSIZE, 4096);
  must(getrlimit(RLIMIT_FSIZE, &told) == 0 && told.rlim_cur == 4096 && told.rlim_max == 4096);
}

static void note(int number) { (void)number; }

static void handle_all(void) {
  for (int i = 1; i < NSIG; i++)
    signal(i, note);
}
static void ignore_all(void) {
  for (int i = 1; i < NSIG; i++)
    signal(i, SIG_IGN);
}
static void default_all(void) {
  for (int i = 1; i < NSIG; i++)
    signal(i, SIG_DFL);
}
static void block_all(void) {
  uint64_t all = ~UINT64_C(0);
  must(syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, sizeof(all)) == 0);
}
static void no_alternate_stack(void) {
  stack_t none = {.ss_flags = SS_DISABLE};
  must(sigaltstack(&none, NULL) == 0);
}

/* A filter that kills, or refuses, whatever is not in the list. */
static void filter(uint32_t otherwise) {
  static const int allowed[] = {SYS_write,        SYS_exit_group, SYS_exit,  SYS_brk,
                                SYS_rt_sigreturn, SYS_munmap,     SYS_fstat, SYS_newfstatat,
                                SYS_ioctl,        SYS_lseek};
  enum { COUNT = sizeof(allowed) / sizeof(allowed[0]) };
  struct sock_filter code[COUNT + 3] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
  for (int i = 0; i < COUNT; i++)
    code[i + 1] =
        (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)allowed[i], COUNT - i, 0);
  code[COUNT + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, otherwise);
  code[COUNT + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog program = {COUNT + 3, code};
  must(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}
static void seccomp_refuses(void) { filter(SECCOMP_RET_ERRNO | EPERM); }
static void seccomp_kills(void) { filter(SECCOMP_RET_KILL_PROCESS); }
static void seccomp_strict(void) {
  must(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) == 0);
  work();
  syscall(SYS_exit, 7);
}

/* Whether the address lies in the range, or close to it: a file's data goes on behind its mapping.
 */
static int is_near(uintptr_t start, uintptr_t end, const volatile void *address) {
  uintptr_t at = (uintptr_t)address, margin = 1 << 17;
  return at >= start - margin && at < end + margin;
}

/* What is mapped and is neither the program's own file, nor its libraries, stack or heap. */
static void each_mapping(void (*visit)(void *, size_t)) {
  static char text[1 << 18];
  int file = open("/proc/self/maps", O_RDONLY);
  size_t length = 0;
  for (ssize_t count; (count = read(file, text + length, sizeof(text) - 1 - length)) > 0;)
    length += (size_t)count;
  close(file);
  for (char *line = strtok(text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    unsigned long start, end;
    if (sscanf(line, "%lx-%lx", &start, &end) == 2 && strchr(line, '[') == NULL &&
        strstr(line, "libc.") == NULL && strstr(line, "ld-linux") == NULL &&
        strstr(line, program_invocation_short_name) == NULL && !is_near(start, end, &errno) &&
        !is_near(start, end, stdout) && !is_near(start, end, words) && !is_near(start, end, text) &&
        !is_near(start, end, environ))
      visit((void *)start, end - start);
  }
}
static void unmap_one(void *start, size_t length) { munmap(start, length); }
static void unmap_all(void) { each_mapping(unmap_one); }
static void protect_one(void *start, size_t length) { mprotect(start, length, PROT_NONE); }
static void protect_all(void) { each_mapping(protect_one); }
static void map_one_over(void *start, size_t length) {
  mmap(start, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}
static void map_over_all(void) { each_mapping(map_one_over); }
static void drop_one(void *start, size_t length) { madvise(start, length, MADV_DONTNEED); }
static void drop_all(void) { each_mapping(drop_one); }

static void personality_changed(void) {
  must(personality(0xffffffff) != -1 && personality(PER_LINUX) != -1);
}
static void not_dumpable(void) { must(prctl(PR_SET_DUMPABLE, 0) == 0); }
static void no_death_signal(void) { must(prctl(PR_SET_PDEATHSIG, 0) == 0); }
static void told_death_signal(void) {
  int told;
  must(prctl(PR_GET_PDEATHSIG, &told) == 0 && told == 0);
  must(prctl(PR_SET_PDEATHSIG, SIGUSR1) == 0);
  must(prctl(PR_GET_PDEATHSIG, &told) == 0 && told == SIGUSR1);
  must(prctl(PR_SET_PDEATHSIG, NSIG) == -1 && errno == EINVAL);
  must(prctl(PR_GET_PDEATHSIG, NULL) == -1 && errno == EFAULT);
}
static void other_name(void) { must(prctl(PR_SET_NAME, "other) R 1") == 0); }
static void own_session(void) { setsid(); }
static void own_files(void) { must(unshare(CLONE_FILES) == 0); }

static void after_fork(void) {
  pid_t child = fork();
  int status;
  if (child == 0) {
    close_range(3, ~0u, 0);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  must(waitpid(child, &status, 0) == child && status == 0);
}
static void after_vfork(void) {
  pid_t child = vfork();
  int status;
  if (child == 0) {
    close_range(3, ~0u, 0);
    execl("/bin/true", "true", (char *)NULL);
    _exit(1);
  }
  must(waitpid(child, &status, 0) == child && status == 0);
}

#define CASE(name) {#name, name}
static const struct {
  const char *name;
  void (*run)(void);
} cases[] = {
    CASE(close_range_open),
    CASE(close_range_all),
    CASE(close_range_unshared),
    CASE(close_range_on_exec),
    CASE(close_range_wrong),
    CASE(close_from),
    CASE(close_each),
    CASE(close_listed),
    CASE(dup_over),
    CASE(fcntl_flags),
    CASE(fcntl_dup),
    CASE(truncate_listed),
    CASE(limit_files),
    CASE(limit_open_files),
    CASE(limit_in_child),
    CASE(limit_after_exec),
    CASE(limit_file_size),
    CASE(limit_memory),
    CASE(limit_data),
    CASE(limit_told),
    CASE(limit_processes),
    CASE(limit_stack),
    CASE(handle_all),
    CASE(ignore_all),
    CASE(default_all),
    CASE(block_all),
    CASE(no_alternate_stack),
    CASE(seccomp_refuses),
    CASE(seccomp_kills),
    CASE(seccomp_strict),
    CASE(unmap_all),
    CASE(protect_all),
    CASE(map_over_all),
    CASE(drop_all),
    CASE(personality_changed),
    CASE(not_dumpable),
    CASE(no_death_signal),
    CASE(told_death_signal),
    CASE(other_name),
    CASE(own_session),
    CASE(own_files),
    CASE(after_fork),
    CASE(after_vfork),
};

static int run(const char *name) {
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (strcmp(name, cases[i].name) == 0) {
      cases[i].run();
      return 1;
    }
  }
  return 0;
}

/* All cases that are named; with "stay" behind them it goes on working until it is ended. */
int main(int argc, char **argv) {
  for (size_t i = 0; argc == 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
    puts(cases[i].name);
  for (int i = 1; i < argc; i++) {
    if (i > 1 && strcmp(argv[i], "stay") == 0) {
      must(write(1, "working\n", 8) == 8);
      while (1)
        work();
    }
    if (!run(argv[i]))
      return 2;
  }
  if (argc == 1)
    return 0;
  work();
  _exit(7);
}
