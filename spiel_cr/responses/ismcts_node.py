"""An information state in the tree of a search, and what it learns."""

import dataclasses
import math
from collections.abc import Iterable, Sequence


@dataclasses.dataclass(slots=True, eq=False)
class Shared:
    """All moves as first ones: every simulation counts for each own action in it.

    Attributes:
      places: of each legal action, where its numbers stand.
      weights: simulations in which it was taken, here or later; those of an earlier
        decision of the match count less.
      totals: of these, the sum of returns.
      equivalence: the simulations at which these means and those of the actions' own
        visits count about alike, in `Node.values`.
    """

    places: dict[int, int]
    weights: list[float]
    totals: list[float]
    equivalence: float

    def add(self, actions: Iterable[int], value: float) -> None:
        """A simulation with these own actions got so much."""
        for action in set(actions):
            place = self.places.get(action)
            if place is not None:
                self.weights[place] += 1
                self.totals[place] += value


def share(
    actions: Sequence[int], equivalence: float, before: Shared | None, kept: float
) -> Shared:
    """All moves as first ones, at a new information state.

    Args:
      actions: the legal ones.
      equivalence: see `Shared`.
      before: what is known from an earlier decision; None: nothing.
      kept: by how much less it counts here.
    """
    weights, totals = [0.0] * len(actions), [0.0] * len(actions)
    if before is not None:
        for place, action in enumerate(actions):
            known = before.places.get(action)
            if known is not None:
                weights[place] = kept * before.weights[known]
                totals[place] = kept * before.totals[known]
    places = {action: place for place, action in enumerate(actions)}
    return Shared(places, weights, totals, equivalence)


@dataclasses.dataclass(slots=True, eq=False)
class Node:
    """An information state of the responder that is in the tree.

    Attributes:
      actions: the legal ones.
      prior: what is thought of each before it is tried.
      visits: of each, simulations that took it.
      totals: of each, visits times its value; the responder's, in the game's units.
      reached: simulations that were here and took an action.
      total: sum of `totals`.
      most: place of the most visited action; of equals the one that was so first, since
        to take the better one would favour luck where there are few visits.
      value: of that action; before any is visited, a predicted value.
      arrived: simulations that came here from the decision before this one; those that
        began here are not among them.
      credited: what the action that leads here has in its total for this.
      shared: all moves as first ones; None: they are not counted.
    """

    actions: list[int]
    prior: list[float]
    visits: list[int] = dataclasses.field(init=False)
    totals: list[float] = dataclasses.field(init=False)
    reached: int = 0
    total: float = 0.0
    most: int = 0
    value: float = 0.0
    arrived: int = 0
    credited: float = 0.0
    shared: "Shared | None" = None

    def __post_init__(self) -> None:
        self.visits = [0] * len(self.actions)
        self.totals = [0.0] * len(self.actions)

    def choose(self, exploration: float) -> int:
        """The place of PUCT's action; unvisited ones are worth the mean so far."""
        drive = exploration * math.sqrt(self.reached + 1)
        best, chosen, place = -math.inf, 0, 0
        for value, visits, prior in zip(
            self.values(), self.visits, self.prior, strict=True
        ):
            score = value + drive * prior / (1 + visits)
            if score > best:
                best, chosen = score, place
            place += 1
        return chosen

    def values(self) -> list[float]:
        """What each action is worth; unvisited ones the mean so far.

        With `shared`, (1 - b) times that plus b times the mean of the simulations in
        which the action was taken here or later, b = sqrt(k / (3 N + k)) for N
        simulations and k their `equivalence` (Gelly and Silver 2011, section 5.4).
        """
        mean = self.total / self.reached if self.reached else 0.0
        own = [
            total / visits if visits else mean
            for total, visits in zip(self.totals, self.visits, strict=True)
        ]
        if self.shared is None:
            return own
        equal = self.shared.equivalence
        share = math.sqrt(equal / (3 * self.reached + equal))
        return [
            (1 - share) * value + share * (total / weight if weight else mean)
            for value, total, weight in zip(
                own, self.shared.totals, self.shared.weights, strict=True
            )
        ]

    def add(self, place: int, amount: float) -> None:
        """A simulation took this action, and its total changed by `amount`."""
        self.reached += 1
        self.total += amount
        self.totals[place] += amount
        visits = self.visits
        visits[place] += 1
        if visits[place] > visits[self.most]:
            self.most = place
        self.value = self.totals[self.most] / visits[self.most]

    def credit(self) -> float:
        """What changes for the action that leads here, by a simulation through both."""
        self.arrived += 1
        worth = self.arrived * self.value
        change = worth - self.credited
        self.credited = worth
        return change


def back_up(
    path: Sequence[tuple[Node, int]], leaf: Node | None, value: float, kind: str
) -> None:
    """Takes in a simulation.

    With "mean", the total of an action is the sum of what simulations got that took it
    (Timbers et al. 2022). With "chosen" it is what they got with the action that is
    visited most at every later decision: by perfect recall an information state is met
    after one own action only, so that action's total is what simulations got that met
    no further node, plus arrivals times value of each node right after it. Exploration
    further down then costs visits, but does not lower the value of what leads there.

    Args:
      path: nodes and the places of actions taken, from the root of the search.
      leaf: a node after the last action that has just joined the tree with a predicted
        value; None: there is none.
      value: what the simulation got: its return, or the value of the leaf.
      kind: one of `ismcts_config.BACKUPS`.
    """
    if kind == "mean":
        for node, place in path:
            node.add(place, value)
        return
    amount = value
    if leaf is not None:
        leaf.value = value
        amount = leaf.credit()
    root = path[0][0]
    for node, place in reversed(path):
        node.add(place, amount)
        if node is not root:
            amount = node.credit()
