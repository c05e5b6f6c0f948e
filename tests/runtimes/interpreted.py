"""Calls, dictionaries, JSON and regular expressions, about two seconds natively at 35."""

import json
import re
import sys


def nqueens(n, row=0, cols=0, d1=0, d2=0):
    if row == n:
        return 1
    count = 0
    free = ~(cols | d1 | d2) & ((1 << n) - 1)
    while free:
        bit = free & -free
        free ^= bit
        count += nqueens(n, row + 1, cols | bit, (d1 | bit) << 1, (d2 | bit) >> 1)
    return count


out = 0
for _ in range(int(sys.argv[1])):
    out += nqueens(8)
    words = {}
    for i in range(60000):
        key = f"k{i * 7919 % 10007}"
        words[key] = words.get(key, 0) + i
    out += len(json.dumps(words))
    out += sum(
        len(m.group(1))
        for m in re.finditer(r"(\w+)@(\w+)\.com", "someone@example.com nobody " * 3000)
    )
    out += sorted((i * 7919) % 100003 for i in range(60000))[30000]
print(out)
