"""Batched rules of games that OpenSpiel bundles.

OpenSpiel plays these games one state at a time. The functions of this package play the
same games on many states at once, so that `spiel_cr` builds and samples them in a
fraction of the time. Each function takes a game that OpenSpiel has loaded, and returns
its batched rules, or None if its parameters are not supported.
`public_tree_of_universal_poker` and `public_tree_of_leduc_poker` declare their games as
public-tree games instead.
"""

from game_defs.bundled.battleship import batched_battleship
from game_defs.bundled.goofspiel import batched_goofspiel
from game_defs.bundled.holdem import (
    batched_universal_poker,
    public_tree_of_universal_poker,
)
from game_defs.bundled.liars_dice import batched_liars_dice
from game_defs.bundled.phantom_games import batched_dark_hex, batched_phantom_ttt
from game_defs.leduc_poker import public_tree_of_leduc_poker

__all__ = [
    "public_tree_of_leduc_poker",
    "public_tree_of_universal_poker",
    "batched_battleship",
    "batched_dark_hex",
    "batched_goofspiel",
    "batched_liars_dice",
    "batched_phantom_ttt",
    "batched_universal_poker",
]
