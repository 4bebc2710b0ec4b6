"""What may have happened, as far as a player can tell: weighted histories.

A belief is a list of histories of one infoset of the player, each weighted with the
probability that chance and the opponent, as it is believed to play, lead there: a
particle filter whose particles are histories.
"""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import draws
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.stepping.labelled import LabelledSimulator, Nodes

# From histories where a player acts: its probabilities, float64 [sum of num_actions].
Strategy: TypeAlias = Callable[[Nodes], np.ndarray]


class Belief(NamedTuple):
    """Weighted histories.

    Attributes:
      nodes: n histories.
      weights: float64 [n], their probabilities; those of one infoset sum to 1.
    """

    nodes: Nodes
    weights: np.ndarray

    def select(self, chosen: np.ndarray) -> "Belief":
        """Some of the histories, by index or mask, weighted as they are."""
        return Belief(self.nodes.select(chosen), self.weights[chosen])

    def relative_to(self, total: float) -> "Belief":
        """The same histories with weights divided by a total."""
        return Belief(self.nodes, self.weights / total)

    def resample(self, most: int, random: np.random.Generator) -> "Belief":
        """At most `most` histories, drawn by their weights where there are more.

        Systematic sampling: a history whose weight is k times the mean of those kept is
        drawn about k times, and then weighs k; the draws are one random number.
        """
        drawn, weights = draws.thin(self.weights, most, random)
        return Belief(self.nodes.select(drawn), weights)


class Step(NamedTuple):
    """What `ParticleFilter.step` finds.

    Attributes:
      belief: at the next decision.
      probability: that chance and the opponent lead there, after the action.
      turn: where the opponent acted first since the last decision, all histories of
        infosets after which the next decision may come; weighted by probability. None:
        the opponent did not always act.
    """

    belief: Belief
    probability: float
    turn: Belief | None


def join(*beliefs: Belief) -> Belief:
    """The histories of several, weighted as they are."""
    columns = zip(*(nodes for nodes, _ in beliefs), strict=True)
    nodes = Nodes(*(np.concatenate(column) for column in columns))
    return Belief(nodes, np.concatenate([weights for _, weights in beliefs]))


def uniform_strategy(nodes: Nodes) -> np.ndarray:
    """All actions alike, see `Strategy`."""
    return np.repeat(1 / nodes.num_actions, nodes.num_actions)


@dataclasses.dataclass(frozen=True)
class ParticleFilter:
    """Follows histories from one decision of a player to its next one.

    Attributes:
      simulator: of the game.
      player: whose decisions.
      strategies: how both players play, in the order of players.
      most: histories to follow at a time; of more, some are drawn.
      random: consumed, one number for each draw of histories.
    """

    simulator: LabelledSimulator
    player: int
    strategies: tuple[Strategy, Strategy]
    most: int
    random: np.random.Generator

    def resample(self, belief: Belief) -> Belief:
        """As many histories as may be followed."""
        return belief.resample(self.most, self.random)

    def children(self, belief: Belief) -> tuple[Belief, np.ndarray]:
        """The children of histories that go on, and int64 [n], whose."""
        nodes = belief.nodes
        children, parents = self.simulator.children(nodes.states, nodes.player)
        odds = children.factor.copy()
        for player, strategy in enumerate(self.strategies):
            acts = nodes.player == player
            if acts.any():
                odds[acts[parents]] = strategy(nodes.select(acts))
        return Belief(children, belief.weights[parents] * odds), parents

    def step(self, belief: Belief, action: int | None, key: str) -> Step | None:
        """From a decision of the player, or the start of the game, to its next one.

        Args:
          belief: there.
          action: what the player did; None at the start of the game.
          key: its information-state string at the next decision.

        Returns:
          What is possible there; None: none of the histories that were followed leads
          there.
        """
        if action is not None:
            nodes, parents = self.simulator.children(
                belief.nodes.states, belief.nodes.player, action
            )
            belief = Belief(nodes, belief.weights[parents])
        found: list[Belief] = []
        # Where the opponent acted first, and which of these each history comes after.
        turns: list[Belief] = []
        turn, turn_found, count = np.full(len(belief.weights), -1), [], 0
        while len(belief.weights):
            nodes = belief.nodes
            own = np.flatnonzero(nodes.player == self.player)
            if len(own):
                strings = self.simulator.strings(nodes.states[own], self.player)
                fits = own[[string == key for string in strings]]
                found.append(belief.select(fits))
                turn_found.append(turn[fits])
            goes_on = (nodes.player != self.player) & (nodes.player != TERMINAL)
            weights = np.where(goes_on, belief.weights, 0.0)
            chosen, weights = draws.thin(weights, self.most, self.random)
            belief, turn = Belief(nodes.select(chosen), weights), turn[chosen]
            acts = belief.nodes.player == 1 - self.player
            first = np.flatnonzero(acts & (turn < 0))
            turn[first] = count + np.arange(len(first))
            turns.append(belief.select(first))
            count += len(first)
            if len(weights):
                belief, parents = self.children(belief)
                turn = turn[parents]
        if not sum(len(weights) for _, weights in found):
            return None
        belief = join(*found)
        chosen, weights = draws.thin(belief.weights, self.most, self.random)
        if not len(weights):
            return None
        begun = np.unique(np.concatenate(turn_found)[chosen])
        since = None
        if begun[0] >= 0:
            starts = join(*turns)
            labels = starts.nodes.label
            since = starts.select(np.isin(labels, labels[begun]))
        total = float(weights.sum())
        return Step(Belief(belief.nodes.select(chosen), weights / total), total, since)
