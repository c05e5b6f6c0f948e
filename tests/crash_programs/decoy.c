/* Executes another program in its place, with functions of its own where that one has its stores.
 */
#include <unistd.h>

#define TEN(name)                                                                                  \
  DECOY(name##0) DECOY(name##1) DECOY(name##2) DECOY(name##3) DECOY(name##4) DECOY(name##5)
#define DECOY(name)                                                                                \
  int name(int value) { return value * 3 + 1; }
TEN(decoy1)
TEN(decoy2)
TEN(decoy3)
TEN(decoy4)
TEN(decoy5)
TEN(decoy6)
TEN(decoy7)
TEN(decoy8)
TEN(decoy9)

int main(int count, char **arguments) {
  (void)count;
  return execv(arguments[1], arguments + 1);
}
