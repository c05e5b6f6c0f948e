"""Counts in sentences."""


def many(count: int, what: str) -> str:
    """`1 line`, `1,000 lines`."""
    return f"{count:,} {what}{'s' * (count != 1)}"
