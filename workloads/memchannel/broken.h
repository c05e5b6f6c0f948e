// SPDX-License-Identifier: Apache-2.0
//
// Ways to get it wrong. `make -C workloads/memchannel broken` builds `tenants` once for each, which
// shows that the tenants' checks find them. Without BROKEN nothing of this is in the program.
#ifndef MEMCHANNEL_BROKEN_H
#define MEMCHANNEL_BROKEN_H

enum broken {
  NOTHING,
  UPDATE_LOST,   // a store counts an update and does not write it
  VALUE_TORN,    // a store writes a part of a value
  KEY_LEFT_OUT,  // the ordered store splits a leaf and loses a key
  NO_VALIDATION, // the ordered store commits whatever has become of what it read
  ROW_SHIFTED,   // a stencil takes the neighbour on the wrong side
  EDGE_LEFT_OUT, // a graph kernel leaves out a vertex's last edge
  WORD_LEFT_OUT, // a reader leaves out the last lines of a block
};

#ifndef BROKEN
#define BROKEN NOTHING
#endif

#endif
