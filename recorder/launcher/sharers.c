/* SPDX-License-Identifier: Apache-2.0 */
#include "sharers.h"

#include "complaint.h"
#include "recorded_process.h"
#include "thread_of_launcher.h"

#include <dirent.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define OBJECTS_MAX 1024u
#define SUSPECTS_MAX 64u
#define PAUSE_NS 100000000ull
/* Of the time that looking takes, so many times as much is between. */
#define PAUSE_TIMES 20u
#define NS_PER_S 1000000000ull

/* What is mapped, as /proc/PID/maps names it. */
struct object {
  unsigned device_major, device_minor;
  unsigned long long inode;
};

struct suspect {
  int process;
  unsigned looks; /* in a row, up to the last one */
  bool is_seen;   /* in this one */
  char name[CONTROL_NAME_BYTES];
};

static const struct control_area *area;
static struct object control_object;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct object object[OBJECTS_MAX];
static unsigned objects;
static struct suspect suspect[SUSPECTS_MAX];
static unsigned suspects;

static bool is_object(const struct object *one, const struct object *other) {
  return one->device_major == other->device_major && one->device_minor == other->device_minor &&
         one->inode == other->inode;
}

static bool is_shared_object(const struct object *one) {
  for (unsigned i = 0; i < objects; i++) {
    if (is_object(&object[i], one))
      return true;
  }
  return false;
}

/* Calls `visit` for what is mapped shared, until it returns false. */
static void each_shared(int process, bool (*visit)(const struct object *one, bool is_written)) {
  char path[64], line[512];
  snprintf(path, sizeof(path), "/proc/%d/maps", process);
  FILE *file = fopen(path, "re");
  bool goes_on = true, is_begin = true;
  while (file != NULL && goes_on && fgets(line, sizeof(line), file) != NULL) {
    struct object one;
    char protection[8];
    bool is_line = is_begin;
    is_begin = strchr(line, '\n') != NULL; /* Names may be longer. */
    if (is_line &&
        sscanf(line, "%*x-%*x %7s %*x %x:%x %llu", protection, &one.device_major, &one.device_minor,
               &one.inode) == 4 &&
        protection[3] == 's' && one.inode != 0 && !is_object(&one, &control_object))
      goes_on = visit(&one, protection[1] == 'w');
  }
  if (file != NULL)
    fclose(file);
}

static bool add_object(const struct object *one, bool is_written) {
  (void)is_written;
  if (objects < OBJECTS_MAX && !is_shared_object(one))
    object[objects++] = *one;
  return true;
}

static bool stores;

static bool look_for_store(const struct object *one, bool is_written) {
  stores = is_written && is_shared_object(one);
  return !stores;
}

/* By its kernel id, which another one may have had before. */
static bool is_recorded(int process) {
  for (unsigned i = control_area_count(area); i-- > 0;) {
    const struct process_control *control = &area->process[i];
    if (control->process == process || control->keeper == process)
      return true;
  }
  return false;
}

/* Of those the clients tell. */
static bool is_child(int process) {
  for (unsigned i = 0; i < CONTROL_UNRECORDED_MAX && area->unrecorded[i].process != 0; i++) {
    if (area->unrecorded[i].process == process)
      return true;
  }
  return false;
}

static void read_name(int process, char name[CONTROL_NAME_BYTES]) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/comm", process);
  FILE *file = fopen(path, "re");
  name[0] = '\0';
  if (file != NULL && fgets(name, CONTROL_NAME_BYTES, file) != NULL)
    name[strcspn(name, "\n")] = '\0';
  if (file != NULL)
    fclose(file);
}

static void suspect_process(int process) {
  for (unsigned i = 0; i < suspects; i++) {
    if (suspect[i].process == process) {
      suspect[i].is_seen = true;
      suspect[i].looks++;
      return;
    }
  }
  if (suspects == SUSPECTS_MAX)
    return;
  suspect[suspects] = (struct suspect){.process = process, .looks = 1, .is_seen = true};
  read_name(process, suspect[suspects++].name);
}

static void look_at_others(void) {
  DIR *folder = opendir("/proc");
  const struct dirent *entry;
  for (unsigned i = 0; i < suspects; i++)
    suspect[i].is_seen = false;
  while (folder != NULL && (entry = readdir(folder)) != NULL) {
    int process = atoi(entry->d_name);
    if (process <= 0 || process == getpid() || is_recorded(process))
      continue;
    stores = false;
    each_shared(process, look_for_store);
    if (stores)
      suspect_process(process);
  }
  if (folder != NULL)
    closedir(folder);
  /* A child that comes has its parent's memory before it has a record, or executes something. */
  for (unsigned i = 0; i < suspects; i++) {
    if (!suspect[i].is_seen && suspect[i].looks == 1)
      suspect[i].looks = 0;
  }
}

static void look(void) {
  unsigned count = control_area_count(area);
  for (unsigned i = 0; i < count; i++) {
    const struct process_control *control = &area->process[i];
    if (control->process > 0 && !control->is_sealed)
      each_shared(control->process, add_object);
  }
  if (objects > 0)
    look_at_others();
}

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void *watch(void *argument) {
  (void)argument;
  for (;;) {
    uint64_t before = now_ns();
    pthread_mutex_lock(&lock);
    look();
    pthread_mutex_unlock(&lock);
    uint64_t pause = PAUSE_TIMES * (now_ns() - before);
    if (pause < PAUSE_NS)
      pause = PAUSE_NS;
    nanosleep(&(struct timespec){(time_t)(pause / NS_PER_S), (long)(pause % NS_PER_S)}, NULL);
  }
  return NULL;
}

/* As its mapping is named: file systems may give a file another device. */
static bool find_control(const struct object *one, bool is_written) {
  control_object = *one;
  return !is_written;
}

void sharers_watch(const struct control_area *control) {
  area = control;
  each_shared(getpid(), find_control);
  launcher_thread_begin(watch, NULL);
}

static void add(struct sharers *sharers, const char *name) {
  for (unsigned i = 0; i < sharers->count; i++) {
    if (strcmp(sharers->name[i], name) == 0)
      return;
  }
  if (sharers->count == SHARERS_MAX)
    return;
  snprintf(sharers->name[sharers->count++], CONTROL_NAME_BYTES, "%s", name);
}

/* A child without a record that is still what it was forked from. One that shares all of its
 * parent's memory (CLONE_VM) has no name. */
static void add_children(struct sharers *sharers) {
  for (unsigned i = 0; i < CONTROL_UNRECORDED_MAX && area->unrecorded[i].process != 0; i++) {
    const struct unrecorded_child *child = &area->unrecorded[i];
    if (child->shares_memory && !child->has_executed && !is_recorded(child->process))
      add(sharers, child->name[0] == '\0' ? area->process[0].program : child->name);
  }
}

void sharers_find(struct sharers *sharers) {
  sharers->count = 0;
  pthread_mutex_lock(&lock);
  for (unsigned i = 0; i < suspects; i++) {
    if (suspect[i].looks > 1 && !is_recorded(suspect[i].process) && !is_child(suspect[i].process))
      add(sharers, suspect[i].name);
  }
  add_children(sharers);
  pthread_mutex_unlock(&lock);
  for (unsigned i = 0; i < sharers->count; i++)
    complain("%s is not recorded and may store to memory that the program shares: results are not "
             "reliable",
             sharers->name[i]);
}
