// SPDX-License-Identifier: Apache-2.0
//
// Ways to get a persist or a log wrong. `make -C workloads/primitives broken` builds the programs
// once for each, which shows that the exploration of power cuts can fail. Without BROKEN nothing of
// this is in a program.
#ifndef PRIMITIVES_BROKEN_H
#define PRIMITIVES_BROKEN_H

enum broken {
  NOTHING,
  NODE_NOT_FLUSHED,     // a new node and its payload are linked without being flushed
  NO_ORDER,             // nothing orders a new node before the link to it
  LINK_NOT_FLUSHED,     // what an operation without a log stores last is not flushed
  LOG_NOT_FLUSHED,      // the entries of the log are not flushed
  LOG_NO_FENCE,         // they are flushed, and no fence waits for them
  COMMIT_NOT_FLUSHED,   // the record that ends a transaction is stored and not flushed
  COMMIT_LEFT_OUT,      // it is not even stored: undo never forgets, redo is applied unannounced
  IN_PLACE_NOT_FLUSHED, // the log is given up before what it stands for is durable in its place
  NOT_MENDED,           // recovery leaves what operations without a log have left half done
};

#ifndef BROKEN
#define BROKEN NOTHING
#endif

#endif
