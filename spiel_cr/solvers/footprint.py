"""How much memory solving a laid-out game will take; refusals before it is done.

All figures were fitted to peaks of processes on CPUs (tables are in
docs/measurements): what a program takes while XLA compiles it grows with
the operations that are written out in it, and each array is there several times, on the
host, on the device and in XLA's workspace.
"""

from typing import TypeAlias

import jax
import numpy as np

from spiel_cr.common import memory
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
# For each first-order method: passes over the trees in its compiled function, and
# vectors over both players' sequences, in addition to those of CFR.
_PASSES_AND_VECTORS = {"pdhg": (4, 16), "egt": (10, 10), "smoothing": (10, 14)}
# While a game is compiled, for each history; what remains of that, in units of what the
# compiled game takes.
_COMPILING, _COMPILED = 90, 1.3

Algorithm: TypeAlias = CFRConfig | MCCFRConfig | FirstOrderConfig | PublicConfig | str


def check(
    game: GameTree | PublicTreeGame | PhantomGame,
    algorithm: Algorithm,
    dtype: np.typing.DTypeLike | None,
    limit: memory.Limit,
) -> None:
    """Refuses what would take more memory than there may be.

    Args:
      game: the game.
      algorithm: settings, or "lp"; of a signal game, one that iterates.
      dtype: as for `solve`.
      limit: as users give it.

    Raises:
      GameTooLargeError: it would.
    """
    remedy = "choose smaller game parameters"
    if isinstance(algorithm, MCCFRConfig):
        remedy = "take a smaller batch, or cfr+"
    elif algorithm != "lp" and np.dtype(dtype or np.float64) != np.float32:
        remedy = "use dtype float32"
    if isinstance(game, PublicTreeGame):
        task = f"solving {game.game} in the form of signals"
    else:
        name = algorithm if isinstance(algorithm, str) else algorithm.name
        task = f"{name} on {game.game}"
    memory.check_need(task, peak_bytes(game, algorithm, dtype), limit, remedy)


def peak_bytes(
    game: GameTree | PublicTreeGame | PhantomGame,
    algorithm: Algorithm | None = None,
    dtype: np.typing.DTypeLike | None = None,
) -> float:
    """The peak of a process that lays out and solves a game, in bytes.

    Args:
      game: a compiled game, a signal game, or one of hidden boards.
      algorithm: settings, or "lp"; of a signal game, one that iterates; None: a
        full-width one.
      dtype: as for `solve`.

    Raises:
      ValueError: settings that do not go together, see `choice.visits_only`.
    """
    if isinstance(algorithm, str):
        assert isinstance(game, GameTree)
        return tree_bytes(game) + linear_bytes(game.sequence_form)
    if isinstance(algorithm, MCCFRConfig):
        assert isinstance(game, GameTree)
        size = np.dtype(dtype or np.float32).itemsize
        return tree_bytes(game) + _sampled_bytes(game, algorithm, size)
    passes, vectors = 1, 0
    if isinstance(algorithm, FirstOrderConfig):
        passes, vectors = _PASSES_AND_VECTORS[algorithm.method]
    dtype = np.dtype(dtype or np.float64)
    if isinstance(game, PublicTreeGame):
        peak = public_tree_footprint.peak_bytes(game, dtype)
        sequences = sum(
            public_tree_footprint.size_of(game, p).sequences for p in range(2)
        )
        more = public_tree_footprint.program_bytes(game)
    elif isinstance(game, PhantomGame):
        sequences = sum(side.decisions.num_sequences for side in game.sides)
        pairs = sum(game.pairs)
        peak = phantom_footprint.peak_bytes(pairs, sequences, dtype.itemsize)
        more = phantom_footprint.PROGRAM
    else:
        compiling = memory.IMPORTED_BYTES + _COMPILING * len(game.histories)
        peak = max(
            compiling, tree_bytes(game) + solver_bytes(game.sequence_form, dtype)
        )
        sequences = sum(layout.size for layout in game.sequence_form.layouts)
        more = _PROGRAM_ROW * _rows(game.sequence_form)
    return peak + (passes - 1) * more + vectors * sequences * dtype.itemsize


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
