/* SPDX-License-Identifier: Apache-2.0 */
#include "supply_events.h"

#include "fields.h"
#include "record_format.h"
#include "recording.h"

void supply_events_dropped(struct thread *thread, uint32_t count) {
  struct fields fields;
  fields_begin(&fields);
  fields_number(&fields, count);
  fields_send(&fields, thread, EVENT_DROPPED_EDGES);
}

void supply_events_made(struct thread *thread, struct transfer_edge edge) {
  struct fields fields;
  if (edge.channel == 0) {
    supply_events_dropped(thread, 1);
    return;
  }
  fields_begin(&fields);
  fields_number(&fields, edge.channel);
  fields_send_clocked(&fields, thread, EVENT_SUPPLY, edge.clock);
}

void supply_events_consumed(struct thread *thread, struct transfer_edge edge) {
  struct fields fields;
  if (edge.channel == 0)
    supply_events_dropped(thread, 1);
  if (edge.channel == 0 || edge.clock == 0)
    return;
  fields_begin(&fields);
  fields_number(&fields, edge.channel);
  fields_number(&fields, edge.clock);
  fields_send_clocked(&fields, thread, EVENT_CONSUME, clock_advance());
}
