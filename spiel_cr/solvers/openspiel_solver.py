"""CFR solvers with the interface of OpenSpiel's solvers: only the import changes.

`open_spiel.python.algorithms.cfr.CFRPlusSolver(game)` becomes
`spiel_cr.CFRPlusSolver(game)`, and `cfr.CFRSolver(game)` becomes
`spiel_cr.CFRSolver(game)`. `LCFRSolver(game)` and `DCFRSolver(game)` of
`discounted_cfr` become `CFRSolver(game, "lcfr")` and `CFRSolver(game, "dcfr")`. Their
iterates are the same.

Like OpenSpiel's solvers, these can be pickled and copied. A pickle holds the game's
string and not its tree, which is built again on loading. spiel_cr never loads pickles
itself.
"""

from typing import Any, Self

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_dtype, check_iterations
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening.game_strings import load_printed
from spiel_cr.games.opening.origins import load_again
from spiel_cr.games.sequence_form import forced
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.policies.conversions import tabular_policy
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver


class CFRSolver:
    """CFR solver that a script drives iteration by iteration.

    The interface is that of OpenSpiel's class `cfr.CFRSolver`. `pickle` and
    `copy.deepcopy` make solvers whose further iterates are bitwise those of the
    original.

    Attributes:
      game: The sequential OpenSpiel game.

    Example:
      >>> import spiel_cr
      >>> solver = spiel_cr.CFRSolver("kuhn_poker", "dcfr")
      >>> for _ in range(100):
      ...     solver.evaluate_and_update_policy()
      >>> spiel_cr.nash_conv("kuhn_poker", solver.average_policy()) < 0.01
      True
    """

    def __init__(
        self,
        game: Game,
        algorithm: str | CFRConfig = "cfr",
        *,
        dtype: np.typing.DTypeLike = np.float64,
        memory_limit: Limit = None,
    ) -> None:
        """Build the game tree and compile the solver's functions.

        Args:
          game: OpenSpiel game string, game, or game tree.
          algorithm: Name and parameters of the algorithm, see `algorithms.find`. "cfr"
            is OpenSpiel's solver of this name.
          dtype: Data type of the arithmetic, float64 or float32.
          memory_limit: Memory limit, as in `solve`.

        Raises:
          pyspiel.SpielError: If OpenSpiel does not know the game.
          ValueError: If an argument is invalid, as in `solve`.
        """
        config = find(algorithm, families=(CFR,)).config
        check_dtype(dtype)
        tree = as_tree(game, memory_limit=memory_limit)
        footprint.check(tree, config, dtype, memory_limit)
        self._take(tree, _make_solver(tree, config, dtype), memory_limit)

    def _take(self, tree: GameTree, solver: Solver, memory_limit: Limit) -> None:
        """Set all attributes."""
        self._tree, self._solver, self._memory_limit = tree, solver, memory_limit
        self.game = tree.game

    def __getstate__(self) -> dict[str, Any]:
        """Return the contents of a pickle: how to make the solver, and its arrays.

        Raises:
          ValueError: If the game cannot be loaded from its string.
        """
        if load_again(self.game) is None:
            raise ValueError(
                f"{one_line(self.game)} cannot be pickled: OpenSpiel cannot load it "
                f"from this string; register the game with its parameters, or store "
                f"the policy instead (average_policy)"
            )
        return {
            "game": str(self.game),
            "fingerprint": self._tree.game_id,
            "config": self._solver.config,
            "dtype": self._solver.dtype.name,
            "memory_limit": self._memory_limit,
            "arrays": _copied(self._solver),
            "seconds": self._solver.seconds,
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Build the game tree and the solver, and restore the arrays.

        Raises:
          ValueError: If the game is not registered, or has changed since.
        """
        name = state["game"]
        try:
            game = load_printed(name)
        except pyspiel.SpielError as error:
            raise ValueError(
                f"the pickled solver is of {one_line(name)}, which OpenSpiel cannot "
                f"load here; import the module that registers the game first"
            ) from error
        tree = as_tree(game, memory_limit=state["memory_limit"])
        if tree.game_id != state["fingerprint"]:
            raise ValueError(
                f"the pickled solver is of another version of {one_line(name)}; "
                f"load it with the version of the game that it was made for"
            )
        solver = _make_solver(tree, state["config"], state["dtype"])
        solver.restore(state["arrays"], seconds=state["seconds"])
        self._take(tree, solver, state["memory_limit"])

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Return an independent solver that shares the game tree."""
        original = self._solver
        solver = _make_solver(self._tree, original.config, original.dtype)
        solver.restore(_copied(original), seconds=original.seconds)
        copied = type(self).__new__(type(self))
        copied._take(self._tree, solver, self._memory_limit)
        memo[id(self)] = copied
        return copied

    def __copy__(self) -> Self:
        """Return the same as `copy.deepcopy`: a solver's state is not shared."""
        return self.__deepcopy__({})

    @property
    def iterations(self) -> int:
        """Number of iterations completed."""
        return self._solver.iterations

    def evaluate_and_update_policy(self, iterations: int = 1) -> None:
        """Run one iteration, or several in one call, which is much faster."""
        self._solver.run(check_iterations(iterations))

    def average_policy(self) -> openspiel_policy.TabularPolicy:
        """Return the average strategy; uniform before the first iteration."""
        behaviours = [self._solver.average_behaviour(p) for p in range(2)]
        return tabular_policy(self._tree, behaviours)

    def current_policy(self) -> openspiel_policy.TabularPolicy:
        """Return the strategy of the last iteration."""
        behaviours = [self._solver.current_behaviour(p) for p in range(2)]
        return tabular_policy(self._tree, behaviours)


def _make_solver(tree: GameTree, config: Any, dtype: np.typing.DTypeLike) -> Solver:
    """Return a solver at its start, in the game without forced moves."""
    return cfr.make_solver(
        forced.without(tree.sequence_form), config=config, dtype=dtype
    )


def _copied(solver: Solver) -> dict[str, np.ndarray]:
    """Return a copy of a solver's arrays."""
    return {name: np.array(leaf) for name, leaf in solver.arrays().items()}


def CFRPlusSolver(game: Game, **options: Any) -> CFRSolver:  # noqa: N802
    """Return a CFR+ solver with the interface of OpenSpiel's class `cfr.CFRPlusSolver`.

    Args:
      game: OpenSpiel game string, game, or game tree.
      **options: The arguments `dtype` and `memory_limit` of `CFRSolver`.

    Example:
      >>> import spiel_cr
      >>> solver = spiel_cr.CFRPlusSolver("kuhn_poker")
      >>> for _ in range(100):
      ...     solver.evaluate_and_update_policy()
      >>> spiel_cr.nash_conv("kuhn_poker", solver.average_policy()) < 0.01
      True
    """
    return CFRSolver(game, "cfr+", **options)
