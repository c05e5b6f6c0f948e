/* SPDX-License-Identifier: Apache-2.0 */
/* Marks of operations (python/fencepost/include/fencepost.h): instructions that do nothing, with a
 * text. Each becomes an event behind the block that it ends. */
#ifndef MARKS_H
#define MARKS_H

void marks_init(void);
void marks_exit(void);

#endif
