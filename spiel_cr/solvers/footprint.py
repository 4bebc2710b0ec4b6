"""How much memory solving a laid-out game will take; refusals before it is done.

All figures were fitted to peaks of processes on CPUs (tables are in
docs/measurements): what a program takes while XLA compiles it grows with
the operations that are written out in it, and each array is there several times, on the
host, on the device and in XLA's workspace.
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

# A linear program in HiGHS, with its matrices, for each payoff.
_LINEAR, _LINEAR_PAYOFF = 15e6, 550
# Of XLA: for any full-width program, and for each row of an array that is written out
# in one pass over the trees.
_PROGRAM, _PROGRAM_ROW = 95e6, 0.95e6
# Of XLA, for samples, whose program has every depth apart: for any program, each depth,
# and each action of the widest history of each depth.
_SAMPLED, _SAMPLED_DEPTH, _SAMPLED_ACTION = 30e6, 25e6, 2e6
# What share of that a program without baselines takes.
_PLAIN = 0.8
# Of a program that updates visited infosets.
_PROGRAM_VISITED = 120e6
# How often the arrays of game and state are there at the peak: full-width, and sampled.
_COPIES, _COPIES_SAMPLED = 3.5, 2.5
# Numbers that a trajectory leaves at each depth, and those for each action there.
_NUMBERS, _NUMBERS_ACTION = 12, 6
# Of primal-dual steps: how many passes over the trees the program has, and how many
# vectors over both players' sequences are there at once, beside those of CFR.
_PASSES, _VECTORS = 4, 16
# While a game is compiled, for each history; what remains of that, in units of what the
# compiled game takes.
_COMPILING, _COMPILED = 90, 1.3

Algorithm: TypeAlias = CFRConfig | MCCFRConfig | FirstOrderConfig | PublicConfig | str


def check(
    game: HasSequenceForm,
    algorithm: Algorithm,
    dtype: np.typing.DTypeLike | None,
    limit: memory.Limit,
) -> None:
    """Raise an error if solving a game would take more memory than a limit.

    Args:
      game: The represented game.
      algorithm: Settings of the algorithm, or "lp".
      dtype: Arithmetic, float64 or float32.
      limit: Memory limit, as the caller gave it.

    Raises:
      GameTooLargeError: If the limit is too low.
    """
    remedy = "choose smaller game parameters"
    if isinstance(algorithm, MCCFRConfig):
        remedy = "take a smaller batch, or cfr+"
    elif algorithm == "lp":
        remedy = "take cfr+, or choose smaller game parameters"
    elif np.dtype(dtype or np.float64) != np.float32:
        remedy = "use dtype float32"
    name = algorithm if isinstance(algorithm, str) else algorithm.name
    task = f"solving {game.game} by {name} (form {game.kind})"
    memory.check_need(task, peak_bytes(game, algorithm, dtype), limit, remedy)


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
        held = memory.BASE_BYTES if game.kind != TREE else tree_bytes(form)
        return held + linear_bytes(game.sequence_form)
    if isinstance(algorithm, MCCFRConfig):
        size = np.dtype(dtype or np.float32).itemsize
        return tree_bytes(form) + _sampled_bytes(form, algorithm, size)
    dtype = np.dtype(dtype or np.float64)
    peak, sequences, program = _FULL_WIDTH[game.kind](form, dtype)
    if isinstance(algorithm, FirstOrderConfig):
        peak += (_PASSES - 1) * program + _VECTORS * sequences * dtype.itemsize
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
    sizes = [public_tree_footprint.size_of(game, p) for p in range(2)]
    return _Peak(
        public_tree_footprint.peak_bytes(game, dtype),
        sum(size.sequences for size in sizes),
        public_tree_footprint.program_bytes(game),
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
    """What a process holds that has compiled this game and done nothing else."""
    return memory.IMPORTED_BYTES + _COMPILED * tree.nbytes


def linear_bytes(form: SequenceForm) -> float:
    """What a linear program takes, besides the game.

    Raises:
      GameTooLargeError: the payoffs are too many to be listed.
    """
    return _LINEAR + _LINEAR_PAYOFF * len(form.payoffs.values)


def solver_bytes(form: SequenceForm, dtype: np.typing.DTypeLike) -> float:
    """What CFR takes besides the game: its program, the arrays and the state."""
    size = np.dtype(dtype).itemsize
    arrays = _form_bytes(form, size) + _state_bytes(form, size)
    return _PROGRAM + _PROGRAM_ROW * _rows(form) + _COPIES * arrays


def _rows(form: SequenceForm) -> int:
    """Rows of arrays that are written out in one pass over both trees."""
    return sum(treeplex.written_out_rows(arrays) for arrays in form.arrays)


def _form_bytes(form: SequenceForm, size: int) -> int:
    """What the arrays of a form take with floating numbers of so many bytes."""
    return sum(
        leaf.size * (size if leaf.dtype.kind == "f" else leaf.dtype.itemsize)
        for leaf in jax.tree.leaves(form.arrays)
    )


def _state_bytes(form: SequenceForm, size: int) -> int:
    """What strategies, regrets, reach and averages take."""
    return 4 * sum(layout.size for layout in form.layouts) * size


def _sampled_bytes(tree: GameTree, config: MCCFRConfig, size: int) -> float:
    """What Monte Carlo CFR takes besides the compiled game.

    Args:
      tree: the compiled game.
      config: the algorithm.
      size: bytes of a number.
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
        # By depth first, then in one array each.
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
