"""An information state in the tree of a search, and what it learns."""

import dataclasses
import math
from collections.abc import Sequence


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
        """What each action is worth; unvisited ones the mean so far."""
        mean = self.total / self.reached if self.reached else 0.0
        return [
            total / visits if visits else mean
            for total, visits in zip(self.totals, self.visits, strict=True)
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


def back_up(path: Sequence[tuple[Node, int]], leaf: Node | None, value: float) -> None:
    """Takes in a simulation.

    Where Timbers et al. (2022) sum what simulations got that took an action, its total
    here is what they got with the action that is visited most at every later decision:
    by perfect recall an information state is met after one own action only, so that
    action's total is what simulations got that met no further node, plus arrivals times
    value of each node right after it. Exploration further down then costs visits, but
    does not lower the value of what leads there.

    Args:
      path: nodes and the places of actions taken, from the root of the search.
      leaf: a node after the last action that has just joined the tree with a predicted
        value; None: there is none.
      value: what the simulation got: its return, or the value of the leaf.
    """
    amount = value
    if leaf is not None:
        leaf.value = value
        amount = leaf.credit()
    root = path[0][0]
    for node, place in reversed(path):
        node.add(place, amount)
        if node is not root:
            amount = node.credit()
