"""How much memory Monte Carlo CFR will take, told from the histories of a game.

Fitted to peaks of processes, as `solvers.cfr.cfr_footprint`.
"""

import numpy as np

from spiel_cr.games.histories import CHANCE
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.solvers.cfr import cfr_footprint as footprint
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.mccfr import choice

# Of XLA, whose program has every depth apart: for any program, each depth, and each
# action of the widest history of each depth.
_PROGRAM, _PROGRAM_DEPTH, _PROGRAM_ACTION = 30e6, 25e6, 2e6
# What share of that a program without baselines takes.
_PLAIN = 0.8
# Of a program that updates visited infosets.
_PROGRAM_VISITED = 120e6
# How often the arrays of game and state are there at the peak.
_COPIES = 2.5
# Numbers that a trajectory leaves at each depth, and those for each action there.
_NUMBERS, _NUMBERS_ACTION = 12, 6


def peak_bytes(
    tree: CompiledGame, config: MCCFRConfig, dtype: np.typing.DTypeLike
) -> float:
    """The peak of a process that compiles a game and samples it.

    Args:
      tree: the compiled game.
      config: the algorithm.
      dtype: of the arithmetic.

    Raises:
      ValueError: settings that do not go together, see `choice.visits_only`.
    """
    histories, size = tree.histories, np.dtype(dtype).itemsize
    starts = histories.level_start
    children = np.bincount(histories.parent[1:], minlength=len(histories))
    widths = np.maximum.reduceat(children, starts[:-1])
    depths, actions = len(widths), int(widths.sum())
    outcomes = int(children[histories.player == CHANCE].sum())
    entries = sum(own.decisions.num_sequences for own in tree.infosets) + outcomes
    positions = sum(own.size for own in tree.form.layouts)
    if choice.visits_only(config, entries):
        return footprint.compiled_bytes(tree) + _visited_bytes(
            tree, config, entries, size
        )
    problem = (
        footprint.form_bytes(tree.form, dtype)
        + len(histories) * (4 * 4 + size)
        + entries * (2 * 4 + size)
        + positions * 4
        + depths * config.batch * size
    )
    state = footprint.state_bytes(tree.form, dtype)
    if config.baseline != "none":
        state += size * (entries if config.baseline == "average" else len(histories))
    arrays = _COPIES * (problem + state)
    program = _PROGRAM + _PROGRAM_DEPTH * depths + _PROGRAM_ACTION * actions
    if config.baseline == "none":
        program *= _PLAIN
    batch = config.batch * size * (_NUMBERS * depths + _NUMBERS_ACTION * actions)
    return footprint.compiled_bytes(tree) + program + arrays + batch


def _visited_bytes(
    tree: CompiledGame, config: MCCFRConfig, entries: int, size: int
) -> float:
    """Program, game and state where visited infosets are updated.

    Args:
      tree: the compiled game.
      config: the algorithm.
      entries: T, of tables over actions.
      size: bytes of a number.
    """
    histories = tree.histories
    points = sum(len(own) for own in tree.infosets)
    points += int((histories.player == CHANCE).sum())
    # By depth first, then in one array each.
    problem = len(histories) * 2 * (3 * 4 + size) + 3 * 4 * points + 4 * size * entries
    state = 5 * size * entries + (2 * size + 5) * points
    if config.baseline != "none":
        state += size * (entries if config.baseline == "average" else len(histories))
    return _PROGRAM_VISITED + _COPIES * (problem + state)
