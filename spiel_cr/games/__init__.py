"""A game as data: opened, stepped, laid out as a tree, a sequence form or signals."""

__all__: list[str] = []
