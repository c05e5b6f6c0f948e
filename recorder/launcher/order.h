/* SPDX-License-Identifier: Apache-2.0 */
/* What of the order of a record in turns a replay keeps. A program beside the recorder's libraries
 * finds that; it has the reader, which this side of the record has not. */
#ifndef ORDER_H
#define ORDER_H

/* Adds it behind the frames of a record that is not sealed; with the name that the record of a
 * tree's first process is going to have, and how many processes the tree has, of all of it, too.
 * Where that fails, the record is as good without: whoever opens it finds it then, which takes
 * longer. */
void order_add(const char *record, const char *first_of_tree, unsigned processes);

/* Somebody wants to see the end: from a signal handler. */
void order_give_up(void);

#endif
