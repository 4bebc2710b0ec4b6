"""`universal_poker` with two players as signals, betting and kernels."""

from game_defs.bundled.holdem.declaration import signals_of_universal_poker

__all__ = ["signals_of_universal_poker"]
