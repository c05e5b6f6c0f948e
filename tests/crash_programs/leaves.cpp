// The leaves of a persistent B+-tree; a removal is not flushed. An insertion leaves a hint in the
// line behind its flush, so that the oldest store that is lost need not be the one that matters.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace pm {

inline void persist(const void *line) {
  __asm__ volatile("clwb (%0)\n\tsfence" ::"r"(line) : "memory");
}

// A leaf is one line: its stores become durable in their order.
template <typename Key> struct Leaf {
  static constexpr int keys_max = 6;
  alignas(64) Key keys[keys_max];
  std::atomic<uint32_t> count;
  std::atomic<uint32_t> last; // where the next insertion looks first; recovery does not need it
  uint64_t unused;

  __attribute__((noinline)) void insert(Key key) {
    uint32_t size = count.load();
    Key *place = std::upper_bound(keys, keys + size, key);
    std::copy_backward(place, keys + size, keys + size + 1);
    *place = key;
    count.store(size + 1); /* inserted */
    persist(this);
    last.store((uint32_t)(place - keys)); /* hint */
  }

  __attribute__((noinline)) void remove(Key key) {
    uint32_t size = count.load();
    Key *place = std::lower_bound(keys, keys + size, key);
    std::copy(place + 1, keys + size, place); /* moved */
    count.store(size - 1);                    /* removed */
  }
};

// Keys by their upper digit; how many there should be is in a line of its own.
template <typename Key> struct Tree {
  static constexpr int leaves_max = 3;
  Leaf<Key> leaves[leaves_max];
  alignas(64) std::atomic<uint64_t> keys;

  void insert(Key key) {
    leaves[key / 10].insert(key);
    keys.store(keys.load() + 1); /* counted in */
    persist(&keys);
  }

  void remove(Key key) {
    leaves[key / 10].remove(key);
    keys.store(keys.load() - 1); /* counted out */
    persist(&keys);
  }

  int check() const {
    uint64_t found = 0;
    for (const Leaf<Key> &leaf : leaves)
      found += leaf.count.load();
    if (found == keys.load() || found == keys.load() + 1)
      return 0;
    std::printf("%d keys in leaves, %d counted\n", (int)found, (int)keys.load());
    return 1;
  }
};

} // namespace pm

int main(int count, char **values) {
  int file = open(values[1], O_RDWR | O_CREAT, 0644);
  if (ftruncate(file, 4096))
    return 2;
  void *pool = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  auto *tree = static_cast<pm::Tree<uint64_t> *>(pool);
  if (count > 2)
    return tree->check();
  for (uint64_t key : {3, 1, 12, 2, 25, 11, 24})
    tree->insert(key);
  for (uint64_t key : {1, 12, 3})
    tree->remove(key);
  return 0;
}
