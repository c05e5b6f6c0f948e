"""Writes text that a compressor takes for text: words of a fixed vocabulary, the common ones often.

    python3 pseudo_text.py BYTES > FILE

The same number of bytes gives the same text everywhere.
"""

import sys

CONSONANTS = "bcdfghjklmnprstvwxyz"
VOWELS = "aeiou"
SYLLABLES = [consonant + vowel for consonant, vowel in zip(CONSONANTS, VOWELS * 4, strict=True)]


def vocabulary(count):
    words = []
    for number in range(count):
        word = ""
        rest = number + 20
        while rest:
            word += SYLLABLES[rest % len(SYLLABLES)]
            rest //= len(SYLLABLES)
        words.append(word)
    return words


def pseudo_text(size):
    words = vocabulary(4000)
    state, length, pieces = 42, 0, []
    while length < size:
        state = state * 6364136223846793005 + 1442695040888963407 & 0xFFFFFFFFFFFFFFFF
        # The product of two uniform numbers: small ones, and so the first words, come most often.
        rank = (state >> 44) * (state >> 24 & 0xFFFFF) * len(words) >> 40
        piece = words[rank] + ("\n" if state >> 20 & 0xF == 0 else " ")
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces)[:size]


if __name__ == "__main__":
    sys.stdout.write(pseudo_text(int(sys.argv[1])))
