"""From a game string to a `CompiledGame`: every history and infoset as numpy arrays."""

from spiel_cr.common.errors import TooManyHistoriesError
from spiel_cr.compilation.compiler import as_compiled, compile_game
from spiel_cr.compilation.fingerprints import fingerprint
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame, Histories, Infosets
from spiel_cr.compilation.vectorised import VectorisedGame

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
