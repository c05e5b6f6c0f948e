/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of the page at the end of the address space by which old programs ask for the time. Nobody
 * can read it, so the engine finds no code there. */
#ifndef VSYSCALL_PAGE_H
#define VSYSCALL_PAGE_H

#include "dr_api.h"

#include <stdbool.h>

/* Makes the call where a fault was one, and returns from it in the fault's registers. */
bool vsyscall_page_called(void *drcontext, dr_siginfo_t *information);

#endif
