// SPDX-License-Identifier: Apache-2.0
//
// Ways to lose data that are easy to write and hard to find. `make -C workloads broken` builds the
// programs once for each, into build/workloads/broken: what `fencepost crash` is shown on. Without
// BROKEN nothing of this is in a program. Those marked as correct are not broken and only look so.
#ifndef BROKEN_H
#define BROKEN_H

enum broken {
  NOTHING,
  // Both programs:
  NODE_NOT_FLUSHED,   // the record is linked, and only the link is flushed
  NO_FENCE,           // the record's flush and the link's store have no fence between them
  FLUSH_BEFORE_STORE, // the record is flushed, and then its checksum is stored
  FENCE_BEFORE_FLUSH, // the fence that should follow the record's flush comes before it
  WRONG_LINE,         // the line behind the record is flushed in its place
  ONE_FENCE,          // record and link are stored, both flushed, and one fence follows
  LINK_BEFORE_NODE,   // the link is persisted before the record
  LINK_NOT_FLUSHED,   // the link is stored, and its acknowledgement persisted
  TWO_LINES,          // correct: records of two lines
  FIRST_LINE_ONLY,    // records of two lines, of which the first is flushed
  TWICE_IN_ONE_LINE,  // correct: two stores to one line and one flush; the line keeps their order
  // `hashmap`:
  INTENT_NOT_FLUSHED, // the intent is not flushed
  IN_PLACE,           // a record that is there already is overwritten in place
  // `queue`:
  HEAD_NOT_FLUSHED,   // the head is moved, and only the acknowledgement is persisted
  ACKNOWLEDGED_EARLY, // an item is acknowledged before its link is persisted
  // `cold_pages`:
  PUBLISHED_FIRST,   // a page's place says that it is in the pool before the entry is there
  ENTRY_NOT_FLUSHED, // the device leaves the entry in its cache
  FREED_FIRST,       // a frame is used again before the place of the page that left it is published
  PAGE_NOT_FLUSHED,  // a page that has come back stays in a cache when its place is published
  REUSED_EARLY,      // an entry's room is used again before its page is durable elsewhere
};

#ifndef BROKEN
#define BROKEN NOTHING
#endif

#define HAS_TWO_LINES (BROKEN == TWO_LINES || BROKEN == FIRST_LINE_ONLY)

#endif
