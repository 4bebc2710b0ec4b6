"""Comparing: what an algorithm must offer to be compared, and the game it meets."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Literal, NamedTuple, Protocol

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.policies import conversions as policy_lib

from ..common.game_instance import GameInstance, Strategy

Way = Literal["iterates", "restarts", "once"]


class SolverAdapter(Protocol):
    """One algorithm on one game, made fresh for each cell.

    Attributes:
      compile_seconds: of making it and running it, what went into compiling JAX
        programs (where that can be told apart).
      note: what a reader of the result should know besides; may be empty.
    """

    compile_seconds: float
    note: str

    def run(self, iterations: int) -> float | None:
        """Does its work.

        Args:
          iterations: of an entry that "iterates", how many more; of one that
            "restarts", how many from the beginning; of one that works "once", 1.

        Returns:
          The seconds that count, where the clock outside would count too much
          (compiling, for example); None: the clock outside is right.
        """

    def strategy(self) -> Strategy:
        """What it plays after what it did so far, everywhere in the game."""


class Entry(NamedTuple):
    """An algorithm by name.

    Attributes:
      name: what users write.
      title: for tables.
      ours: of this project; otherwise bundled with OpenSpiel.
      how: one sentence on how its numbers come about.
      make: from instance and seed to a adapter. May raise `MissingError`.
      way: "iterates": every further iteration improves the same strategy; "restarts":
        a budget has to be known beforehand, so that each point of its curve is a run
        of its own; "once": it takes the time that it takes.
      samples: whether seeds make a difference.
      modules: that must be installed.
      extra: which extra of the project installs them; empty: none.
      least: iterations at least.
      files: that must exist.
    """

    name: str
    title: str
    ours: bool
    how: str
    make: Callable[[GameInstance, int], SolverAdapter]
    way: Way = "iterates"
    samples: bool = False
    modules: tuple[str, ...] = ()
    extra: str = ""
    least: int = 1
    files: tuple[str, ...] = ()


def ask(
    tree: CompiledGame, policy: pyspiel.Policy | openspiel_policy.Policy
) -> Strategy:
    """A policy's answers at every infoset; uniform where it has none.

    OpenSpiel's solvers give no probabilities, or 0/0, where they never were.
    """
    strategy = policy_lib.behaviour_from_policy(tree, policy)
    for infosets, behaviour in zip(tree.infosets, strategy, strict=True):
        owner = infosets.decisions.owner[1:]
        total = np.bincount(owner, behaviour[1:], minlength=len(infosets))
        silent = 1 + np.flatnonzero(~(total[owner] > 0))
        behaviour[silent] = policy_lib.uniform_behaviour(infosets.decisions)[silent]
    return strategy


class NumpyDraws:
    """A stream of numpy's global random numbers that leaves the others' alone.

    Some of what OpenSpiel bundles draws from numpy's global generator.
    """

    def __init__(self, seed: int) -> None:
        self._state = np.random.RandomState(seed).get_state()

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Draws come from this stream inside the block."""
        others = np.random.get_state()
        np.random.set_state(self._state)
        try:
            yield
        finally:
            self._state = np.random.get_state()
            np.random.set_state(others)


def states(tree: CompiledGame, player: int) -> Sequence[pyspiel.State]:
    """The first state of each of a player's infosets."""
    return [tree.state_at(history) for history in tree.infosets[player].history]
