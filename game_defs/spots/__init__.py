"""Spots of hold'em as poker players say them: board, pot, stack, ranges, bet sizes."""

from game_defs.spots.spot import SpotGame

__all__ = ["SpotGame"]
