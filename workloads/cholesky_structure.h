// SPDX-License-Identifier: Apache-2.0
//
// What `cholesky` knows of the factor before it computes it: which of its elements are not zero,
// how they lie in supernodes, panels and blocks, which block changes which, and which thread
// computes which block. All of it is volatile and follows from the matrix.
//
// A supernode is a run of columns that have the same rows below it. Those that are almost so are
// made so (relaxed), which stores some zeros. Supernodes are cut into panels of limited width. In a
// domain, a subtree of the elimination tree that one thread factors by itself, a panel is one
// block. Above the domains its rows are cut into blocks at the borders of panels: block (I, J)
// holds the rows of panel J that are columns of panel I. Blocks are dense and stored by columns.
// Block (I, J) is changed by every earlier panel K that has rows in I and in J: (I, J) -= (I, K)
// (J, K)^T.
#ifndef CHOLESKY_STRUCTURE_H
#define CHOLESKY_STRUCTURE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cholesky_matrix.h"
#include "persist.h"

enum {
  PANEL_WIDTH_MAX = 64,
  // A supernode absorbs the one before it, its child, if of the elements that the two would store
  // at most this percentage would be zeros.
  ZEROS_PERCENT = 5,
  // A domain has at most one in so many parts of a thread's even share of the work. Larger ones
  // need fewer blocks above, but with `barrier` nothing is persisted before the first has ended.
  DOMAIN_SHARE = 8
};

struct block {
  uint32_t panel;
  uint32_t first_row; // the first of its rows among those of the panel
  uint32_t height, width;
  const uint32_t *rows; // of the matrix
  size_t offset;        // of its first element in the pool, in doubles
  uint32_t updates, first_update;
  uint32_t owner; // thread
  // The state of the computation: which step comes next and the column of it, the updates in
  // ascending order of their sources and then the factorisation.
  uint32_t step, column;
  atomic_bool is_finished;
  // In the queue of its owner, under its lock.
  bool is_queued;
  uint32_t next;
};

// Some rows of a block.
struct rows {
  uint32_t block, first, end;
};

// `destination` -= `left` `upper`^T
struct update {
  uint32_t destination;
  struct rows left, upper;
};

struct panel {
  uint32_t first, width; // columns
  uint32_t first_block, end_block;
  uint32_t *rows; // from its own columns on
  uint32_t height;
  uint32_t parent;  // in the elimination tree of panels
  uint32_t domain;  // thread, or `none` if the panel is above the domains
  uint64_t work;    // multiplications and additions of all its blocks
  uint64_t subtree; // and of all panels below it
};

struct structure {
  size_t panels, blocks, updates;
  struct panel *panel;
  uint32_t *panel_of; // a column
  struct block *block;
  struct update *update;    // those of each block, one after the other
  uint32_t *consumer_start; // of each block in `consumer`
  uint32_t *consumer;       // the updates that need the block
  uint32_t height_max;      // of a block
  size_t elements;          // that the pool stores
  uint64_t factor_elements; // that are not zero
  uint64_t operations;      // the sum of the squares of the columns' elements
};

// The rows of each column of the factor, from its diagonal down.
struct columns {
  uint32_t *count;
  uint32_t **rows;
};

static void free_columns(struct columns *columns, size_t order) {
  for (size_t i = 0; i < order; i++)
    free(columns->rows[i]);
  free(columns->rows);
  free(columns->count);
}

// Merges two ascending lists, what they have in common once; returns how many rows that makes.
static uint32_t merge_rows(const uint32_t *left, uint32_t left_count, const uint32_t *right,
                           uint32_t right_count, uint32_t *merged) {
  const uint32_t *left_end = left + left_count, *right_end = right + right_count;
  uint32_t count = 0;
  while (left < left_end && right < right_end) {
    uint32_t row = *left < *right ? *left : *right;
    left += *left == row;
    right += *right == row;
    merged[count++] = row;
  }
  for (; left < left_end; left++)
    merged[count++] = *left;
  for (; right < right_end; right++)
    merged[count++] = *right;
  return count;
}

// A column has the rows of the matrix and those of its children in the elimination tree.
static struct columns find_columns(const struct matrix *matrix) {
  size_t order = matrix->order;
  struct columns columns = {new_table(order, sizeof(uint32_t)),
                            new_table(order, sizeof(uint32_t *))};
  uint32_t *rows = new_table(order, sizeof *rows), *merged = new_table(order, sizeof *merged);
  uint32_t *child = new_table(order, sizeof *child), *sibling = new_table(order, sizeof *sibling);
  memset(child, 0xff, order * sizeof *child);
  for (uint32_t column = 0; column < order; column++) {
    uint32_t count = matrix->start[column + 1] - matrix->start[column];
    memcpy(rows, &matrix->row[matrix->start[column]], count * sizeof *rows);
    for (uint32_t below = child[column]; below != none; below = sibling[below]) {
      count = merge_rows(rows, count, columns.rows[below] + 1, columns.count[below] - 1, merged);
      uint32_t *swapped = rows;
      rows = merged;
      merged = swapped;
    }
    columns.count[column] = count;
    columns.rows[column] = new_table(count, sizeof *rows);
    memcpy(columns.rows[column], rows, count * sizeof *rows);
    uint32_t parent = matrix->parent[column];
    if (parent != none) {
      sibling[column] = child[parent];
      child[parent] = column;
    }
  }
  free(rows);
  free(merged);
  free(child);
  free(sibling);
  return columns;
}

struct supernode {
  uint32_t first, last;
  uint64_t nonzeros;
};

// What a supernode stores: all its columns have the rows of the last and its own.
static uint64_t stored(const struct columns *columns, uint32_t first, uint32_t last) {
  uint64_t width = last - first + 1, below = columns->count[last] - 1;
  return width * (width + 1) / 2 + width * below;
}

static size_t find_supernodes(const struct matrix *matrix, const struct columns *columns,
                              struct supernode *supernodes) {
  size_t count = 0;
  for (uint32_t column = 0; column < matrix->order; column++) {
    supernodes[count++] = (struct supernode){column, column, columns->count[column]};
    for (; count > 1; count--) {
      struct supernode *child = &supernodes[count - 2], *parent = &supernodes[count - 1];
      uint32_t next = matrix->parent[child->last];
      uint64_t nonzeros = child->nonzeros + parent->nonzeros;
      uint64_t both = stored(columns, child->first, parent->last);
      if (next == none || next > parent->last || (both - nonzeros) * 100 > both * ZEROS_PERCENT)
        break;
      child->last = parent->last;
      child->nonzeros = nonzeros;
    }
  }
  return count;
}

// Cuts a supernode into panels of almost the same width.
static void cut_supernode(struct structure *structure, const struct matrix *matrix,
                          const struct columns *columns, const struct supernode *supernode,
                          size_t width_max) {
  size_t width = supernode->last - supernode->first + 1;
  size_t cuts = (width + width_max - 1) / width_max;
  uint32_t below = columns->count[supernode->last] - 1;
  for (size_t i = 0; i < cuts; i++) {
    uint32_t first = supernode->first + (uint32_t)(i * width / cuts);
    uint32_t end = supernode->first + (uint32_t)((i + 1) * width / cuts);
    uint32_t own = supernode->last + 1 - first, index = (uint32_t)structure->panels++;
    struct panel *panel = &structure->panel[index];
    *panel = (struct panel){.first = first, .width = end - first, .height = own + below};
    panel->rows = new_table(panel->height, sizeof *panel->rows);
    for (uint32_t row = 0; row < own; row++)
      panel->rows[row] = first + row;
    memcpy(panel->rows + own, columns->rows[supernode->last] + 1, below * sizeof *panel->rows);
    // The column of the parent; the panel is known when all are cut.
    panel->parent = end <= supernode->last ? end : matrix->parent[supernode->last];
    for (uint32_t column = first; column < end; column++)
      structure->panel_of[column] = index;
  }
}

static void find_panels(struct structure *structure, const struct matrix *matrix,
                        size_t width_max) {
  struct columns columns = find_columns(matrix);
  struct supernode *supernodes = new_table(matrix->order, sizeof *supernodes);
  for (size_t i = 0; i < matrix->order; i++) {
    structure->factor_elements += columns.count[i];
    structure->operations += (uint64_t)columns.count[i] * columns.count[i];
  }
  size_t count = find_supernodes(matrix, &columns, supernodes);
  for (size_t i = 0; i < count; i++)
    cut_supernode(structure, matrix, &columns, &supernodes[i], width_max);
  for (size_t i = 0; i < structure->panels; i++)
    if (structure->panel[i].parent != none)
      structure->panel[i].parent = structure->panel_of[structure->panel[i].parent];
  free(supernodes);
  free_columns(&columns, matrix->order);
}

// The rows of a panel, from `first` on, that are columns of one panel: where they end.
static uint32_t group_end(const struct structure *structure, const struct panel *panel,
                          uint32_t first) {
  uint32_t row_panel = structure->panel_of[panel->rows[first]], end = first;
  while (end < panel->height && structure->panel_of[panel->rows[end]] == row_panel)
    end++;
  return end;
}

// Subtrees for the threads

struct domain {
  uint32_t first, root; // panels
  uint64_t work;
};

static int compare_domains(const void *left, const void *right) {
  const struct domain *a = left, *b = right;
  if (a->work != b->work)
    return a->work < b->work ? 1 : -1;
  return (a->root > b->root) - (a->root < b->root);
}

// Adds what each panel will have to do: for the panels that change it and for itself.
static void find_work(struct structure *structure) {
  for (size_t i = 0; i < structure->panels; i++) {
    struct panel *panel = &structure->panel[i];
    panel->work += (uint64_t)panel->height * panel->width * panel->width;
    for (uint32_t first = panel->width, end; first < panel->height; first = end) {
      end = group_end(structure, panel, first);
      structure->panel[structure->panel_of[panel->rows[first]]].work +=
          2 * (uint64_t)(panel->height - first) * (end - first) * panel->width;
    }
  }
}

// The largest subtrees that are small enough. Panels are in postorder, so a subtree is a run.
static size_t find_domains(struct structure *structure, unsigned threads, struct domain *domains) {
  uint64_t total = 0;
  size_t count = 0;
  for (size_t i = 0; i < structure->panels; i++) {
    struct panel *panel = &structure->panel[i];
    total += panel->work;
    panel->subtree += panel->work;
    if (panel->parent != none)
      structure->panel[panel->parent].subtree += panel->subtree;
  }
  uint64_t work_max = total / ((uint64_t)threads * DOMAIN_SHARE);
  uint32_t first = 0;
  for (uint32_t i = 0; i < structure->panels; i++) {
    const struct panel *panel = &structure->panel[i];
    bool is_small = panel->subtree <= work_max;
    bool is_root = panel->parent == none || structure->panel[panel->parent].subtree > work_max;
    if (is_small && is_root)
      domains[count++] = (struct domain){first, i, panel->subtree};
    if (is_root)
      first = i + 1;
  }
  return count;
}

// Deals the domains to the threads, the largest first, each to the one that has least.
static void assign_domains(struct structure *structure, unsigned threads) {
  struct domain *domains = new_table(structure->panels, sizeof *domains);
  uint64_t *work = new_table(threads, sizeof *work);
  find_work(structure);
  size_t count = find_domains(structure, threads, domains);
  for (size_t i = 0; i < structure->panels; i++)
    structure->panel[i].domain = none;
  qsort(domains, count, sizeof *domains, compare_domains);
  for (size_t i = 0; i < count; i++) {
    uint32_t thread = 0;
    for (uint32_t other = 1; other < threads; other++)
      if (work[other] < work[thread])
        thread = other;
    work[thread] += domains[i].work;
    for (uint32_t panel = domains[i].first; panel <= domains[i].root; panel++)
      structure->panel[panel].domain = thread;
  }
  free(domains);
  free(work);
}

// Deals the blocks above the domains to the threads in two dimensions.
static void assign_owners(struct structure *structure, unsigned threads) {
  uint32_t *rank = new_table(structure->panels, sizeof *rank), above = 0, rows = 1;
  for (uint32_t i = 1; i * i <= threads; i++)
    if (threads % i == 0)
      rows = i;
  for (size_t i = 0; i < structure->panels; i++)
    if (structure->panel[i].domain == none)
      rank[i] = above++;
  for (size_t i = 0; i < structure->blocks; i++) {
    struct block *block = &structure->block[i];
    uint32_t domain = structure->panel[block->panel].domain, columns = threads / rows;
    block->owner = domain != none ? domain
                                  : rank[structure->panel_of[block->rows[0]]] % rows * columns +
                                        rank[block->panel] % columns;
  }
  free(rank);
}

// Blocks

static void add_block(struct structure *structure, uint32_t index, uint32_t first, uint32_t end) {
  const struct panel *panel = &structure->panel[index];
  struct block *block = &structure->block[structure->blocks++];
  *block = (struct block){.panel = index,
                          .first_row = first,
                          .height = end - first,
                          .width = panel->width,
                          .rows = panel->rows + first,
                          .offset = structure->elements};
  // Blocks of several threads share no line.
  size_t in_line = LINE_BYTES / sizeof(double);
  structure->elements += ((size_t)block->height * block->width + in_line - 1) / in_line * in_line;
  if (block->height > structure->height_max)
    structure->height_max = block->height;
}

static void find_blocks(struct structure *structure) {
  size_t blocks_max = 0;
  for (size_t i = 0; i < structure->panels; i++)
    for (uint32_t row = 0; row < structure->panel[i].height; blocks_max++)
      row = group_end(structure, &structure->panel[i], row);
  structure->block = new_table(blocks_max, sizeof *structure->block);
  for (uint32_t i = 0; i < structure->panels; i++) {
    struct panel *panel = &structure->panel[i];
    panel->first_block = (uint32_t)structure->blocks;
    for (uint32_t first = 0, end; first < panel->height; first = end) {
      end = panel->domain == none ? group_end(structure, panel, first) : panel->height;
      add_block(structure, i, first, end);
    }
    panel->end_block = (uint32_t)structure->blocks;
  }
}

typedef void (*update_visitor)(struct structure *structure, struct update update);

// The same rows as those of the panel, in the block that has them; looked for from `block` on.
static struct rows rows_in_block(const struct structure *structure, uint32_t block, uint32_t first,
                                 uint32_t end) {
  while (structure->block[block].first_row + structure->block[block].height <= first)
    block++;
  uint32_t offset = structure->block[block].first_row;
  return (struct rows){block, first - offset, end - offset};
}

// Visits all updates in ascending order of the panel that they come from.
static void visit_updates(struct structure *structure, update_visitor visitor) {
  for (size_t i = 0; i < structure->panels; i++) {
    const struct panel *panel = &structure->panel[i];
    for (uint32_t first = panel->width, end; first < panel->height; first = end) {
      end = group_end(structure, panel, first);
      struct rows upper = rows_in_block(structure, panel->first_block, first, end), left = upper;
      const struct panel *changed = &structure->panel[structure->panel_of[panel->rows[first]]];
      uint32_t destination = changed->first_block;
      for (uint32_t row = first, row_end; row < panel->height; row = row_end) {
        row_end = changed->domain == none ? group_end(structure, panel, row) : panel->height;
        left = rows_in_block(structure, left.block, row, row_end);
        while (changed->domain == none &&
               structure->panel_of[structure->block[destination].rows[0]] !=
                   structure->panel_of[panel->rows[row]])
          destination++;
        visitor(structure, (struct update){destination, left, upper});
      }
    }
  }
}

static void count_update(struct structure *structure, struct update update) {
  structure->block[update.destination].updates++;
}

static void add_update(struct structure *structure, struct update update) {
  struct block *destination = &structure->block[update.destination];
  structure->update[destination->first_update + destination->updates++] = update;
  structure->consumer_start[update.left.block + 1]++;
  if (update.upper.block != update.left.block)
    structure->consumer_start[update.upper.block + 1]++;
}

static void find_updates(struct structure *structure) {
  visit_updates(structure, count_update);
  for (size_t i = 0; i < structure->blocks; i++) {
    struct block *block = &structure->block[i];
    block->first_update = (uint32_t)structure->updates;
    structure->updates += block->updates;
    block->updates = 0;
  }
  structure->update = new_table(structure->updates, sizeof *structure->update);
  structure->consumer_start = new_table(structure->blocks + 2, sizeof(uint32_t));
  uint32_t *end = ++structure->consumer_start; // of each block, once it is filled
  visit_updates(structure, add_update);
  for (size_t i = 0; i < structure->blocks; i++)
    end[i + 1] += end[i];
  structure->consumer = new_table(end[structure->blocks], sizeof(uint32_t));
  for (uint32_t i = 0; i < structure->updates; i++) {
    const struct update *update = &structure->update[i];
    structure->consumer[end[update->left.block]++] = i;
    if (update->upper.block != update->left.block)
      structure->consumer[end[update->upper.block]++] = i;
  }
  structure->consumer_start--;
}

static struct structure make_structure(const struct matrix *matrix, size_t width_max,
                                       unsigned threads) {
  struct structure structure = {.panel = new_table(matrix->order, sizeof *structure.panel),
                                .panel_of = new_table(matrix->order, sizeof(uint32_t))};
  find_panels(&structure, matrix, width_max);
  assign_domains(&structure, threads);
  find_blocks(&structure);
  find_updates(&structure);
  assign_owners(&structure, threads);
  return structure;
}

#endif
