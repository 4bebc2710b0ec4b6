"""From a game string to a `CompiledGame`: every history and infoset as numpy arrays."""

from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.games.histories import Histories
from spiel_cr.games.opening.opened import load_game
from spiel_cr.games.opening.vectorised import VectorisedGame
from spiel_cr.games.tree.compiler import as_compiled, compile_game
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame, Infosets

__all__ = [
    "CompiledGame",
    "VectorisedGame",
    "Histories",
    "Infosets",
    "TooManyHistoriesError",
    "as_compiled",
    "compile_game",
    "fingerprint",
    "load_game",
]
