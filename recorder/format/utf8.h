/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes are text: names and paths of programs may be anything. */
#ifndef UTF8_H
#define UTF8_H

/* Length of the UTF-8 sequence at `text`, or 0 where there is none. */
int utf8_length(const unsigned char *text);

#endif
