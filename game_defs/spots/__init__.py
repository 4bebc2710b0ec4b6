"""Spots of hold'em as poker players say them: board, pot, stack, ranges, bet sizes."""

from game_defs.spots.bets import BetSizes, Size, read_bets
from game_defs.spots.ranges import read_range
from game_defs.spots.spot import SpotGame

__all__ = ["BetSizes", "Size", "SpotGame", "read_bets", "read_range"]
