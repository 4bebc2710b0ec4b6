"""Counts with their nouns."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return a count with its noun, such as "1 match" or "2,000 matches".

    Args:
      number: Number of things.
      noun: Noun for one of them.
      plural: Noun for several. If empty, the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
