/* SPDX-License-Identifier: Apache-2.0 */
/* Where instrumented code looks whether to give the baton away: before the blocks at which threads
 * meet, and in every loop. */
#ifndef BATON_CHECKS_H
#define BATON_CHECKS_H

#include "dr_api.h"

void baton_checks_init(void);
void baton_checks_exit(void);

/* Whether others see what the instruction does to memory as one step. */
bool baton_checks_is_atomic(instr_t *instr);

/* A function at which threads meet begins there. */
void baton_checks_meet_at(app_pc function);

#endif
