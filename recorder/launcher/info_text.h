/* SPDX-License-Identifier: Apache-2.0 */
/* The INFO frame's JSON: what was recorded, with what, and how. */
#ifndef INFO_TEXT_H
#define INFO_TEXT_H

#include "arguments.h"
#include "program.h"

/* To be freed by the caller. */
char *info_text(const struct arguments *arguments, const struct program *program);

#endif
