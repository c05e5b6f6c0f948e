/* SPDX-License-Identifier: Apache-2.0 */
/* Included before each zstd source. The client has no C library (the engine would load a second one
 * into the program), and zstd only ever works in memory that it is given. */
#ifndef COMPRESSION_FREESTANDING_H
#define COMPRESSION_FREESTANDING_H

#define ZSTD_DEPS_MALLOC
#define ZSTD_malloc(bytes) ((void)(bytes), (void *)0)
#define ZSTD_calloc(count, bytes) ((void)(count), (void)(bytes), (void *)0)
#define ZSTD_free(pointer) ((void)(pointer))

#endif
