"""OpenSpiel's CFR solvers by their names: change one import.

`open_spiel.python.algorithms.cfr.CFRPlusSolver(game)` becomes
`spiel_cr.CFRPlusSolver(game)`, and so does `CFRSolver` there; `LCFRSolver(game)` and
`DCFRSolver(game)` of `discounted_cfr` are `CFRSolver(game, "lcfr")` and
`CFRSolver(game, "dcfr")`: iterate by iterate they are the same.
"""

from typing import Any

import numpy as np
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_dtype, check_iterations
from spiel_cr.common.memory import Limit
from spiel_cr.games.sequence_form import forced
from spiel_cr.games.tree.compiler import Game, as_compiled
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig


class CFRSolver:
    """A CFR solver that a script drives iteration by iteration.

    Attributes:
      game: the (sequential) OpenSpiel game.
    """

    def __init__(
        self,
        game: Game,
        algorithm: str | CFRConfig = "cfr",
        *,
        dtype: np.typing.DTypeLike = np.float64,
        memory_limit: Limit = None,
    ) -> None:
        """Compiles the game and the solver's program.

        Args:
          game: OpenSpiel game string, game, or compiled game.
          algorithm: preset and parameters, see `algorithms.find`. OpenSpiel's solver
            of this name is "cfr".
          dtype: float64 or float32.
          memory_limit: refuse what would take more, as in `solve`.

        Raises:
          pyspiel.SpielError, ValueError: as `solve`.
        """
        config = find(algorithm, families=(CFR,)).config
        check_dtype(dtype)
        self._tree = as_compiled(game, memory_limit=memory_limit)
        footprint.check(self._tree, config, dtype, memory_limit)
        form = forced.without(self._tree.form)
        self._solver = cfr.make_solver(form, config=config, dtype=dtype)
        self.game = self._tree.game

    @property
    def iterations(self) -> int:
        """Iterations done so far."""
        return self._solver.iterations

    def evaluate_and_update_policy(self, iterations: int = 1) -> None:
        """Does one iteration, or several in one call, which is much faster each."""
        self._solver.run(check_iterations(iterations))

    def average_policy(self) -> openspiel_policy.TabularPolicy:
        """The average strategy so far; uniform before the first iteration."""
        behaviours = [self._solver.average_behaviour(p) for p in range(2)]
        return tabular_policy(self._tree, behaviours)

    def current_policy(self) -> openspiel_policy.TabularPolicy:
        """The last iterate."""
        behaviours = [self._solver.current_behaviour(p) for p in range(2)]
        return tabular_policy(self._tree, behaviours)


def CFRPlusSolver(game: Game, **options: Any) -> CFRSolver:  # noqa: N802
    """In the place of OpenSpiel's class `cfr.CFRPlusSolver`.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      **options: dtype and memory_limit, as of `CFRSolver`.
    """
    return CFRSolver(game, "cfr+", **options)
