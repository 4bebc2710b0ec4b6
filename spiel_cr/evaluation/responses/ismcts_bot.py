"""ISMCTS-BR on OpenSpiel states, as a bot, for two-player games.

For games that are too large to compile; `ismcts_br.py` searches compiled ones, batched.
"""

import dataclasses
import math
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
        total = self.arrived * self.value
        change = total - self.credited
        self.credited = total
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


class Predictor(NamedTuple):
    """What a search knows from elsewhere.

    Attributes:
      prior_and_value: of information states; by default all actions are alike, and
        rollouts give the values.
      rollout: how the responder plays in rollouts, its first action outside of the tree
        included, such as the opponent's policy if it knows this seat, too; None: that
        one by the prior where histories are drawn, the others uniformly.
    """

    prior_and_value: belief_search.PriorAndValue = belief_search.uniform_prior
    rollout: openspiel_policy.Policy | None = None


_PREDICTS_NOTHING = Predictor()


class Searched(NamedTuple):
    """What a search found at an information state.

    Attributes:
      actions: the legal ones.
      visits: of each, those of earlier searches in the match included; of whole
        beliefs the ways down, and for the best action simulations that were not needed.
      values: of each, see `ismcts_bot.back_up`, or expectations of whole beliefs; the
        responder's, in the game's units; 0 where no simulation took it.
    """

    actions: list[int]
    visits: list[int]
    values: list[float]


# Of the Dirichlet distribution of noise, of each action.
_CONCENTRATION = 0.3


def _noisy(
    prior: Sequence[float], noise: float, random: np.random.Generator
) -> list[float]:
    """The prior with a share of Dirichlet noise."""
    if not noise:
        return list(prior)
    drawn = random.dirichlet([_CONCENTRATION] * len(prior))
    return ((1 - noise) * np.array(prior) + noise * drawn).tolist()


class ISMCTSBRBot(StateResponder):
    """Responds to a known policy by search from each of its decisions.

    Timbers et al. 2022, "Approximate exploitability: learning a best response",
    Algorithms 1 and 2: each simulation draws a history from the posterior of the
    present information state, exact while it fits, else in particles; PUCT chooses at
    the responder's information states, the opponent's policy and chance at theirs; the
    first information state that is not in the tree joins it, and its value (predicted,
    or the return of a rollout) is backed up. The most visited action is played, the
    better one if equal.

    Deviations. What is backed up: an action is worth what it brings if the
    most visited action follows at every later decision, so that exploration further
    down does not lower it; see `ismcts_bot.back_up`. An unvisited action is worth the
    mean of its information state (theirs: 0), since utilities need not be centred.
    Values are undiscounted returns. With rollouts, the first action outside of the tree
    is recorded too; the opponent plays its policy there.

    Where the belief is small beside the simulations, and `config.histories` is "all",
    nothing of this is drawn but rollouts: whole beliefs are followed (`belief_search`),
    in as many moves as the simulations would have. The action of most value is played
    then.

    Attributes:
      belief: over histories.
      beliefs: what it was like at the decisions so far.
      simulations: run since it was made.
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
        """Searches nothing yet.

        Args:
          game: a sequential game.
          player: the seat, 0 or 1.
          opponent: its policy; must depend on its information states only.
          config: simulations per decision and the rest (`batch` is not used).
          seed: of all draws.
          predictor: priors, values and rollouts.
          belief: that histories are drawn from; None: `StatePosterior` with its
            defaults.

        Raises:
          ValueError: a bad argument.
        """
        config = config or SearchConfig()
        if config.learn:
            raise ValueError(
                f"learn={config.learn} searches every information state beforehand, "
                f"which needs a compiled game (ismcts_br.search_response); on states "
                f"leave it 0 and give a predictor"
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
        """Information states in the trees."""
        return len(self._nodes) + (len(self._beliefs.nodes) if self._beliefs else 0)

    def restart(self) -> None:
        """A new match: the tree and the belief are dropped."""
        super().restart()
        self._nodes.clear()
        if self._beliefs is not None:
            self._beliefs.clear()

    def best_action(self, state: pyspiel.State) -> int:
        """The most visited action of a search, the better one if equal."""
        searched = self.search(state)
        ranked = zip(searched.visits, searched.values, strict=True)
        best = max(enumerate(ranked), key=lambda place: place[1])[0]
        return searched.actions[best]

    def search(self, state: pyspiel.State, *, noise: float = 0.0) -> Searched:
        """Runs the simulations of one decision.

        Args:
          state: the player is to act; what it does not know is not looked at.
          noise: share of Dirichlet noise in the prior of this state, for learning.

        Returns:
          What was found; where the belief has no history, one visit of a random action.

        Raises:
          ValueError: a state of the unconverted simultaneous game.
        """
        random = self._observe(state)
        if not self.belief.states:
            legal = state.legal_actions()
            chosen = int(random.integers(len(legal)))
            visits = [int(place == chosen) for place in range(len(legal))]
            return Searched(legal, visits, [0.0] * len(legal))
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
        return Searched(list(root.actions), list(root.visits), values)

    def _search_beliefs(
        self, random: np.random.Generator, noise: float
    ) -> Searched | None:
        """As `search`, with the whole belief; None where that is too large."""
        assert self._beliefs is not None
        root = self._beliefs.root
        without_noise = root.prior
        root.prior = _noisy(without_noise, noise, random)
        worth = self._beliefs.search()
        root.prior = without_noise
        if worth is None:
            return None
        self.simulations += worth
        visits, best = list(root.visits), root.best()
        # Those that were not needed would have gone to the best action; one at least,
        # so that it is the most visited one.
        visits[best] += max(self._config.simulations - worth, 0)
        visits[best] = max(visits[best], max(visits) + 1)
        values = [branch.value for branch in root.branches]
        actions = self.belief.states[0].legal_actions()
        return Searched(actions, visits, values)

    def _simulate(
        self, state: pyspiel.State, root: Node, number: Callable[[], float]
    ) -> None:
        """Goes from a history at the root to a value, and backs it up."""
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
        """The value of an information state outside of the tree, which may join it.

        The node comes with it where its value was predicted.
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
