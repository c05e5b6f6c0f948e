// SPDX-License-Identifier: Apache-2.0
//
// Red-black tree with links to parents.
//
// A rotation changes up to six words in four lines, so no order of persists keeps the tree whole
// without a log. Without one an element counts by its own node: `is_live` and the key and payload
// in the same line. An insertion makes a durable payload's node live; a removal makes a node dead,
// or has it take over its successor's key and payload, whose node is dead then. Either begins with
// one store of 8 bytes that decides it. Links and colours are flushed too, but after a power cut in
// the middle of an operation without a log they are worth nothing, and recovery builds the tree
// anew from the nodes that are live. With a log for every operation the tree has to be whole as it
// is.
#define PROGRAM "rbt"

#include "keyed.h"

static const uint64_t magic = UINT64_C(0x312d544252504946); // "FIPRBT-1"

struct root {
  alignas(LINE_BYTES) uint64_t link;
};

struct tree {
  struct node *nodes;
  uint64_t *root;
  struct transaction *transaction;
};

static size_t structure_bytes(const struct set *set) {
  (void)set;
  return sizeof(struct root);
}

static void prepare_locks(void) {}

static struct tree tree_of(const struct set *set, struct worker *worker) {
  return (struct tree){set->nodes, &((struct root *)set->structure)->link, &worker->transaction};
}

static uint64_t get(const struct tree *tree, const uint64_t *word) {
  return load(tree->transaction, word);
}

static void put(const struct tree *tree, uint64_t *word, uint64_t value) {
  if (get(tree, word) != value)
    store(tree->transaction, word, value);
}

static uint64_t child(const struct tree *tree, uint64_t node, unsigned side) {
  return get(tree, &tree->nodes[node].children[side]);
}

static uint64_t parent(const struct tree *tree, uint64_t node) {
  return get(tree, &tree->nodes[node].parent);
}

static uint64_t key_of(const struct tree *tree, uint64_t node) {
  return high_of(get(tree, &tree->nodes[node].entry));
}

// The end of a branch is black.
static bool is_red(const struct tree *tree, uint64_t node) {
  return node != 0 && get(tree, &tree->nodes[node].is_red) != 0;
}

static void paint(const struct tree *tree, uint64_t node, bool red) {
  put(tree, &tree->nodes[node].is_red, red);
}

// Puts a node, or 0, in the place of another one.
static void replace(const struct tree *tree, uint64_t old, uint64_t new) {
  uint64_t above = parent(tree, old);
  if (above == 0)
    put(tree, tree->root, new);
  else
    put(tree, &tree->nodes[above].children[child(tree, above, 1) == old], new);
  if (new != 0)
    put(tree, &tree->nodes[new].parent, above);
}

// A node goes down to one side, and its child of the other side up.
static void rotate(const struct tree *tree, uint64_t node, unsigned side) {
  uint64_t up = child(tree, node, !side), inner = child(tree, up, side);
  put(tree, &tree->nodes[node].children[!side], inner);
  if (inner != 0)
    put(tree, &tree->nodes[inner].parent, node);
  replace(tree, node, up);
  put(tree, &tree->nodes[up].children[side], node);
  put(tree, &tree->nodes[node].parent, up);
}

static uint64_t find(const struct tree *tree, uint64_t key) {
  uint64_t node = get(tree, tree->root);
  for (uint64_t own; node != 0 && (own = key_of(tree, node)) != key;)
    node = child(tree, node, key > own);
  return node;
}

static uint64_t find_payload(const struct set *set, struct worker *worker, uint64_t key) {
  struct tree tree = tree_of(set, worker);
  uint64_t node = find(&tree, key);
  return node == 0 ? 0 : low_of(get(&tree, &set->nodes[node].entry));
}

static void balance_insertion(const struct tree *tree, uint64_t node) {
  for (uint64_t above; is_red(tree, above = parent(tree, node));) {
    uint64_t top = parent(tree, above);
    unsigned side = child(tree, top, 1) == above;
    uint64_t other = child(tree, top, !side);
    if (is_red(tree, other)) {
      paint(tree, above, false);
      paint(tree, other, false);
      paint(tree, top, true);
      node = top;
      continue;
    }
    if (child(tree, above, !side) == node) {
      node = above;
      rotate(tree, node, side);
      above = parent(tree, node);
    }
    paint(tree, above, false);
    paint(tree, top, true);
    rotate(tree, top, !side);
  }
  paint(tree, get(tree, tree->root), false);
}

static void insert_key(const struct set *set, struct worker *worker, uint64_t key,
                       uint64_t version) {
  struct tree tree = tree_of(set, worker);
  struct transaction *transaction = tree.transaction;
  uint64_t above = 0, *link = tree.root;
  for (uint64_t node; (node = get(&tree, link)) != 0; above = node)
    link = &set->nodes[node].children[key > key_of(&tree, node)];
  uint64_t index = take_unused(&worker->nodes), payload = take_unused(&worker->payloads);
  struct node *node = &set->nodes[index];
  write_payload(set, worker, payload, key, version);
  ordered(transaction);
  *node = (struct node){.entry = pack(key, payload), .parent = above, .is_red = true};
  written(transaction, node);
  store(transaction, &node->is_live, true);
  store(transaction, &node->stamp, transaction->stamp);
  put(&tree, link, index);
  balance_insertion(&tree, index);
}

// What hangs below `above` at `node`, which may be 0, lacks a black node.
static void balance_removal(const struct tree *tree, uint64_t node, uint64_t above) {
  while (above != 0 && !is_red(tree, node)) {
    unsigned side = child(tree, above, 0) != node;
    uint64_t other = child(tree, above, !side);
    if (is_red(tree, other)) {
      paint(tree, other, false);
      paint(tree, above, true);
      rotate(tree, above, side);
      other = child(tree, above, !side);
    }
    if (!is_red(tree, child(tree, other, 0)) && !is_red(tree, child(tree, other, 1))) {
      paint(tree, other, true);
      node = above;
      above = parent(tree, node);
      continue;
    }
    if (!is_red(tree, child(tree, other, !side))) {
      paint(tree, child(tree, other, side), false);
      paint(tree, other, true);
      rotate(tree, other, !side);
      other = child(tree, above, !side);
    }
    paint(tree, other, is_red(tree, above));
    paint(tree, above, false);
    paint(tree, child(tree, other, !side), false);
    rotate(tree, above, side);
    node = get(tree, tree->root);
    break;
  }
  if (node != 0)
    paint(tree, node, false);
}

static struct freed remove_key(const struct set *set, struct worker *worker, uint64_t key) {
  struct tree tree = tree_of(set, worker);
  struct transaction *transaction = tree.transaction;
  uint64_t found = find(&tree, key), node = found;
  struct freed freed = {node, low_of(get(&tree, &set->nodes[node].entry))};
  if (child(&tree, node, 0) != 0 && child(&tree, node, 1) != 0) {
    node = child(&tree, node, 1);
    while (child(&tree, node, 0) != 0)
      node = child(&tree, node, 0);
    store(transaction, &set->nodes[found].entry, get(&tree, &set->nodes[node].entry));
    store(transaction, &set->nodes[found].stamp, transaction->stamp);
    ordered(transaction);
    freed.node = node;
  }
  store(transaction, &set->nodes[node].is_live, false);
  store(transaction, &set->nodes[node].stamp, transaction->stamp);
  uint64_t below = child(&tree, node, child(&tree, node, 0) == 0);
  uint64_t above = parent(&tree, node);
  bool is_black = !is_red(&tree, node);
  replace(&tree, node, below);
  if (is_black)
    balance_removal(&tree, below, above);
  return freed;
}

// Gives the number of black nodes on each way down.
static uint64_t walk(const struct set *set, struct contents *contents, uint64_t index,
                     uint64_t above, uint64_t low, uint64_t high) {
  if (index == 0 || !observe(set, contents, index))
    return 0;
  const struct node *node = &set->nodes[index];
  uint64_t key = high_of(node->entry);
  if (key < low || key >= high)
    set_fault(contents, "a key is on the wrong side of another");
  if (node->parent != above)
    set_fault(contents, "a link to a parent is wrong");
  if (node->is_live != 1)
    set_fault(contents, "a node that is dead is in the tree");
  if (node->is_red != 0 && (above == 0 || set->nodes[above].is_red != 0))
    set_fault(contents, "a red node has no black parent");
  uint64_t left = walk(set, contents, node->children[0], index, low, key);
  uint64_t right = walk(set, contents, node->children[1], index, key + 1, high);
  if (left != right)
    set_fault(contents, "ways down have different numbers of black nodes");
  return left + (node->is_red == 0);
}

static void walk_structure(const struct set *set, struct contents *contents) {
  walk(set, contents, ((struct root *)set->structure)->link, 0, 0, set->keys);
  for (uint64_t index = 1; index <= set->keys; index++) {
    if ((set->nodes[index].is_live != 0) != contents->is_node_used[index])
      set_fault(contents, "a node that is live is not in the tree");
    saw_stamp(set, contents, set->nodes[index].stamp);
  }
}

// Links the nodes `first` to before `end`, in the order of their keys; those of the lowest level
// are red. Gives the one on top.
static uint64_t build(const struct set *set, const uint64_t *nodes, uint64_t first, uint64_t end,
                      uint64_t above, uint64_t levels) {
  if (first == end)
    return 0;
  uint64_t middle = first + (end - first) / 2, index = nodes[middle];
  struct node *node = &set->nodes[index];
  node->parent = above;
  node->is_red = levels == 1 && above != 0;
  node->children[0] = build(set, nodes, first, middle, index, levels - 1);
  node->children[1] = build(set, nodes, middle + 1, end, index, levels - 1);
  flush_bytes(node, sizeof *node);
  return index;
}

// The live node of each key; one of two that a removal has left of the same key is dead from now
// on.
static uint64_t live_nodes(const struct set *set, uint64_t *nodes) {
  uint64_t count = 0, *node_of_key = set_allocate(set->keys, sizeof *node_of_key);
  for (uint64_t index = 1; index <= set->keys; index++) {
    struct node *node = &set->nodes[index];
    uint64_t key = high_of(node->entry);
    if (node->is_live == 0 || key >= set->keys)
      continue;
    if (node_of_key[key] != 0) {
      store_word(&node->is_live, false);
      flush_bytes(node, sizeof *node);
      order();
    } else {
      node_of_key[key] = index;
    }
  }
  for (uint64_t key = 0; key < set->keys; key++)
    if (node_of_key[key] != 0)
      nodes[count++] = node_of_key[key];
  free(node_of_key);
  return count;
}

static void repair_structure(struct set *set) {
  struct contents contents = contents_new(set);
  walk_structure(set, &contents);
  bool is_whole = contents.fault == NULL;
  contents_free(&contents);
  if (is_whole)
    return;
  uint64_t *nodes = set_allocate(set->keys, sizeof *nodes);
  uint64_t count = live_nodes(set, nodes), levels = 0;
  while (count >> levels != 0)
    levels++;
  struct root *root = set->structure;
  root->link = build(set, nodes, 0, count, 0, levels);
  flush_bytes(root, sizeof *root);
  order();
  free(nodes);
}

#include "benchmark.h"
