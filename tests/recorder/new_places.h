/* SPDX-License-Identifier: Apache-2.0 */
/* Ever new places that call a synchronisation function after they have been jumped through: each
 * time the engine makes the code there anew, and takes all other threads out of theirs, wherever
 * they are. Before it, PLACES says how many places there are. */
#ifndef NEW_PLACES_H
#define NEW_PLACES_H

#include <pthread.h>
#include <stdint.h>

static pthread_mutex_t place_mutex = PTHREAD_MUTEX_INITIALIZER;

#define STRING_OF(text) #text
#define STRING(macro) STRING_OF(macro)

/* Functions of PLACE_BYTES that call what they are given, or jump behind the call where that is
 * nothing. */
#define PLACE_BYTES 32
void places(void *object, void *function);
__asm__(".text\n.balign 32\nplaces:\n"
        ".rept " STRING(PLACES) "\n.balign 32\n\t"
                                "sub $8, %rsp\n\ttest %rsi, %rsi\n\tje 1f\n\tcall *%rsi\n1:\tadd "
                                "$8, %rsp\n\tret\n.endr\n");

/* At even places the mutex is locked, at odd ones unlocked. */
static void at_place(int place) {
  void (*call)(void *, void *) =
      (void (*)(void *, void *))((uintptr_t)places + (uintptr_t)place * PLACE_BYTES);
  call(&place_mutex, NULL);
  call(&place_mutex, (void *)(place % 2 == 0 ? pthread_mutex_lock : pthread_mutex_unlock));
}

#endif
