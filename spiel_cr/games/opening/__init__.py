"""A game string becomes a loaded game, its batched rules and its declaration."""

__all__: list[str] = []
