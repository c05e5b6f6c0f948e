/* SPDX-License-Identifier: Apache-2.0 */
/* Closes whatever may be open, again and again, while it works for longer than a buffer. */
#include <unistd.h>

int main(void) {
  volatile unsigned long sum = 0;
  for (int round = 0; round < 3; round++) {
    for (int i = 3; i < 2000; i++)
      close(i);
    for (unsigned long i = 0; i < 3000000; i++)
      sum += i;
  }
  return 0;
}
