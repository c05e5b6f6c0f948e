/* SPDX-License-Identifier: Apache-2.0 */
/* Has the engine call the recorder where the program calls functions by name: those that
 * synchronise threads, found among the exports of the C and thread libraries and in executables
 * that are linked statically among their symbols, and those that begin and end the region of
 * interest. */
#ifndef WRAPPED_FUNCTIONS_H
#define WRAPPED_FUNCTIONS_H

#include "dr_api.h"

void wrapped_functions_init(void);
void wrapped_functions_exit(void);

/* Wraps what a module that was just loaded has of them. */
void wrapped_functions_search(const module_data_t *module);

#endif
