/* SPDX-License-Identifier: Apache-2.0 */
/* The emulator's own executable in memory: where it points to a text, what it imports, and writing
 * to what it has protected. */
#ifndef ENGINE_IMAGE_H
#define ENGINE_IMAGE_H

#include <stdbool.h>
#include <stddef.h>

/* The one pointer of its data to this text; NULL where there is none, or more than one. */
void **engine_image_find_pointer_to(const char *text);

/* Writes to its data, also where that is read-only. */
bool engine_image_write(void *to, const void *bytes, size_t count);

/* From now on it calls `function` in the place of the one that it imports by this name. */
bool engine_image_replace_import(const char *name, void *function);

#endif
