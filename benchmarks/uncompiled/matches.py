"""Matches between policies, and what the policies knew at their decisions."""

from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from benchmarks.frame import Row
from spiel_cr.eval.common.statistics import mean_and_half_width
from spiel_cr.eval.players.match import play_match
from spiel_cr.players.bots import PolicyBot


class Watched(openspiel_policy.Policy):
    """A policy, and how often it was asked.

    Attributes:
      decisions: with more than one legal action.
      informed: those among them whose answer was not uniform.
    """

    def __init__(self, game: pyspiel.Game, policy: object) -> None:
        """Takes a policy of Python or of C++."""
        super().__init__(game, [0, 1])
        self._policy = policy
        self.decisions = self.informed = 0

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        """As the policy has them; uniform where it has none."""
        found: dict[int, float] = self._policy.action_probabilities(state)  # type: ignore[attr-defined]
        legal = state.legal_actions()
        if len(legal) > 1:
            self.decisions += 1
            self.informed += max(found.values(), default=0) > 1.001 / len(legal)
        return found or dict.fromkeys(legal, 1 / len(legal))


class Played(NamedTuple):
    """What matches were worth.

    Attributes:
      mean: return of the first policy.
      half_width: of its 95 % interval.
    """

    mean: float
    half_width: float | None


def against_itself(
    game: pyspiel.Game, policy: openspiel_policy.Policy, count: int, seed: int
) -> Played:
    """Player 0's return where both seats play a policy.

    Args:
      game: a sequential game.
      policy: of both players.
      count: of matches.
      seed: of all that is drawn.
    """
    random = np.random.default_rng(seed)
    bots = [PolicyBot(seat, policy) for seat in range(2)]
    returns = [play_match(game, bots, random).returns[0] for _ in range(count)]
    return Played(*mean_and_half_width(returns))


def between(
    game: pyspiel.Game,
    mine: openspiel_policy.Policy,
    other: openspiel_policy.Policy,
    count: int,
    seed: int,
) -> Played:
    """The first policy's return, half of the matches in each seat.

    Matches come in twos with swapped seats; a pair is one observation.

    Args:
      game: a sequential game.
      mine: a policy of both players.
      other: its opponent.
      count: of matches; an odd one is rounded up.
      seed: of all that is drawn.
    """
    random = np.random.default_rng(seed)
    seats = [
        (PolicyBot(0, mine), PolicyBot(1, other)),
        (PolicyBot(0, other), PolicyBot(1, mine)),
    ]
    pairs = [
        sum(play_match(game, seats[s], random).returns[s] for s in range(2)) / 2
        for _ in range((count + 1) // 2)
    ]
    return Played(*mean_and_half_width(pairs))


def facts_of(
    name: str, game: pyspiel.Game, policy: object, count: int, seed: int
) -> Row:
    """A policy against itself and against uniform play, as facts of a row.

    Args:
      name: before each fact.
      game: a sequential game.
      policy: of Python or of C++; one that counts `asked` and `unmet` is asked for
        these, too.
      count: of matches, each.
      seed: of all that is drawn.
    """
    row: Row = {}
    uniform = openspiel_policy.UniformRandomPolicy(game)
    for opponent in ("itself", "uniform"):
        watched = Watched(game, policy)
        before = [getattr(policy, counted, 0) for counted in ("asked", "unmet")]
        if opponent == "itself":
            played = against_itself(game, watched, count, seed)
        else:
            played = between(game, watched, uniform, count, seed)
        row |= {f"{name}_{opponent}_{k}": v for k, v in played._asdict().items()}
        share = watched.informed / max(watched.decisions, 1)
        row[f"{name}_{opponent}_informed"] = share
        asked, unmet = (
            getattr(policy, counted, 0) - first
            for counted, first in zip(("asked", "unmet"), before, strict=True)
        )
        if asked:
            row[f"{name}_{opponent}_met"] = 1 - unmet / asked
    return row
