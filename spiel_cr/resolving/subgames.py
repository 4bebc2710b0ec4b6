"""What a resolver asks of a game, whatever its form."""

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyspiel

from spiel_cr.common.jax_utils import on_device
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver

# The program must not depend on how many iterations a move gets: under a clock those of
# few iterations is taken.
_SHORT_RUN = 1

# What is solved at a time: a subgame, by numbers of its form.
SubgameId = Hashable
# A decision of the player, by numbers of the form.
Decision = Any


class Memory(Protocol):
    """The player's strategy and the opponent's values, as far as they are resolved."""

    def copy(self) -> "Memory":
        """One that may change without this."""


class Solve(NamedTuple):
    """A solve of a subgame, which may go on.

    Attributes:
      solver: that does it.
      remember: puts what it found so far into the memory that it began with.
    """

    solver: Solver
    remember: Callable[[], None]


class Subgames(Protocol):
    """The subgames of one player in one form of a game.

    Attributes:
      decomposition: layers and subgames for the player.
    """

    decomposition: Any

    def blank(self) -> Any:
        """A memory of nothing."""

    def warm_ups(self) -> Sequence[tuple[str, Sequence[SubgameId]]]:
        """Places that between them have every program, in groups with their names.

        The first place of the first group is the whole game, as far as it is solved
        before a match; groups after it are solved after that.
        """

    def decision(self, state: pyspiel.State) -> tuple[Decision, list[int]]:
        """The player's decision in a state, and OpenSpiel's actions there.

        Raises:
          ValueError: a state of another game.
        """

    def subgames_to(self, decision: Decision, /) -> Sequence[SubgameId]:
        """What must be solved for a decision, from the top."""

    def opens(self, decision: Decision, /) -> bool:
        """Whether a decision is a subgame's first one of the player."""

    def begin(self, memory: Any, place: Any) -> Solve:
        """A solver of a subgame, by what was resolved above it."""

    def strategy(self, memory: Any, decision: Decision, /) -> np.ndarray:
        """float64 [A], the player's action probabilities, resolved or uniform."""


def full_width_solver(
    form: SequenceForm,
    algorithm: CFRConfig,
    config: ResolvingConfig,
    first: int,
    *,
    values: bool = True,
) -> Solver:
    """A solver of a gadget game, whose program does not depend on the subgame.

    Args:
      form: the game.
      algorithm: of `config`.
      config: says how many iterations are planned.
      first: the player who updates first.
      values: keep the mean counterfactual values of infosets.
    """
    return cfr.make_solver(
        form,
        config=algorithm,
        values=values,
        first=first,
        compile=cfr.compile_for(form, config.iterations or _SHORT_RUN),
        put=on_device,
    )
