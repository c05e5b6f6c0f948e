/* SPDX-License-Identifier: Apache-2.0 */
/* Where the region of interest begins and ends: functions at whose entries instrumented code looks,
 * and their returns. */
#ifndef REGION_CHECKS_H
#define REGION_CHECKS_H

#include "dr_api.h"

/* A function of the program; before any of its code is instrumented. */
void region_checks_function(const char *name, app_pc address);

/* The record begins or has ended: no code that was made before runs again. The caller goes on
 * elsewhere (dr_redirect_execution). */
void region_checks_renew_code(void);

void region_checks_init(void);
void region_checks_exit(void);

#endif
