/* Touches so many pages for the first time, and gives them back: page faults that a counter sees.
 */
#include <stdlib.h>
#include <sys/mman.h>

enum { PAGE = 4096, AT_ONCE = 64 };

int main(int count, char **values) {
  if (count != 2)
    return 2;
  for (long left = atol(values[1]); left > 0; left -= AT_ONCE) {
    /* Shared, so that no huge page backs it. */
    char *memory = mmap(NULL, AT_ONCE * PAGE, PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
      return 1;
    for (int page = 0; page < AT_ONCE && page < left; page++)
      memory[page * PAGE] = 1;
    munmap(memory, AT_ONCE * PAGE);
  }
  return 0;
}
