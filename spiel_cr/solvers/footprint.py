"""Estimates of the memory that solving a represented game needs.

All constants were fitted to peaks of processes on CPUs (tables are in
docs/benchmarks). The memory that XLA needs to compile a function grows with the
number of operations in it, and each array exists several times: on the host, on the
device and in XLA's workspace.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import jax
import numpy as np

from spiel_cr.common import memory
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.histories import CHANCE
from spiel_cr.games.phantom import footprint as phantom_footprint
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree import public_tree_footprint
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import treeplex
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.first_order.first_order_config import FirstOrderConfig
from spiel_cr.solvers.mccfr import choice
from spiel_cr.solvers.mccfr.public.public_config import PublicConfig
from spiel_cr.solvers.representation import PHANTOM, PUBLIC_TREE, TREE

# Bytes of a linear program in HiGHS with its matrices: in total, and per payoff.
_LINEAR, _LINEAR_PAYOFF = 15e6, 550
# Bytes of XLA for any full-width function, and for each row of an array that one pass
# over the trees writes out.
_PROGRAM, _PROGRAM_ROW = 95e6, 0.95e6
# Bytes of XLA for sampling, whose compiled function treats each depth separately: for
# any function, for each depth, and for each action of the widest history of each depth.
_SAMPLED, _SAMPLED_DEPTH, _SAMPLED_ACTION = 30e6, 25e6, 2e6
# The share of these that a function without baselines needs.
_PLAIN = 0.8
# Bytes of XLA for a function that updates visited infosets only.
_PROGRAM_VISITED = 120e6
# Number of copies of the game and the state at the peak: full-width, and sampled.
_COPIES, _COPIES_SAMPLED = 3.5, 2.5
# Numbers that a trajectory stores at each depth, and for each action there.
_NUMBERS, _NUMBERS_ACTION = 12, 6
# For each first-order method: passes over the trees in its compiled function, and
# vectors over both players' sequences, in addition to those of CFR.
_PASSES_AND_VECTORS = {"pdhg": (4, 16), "egt": (10, 10), "smoothing": (10, 14)}
# Bytes per history while a tree is built; and the memory that remains in use
# afterwards, in units of the memory of the tree.
_COMPILING, _COMPILED = 90, 1.3

Algorithm: TypeAlias = CFRConfig | MCCFRConfig | FirstOrderConfig | PublicConfig | str


def check(
    game: HasSequenceForm,
    algorithm: Algorithm,
    dtype: np.typing.DTypeLike | None,
    limit: memory.Limit,
    *,
    need: float | None = None,
) -> None:
    """Raise an error if solving a game would take more memory than a limit.

    Args:
      game: The represented game.
      algorithm: Settings of the algorithm, or "lp".
      dtype: Arithmetic, float64 or float32.
      limit: Memory limit, as the caller gave it.
      need: Memory that solving takes, in bytes; by default `peak_bytes`.

    Raises:
      GameTooLargeError: If the limit is too low.
    """
    remedy = "choose smaller game parameters"
    if isinstance(algorithm, MCCFRConfig):
        remedy = "use a smaller batch, or cfr+"
    elif algorithm == "lp":
        remedy = "use cfr+, or choose smaller game parameters"
    elif np.dtype(dtype or np.float64) != np.float32:
        remedy = "use dtype float32"
    name = algorithm if isinstance(algorithm, str) else algorithm.name
    task = f"solving {game.game} by {name} (form {game.kind})"
    if need is None:
        need = peak_bytes(game, algorithm, dtype)
    memory.check_need(task, need, limit, remedy)


def peak_bytes(
    game: HasSequenceForm,
    algorithm: Algorithm | None = None,
    dtype: np.typing.DTypeLike | None = None,
) -> float:
    """Return the peak memory of a process that builds and solves a game, in bytes.

    Args:
      game: The represented game.
      algorithm: Settings of the algorithm, or "lp"; None: a full-width one.
      dtype: Arithmetic, float64 or float32.

    Raises:
      ValueError: If settings are incompatible, see `choice.visits_only`.
    """
    form: Any = game
    if isinstance(algorithm, str):
        held = _HELD.get(game.kind, lambda _: memory.BASE_BYTES)
        payoffs = len(game.sequence_form.payoffs.values)
        return held(form) + _LINEAR + _LINEAR_PAYOFF * payoffs
    if isinstance(algorithm, MCCFRConfig):
        size = np.dtype(dtype or np.float32).itemsize
        return tree_bytes(form) + _sampled_bytes(form, algorithm, size)
    dtype = np.dtype(dtype or np.float64)
    peak, sequences, program = _FULL_WIDTH[game.kind](form, dtype)
    if isinstance(algorithm, FirstOrderConfig):
        passes, vectors = _PASSES_AND_VECTORS[algorithm.method]
        peak += (passes - 1) * program + vectors * sequences * dtype.itemsize
    return peak


class _Peak(NamedTuple):
    """Memory of a process that solves a game by a full-width algorithm.

    Attributes:
      total: Peak memory in bytes.
      sequences: Number of sequences of both players.
      program: Bytes of the compiled function that a further pass over both trees adds.
    """

    total: float
    sequences: int
    program: float


def _tree_peak(tree: GameTree, dtype: np.dtype) -> _Peak:
    form = tree.sequence_form
    building = memory.IMPORTED_BYTES + _COMPILING * len(tree.histories)
    total = max(building, tree_bytes(tree) + solver_bytes(form, dtype))
    sequences = sum(layout.size for layout in form.layouts)
    return _Peak(total, sequences, _PROGRAM_ROW * _rows(form))


def _public_tree_peak(game: PublicTreeGame, dtype: np.dtype) -> _Peak:
    return _Peak(
        public_tree_footprint.peak_bytes(game, dtype),
        sum(side.num_sequences for side in game.public_decisions),
        public_tree_footprint.compilation_bytes(game),
    )


def _phantom_peak(game: PhantomGame, dtype: np.dtype) -> _Peak:
    sequences = sum(side.decisions.num_sequences for side in game.sides)
    total = phantom_footprint.peak_bytes(sum(game.pairs), sequences, dtype.itemsize)
    return _Peak(total, sequences, phantom_footprint.PROGRAM)


_FULL_WIDTH: Mapping[str, Callable[[Any, np.dtype], _Peak]] = {
    TREE: _tree_peak,
    PUBLIC_TREE: _public_tree_peak,
    PHANTOM: _phantom_peak,
}


def tree_bytes(tree: GameTree) -> float:
    """Return the memory of a process that has only built this game tree, in bytes."""
    return memory.IMPORTED_BYTES + _COMPILED * tree.nbytes


# Memory of a process that has only built a form, for forms whose size matters.
_HELD: Mapping[str, Callable[[Any], float]] = {TREE: tree_bytes}


def solver_bytes(form: SequenceForm, dtype: np.typing.DTypeLike) -> float:
    """Return the memory of CFR in addition to the game, in bytes.

    It consists of the compiled function, the arrays and the state.
    """
    size = np.dtype(dtype).itemsize
    arrays = _form_bytes(form, size) + _state_bytes(form, size)
    return _PROGRAM + _PROGRAM_ROW * _rows(form) + _COPIES * arrays


def _rows(form: SequenceForm) -> int:
    """Return the number of rows of arrays that one pass over both trees writes out."""
    return sum(treeplex.written_out_rows(arrays) for arrays in form.arrays)


def _form_bytes(form: SequenceForm, size: int) -> int:
    """Return the memory of a form's arrays if a floating number has `size` bytes."""
    return sum(
        leaf.size * (size if leaf.dtype.kind == "f" else leaf.dtype.itemsize)
        for leaf in jax.tree.leaves(form.arrays)
    )


def _state_bytes(form: SequenceForm, size: int) -> int:
    """Return the memory of strategies, regrets, reach and averages."""
    return 4 * sum(layout.size for layout in form.layouts) * size


def _sampled_bytes(tree: GameTree, config: MCCFRConfig, size: int) -> float:
    """Return the memory of Monte Carlo CFR in addition to the game tree, in bytes.

    Args:
      tree: The game tree.
      config: Settings of the algorithm.
      size: Bytes of a floating number.
    """
    histories = tree.histories
    starts = histories.level_start
    children = np.bincount(histories.parent[1:], minlength=len(histories))
    widths = np.maximum.reduceat(children, starts[:-1])
    depths, actions = len(widths), int(widths.sum())
    chance = histories.player == CHANCE
    # T, of tables over actions.
    entries = sum(infosets.decisions.num_sequences for infosets in tree.infosets)
    entries += int(children[chance].sum())
    kept = {"none": 0, "average": entries}.get(config.baseline, len(histories)) * size
    if choice.visits_only(config, entries):
        points = sum(len(infosets) for infosets in tree.infosets) + int(chance.sum())
        # The tree's arrays exist twice: by depth, and joined over all depths.
        problem = len(histories) * 2 * (3 * 4 + size) + 3 * 4 * points
        problem += 4 * size * entries
        state = 5 * size * entries + (2 * size + 5) * points + kept
        return _PROGRAM_VISITED + _COPIES_SAMPLED * (problem + state)
    problem = _form_bytes(tree.sequence_form, size) + len(histories) * (4 * 4 + size)
    problem += entries * (2 * 4 + size) + depths * config.batch * size
    problem += sum(infosets.size for infosets in tree.sequence_form.layouts) * 4
    state = _state_bytes(tree.sequence_form, size) + kept
    program = _SAMPLED + _SAMPLED_DEPTH * depths + _SAMPLED_ACTION * actions
    if config.baseline == "none":
        program *= _PLAIN
    batch = config.batch * size * (_NUMBERS * depths + _NUMBERS_ACTION * actions)
    return program + _COPIES_SAMPLED * (problem + state) + batch
