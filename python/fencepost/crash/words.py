"""A command split into words as a shell splits it, without its expansions."""

# What a backslash takes its meaning from inside double quotes (POSIX shell, 2.2.3).
ESCAPED_IN_QUOTES = '$`"\\\n'


def split(command: str) -> list[str]:
    """Raises `ValueError` where a quotation is not closed, or a backslash ends the command."""
    words: list[str] = []
    word: str | None = None
    quote = ""
    letters = iter(command)
    for letter in letters:
        if letter == "\\" and quote != "'":
            word = (word or "") + _escaped(next(letters, None), quote)
        elif letter == quote:
            quote = ""
        elif quote:
            word = (word or "") + letter
        elif letter in "'\"":
            quote, word = letter, word or ""
        elif letter.isspace():
            if word is not None:
                words.append(word)
            word = None
        else:
            word = (word or "") + letter
    if quote:
        raise ValueError("No closing quotation")
    if word is not None:
        words.append(word)
    return words


def _escaped(letter: str | None, quote: str) -> str:
    if letter is None:
        raise ValueError("No escaped character")
    if letter == "\n":  # the line goes on
        return ""
    return letter if not quote or letter in ESCAPED_IN_QUOTES else "\\" + letter
