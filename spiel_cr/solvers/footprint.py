"""How much memory solving a compiled game will take; refusals before it is done."""

import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.signals import signal_footprint as signal_footprint
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.games.worlds import footprint as world_footprint
from spiel_cr.games.worlds.game import WorldGame
from spiel_cr.solvers.cfr import cfr_footprint as footprint
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.first_order import first_order_footprint as first_order
from spiel_cr.solvers.first_order.first_order_config import FirstOrderConfig
from spiel_cr.solvers.mccfr import sampling_footprint as sampling

# A linear program in HiGHS, with its matrices, for each payoff.
_PROGRAM, _PROGRAM_PAYOFF = 15e6, 550


def peak_bytes(
    tree: CompiledGame,
    algorithm: CFRConfig | MCCFRConfig | FirstOrderConfig | str,
    dtype: np.typing.DTypeLike | None = None,
) -> float:
    """The peak of a process that compiles and solves a game, in bytes.

    Args:
      tree: the compiled game.
      algorithm: settings, or "lp".
      dtype: as for `solve`.
    """
    if isinstance(algorithm, MCCFRConfig):
        return sampling.peak_bytes(tree, algorithm, dtype or np.float32)
    if isinstance(algorithm, CFRConfig):
        return footprint.peak_bytes(tree, dtype or np.float64)
    if isinstance(algorithm, FirstOrderConfig):
        return first_order.peak_bytes(tree, algorithm, dtype or np.float64)
    return footprint.compiled_bytes(tree) + program_bytes(tree.form)


def more_on_signals(
    signals: SignalGame,
    algorithm: CFRConfig | MCCFRConfig | FirstOrderConfig,
    dtype: np.typing.DTypeLike,
) -> float:
    """What an algorithm takes on a signal game beside full-width iterations, in bytes.

    Args:
      signals: the game.
      algorithm: settings.
      dtype: of the arithmetic.
    """
    if not isinstance(algorithm, FirstOrderConfig):
        return 0.0
    sequences = sum(signal_footprint.size_of(signals, p).sequences for p in range(2))
    program = signal_footprint.program_bytes(signals)
    return first_order.bytes_beside_cfr(algorithm, program, sequences, dtype)


def check_worlds(
    worlds: WorldGame,
    algorithm: CFRConfig | FirstOrderConfig,
    dtype: np.typing.DTypeLike,
    limit: memory.Limit,
) -> None:
    """`check` of a game of hidden boards, before its form is laid out."""
    size = np.dtype(dtype).itemsize
    pairs = sum(worlds.pairs)
    sequences = sum(side.decisions.num_sequences for side in worlds.sides)
    need = world_footprint.peak_bytes(pairs, sequences, size)
    if isinstance(algorithm, FirstOrderConfig):
        program = world_footprint.PROGRAM
        need += first_order.bytes_beside_cfr(algorithm, program, sequences, dtype)
    remedy = "take dtype float32" if size == 8 else "choose a smaller board"
    what = f"{algorithm.name} on {worlds.game}"
    memory.check_need(what, need, limit, remedy)


def program_bytes(form: SequenceForm) -> float:
    """What a linear program takes, besides the game.

    Raises:
      GameTooLargeError: the payoffs are too many to be listed.
    """
    return _PROGRAM + _PROGRAM_PAYOFF * len(form.payoffs.values)


def check(
    tree: CompiledGame,
    algorithm: CFRConfig | MCCFRConfig | FirstOrderConfig | str,
    dtype: np.typing.DTypeLike | None,
    limit: memory.Limit,
) -> None:
    """Refuses what would take more memory than there may be.

    Args:
      tree: the compiled game.
      algorithm: settings, or "lp".
      dtype: as for `solve`.
      limit: of the whole process, as users give it.

    Raises:
      GameTooLargeError: it would.
    """
    remedy = "choose smaller game parameters"
    if isinstance(algorithm, MCCFRConfig):
        remedy = "take a smaller batch, or cfr+"
    elif isinstance(algorithm, CFRConfig | FirstOrderConfig):
        if np.dtype(dtype or np.float64) != np.float32:
            remedy = "take dtype float32"
    name = algorithm if isinstance(algorithm, str) else algorithm.name
    need = peak_bytes(tree, algorithm, dtype)
    held = footprint.held_besides(tree)
    memory.check_need(f"{name} on {tree.game}", need, limit, remedy, held=held)
