// SPDX-License-Identifier: Apache-2.0
//
// Where memory lies among NUMA nodes: libnuma, loaded at run time, so that the program runs where
// there is none. What the kernel was asked for is looked up again by where the pages are.
#ifndef STREAM_NODES_H
#define STREAM_NODES_H

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "settings.h"

// Of linux/mempolicy.h.
enum { KERNEL_BIND = 2, KERNEL_INTERLEAVE = 3 };
enum { SAMPLED_PAGES = 1024 };

static struct {
  void *handle; // NULL: see `missing`
  char missing[256];
  int (*available)(void);
  long (*mbind)(void *, unsigned long, int, const unsigned long *, unsigned long, unsigned);
  long (*set_mempolicy)(int, const unsigned long *, unsigned long);
  long (*move_pages)(int, unsigned long, void **, const int *, int *, int);
} numa;

static void numa_load(const char *name) {
  void *handle = dlopen(name, RTLD_NOW);
  if (handle == NULL) {
    snprintf(numa.missing, sizeof numa.missing, "%s", dlerror());
    return;
  }
  *(void **)&numa.available = dlsym(handle, "numa_available");
  *(void **)&numa.mbind = dlsym(handle, "mbind");
  *(void **)&numa.set_mempolicy = dlsym(handle, "set_mempolicy");
  *(void **)&numa.move_pages = dlsym(handle, "move_pages");
  if (!numa.available || !numa.mbind || !numa.set_mempolicy || !numa.move_pages)
    snprintf(numa.missing, sizeof numa.missing, "%s is not libnuma 2", name);
  else if (numa.available() < 0)
    snprintf(numa.missing, sizeof numa.missing, "the kernel has no NUMA");
  else
    numa.handle = handle;
}

__attribute__((noreturn)) static void placement_failure(const struct settings *settings) {
  fprintf(stderr, "stream: memory cannot be placed on node%s", settings->node_count > 1 ? "s" : "");
  for (unsigned i = 0; i < settings->node_count; i++)
    fprintf(stderr, "%s%u", i == 0 ? " " : ", ", settings->nodes[i]);
  fprintf(stderr, ": %s%s\n", strerror(errno),
          errno == EINVAL ? " (no such node, one without memory, or not allowed by the cpuset)"
                          : "");
  exit(EXIT_USAGE);
}

static unsigned long node_mask(const struct settings *settings) {
  unsigned long mask = 0;
  for (unsigned i = 0; i < settings->node_count; i++)
    mask |= 1ul << settings->nodes[i];
  return mask;
}

static int kernel_policy(const struct settings *settings) {
  return settings->policy == POLICY_BIND ? KERNEL_BIND : KERNEL_INTERLEAVE;
}

// Ends the program where nodes are asked for and there is no libnuma.
static void nodes_check(const struct settings *settings) {
  if (settings->node_count == 0 || numa.handle != NULL)
    return;
  fprintf(stderr, "stream: --nodes needs libnuma: %s\n", numa.missing);
  exit(EXIT_USAGE);
}

// Places memory that nobody has touched yet.
static void nodes_place(const struct settings *settings, void *memory, size_t bytes) {
  unsigned long mask = node_mask(settings);
  if (settings->node_count != 0 &&
      numa.mbind(memory, bytes, kernel_policy(settings), &mask, NODES_MAX + 1, 0) != 0)
    placement_failure(settings);
}

// Places all that this thread touches first from now on, or nothing in particular any more.
static inline void nodes_place_all(const struct settings *settings, bool is_placed) {
  unsigned long mask = node_mask(settings);
  if (settings->node_count == 0)
    return;
  long failed = is_placed ? numa.set_mempolicy(kernel_policy(settings), &mask, NODES_MAX + 1)
                          : numa.set_mempolicy(0, NULL, 0);
  if (failed != 0)
    placement_failure(settings);
}

// Adds to `pages` on how many of a sample of its pages memory lies, by node; false if the kernel
// does not say.
static bool nodes_count(const char *memory, size_t bytes, unsigned pages[NODES_MAX]) {
  static void *addresses[SAMPLED_PAGES];
  static int nodes[SAMPLED_PAGES];
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  size_t all = bytes / page == 0 ? 1 : bytes / page;
  size_t count = all < SAMPLED_PAGES ? all : SAMPLED_PAGES;
  for (size_t i = 0; i < count; i++)
    addresses[i] = (void *)((uintptr_t)(memory + all * i / count * page) / page * page);
  if (numa.handle == NULL || numa.move_pages(0, count, addresses, NULL, nodes, 0) != 0)
    return false;
  for (size_t i = 0; i < count; i++)
    if (nodes[i] >= 0 && nodes[i] < NODES_MAX)
      pages[nodes[i]]++;
  return true;
}

#endif
