/* SPDX-License-Identifier: Apache-2.0 */
/* The synchronisation functions that programs call by name: each call becomes one event in the
 * place of its instructions. */
#ifndef SYNCHRONISATION_H
#define SYNCHRONISATION_H

#include "thread.h"

void synchronisation_init(void);
void synchronisation_exit(void);

struct function;

/* The function of this name; NULL where it is none of them. */
const struct function *synchronisation_function(const char *name);

/* A call of one of them, before its first instruction. True where it is no part of another one:
 * then the recorder sets return address and arguments of `thread->call`, and enters it. */
bool synchronisation_call_begins(struct thread *thread, uint64_t stack_pointer);
void synchronisation_call_enters(struct thread *thread, const struct function *function);
/* It has returned `result`; NULL where it was left without a return (longjmp, cancellation). */
void synchronisation_call_returns(struct thread *thread, const struct function *function,
                                  const int *result);

/* From now on it is recorded: what it holds, and the call that it is in. */
void synchronisation_recorded_from_here(struct thread *thread);

/* A signal handler begins inside a synchronisation function: what it does is the program's work. */
void synchronisation_suspend_call(struct thread *thread);
/* It has returned, into the function. */
void synchronisation_resume_call(struct thread *thread);

#endif
