// SPDX-License-Identifier: Apache-2.0
//
// Ways to call durable what is not. `make -C workloads/stream broken` builds the program once for
// each, which shows that its check finds them. Without BROKEN nothing of this is in the program.
#ifndef STREAM_BROKEN_H
#define STREAM_BROKEN_H

enum broken {
  NOTHING,
  FLUSH_LEFT_OUT,      // what a kernel wrote is called durable without being flushed
  CALLED_EARLY,        // it is called durable, and flushed afterwards
  LAST_LINES_LEFT_OUT, // the last lines of each block are not flushed
  NO_SNAPSHOT,         // a transaction changes elements that were not added to it
};

#ifndef BROKEN
#define BROKEN NOTHING
#endif

#endif
