/* SPDX-License-Identifier: Apache-2.0 */
#include "baton_long_call.h"

#include "baton_members.h"
#include "baton_tree.h"

/* Who waits mostly does so for who makes the call. */
#define LONG_CALL_OF_WAITING_NS (10 * LONG_CALL_NS)

/* With the lock. The holder has been seen in the same system call for so long: it is outside. */
static void take_from(struct baton_member *holder, uint64_t long_ns) {
  int inside = KERNEL_INSIDE;
  if (baton.in_kernel != holder || baton.in_call != holder->calls) {
    baton.in_kernel = holder->kernel == KERNEL_INSIDE ? holder : NULL;
    baton.in_call = holder->calls;
    baton.in_call_since_ns = tree_real_ns();
  } else if (tree_real_ns() - baton.in_call_since_ns >= long_ns &&
             __atomic_compare_exchange_n(&holder->kernel, &inside, KERNEL_TAKES_LONG, false,
                                         __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    baton_tree_leaves_kernel();
    holder->state = BATON_OUTSIDE;
    baton_pass_from(holder);
  }
}

void baton_take_from_long_call(bool waits) {
  uint64_t long_ns = waits ? LONG_CALL_OF_WAITING_NS : LONG_CALL_NS;
  baton_lock();
  if (baton.holder != NULL)
    take_from(baton.holder, long_ns);
  else if (baton_tree_is())
    baton_tree_take_from_long_call(long_ns);
  baton_unlock();
}
