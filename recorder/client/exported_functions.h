/* SPDX-License-Identifier: Apache-2.0 */
/* Finds functions of a module by name: in its dynamic symbols, or, where it is linked statically,
 * in its symbol table. */
#ifndef EXPORTED_FUNCTIONS_H
#define EXPORTED_FUNCTIONS_H

#include "dr_api.h"

typedef void (*function_found)(const char *name, app_pc address, void *user_data);

/* Whether it is the C library or a thread library beside it. */
bool module_is_thread_library(const module_data_t *module);
/* Whether it is the program itself, without a dynamic linker. */
bool module_is_static_program(const module_data_t *module);

/* Calls `found` for each exported function; a name that has several versions comes several times.
 */
void exported_functions(const module_data_t *module, function_found found, void *user_data);
/* Calls `found` for each function in the symbol table; for none where it was stripped. */
void symbol_functions(const module_data_t *module, function_found found, void *user_data);

#endif
