"""Makers of solvers that train networks."""

from typing import Any, TypeAlias

from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.deep import deep_footprint
from spiel_cr.solvers.deep.deep_config import PRESETS
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.deep_training import Training, check_stepped
from spiel_cr.solvers.deep.self_play.self_play_config import SELF_PLAY_PRESETS
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.task import Task

_PRESETS = {**PRESETS, **SELF_PLAY_PRESETS}

# Classes of solvers that train networks.
Trainer: TypeAlias = type[DeepSolver] | type[SelfPlay]


def read_stepped(algorithm: Any) -> Any:
    """Read settings for games that are simulated.

    Args:
      algorithm: Preset with parameters, or settings.

    Raises:
      ValueError: If a setting needs a game tree.
    """
    config = read_settings(algorithm, _PRESETS)
    check_stepped(config)
    return config


def on_tree(trainer: Trainer, represented: GameTree, task: Task) -> Training:
    """Make a solver that trains networks on a game tree.

    Args:
      trainer: Class of the solver.
      represented: The game tree.
      task: Algorithm, goal and options.

    Raises:
      GameTooLargeError, ValueError, ImportError: See `solve`.
    """
    config = task.algorithm.config
    deep_footprint.check_tree(config, represented, task.options.memory_limit)
    return trainer(represented, config, seed=task.seed)


def on_steps(trainer: Trainer, represented: Opened, task: Task) -> Training:
    """Make a solver that trains networks on a simulated game; see `on_tree`."""
    game, config = represented.game, task.algorithm.config
    use_rules = task.options.batched_rules
    way = stepped(represented, config.features, use_rules=use_rules)
    try:
        iterations = task.most if task.most < 2**31 - 1 else None
        limit = task.options.memory_limit
        deep_footprint.check(config, game, way.knowledge, iterations, limit)
        return trainer(way, config, seed=task.seed)
    except BaseException:
        way.source.close()
        raise
