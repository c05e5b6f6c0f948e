/* SPDX-License-Identifier: Apache-2.0 */
/* Changes a libpmemobj pool in transactions, some of which abort, and prints where its two words
 * are and how often each was stored to and kept. */
#include <libpmemobj.h>
#include <stdint.h>
#include <stdio.h>

struct root {
  uint64_t kept;
  uint64_t padding[15];
  uint64_t aborted;
};

int main(int count, char **arguments) {
  if (count != 2)
    return 2;
  PMEMobjpool *pool = pmemobj_create(arguments[1], "transacts", PMEMOBJ_MIN_POOL, 0600);
  if (pool == NULL) {
    fprintf(stderr, "%s\n", pmemobj_errormsg());
    return 3;
  }
  PMEMoid oid = pmemobj_root(pool, sizeof(struct root));
  struct root *volatile root = pmemobj_direct(oid);
  printf("kept %ju\naborted %ju\n", (uintmax_t)(uintptr_t)&root->kept,
         (uintmax_t)(uintptr_t)&root->aborted);
  for (uint64_t i = 1; i <= 5; i++) {
    TX_BEGIN(pool) {
      pmemobj_tx_add_range(oid, 0, sizeof(uint64_t));
      root->kept = i;
    }
    TX_END
    TX_BEGIN(pool) {
      pmemobj_tx_add_range(oid, offsetof(struct root, aborted), sizeof(uint64_t));
      root->aborted = i;
      pmemobj_tx_abort(1);
    }
    TX_END
  }
  printf("values %ju\n", (uintmax_t)(root->kept * 10 + root->aborted));
  pmemobj_close(pool);
  return 0;
}
