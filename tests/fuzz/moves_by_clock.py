"""Matches of all bots with a time limit per move; see `moves`."""

import functools

from tests.fuzz import moves
from tests.fuzz.bots_and_games import BY_CLOCK

trials = functools.partial(moves.trials, plan=BY_CLOCK)
