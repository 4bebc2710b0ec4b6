"""Text of users in messages: names, paths and game strings that stay on one line."""


def one_line(text: object) -> str:
    """Escape everything in a text that could break a line or cannot be encoded.

    These are control characters, line separators, lone surrogates and all others that
    `str.isprintable` excludes. Text that consists of printable characters is returned
    as it is, so the result can be read, and mostly be copied back.

    Args:
      text: A string, or an object whose `str` is meant, such as a game.

    Returns:
      Text with escapes as Python writes them, for example a newline as a backslash
      and an n.
    """
    said = str(text)
    if said.isprintable():
        return said
    return "".join(
        letter
        if letter.isprintable()
        else letter.encode("unicode_escape").decode("ascii")
        for letter in said
    )
