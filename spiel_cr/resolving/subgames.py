"""Interfaces of a resolver's subgames, in any form of the game."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common.jax_utils import on_device
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver

# With a time limit the number of iterations of a move is unknown, and the compiled
# function must not depend on it: the one for short runs is used.
_SHORT_RUN = 1

# Identification of a subgame by numbers of its form.
SubgameId = Hashable
# Identification of a decision of the player by numbers of the form.
Decision = Any


class Memory(Protocol):
    """Strategy of the player and values of the opponent so far."""

    def copy(self) -> "Memory":
        """Return a copy that can change independently."""


class Solve(NamedTuple):
    """A solve of a subgame, which can be continued.

    Attributes:
      solver: The solver.
      remember: Function that stores the solution so far in the memory with which the
        solve started.
      subgame: The subgame, in the numbers of its form.
    """

    solver: Solver
    remember: Callable[[], None]
    subgame: Any


class Subgames(Protocol):
    """Subgames of one player in one form of a game.

    Attributes:
      decomposition: Layers and subgames of the player.
    """

    decomposition: Any

    def blank(self) -> Any:
        """Return a memory without solutions."""

    def warm_ups(self) -> Sequence[tuple[str, Sequence[SubgameId]]]:
        """Return subgames that together need every compiled function, in named groups.

        The first subgame of the first group is the part of the game that is solved
        before a match; later groups are solved after it.
        """

    def decision(self, state: pyspiel.State) -> tuple[Decision, list[int]]:
        """Return the player's decision in a state, and OpenSpiel's actions there.

        Raises:
          ValueError: If the state is of another game.
        """

    def subgames_to(self, decision: Decision, /) -> Sequence[SubgameId]:
        """Return the subgames that must be solved for a decision, from the top."""

    def opens(self, decision: Decision, /) -> bool:
        """Return whether a decision is the player's first one in its subgame."""

    def begin(self, memory: Any, subgame_id: Any) -> Solve:
        """Return a solve of a subgame, given the solutions above it."""

    def strategy(self, memory: Any, decision: Decision, /) -> np.ndarray:
        """Return the solution at a decision, or uniform, float64 [A]."""

    def beliefs(
        self, memory: Any, decision: Decision, solves: Sequence[Solve], /
    ) -> BotBeliefs:
        """Return the player's beliefs at a decision.

        Args:
          memory: Memory after these solves.
          decision: The decision.
          solves: Solves of the subgames that lead to the decision, from the top.
        """


def full_width_solver(
    form: SequenceForm,
    algorithm: CFRConfig,
    config: ResolvingConfig,
    first: int,
    *,
    values: bool = True,
) -> Solver:
    """Make a solver of a gadget game whose compiled function suits all subgames.

    Args:
      form: The gadget game.
      algorithm: Algorithm of `config`.
      config: Settings, which contain the expected number of iterations.
      first: The player that updates first.
      values: Whether to keep mean counterfactual values of infosets.
    """
    return cfr.make_solver(
        form,
        config=algorithm,
        values=values,
        first=first,
        compile=cfr.compile_for(form, config.iterations or _SHORT_RUN),
        put=on_device,
    )
