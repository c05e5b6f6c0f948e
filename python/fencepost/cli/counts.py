"""The largest numbers that options may have: what the core counts with is 64 bits wide."""

COUNT_MAX = (1 << 64) - 1
TIME_NS_MAX = 1.8e16  # in picoseconds that is just within 64 bits
