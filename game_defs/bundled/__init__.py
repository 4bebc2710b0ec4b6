"""The rules of games that OpenSpiel bundles, as arrays.

OpenSpiel plays these games one state at a time. What is here plays the same games on
many states at once, so that `spiel_cr` compiles and samples them in a fraction of the
time. Each function takes a game that OpenSpiel has loaded, and returns its vectorised
game, or None where its parameters are not supported. `public_tree_of_universal_poker`
declares its game as a signal game instead, see `holdem`.
"""

from game_defs.bundled.battleship import vectorised_battleship
from game_defs.bundled.goofspiel import vectorised_goofspiel
from game_defs.bundled.hidden_boards import vectorised_dark_hex, vectorised_phantom_ttt
from game_defs.bundled.holdem import (
    public_tree_of_universal_poker,
    vectorised_universal_poker,
)
from game_defs.bundled.liars_dice import vectorised_liars_dice

__all__ = [
    "public_tree_of_universal_poker",
    "vectorised_battleship",
    "vectorised_dark_hex",
    "vectorised_goofspiel",
    "vectorised_liars_dice",
    "vectorised_phantom_ttt",
    "vectorised_universal_poker",
]
