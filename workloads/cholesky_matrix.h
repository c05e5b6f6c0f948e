// SPDX-License-Identifier: Apache-2.0
//
// The matrix that `cholesky` factors: the stiffness matrix of springs between the nodes of a
// building, a thin cylindrical shell that stands on a cube of solid ground, with one unknown a
// node. Nodes are numbered by nested dissection of the two and then in postorder of the elimination
// tree.
//
// In the shell a node has springs to its 8 neighbours, in the cube to 18 (all but those at the
// corners), and each node of the shell's lowest ring has three to the edge of the cube's upper
// face.
#ifndef CHOLESKY_MATRIX_H
#define CHOLESKY_MATRIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scramble.h"

enum { SPRINGS_PER_NODE = 13, LEAF_NODES = 6 };

static const uint32_t none = UINT32_MAX;

struct building {
  size_t around, rings; // of the shell
  size_t side;          // of the cube
};

// Lower triangle by columns, each column from its diagonal downwards in ascending order, numbered
// in the order of elimination.
struct matrix {
  size_t order;
  uint32_t *start; // of each column in the two below, and the end
  uint32_t *row;
  double *value;
  uint32_t *parent; // elimination tree: the column, or `none` for a root
};

// Who has a spring to whom, in both directions.
struct graph {
  size_t order;
  uint32_t *start;
  uint32_t *neighbour;
};

static inline void *new_table(size_t count, size_t bytes) {
  void *table = calloc(count == 0 ? 1 : count, bytes);
  if (table == NULL) {
    perror("no memory for the tables");
    exit(EXIT_FAILURE);
  }
  return table;
}

static inline size_t building_nodes(const struct building *building) {
  return building->around * building->rings + building->side * building->side * building->side;
}

static uint32_t shell_node(const struct building *building, size_t angle, size_t ring) {
  return (uint32_t)(ring * building->around + angle % building->around);
}

static uint32_t cube_node(const struct building *building, size_t x, size_t y, size_t depth) {
  return (uint32_t)(building->around * building->rings +
                    (depth * building->side + y) * building->side + x);
}

// A node on the edge of the upper face, counted around it.
static uint32_t edge_node(const struct building *building, size_t position) {
  size_t last = building->side - 1, along = position % last;
  switch (position / last % 4) {
  case 0:
    return cube_node(building, along, 0, 0);
  case 1:
    return cube_node(building, last, along, 0);
  case 2:
    return cube_node(building, last - along, last, 0);
  default:
    return cube_node(building, 0, last - along, 0);
  }
}

struct springs {
  size_t count;
  uint32_t (*ends)[2];
};

static void join(struct springs *springs, uint32_t one, uint32_t other) {
  springs->ends[springs->count][0] = one;
  springs->ends[springs->count++][1] = other;
}

static void join_shell(struct springs *springs, const struct building *building) {
  size_t around = building->around;
  for (size_t ring = 0; ring < building->rings; ring++)
    for (size_t angle = 0; angle < around; angle++) {
      uint32_t node = shell_node(building, angle, ring);
      join(springs, node, shell_node(building, angle + 1, ring));
      for (size_t step = around - 1; step <= around + 1 && ring > 0; step++)
        join(springs, node, shell_node(building, angle + step, ring - 1));
      size_t edge = 4 * (building->side - 1), below = angle * edge / around + edge;
      for (size_t position = below - 1; position <= below + 1 && ring == 0; position++)
        join(springs, node, edge_node(building, position));
    }
}

static void join_cube(struct springs *springs, const struct building *building) {
  int side = (int)building->side;
  // Each pair is met once: the first half of the 27 ways, in which the middle one leads nowhere.
  for (int node = 0; node < side * side * side; node++)
    for (int way = 0; way < 13; way++) {
      if (way < 9 && way % 2 == 0 && way != 4)
        continue; // all three change
      int x = node % side + way % 3 - 1, y = node / side % side + way / 3 % 3 - 1;
      int depth = node / side / side + way / 9 - 1;
      if (x >= 0 && x < side && y >= 0 && y < side && depth >= 0)
        join(springs, cube_node(building, 0, 0, 0) + (uint32_t)node,
             cube_node(building, (size_t)x, (size_t)y, (size_t)depth));
    }
}

static struct springs make_springs(const struct building *building) {
  struct springs springs = {
      .ends = new_table(SPRINGS_PER_NODE * building_nodes(building), sizeof *springs.ends)};
  join_shell(&springs, building);
  join_cube(&springs, building);
  return springs;
}

// The graph of the springs when node i is given the number position[i].
static struct graph make_graph(const struct springs *springs, size_t order,
                               const uint32_t *position) {
  struct graph graph = {order, new_table(order + 2, sizeof(uint32_t)),
                        new_table(2 * springs->count, sizeof(uint32_t))};
  uint32_t *end = graph.start + 1; // of each node, once it is filled
  for (size_t i = 0; i < springs->count; i++)
    for (size_t side = 0; side < 2; side++)
      end[position[springs->ends[i][side]] + 1]++;
  for (size_t i = 0; i < order; i++)
    end[i + 1] += end[i];
  for (size_t i = 0; i < springs->count; i++)
    for (size_t side = 0; side < 2; side++)
      graph.neighbour[end[position[springs->ends[i][side]]]++] =
          position[springs->ends[i][1 - side]];
  return graph;
}

static void free_graph(struct graph *graph) {
  free(graph->start);
  free(graph->neighbour);
}

// Nested dissection

// A part of the shell (angles, rings, one layer) or of the cube.
struct part {
  bool is_cube;
  bool is_closed; // goes all the way around
  size_t low[3], size[3];
};

static uint32_t *list_part(const struct building *building, const struct part *part,
                           uint32_t *list) {
  for (size_t k = part->low[2]; k < part->low[2] + part->size[2]; k++)
    for (size_t j = part->low[1]; j < part->low[1] + part->size[1]; j++)
      for (size_t i = part->low[0]; i < part->low[0] + part->size[0]; i++)
        *list++ = part->is_cube ? cube_node(building, i, j, k) : shell_node(building, i, j);
  return list;
}

// Lists the nodes of a part in the order of elimination: what lies on either side of a separator,
// which crosses the longest way, then the separator. Returns the end of the list.
static uint32_t *dissect(const struct building *building, const struct part *part, uint32_t *list) {
  size_t longest = 0, length = part->is_closed ? part->size[0] / 2 : part->size[0];
  for (size_t i = 1; i < 3; i++)
    if (part->size[i] > length)
      length = part->size[longest = i];
  if (length < 3 || part->size[0] * part->size[1] * part->size[2] <= LEAF_NODES)
    return list_part(building, part, list);
  bool is_opened = part->is_closed && longest == 0; // one separator does not yet part it in two
  size_t middle = is_opened ? 0 : part->size[longest] / 2;
  struct part before = *part, separator = *part, after = *part;
  before.size[longest] = middle;
  separator.low[longest] += middle;
  separator.size[longest] = 1;
  after.low[longest] += middle + 1;
  after.size[longest] -= middle + 1;
  if (is_opened)
    separator.is_closed = after.is_closed = false;
  else
    list = dissect(building, &before, list);
  list = dissect(building, &after, list);
  return list_part(building, &separator, list);
}

// The lowest ring separates the rest of the shell from the cube.
static void dissect_building(const struct building *building, uint32_t *list) {
  size_t around = building->around, rings = building->rings, side = building->side;
  struct part ring = {false, true, {0}, {around, 1, 1}};
  struct part shell = {false, true, {0, 1, 0}, {around, rings - 1, 1}};
  struct part cube = {true, false, {0}, {side, side, side}};
  list = dissect(building, &shell, list);
  list = dissect(building, &cube, list);
  list_part(building, &ring, list);
}

// The parent of each node in the elimination tree (Liu 1990, with the paths to the roots
// shortened).
static uint32_t *elimination_tree(const struct graph *graph) {
  uint32_t *parent = new_table(graph->order, sizeof *parent);
  uint32_t *ancestor = new_table(graph->order, sizeof *ancestor);
  for (uint32_t node = 0; node < graph->order; node++) {
    parent[node] = ancestor[node] = none;
    for (uint32_t i = graph->start[node]; i < graph->start[node + 1]; i++)
      for (uint32_t below = graph->neighbour[i], next; below < node; below = next) {
        next = ancestor[below];
        ancestor[below] = node;
        if (next == none)
          parent[below] = node;
        if (next == none || next == node)
          break;
      }
  }
  free(ancestor);
  return parent;
}

// Numbers the nodes so that every subtree is numbered in one piece, its root last.
static uint32_t *postorder(const uint32_t *parent, size_t order) {
  // The number of a subtree's first node follows from its parent's and the sizes of its siblings.
  uint32_t *size = new_table(order, sizeof *size), *number = new_table(order, sizeof *number);
  uint32_t *next = new_table(order, sizeof *next), next_root = 0;
  for (size_t i = 0; i < order; i++)
    if (++size[i] > 0 && parent[i] != none)
      size[parent[i]] += size[i];
  for (size_t i = order; i-- > 0;) {
    uint32_t *first = parent[i] == none ? &next_root : &next[parent[i]];
    next[i] = *first;
    *first += size[i];
    number[i] = next[i] + size[i] - 1;
  }
  free(size);
  free(next);
  return number;
}

// The number of each node in the order of elimination.
static uint32_t *elimination_order(const struct building *building, const struct springs *springs,
                                   size_t order) {
  uint32_t *list = new_table(order, sizeof *list), *position = new_table(order, sizeof *position);
  dissect_building(building, list);
  for (uint32_t i = 0; i < order; i++)
    position[list[i]] = i;
  struct graph graph = make_graph(springs, order, position);
  uint32_t *parent = elimination_tree(&graph), *number = postorder(parent, order);
  for (size_t i = 0; i < order; i++)
    position[i] = number[position[i]];
  free_graph(&graph);
  free(number);
  free(parent);
  free(list);
  return position;
}

// By insertion: the lists are short.
static void sort_rows(uint32_t *rows, uint32_t count) {
  for (uint32_t i = 1; i < count; i++) {
    uint32_t row = rows[i], place = i;
    for (; place > 0 && rows[place - 1] > row; place--)
      rows[place] = rows[place - 1];
    rows[place] = row;
  }
}

// Between half and one and a half, the same for both ends.
static double stiffness(uint32_t one, uint32_t other, size_t order) {
  uint64_t low = one < other ? one : other, high = one < other ? other : one;
  return 0.5 + (double)(scramble(low * order + high) >> 11) * 0x1p-53;
}

// A spring adds its stiffness to both diagonal elements and takes it from the one between them.
// What the lowest nodes of the cube stand on adds to theirs, which makes the matrix positive
// definite.
static void fill_matrix(struct matrix *matrix, const struct graph *graph, uint32_t first_standing,
                        const uint32_t *node) {
  size_t size = 0;
  for (uint32_t column = 0; column < matrix->order; column++) {
    uint32_t first = matrix->start[column] = (uint32_t)size;
    matrix->row[size++] = column;
    double diagonal = node[column] >= first_standing ? 1 : 0;
    uint32_t count = graph->start[column + 1] - graph->start[column];
    uint32_t *neighbours = graph->neighbour + graph->start[column];
    sort_rows(neighbours, count);
    for (uint32_t i = 0; i < count; i++) {
      double spring = stiffness(node[column], node[neighbours[i]], matrix->order);
      diagonal += spring;
      if (neighbours[i] > column) {
        matrix->row[size] = neighbours[i];
        matrix->value[size++] = -spring;
      }
    }
    matrix->value[first] = diagonal;
  }
  matrix->start[matrix->order] = (uint32_t)size;
}

static struct matrix make_matrix(const struct building *building) {
  size_t order = building_nodes(building);
  struct springs springs = make_springs(building);
  uint32_t *position = elimination_order(building, &springs, order);
  struct graph graph = make_graph(&springs, order, position);
  uint32_t *node = new_table(order, sizeof *node);
  for (uint32_t i = 0; i < order; i++)
    node[position[i]] = i;
  struct matrix matrix = {.order = order,
                          .start = new_table(order + 1, sizeof *matrix.start),
                          .row = new_table(order + springs.count, sizeof *matrix.row),
                          .value = new_table(order + springs.count, sizeof *matrix.value),
                          .parent = elimination_tree(&graph)};
  fill_matrix(&matrix, &graph, cube_node(building, 0, 0, building->side - 1), node);
  free_graph(&graph);
  free(node);
  free(position);
  free(springs.ends);
  return matrix;
}

#endif
