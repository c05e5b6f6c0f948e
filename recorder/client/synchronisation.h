/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronisation functions that programs call by name: each call becomes one event in the
 * place of its instructions. Found among the exports of the C and thread libraries, and in
 * executables that are linked statically among their symbols. */
#ifndef SYNCHRONISATION_H
#define SYNCHRONISATION_H

#include "thread.h"

void synchronisation_init(void);
void synchronisation_exit(void);

/* Wraps what a module that was just loaded has of them. */
void synchronisation_wrap_module(const module_data_t *module);

/* A signal handler begins inside a synchronisation function: what it does is the program's work. */
void synchronisation_suspend_call(struct thread *thread);
/* It has returned, into the function. */
void synchronisation_resume_call(struct thread *thread);

#endif
