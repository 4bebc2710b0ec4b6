"""A game string becomes a loaded game, its rules on arrays and its declaration."""

__all__: list[str] = []
