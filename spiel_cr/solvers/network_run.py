"""Networks on their way, of compiled games and of games that are stepped."""

import functools
from typing import Any, TypeAlias

import numpy as np

from spiel_cr.common.parameters import read_settings
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation import key_making
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import Held, HeldByPolicy
from spiel_cr.solvers.deep import deep_footprint
from spiel_cr.solvers.deep.deep_config import PRESETS
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.deep_training import check_stepped
from spiel_cr.solvers.deep.network_policy import DeepPolicy, save_deep_policy
from spiel_cr.solvers.deep.self_play.self_play_config import SELF_PLAY_PRESETS
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.representation import Laid
from spiel_cr.solvers.run import Run, settings_text
from spiel_cr.solvers.task import Task

_PRESETS = {**PRESETS, **SELF_PLAY_PRESETS}

# What trains networks on a game.
Trainer: TypeAlias = type[DeepSolver] | type[SelfPlay]


def read_stepped(asked: Any) -> Any:
    """Settings for games that are stepped.

    Args:
      asked: a preset with parameters, or settings.

    Raises:
      ValueError: a setting that only compiled games have.
    """
    config = read_settings(asked, _PRESETS)
    check_stepped(config)
    return config


def on_tree(trainer: Trainer, laid: Laid, task: Task) -> Run:
    """A trainer on its way through a compiled game.

    Args:
      trainer: of the algorithm's family.
      laid: the game in its form.
      task: what is asked for.

    Raises:
      GameTooLargeError, ValueError, ImportError: as `solve`.
    """
    assert isinstance(laid.game, GameTree)
    config = task.algorithm.config
    deep_footprint.check_tree(config, laid.game, task.options.memory_limit)
    solver = trainer(laid.game, config, seed=task.seed)
    return NetworkRun(solver, laid.game, laid.game.game_id)


def on_steps(trainer: Trainer, laid: Laid, task: Task) -> Run:
    """The same of a game that is stepped."""
    assert isinstance(laid.game, Opened)
    game, config = laid.game.game, task.algorithm.config
    use_rules = task.options.batched_rules
    way = stepped(laid.game, config.features, use_rules=use_rules)
    try:
        iterations = task.most if task.most < 2**31 - 1 else None
        limit = task.options.memory_limit
        deep_footprint.check(config, game, way.knowledge, iterations, limit)
        seal = key_making.fingerprint(way.source)
        return NetworkRun(trainer(way, config, seed=task.seed), None, seal)
    except BaseException:
        way.source.close()
        raise


class NetworkRun(Run):
    """A solver that trains networks."""

    def __init__(
        self, solver: DeepSolver | SelfPlay, tree: GameTree | None, seal: str
    ) -> None:
        """Takes a solver as it is.

        Args:
          solver: of the game.
          tree: the game, if it was compiled.
          seal: tells the game's version.
        """
        super().__init__(solver)
        self._tree, self._seal = tree, seal
        self.whole = solver.iterations > 0

    def arrays(self) -> dict[str, np.ndarray]:
        """See `checkpoint.Kept`."""
        return self.solver.arrays()

    def restore(self, arrays: dict[str, np.ndarray], *, seconds: float) -> None:
        """See `checkpoint.Kept`."""
        self.solver.restore(arrays, seconds=seconds)
        self.whole = True

    def identity(self) -> dict[str, Any]:
        """See `run.Run`."""
        return {
            "game": str(self.solver.source.game),
            "form": "deep" if self._tree is None else "deep, compiled",
            "fingerprint": self._seal,
            "config": settings_text(self.solver.config),
            "seed": self.solver.seed,
        }

    def outcome(self) -> dict[str, Any]:
        """See `run.Run`."""
        solver = self.solver
        fields: dict[str, Any] = {"trajectories": solver.episodes}
        if self._tree is not None:
            return fields | {
                "held": Held(self._tree, self._tree.sequence_form),
                "average": solver.average_behaviours(),
                "current": (solver.current_behaviour(0), solver.current_behaviour(1)),
            }
        game, average = solver.source.game, solver.average()
        save = functools.partial(save_deep_policy, game=game, average=average)
        held = HeldByPolicy(DeepPolicy(game, average), save)
        return fields | {"held": held, "nodes": solver.nodes}

    def close(self) -> None:
        """See `run.Run`."""
        if self._tree is None:
            self.solver.source.close()
