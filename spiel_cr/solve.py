"""Solving a whole game: `solve` and its result."""

import dataclasses
import time

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr import algorithm as algorithm_lib
from spiel_cr import cfr
from spiel_cr import policy as policy_lib
from spiel_cr import tree as tree_lib

__all__ = ["SolveResult", "as_compiled", "check_iterations", "solve"]


@dataclasses.dataclass(frozen=True)
class SolveResult:
    """What solving or resolving a game gave.

    Attributes:
      tree: the compiled game.
      algorithm: as given.
      iterations: iterations done, of each solve where there are several.
      average: for each player float64 [S], the average strategy's action
        probabilities by logical sequence.
      current: the same of the last iterate; None where there is none (resolving).
      seconds: time spent iterating.
      compile_seconds: time spent tracing and compiling JAX programs.
      build_seconds: time spent walking the game and laying out arrays.
      solves: how many solves that took.
    """

    tree: tree_lib.CompiledGame
    algorithm: str
    iterations: int
    average: tuple[np.ndarray, np.ndarray]
    current: tuple[np.ndarray, np.ndarray] | None
    seconds: float
    compile_seconds: float
    build_seconds: float
    solves: int = 1

    @property
    def iterations_per_second(self) -> float:
        """Iterations a second, compile time apart; 0 if nothing was done."""
        return self.iterations * self.solves / self.seconds if self.seconds else 0.0

    def average_policy(self) -> openspiel_policy.TabularPolicy:
        """The average strategy over every infoset of the game."""
        return policy_lib.tabular_policy(self.tree, self.average)

    def current_policy(self) -> openspiel_policy.TabularPolicy:
        """The last iterate over every infoset of the game.

        Raises:
          ValueError: the result has no last iterate.
        """
        if self.current is None:
            raise ValueError(
                "this result has an average policy only; use average_policy()"
            )
        return policy_lib.tabular_policy(self.tree, self.current)


def as_compiled(
    game: str | pyspiel.Game | tree_lib.CompiledGame, *, observed: bool = False
) -> tree_lib.CompiledGame:
    """Compiles unless that is done already."""
    if isinstance(game, tree_lib.CompiledGame):
        return game
    return tree_lib.compile_game(game, observed=observed)


def check_iterations(iterations: int) -> int:
    """Returns a whole number >= 1 or raises ValueError."""
    if isinstance(iterations, bool) or int(iterations) != iterations or iterations < 1:
        raise ValueError(f"iterations={iterations!r} must be a whole number >= 1")
    return int(iterations)


def solve(
    game: str | pyspiel.Game | tree_lib.CompiledGame,
    algorithm: str | algorithm_lib.CFRConfig = "cfr+",
    iterations: int = 1000,
    *,
    dtype: np.typing.DTypeLike = np.float64,
    progress: bool = False,
) -> SolveResult:
    """Solves a game with a member of the CFR family.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      algorithm: preset and parameters, such as "cfr+" or "dcfr(alpha=1.5)"; see
        `algorithm.parse_algorithm`.
      iterations: how many; in one iteration both players are updated once.
      dtype: arithmetic, float64 or float32. float32 stalls earlier.
      progress: show a progress bar on stderr.

    Returns:
      The average and the last strategies. The run is deterministic.

    Raises:
      pyspiel.SpielError: OpenSpiel does not know the game.
      ValueError: the game is not two-player zero-sum with perfect recall, or a bad
        argument.
    """
    config = algorithm_lib.parse_algorithm(algorithm)
    iterations = check_iterations(iterations)
    started = time.perf_counter()
    tree = as_compiled(game)
    build_seconds = time.perf_counter() - started
    solver = cfr.Solver(tree.form, config=config, dtype=dtype)
    with tqdm(total=iterations, desc=config.name, disable=not progress) as bar:
        solver.run(iterations, progress=bar.update)
    averages, currents = [], []
    for p, infosets in enumerate(tree.infosets):
        averages.append(
            policy_lib.behaviour_from_reach(infosets.decisions, solver.average(p))
        )
        currents.append(solver.current_behaviour(p))
    return SolveResult(
        tree=tree,
        algorithm=config.name,
        iterations=iterations,
        average=(averages[0], averages[1]),
        current=(currents[0], currents[1]),
        seconds=solver.seconds,
        compile_seconds=solver.compile_seconds,
        build_seconds=build_seconds,
    )
