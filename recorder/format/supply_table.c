/* SPDX-License-Identifier: Apache-2.0 */
#include "supply_table.h"

#include "process_lock.h"

void supply_table_end(struct supply_table *table, int32_t process) {
  const int32_t launcher = -1;
  process_lock_forget(&table->lock, process);
  process_lock_take(&table->lock, launcher);
  for (uint32_t i = 0; i < table->signals_used; i++) {
    if (table->signal[i].process == process)
      table->signal[i].number = 0;
  }
  process_lock_give(&table->lock);
}
