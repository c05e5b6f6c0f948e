"""Four threads of the Python interpreter that count words together.

Every thread takes lines from one queue and adds its counts to one dictionary under a lock, so that
the interpreter's own locks, conditions and allocations are all at work. Prints the words found
most often; the output does not depend on how the threads take turns.
"""

import queue
import threading

THREADS = 4
LINES = 120
WORDS = ("store", "flush", "fence", "line", "switch", "buffer", "drain", "commit")


def make_lines(lines):
    state = 1
    for _ in range(LINES):
        words = []
        for _ in range(8):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF
            words.append(WORDS[(state >> 16) % len(WORDS)])
        lines.put(" ".join(words))
    for _ in range(THREADS):
        lines.put(None)


def count_words(lines, totals, lock):
    while (line := lines.get()) is not None:
        for word in line.split():
            with lock:
                totals[word] = totals.get(word, 0) + 1


def main():
    lines = queue.Queue(maxsize=64)
    totals, lock = {}, threading.Lock()
    threads = [
        threading.Thread(target=count_words, args=(lines, totals, lock)) for _ in range(THREADS)
    ]
    for thread in threads:
        thread.start()
    make_lines(lines)
    for thread in threads:
        thread.join()
    assert sum(totals.values()) == LINES * 8
    for word, count in sorted(totals.items(), key=lambda item: (-item[1], item[0])):
        print(word, count)


main()
