"""Networks on their way, of compiled games and of games that are stepped."""

import functools
from typing import Any

import numpy as np

from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.stepping import key_making
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies.result import Held, HeldByPolicy
from spiel_cr.solvers.algorithms import SELF_PLAY, Task
from spiel_cr.solvers.deep import needs
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.network_policy import DeepPolicy, save_deep_policy
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.deep.tensors import Stepped, stepped
from spiel_cr.solvers.laying_out import Laid
from spiel_cr.solvers.run import Run, settings_text


def make_networks(laid: Laid, task: Task) -> Run:
    """The solver that trains networks on its way.

    Args:
      laid: the game in its form.
      task: what is asked for.

    Raises:
      GameTooLargeError, ValueError, ImportError: as `solve`.
    """
    if isinstance(laid.game, CompiledGame):
        seal = fingerprint(laid.game)
        return NetworkRun(networks(task, laid.game), laid.game, seal)
    assert isinstance(laid.game, Opened)
    game, config = laid.game.game, task.algorithm.config
    use_rules = task.layout.vectorised
    way = stepped(laid.game, config.features, use_rules=use_rules)
    try:
        iterations = task.most if task.most < 2**31 - 1 else None
        limit = task.layout.memory_limit
        needs.check(config, game, way.knowledge, iterations, limit)
        seal = key_making.fingerprint(way.source)
        return NetworkRun(networks(task, way), None, seal)
    except BaseException:
        way.source.close()
        raise


def networks(task: Task, game: CompiledGame | Stepped) -> DeepSolver | SelfPlay:
    """The solver that trains networks.

    Args:
      task: of an algorithm that does.
      game: compiled; or one that is stepped.

    Raises:
      ValueError, ImportError: as `DeepSolver`.
    """
    make = SelfPlay if task.algorithm.family is SELF_PLAY else DeepSolver
    return make(game, task.algorithm.config, seed=task.seed)


class NetworkRun(Run):
    """A solver that trains networks."""

    def __init__(
        self, solver: DeepSolver | SelfPlay, tree: CompiledGame | None, seal: str
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
        found: dict[str, np.ndarray] = self.solver.arrays()
        return found

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
                "held": Held(self._tree, self._tree.form),
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
