/* SPDX-License-Identifier: Apache-2.0 */
#include "initial_stack.h"

#include "process_status.h"

uint64_t initial_stack_pointer(void) { return process_status(STATUS_START_STACK); }
