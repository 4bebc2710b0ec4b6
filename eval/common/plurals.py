"""Numbers of things, as people write them."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """Such as "1 match", "2,000 matches".

    Args:
      number: of the things.
      noun: for one of them.
      plural: for others; none: the noun with an s.
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"
