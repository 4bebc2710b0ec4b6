"""Spots of hold'em: games from a flop, turn or river on."""

from game_defs.spots.spot import SpotGame

__all__ = ["SpotGame"]
