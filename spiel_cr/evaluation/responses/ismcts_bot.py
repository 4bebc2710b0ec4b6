"""ISMCTS-BR on OpenSpiel states, as a bot, for games without a game tree.

For game trees see `ismcts_search`, which searches them in batches.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses import belief_search
from spiel_cr.evaluation.responses.state_responder import StateResponder
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.rollouts import Answers, draw_outcome, play_on, uniform_numbers


@dataclasses.dataclass(slots=True, eq=False)
class Node(belief_search.SearchNode):
    """An information state of a search that samples histories.

    Attributes:
      totals: Visits times value of each action, in the responder's utility.
      reached: Number of simulations that took an action here.
      total: Sum of `totals`.
      most: Index of the most visited action. Among equally visited ones, it is the one
        that first had this number of visits; with few visits, choosing the one of
        highest value would favour luck.
      value: Value of that action; before any visit, a predicted value.
      arrived: Number of simulations that came from the decision before, without those
        that began here.
      credited: Contribution of this node to the total of the action that leads to it.
    """

    actions: list[int]
    totals: list[float] = dataclasses.field(init=False)
    reached: int = 0
    total: float = 0.0
    most: int = 0
    value: float = 0.0
    arrived: int = 0
    credited: float = 0.0

    def __post_init__(self) -> None:
        belief_search.SearchNode.__post_init__(self)
        self.totals = [0.0] * len(self.actions)

    def values(self) -> list[float]:
        """Return the value of each action; unvisited ones have the mean so far."""
        mean = self.total / self.reached if self.reached else 0.0
        return [
            total / visits if visits else mean
            for total, visits in zip(self.totals, self.visits, strict=True)
        ]

    def add(self, place: int, amount: float) -> None:
        """Add a simulation of an action, whose total changes by `amount`."""
        self.reached += 1
        self.total += amount
        self.totals[place] += amount
        visits = self.visits
        visits[place] += 1
        if visits[place] > visits[self.most]:
            self.most = place
        self.value = self.totals[self.most] / visits[self.most]

    def credit(self) -> float:
        """Add an arrival; return the change of the total of the action before."""
        self.arrived += 1
        total = self.arrived * self.value
        change = total - self.credited
        self.credited = total
        return change


def back_up(path: Sequence[tuple[Node, int]], leaf: Node | None, value: float) -> None:
    """Back up the value of a simulation.

    Timbers et al. (2022) sum the values of all simulations of an action. Here the total
    of an action assumes the most visited action at every later decision. By perfect
    recall an information state follows one action of the player only. An action's total
    is therefore the sum of values of simulations that reached no further node, plus
    arrivals times value of each node right after it. Exploration further down costs
    visits, but does not lower the values above.

    Args:
      path: Nodes and places of the played actions, from the root of the search.
      leaf: A node after the last action that has just joined the tree with a predicted
        value; None for a simulation that reached the end of the game.
      value: Value of the simulation: its return, or the value of the leaf.
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


class Predictor(NamedTuple):
    """Predictions for a search.

    Attributes:
      prior_and_value: Prior and value of information states; by default a uniform
        prior, and values of rollouts.
      rollout: Policy of the responder in rollouts, including its first action outside
        the tree, such as the opponent's policy for this player. If None, that action is
        sampled by the prior if histories are sampled, and others are uniform.
    """

    prior_and_value: belief_search.PriorAndValue = belief_search.uniform_prior
    rollout: openspiel_policy.Policy | None = None


_PREDICTS_NOTHING = Predictor()


class SearchResult(NamedTuple):
    """Result of a search at an information state.

    Attributes:
      actions: The legal actions.
      visits: Number of visits of each action, including earlier searches in the match.
        With complete beliefs it counts descents, and for the best action simulations
        that were not needed.
      values: Value of each action, see `back_up`, or expectations over complete
        beliefs, in the responder's utility; 0 for actions without visits.
    """

    actions: list[int]
    visits: list[int]
    values: list[float]


# Concentration of the Dirichlet noise of each action.
_CONCENTRATION = 0.3


def _noisy(
    prior: Sequence[float], noise: float, random: np.random.Generator
) -> list[float]:
    """Return the prior with a share of Dirichlet noise."""
    if not noise:
        return list(prior)
    drawn = random.dirichlet([_CONCENTRATION] * len(prior))
    return ((1 - noise) * np.array(prior) + noise * drawn).tolist()


class ISMCTSBRBot(StateResponder):
    """A bot that responds to a known policy by search from each of its decisions.

    Timbers et al. 2022, "Approximate exploitability: learning a best response",
    Algorithms 1 and 2: each simulation samples a history from the posterior of the
    current information state, which is exact or consists of particles. PUCT chooses at
    the responder's information states, and the opponent's policy and chance at theirs.
    The first information state outside the tree joins the tree, and its value
    (predicted, or the return of a rollout) is backed up. The most visited action is
    played; of equal ones the better one.

    Deviations: The value of an action assumes the most visited action at every later
    decision, so that exploration further down does not lower it; see `back_up`. An
    unvisited action has the mean value of its information state (in the paper 0),
    because utilities need not be centred. Values are undiscounted returns. With
    rollouts, the first action outside the tree is recorded, too, and the opponent plays
    its policy there.

    If the belief is small compared with the simulations, and `config.histories` is
    "all", only rollouts are sampled. The search follows complete beliefs
    (`belief_search`) with as many moves as the simulations would have, and the action
    of the largest value is played.

    Attributes:
      belief: The belief over histories.
      beliefs: Statistics of the beliefs so far.
      simulations: Number of simulations so far.
    """

    def __init__(
        self,
        game: pyspiel.Game,
        player: int,
        opponent: openspiel_policy.Policy,
        config: SearchConfig | None = None,
        *,
        seed: int = 0,
        predictor: Predictor = _PREDICTS_NOTHING,
        belief: StatePosterior | None = None,
    ) -> None:
        """Initialise without a search.

        Args:
          game: A sequential game.
          player: The responder, 0 or 1.
          opponent: The opponent's policy, which must depend on its information states
            only.
          config: Settings of the search; `batch` is not used.
          seed: Seed for all random choices.
          predictor: Priors, values and policy of rollouts.
          belief: Belief from which histories are sampled; by default a
            `StatePosterior`.

        Raises:
          ValueError: If an argument is invalid.
        """
        config = config or SearchConfig()
        if config.learn:
            raise ValueError(
                f"learn={config.learn} searches every information state beforehand, "
                f"which needs a game tree (search_response); on states "
                f"use learn=0 and give a predictor"
            )
        uniform = openspiel_policy.UniformRandomPolicy(game)
        super().__init__(game, player, opponent, seed=seed, belief=belief)
        self._config = config
        half_range = (game.max_utility() - game.min_utility()) / 2
        self._exploration = config.exploration * half_range
        self._prior_and_value = predictor.prior_and_value
        self._others = {1 - player: self._opponent}
        self._own = Answers(predictor.rollout or uniform, player)
        self._by_prior = predictor.rollout is None
        self._both = {**self._others, player: self._own}
        self._nodes: dict[str, Node] = {}
        self._beliefs: belief_search.BeliefSearch | None = None
        if config.histories == "all":
            self._beliefs = belief_search.BeliefSearch(
                player,
                self._opponent,
                self._own,
                config,
                exploration=self._exploration,
                prior_and_value=predictor.prior_and_value,
            )

    @property
    def num_nodes(self) -> int:
        """Number of information states in the trees."""
        return len(self._nodes) + (len(self._beliefs.nodes) if self._beliefs else 0)

    def restart(self) -> None:
        """Begin a match; the tree and the belief are dropped."""
        super().restart()
        self._nodes.clear()
        if self._beliefs is not None:
            self._beliefs.nodes.clear()

    def best_action(self, state: pyspiel.State) -> int:
        """Return the most visited action of a search; of equal ones the better one."""
        searched = self.search(state)
        ranked = zip(searched.visits, searched.values, strict=True)
        best = max(enumerate(ranked), key=lambda place: place[1])[0]
        return searched.actions[best]

    def search(self, state: pyspiel.State, *, noise: float = 0.0) -> SearchResult:
        """Run the simulations of one decision.

        Args:
          state: A state at which the player acts; only its information is used.
          noise: Share of Dirichlet noise in the prior of this state, for learning.

        Returns:
          The result; one visit of a random action if the belief has no history.

        Raises:
          ValueError: If the state belongs to an unconverted simultaneous game.
        """
        random = self._observe(state)
        if not self.belief.states:
            legal = state.legal_actions()
            chosen = int(random.integers(len(legal)))
            visits = [int(place == chosen) for place in range(len(legal))]
            return SearchResult(legal, visits, [0.0] * len(legal))
        if self._beliefs is not None and self._beliefs.enter(
            state, self.belief, random
        ):
            searched = self._search_beliefs(random, noise)
            if searched is not None:
                return searched
        if len(self._nodes) >= self._config.max_nodes:
            self._nodes.clear()
        key = state.information_state_string(self._player)
        root = self._nodes.get(key)
        if root is None:
            prior, _ = self._prior_and_value(state, self._player)
            root = self._nodes[key] = Node(state.legal_actions(), list(prior))
        without_noise = root.prior
        root.prior = _noisy(without_noise, noise, random)
        number = uniform_numbers(random)
        for _ in range(self._config.simulations):
            history = self.belief.sample(random)
            self._simulate(history, root, number)
        root.prior = without_noise
        self.simulations += self._config.simulations
        values = [
            value if visits else 0.0
            for value, visits in zip(root.values(), root.visits, strict=True)
        ]
        return SearchResult(list(root.actions), list(root.visits), values)

    def _search_beliefs(
        self, random: np.random.Generator, noise: float
    ) -> SearchResult | None:
        """Search with the complete belief; None if the belief is too large."""
        assert self._beliefs is not None
        root = self._beliefs.root
        without_noise = root.prior
        root.prior = _noisy(without_noise, noise, random)
        simulated = self._beliefs.search()
        root.prior = without_noise
        if simulated is None:
            return None
        self.simulations += simulated
        visits, best = list(root.visits), root.best()
        # Simulations that were not needed count for the best action, at least one, so
        # that it is the most visited one.
        visits[best] += max(self._config.simulations - simulated, 0)
        visits[best] = max(visits[best], max(visits) + 1)
        values = [branch.value for branch in root.branches]
        actions = self.belief.states[0].legal_actions()
        return SearchResult(actions, visits, values)

    def _simulate(
        self, state: pyspiel.State, root: Node, number: Callable[[], float]
    ) -> None:
        """Simulate from a history at the root, and back up the value."""
        me, node, leaf = self._player, root, None
        path: list[tuple[Node, int]] = []
        while True:
            place = node.choose(self._exploration)
            path.append((node, place))
            state.apply_action(node.actions[place])
            if play_on(state, self._others, number) != me:
                value = player_return(state, me)
                break
            key = state.information_state_string(me)
            below = self._nodes.get(key)
            if below is None:
                leaf, value = self._leave(state, key, path, number)
                break
            node = below
        back_up(path, leaf, value)

    def _leave(
        self,
        state: pyspiel.State,
        key: str,
        path: list[tuple[Node, int]],
        number: Callable[[], float],
    ) -> tuple[Node | None, float]:
        """Return the value of an information state outside the tree, which may join it.

        Returns:
          The node if its value was predicted, otherwise None; and the value.
        """
        if len(self._nodes) < self._config.max_nodes:
            prior, value = self._prior_and_value(state, self._player)
            node = self._nodes[key] = Node(state.legal_actions(), list(prior))
            if value is not None:
                return node, value
            if self._by_prior:
                weighted = list(zip(range(len(node.actions)), node.prior, strict=True))
                place = draw_outcome(weighted, number())
            else:
                place = node.actions.index(self._own.draw(state, number()))
            path.append((node, place))
            state.apply_action(node.actions[place])
        play_on(state, self._both, number)
        return None, player_return(state, self._player)
