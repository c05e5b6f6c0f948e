/* SPDX-License-Identifier: Apache-2.0 */
/* The INFO frame of a child's record; that of the first process is the launcher's. */
#ifndef CHILD_INFO_H
#define CHILD_INFO_H

/* Appends it to the record. */
void child_info_append(void);

#endif
