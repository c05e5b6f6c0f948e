/* SPDX-License-Identifier: Apache-2.0 */
/* A thread waits for a flag and looks at it ever more seldom. Meanwhile it is taken out of its code
 * again and again, wherever it is. With the name of a file that cannot be executed, the program
 * tries to, which stops the other where it is; with `leave` as a second argument, it then ends. */
#include <stdatomic.h>
#include <unistd.h>

#define PLACES 30
#include "new_places.h"

#define TIME_BETWEEN_US 2000

static atomic_int flag;

static void *await(void *argument) {
  for (unsigned delay = 1; atomic_load(&flag) == 0; delay = delay < 1024 ? 2 * delay : delay) {
    for (unsigned left = delay; left > 0; left--)
      __builtin_ia32_pause();
  }
  return argument;
}

int main(int count, char **arguments) {
  pthread_t thread;
  pthread_create(&thread, NULL, await, NULL);
  for (int place = 0; place < PLACES; place++) {
    usleep(TIME_BETWEEN_US);
    if (count > 1)
      execl(arguments[1], arguments[1], (char *)NULL);
    else
      at_place(place);
  }
  if (count > 2)
    return 0;
  flag = 1;
  return pthread_join(thread, NULL);
}
