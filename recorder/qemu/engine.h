/* SPDX-License-Identifier: Apache-2.0 */
/* What QEMU's plugin interface does not offer, by what the program qemu-aarch64 exports: registers
 * before any instruction, which pages are the program's, code made anew, and DC CVAP. QEMU 7.2
 * exports all of it; from QEMU 9 on registers are part of the interface, and the rest is not needed
 * or missing. What is found is checked by a run of a known program (check.h). */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Finds everything; why that is impossible, or NULL. */
const char *engine_open(void);

/* Whether registers are read one by one, through the plugin interface. */
bool engine_copies_registers(void);
/* In a virtual processor's own thread, before its first instruction: where its registers x0 to x30
 * and sp are. NULL where they cannot be found. Where they are copied, engine_copy_registers brings
 * those of the mask there. */
const uint64_t *engine_find_registers(unsigned vcpu);
void engine_copy_registers(uint32_t mask);

/* The program counter behind which nothing has been executed, when the virtual processor stands
 * still; 0 where it cannot be read. */
uint64_t engine_program_counter(unsigned vcpu);

/* Whether the page is the program's; `protection` as PROT_READ and so on. */
/* Not known exactly where `engine_knows_pages` is false. */
bool engine_knows_pages(void);
bool engine_has_page(uint64_t address, int *protection);

/* No virtual processor executes code between the two; false where this engine cannot do that. */
bool engine_stop_others(void);
void engine_go_on(void);

/* Calls `function` when a signal is about to end the process. */
void engine_before_death(void (*function)(int signal));

#endif
