/* SPDX-License-Identifier: Apache-2.0 */
#include "utf8.h"

int utf8_length(const unsigned char *text) {
  int length = text[0] < 0x80                       ? 1
               : text[0] >= 0xc2 && text[0] <= 0xdf ? 2
               : (text[0] & 0xf0) == 0xe0           ? 3
               : text[0] >= 0xf0 && text[0] <= 0xf4 ? 4
                                                    : 0;
  for (int i = 1; i < length; i++) {
    if ((text[i] & 0xc0) != 0x80)
      return 0;
  }
  if (length > 1) { /* overlong forms, surrogates, beyond the last character */
    if ((text[0] == 0xe0 && text[1] < 0xa0) || (text[0] == 0xed && text[1] > 0x9f) ||
        (text[0] == 0xf0 && text[1] < 0x90) || (text[0] == 0xf4 && text[1] > 0x8f))
      return 0;
  }
  return length;
}
