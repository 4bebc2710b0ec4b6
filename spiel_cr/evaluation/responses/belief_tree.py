"""Information states of the responder with whole beliefs, and how these are followed.

The tree of `belief_search.py`.
"""

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common import draws
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.rollouts import Answers, moves

# Moves that are held at a time, at most, where many actions are legal.
_MOST_EDGES = 1 << 20
# A history and its probability.
Weighted: TypeAlias = tuple[pyspiel.State, float]


@dataclasses.dataclass(slots=True, eq=False)
class Branch:
    """An action of an expanded information state.

    Attributes:
      reward: what terminals before the next own decision give, times their
        probabilities; the responder's, in the game's units.
      below: the next information states.
      odds: the probability of each.
      whole: nothing was drawn to find these, here and above; else they are estimates.
      looks: simulations that went to each.
      value: reward plus odds times values.
      solved: all that follows is expanded to the ends.
    """

    reward: float
    below: list["BeliefNode"]
    odds: list[float]
    whole: bool = True
    looks: list[int] = dataclasses.field(init=False)
    value: float = 0.0
    solved: bool = False

    def __post_init__(self) -> None:
        self.looks = [0] * len(self.below)
        self.update()

    def update(self) -> None:
        """Value and `solved` by what is below now."""
        value, solved = self.reward, True
        for node, share in zip(self.below, self.odds, strict=True):
            value += share * node.value
            solved = solved and node.solved
        self.value, self.solved = value, solved

    def next(self) -> "BeliefNode":
        """The information state to look at: of those that are not solved the one whose
        looks fall shortest of its probability."""
        best, chosen = -1.0, 0
        for place, node in enumerate(self.below):
            if not node.solved:
                due = self.odds[place] / (1 + self.looks[place])
                if due > best:
                    best, chosen = due, place
        self.looks[chosen] += 1
        return self.below[chosen]


@dataclasses.dataclass(slots=True, eq=False)
class BeliefNode:
    """An information state of the responder and its belief.

    Attributes:
      actions: the legal ones; one, None, at the start of the game.
      prior: what is thought of each before it is tried.
      value: before it is expanded a prediction or a rollout's return, then the best
        branch's value; the responder's, in the game's units.
      histories: with weights that sum to 1; given up when it is expanded.
      whole: these are all that there are.
      visits: simulations that took each action.
      branches: of the actions; none before it is expanded.
      solved: all branches are.
    """

    actions: Sequence[int | None]
    prior: Sequence[float]
    value: float
    histories: list[Weighted]
    whole: bool = True
    visits: list[int] = dataclasses.field(init=False)
    branches: list[Branch] = dataclasses.field(default_factory=list)
    solved: bool = False

    def __post_init__(self) -> None:
        self.visits = [0] * len(self.actions)

    def choose(self, exploration: float) -> int:
        """The place of PUCT's action among those that are not solved."""
        drive = exploration * math.sqrt(1 + sum(self.visits))
        best, chosen = -math.inf, 0
        for place, branch in enumerate(self.branches):
            if not branch.solved:
                score = branch.value + drive * self.prior[place] / (
                    1 + self.visits[place]
                )
                if score > best:
                    best, chosen = score, place
        return chosen

    def best(self) -> int:
        """The place of the action of most value, the first if equal."""
        values = [branch.value for branch in self.branches]
        return values.index(max(values))

    def update(self) -> None:
        """Value and `solved` by what is below now."""
        self.value = max(branch.value for branch in self.branches)
        self.solved = all(branch.solved for branch in self.branches)


class Followed(NamedTuple):
    """What may come after an action, until the player's next decision.

    Attributes:
      reward: the player's utility at terminals, times their weights.
      decisions: by the player's information state string, the histories at its next
        decisions, with weights that are not normalised.
      made: how many histories were made.
      whole: nothing was drawn.
    """

    reward: float
    decisions: dict[str, list[Weighted]]
    made: int
    whole: bool


def follow(
    histories: list[Weighted],
    action: int | None,
    player: int,
    answers: Answers,
    *,
    limit: int,
    number: Callable[[], float],
) -> Followed:
    """An action, and all that chance and the opponent may do until the next decision.

    Args:
      histories: of an information state of the player.
      action: the player's; None: none, at the start of the game.
      player: the responder.
      answers: the opponent's policy.
      limit: histories that are followed side by side at most; where there are more, so
        many are drawn, by systematic sampling, which keeps expectations.
      number: gives uniform numbers in [0, 1).
    """
    reward, made, whole = 0.0, len(histories), True
    at_decisions: dict[str, list[Weighted]] = {}
    frontier = [
        (state.clone() if action is None else state.child(action), weight)
        for state, weight in histories
    ]
    while frontier:
        edges: list[tuple[pyspiel.State, int, float]] = []
        for state, weight in frontier:
            mover = state.current_player()
            if mover == player:
                key = state.information_state_string(player)
                at_decisions.setdefault(key, []).append((state, weight))
            elif mover == TERMINAL:
                reward += weight * player_return(state, player)
            else:
                odds = moves(state, answers)
                edges += [(state, move, weight * p) for move, p in odds.items()]
                if len(edges) > max(_MOST_EDGES, 2 * limit):
                    # Drawn twice, expectations stay as they are.
                    edges, whole = few(edges, limit, number()), False
        if len(edges) > limit:
            edges, whole = few(edges, limit, number()), False
        made += len(edges)
        frontier = [(state.child(move), weight) for state, move, weight in edges]
    return Followed(reward, at_decisions, made, whole)


def few(
    edges: Sequence[tuple[pyspiel.State, int, float]], count: int, point: float
) -> list[tuple[pyspiel.State, int, float]]:
    """Draws by weight; each that is drawn stands there once.

    Args:
      edges: each with its weight at the end.
      count: draws.
      point: in [0, 1), see `draws.systematic`.

    Returns:
      Those drawn, with draws times the mean weight of a draw: of each the expectation
      is its weight.
    """
    weights = np.array([edge[2] for edge in edges])
    drawn = draws.systematic(weights, count, point)
    places, times = np.unique(drawn, return_counts=True)
    shares = times * (weights.sum() / count)
    kept = zip(places.tolist(), shares.tolist(), strict=True)
    return [(*edges[place][:2], share) for place, share in kept]
