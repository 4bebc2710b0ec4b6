"""Lookahead with complete beliefs on OpenSpiel's states.

`ISMCTSBRBot` uses this search if all histories of a decision can be followed together.
The opponent's policy is fixed, so the game is a decision problem of the responder with
a known model. An information state in the tree has its complete belief: histories and
their weights. To expand it, each action is applied to each history, followed by all
possible moves of the opponent and chance. The rewards of terminal nodes and the
probabilities of the next information states are therefore expectations, not means of
samples. Values are backed up by the best action at each decision. A rollout or a
prediction estimates a node that is not expanded. A subtree without further expansions
is solved and not visited again. If the root is solved, the result is exact, and the
search ends.

Such a search is best-first search in a tree of beliefs (AO*; Washington 1997,
"BI-POMDP: bounded, incremental partially-observable Markov-model planning"), with PUCT
and rollouts in the place of bounds.
"""

import abc
import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common import draws
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.rollouts import Answers, moves, play_on, uniform_numbers

# Largest number of stored moves, if many actions are legal.
_MOST_EDGES = 1 << 20
# A history and its probability.
Weighted: TypeAlias = tuple[pyspiel.State, float]


@dataclasses.dataclass(slots=True, eq=False)
class Branch:
    """An action of an expanded information state.

    Attributes:
      reward: Expected utility of terminal nodes before the player's next decision, in
        the responder's utility.
      below: The next information states.
      probabilities: Probability of each of them.
      complete: Whether no histories were sampled, here and above; otherwise
        probabilities and reward are estimates.
      looks: Number of simulations of each information state.
      value: Reward plus probabilities times values.
      solved: Whether everything below is expanded.
    """

    reward: float
    below: list["BeliefNode"]
    probabilities: list[float]
    complete: bool = True
    looks: list[int] = dataclasses.field(init=False)
    value: float = 0.0
    solved: bool = False

    def __post_init__(self) -> None:
        self.looks = [0] * len(self.below)
        self.update()

    def update(self) -> None:
        """Compute value and `solved` from the nodes below."""
        value, solved = self.reward, True
        for node, share in zip(self.below, self.probabilities, strict=True):
            value += share * node.value
            solved = solved and node.solved
        self.value, self.solved = value, solved

    def next(self) -> "BeliefNode":
        """Return the next information state to visit.

        Of those that are not solved, it has the fewest simulations relative to its
        probability.
        """
        best, chosen = -1.0, 0
        for place, node in enumerate(self.below):
            if not node.solved:
                due = self.probabilities[place] / (1 + self.looks[place])
                if due > best:
                    best, chosen = due, place
        self.looks[chosen] += 1
        return self.below[chosen]


@dataclasses.dataclass(slots=True, eq=False)
class SearchNode(abc.ABC):
    """An information state of the responder in a search tree.

    Attributes:
      actions: The legal actions; a single None at the root of the game.
      prior: Prior probability of each action.
      visits: Number of simulations of each action.
    """

    actions: Sequence[int | None]
    prior: Sequence[float]
    visits: list[int] = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.visits = [0] * len(self.actions)

    @abc.abstractmethod
    def values(self) -> list[float]:
        """Return the value of each action; NaN if it must not be chosen."""

    def choose(self, exploration: float) -> int:
        """Return the place of PUCT's action, the first if several are equal."""
        drive = exploration * math.sqrt(1 + sum(self.visits))
        best, chosen, place = -math.inf, 0, 0
        for value, visits, prior in zip(
            self.values(), self.visits, self.prior, strict=True
        ):
            score = value + drive * prior / (1 + visits)
            # Not true for NaN.
            if score > best:
                best, chosen = score, place
            place += 1
        return chosen


@dataclasses.dataclass(slots=True, eq=False)
class BeliefNode(SearchNode):
    """An information state of the responder and its belief.

    Attributes:
      value: A prediction or the return of a rollout before the expansion, then the best
        branch's value, in the responder's utility.
      histories: Histories with weights that sum to 1; dropped by the expansion.
      complete: Whether these are all histories.
      branches: Branches of the actions; empty before the expansion.
      solved: Whether all branches are solved.
    """

    value: float
    histories: list[Weighted]
    complete: bool = True
    branches: list[Branch] = dataclasses.field(default_factory=list)
    solved: bool = False

    def values(self) -> list[float]:
        """Return the values of the actions that are not solved; NaN for the others."""
        return [math.nan if each.solved else each.value for each in self.branches]

    def best(self) -> int:
        """Return the place of the action of the largest value, the first if equal."""
        values = [branch.value for branch in self.branches]
        return values.index(max(values))

    def update(self) -> None:
        """Compute value and `solved` from the nodes below."""
        self.value = max(branch.value for branch in self.branches)
        self.solved = all(branch.solved for branch in self.branches)


class Followed(NamedTuple):
    """Continuations of an action until the player's next decision.

    Attributes:
      reward: The player's utility at terminal nodes, times their weights.
      decisions: Histories at the player's next decisions by information state string,
        with weights that are not normalised.
      size: Number of visited histories.
      complete: Whether no histories were sampled.
    """

    reward: float
    decisions: dict[str, list[Weighted]]
    size: int
    complete: bool


def follow(
    histories: list[Weighted],
    action: int | None,
    player: int,
    answers: Answers,
    *,
    limit: int,
    number: Callable[[], float],
) -> Followed:
    """Follow an action, and all moves of chance and the opponent, to the next decision.

    Args:
      histories: Histories of an information state of the player.
      action: The player's action; None at the root of the game.
      player: The responder.
      answers: The opponent's policy.
      limit: Largest number of histories that are followed at once. More are reduced by
        systematic sampling, which keeps expectations.
      number: Source of uniform numbers in [0, 1).
    """
    reward, count, complete = 0.0, len(histories), True
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
                probabilities = moves(state, answers)
                edges += [
                    (state, move, weight * p) for move, p in probabilities.items()
                ]
                if len(edges) > max(_MOST_EDGES, 2 * limit):
                    # Sampling a second time also keeps expectations.
                    edges, complete = few(edges, limit, number()), False
        if len(edges) > limit:
            edges, complete = few(edges, limit, number()), False
        count += len(edges)
        frontier = [(state.child(move), weight) for state, move, weight in edges]
    return Followed(reward, at_decisions, count, complete)


def few(
    edges: Sequence[tuple[pyspiel.State, int, float]], count: int, point: float
) -> list[tuple[pyspiel.State, int, float]]:
    """Sample edges by weight; each sampled edge is returned once.

    Args:
      edges: Edges, whose last item is the weight.
      count: Number of samples.
      point: Number in [0, 1), see `draws.systematic`.

    Returns:
      The sampled edges, with new weights whose expectation is the old weight.
    """
    weights = np.array([edge[2] for edge in edges])
    drawn = draws.systematic(weights, count, point)
    places, times = np.unique(drawn, return_counts=True)
    shares = times * (weights.sum() / count)
    kept = zip(places.tolist(), shares.tolist(), strict=True)
    return [(*edges[place][:2], share) for place, share in kept]


# Share of PUCT's c: complete beliefs have no variance, so they need less exploration
# than sampled histories.
_EXPLORATION = 0.5
# Number of rollouts from the root that estimate the moves of a simulation.
_LENGTHS = 8
# Largest share of all moves in the first expansion.
_FIRST = 0.25
# Largest number of histories that are followed from an information state by an action.
_SIDE_BY_SIDE = 256


class PriorAndValue(Protocol):
    """A function that predicts prior and value of an information state."""

    def __call__(
        self, state: pyspiel.State, player: int
    ) -> tuple[Sequence[float], float | None]:
        """Return prior and value of the player's information state at `state`.

        Args:
          state: A state at which the player acts; only its information may be used.
          player: The responder.

        Returns:
          The probability of each legal action, in their order; and the expected
          utility, in the game's units, or None for the return of a random rollout.
        """


def uniform_prior(
    state: pyspiel.State, player: int
) -> tuple[Sequence[float], float | None]:
    """Return a uniform prior, and no value; a `PriorAndValue`."""
    legal = state.legal_actions()
    return [1 / len(legal)] * len(legal), None


class BeliefSearch:
    """The tree of one match, and its searches.

    Attributes:
      root: Information state of the last `enter`, or the root of the game.
      nodes: Information states in the tree, by their strings.
      held: Number of stored histories, in all nodes that are not expanded.
      forgetful: Whether the game was found to have imperfect recall, because a string
        occurred after different decisions of the player.
    """

    root: BeliefNode

    def __init__(
        self,
        player: int,
        opponent: Answers,
        responder: Answers,
        config: SearchConfig,
        *,
        exploration: float,
        prior_and_value: PriorAndValue,
        side_by_side: int = _SIDE_BY_SIDE,
    ) -> None:
        """Start with an empty tree.

        Args:
          player: The responder.
          opponent: The opponent's policy.
          responder: Policy of the responder in rollouts.
          config: Settings of the search.
          exploration: Constant c of PUCT for sampled histories, in the game's units.
          prior_and_value: Prior and value of information states.
          side_by_side: Largest number of histories that are followed from an
            information state by an action; more are sampled.
        """
        self._player, self._config = player, config
        self._opponent = opponent
        self._both = {player: responder, 1 - player: opponent}
        self._exploration = _EXPLORATION * exploration
        self._prior_and_value = prior_and_value
        self.nodes: dict[str, BeliefNode] = {}
        self.held, self.forgetful = 0, False
        self._side_by_side = side_by_side
        self._number: Callable[[], float]
        # Numbers of moves in this search, of moves per simulation, and of predictions.
        self._moves, self._length, self._predicted = 0, 1.0, 0

    def enter(
        self, state: pyspiel.State, belief: StatePosterior, random: np.random.Generator
    ) -> bool:
        """Make an information state the root, and keep the tree below it.

        Args:
          state: A state at which the responder acts.
          belief: The belief at this state, with histories.
          random: Random numbers of this call and of the search.

        Returns:
          Whether the belief is small enough for the simulations.
        """
        self._number = uniform_numbers(random)
        self._moves = self._predicted = 0
        lengths = [self._roll(belief.sample(random))[1] for _ in range(_LENGTHS)]
        self._length = max(1.0, sum(lengths) / _LENGTHS)
        if belief.approximate or len(self.nodes) >= self._config.max_nodes:
            # The particles differ from those of the tree.
            self.nodes.clear()
        key = state.information_state_string(self._player)
        node = self.nodes.get(key)
        if node is None:
            self.nodes.clear()
            first = len(belief.states) * len(state.legal_actions())
            if first > _FIRST * self._config.simulations * self._length:
                return False
            pairs = zip(belief.states, belief.weights.tolist(), strict=True)
            node = self._join(key, [(history.clone(), w) for history, w in pairs])
        self.root = node
        return True

    def start(self, game: pyspiel.Game, random: np.random.Generator) -> None:
        """Make the root of a game the root of the search.

        Args:
          game: A sequential game.
          random: Random numbers of the search.
        """
        self.draw_from(random)
        self.root = BeliefNode([None], [1.0], 0.0, [(game.new_initial_state(), 1.0)])

    def draw_from(self, random: np.random.Generator) -> None:
        """Use other random numbers from now on."""
        self._number = uniform_numbers(random)

    def search(self) -> int | None:
        """Expand information states from the root.

        The search ends if the root is solved, the tree is full, the number of
        predictions reaches the number of simulations, or the number of moves reaches
        that of the simulations (each as long as a rollout from the root). It also ends
        if an information state cannot be expanded with that many moves.

        Returns:
          Number of simulations (rollouts from the root) that would need as many moves,
          or None if the root cannot be expanded.
        """
        root, simulations = self.root, self._config.simulations
        while not root.solved:
            if root.branches and (
                self._moves >= simulations * self._length
                or self._predicted >= simulations
                or len(self.nodes) >= self._config.max_nodes
            ):
                break
            if not self.grow(self._config.simulations * self._length):
                if not root.branches:
                    return None
                break
        return round(self._moves / self._length)

    def grow(
        self, most: float = math.inf, stop: Callable[[], bool] = lambda: False
    ) -> bool:
        """Expand the information state that the search selects.

        Args:
          most: Largest number of moves; a longer expansion is undone.
          stop: Function that returns whether to undo the expansion. Only the random
            numbers that were used are not restored.

        Returns:
          Whether the information state was expanded.
        """
        node = self.root
        path: list[tuple[BeliefNode, Branch, BeliefNode]] = []
        while node.branches:
            place = node.choose(self._exploration)
            branch = node.branches[place]
            node.visits[place] += 1
            path.append((node, branch, branch.next()))
            node = path[-1][-1]
        if not self._expand(node, most, stop):
            if most == math.inf:
                for above, branch, below in path:
                    above.visits[above.branches.index(branch)] -= 1
                    branch.looks[branch.below.index(below)] -= 1
            return False
        for above, branch, _ in reversed(path):
            branch.update()
            above.update()
        return True

    def _expand(self, node: BeliefNode, most: float, stop: Callable[[], bool]) -> bool:
        """Expand all actions of an information state; see `grow`."""
        histories, before = node.histories, self._moves
        forgetful = self.forgetful
        joined: list[str] = []
        for action in node.actions:
            found = follow(
                histories,
                action,
                self._player,
                self._opponent,
                limit=max(self._side_by_side, len(histories)),
                number=self._number,
            )
            self._moves += found.size
            below, probabilities = [], []
            complete = node.complete and found.complete
            for key, weighted in found.decisions.items():
                if self._moves - before > most or stop():
                    node.branches.clear()
                    for new in joined:
                        given_up = self.nodes.pop(new, None)
                        self.held -= len(given_up.histories) if given_up else 0
                    self.forgetful = forgetful
                    return False
                joined.append(key)
                total = sum(weight for _, weight in weighted)
                shares = [(history, weight / total) for history, weight in weighted]
                below.append(self._join(key, shares, complete))
                probabilities.append(total)
            node.branches.append(Branch(found.reward, below, probabilities, complete))
        self.held -= len(histories)
        node.histories = []
        node.update()
        return True

    def _join(
        self, key: str, histories: list[Weighted], complete: bool = True
    ) -> BeliefNode:
        """Add an information state to the tree."""
        state = histories[0][0]
        prior, value = self._prior_and_value(state, self._player)
        if value is None:
            value, moves = self._roll(self._draw(histories))
            self._moves += moves
        else:
            self._predicted += 1
        self.forgetful = self.forgetful or key in self.nodes
        node = BeliefNode(
            state.legal_actions(), list(prior), value, histories, complete
        )
        self.held += len(histories)
        self.nodes[key] = node
        return node

    def _draw(self, histories: Sequence[Weighted]) -> pyspiel.State:
        """Return a copy of a history, sampled by weight."""
        number = self._number()
        for history, weight in histories:
            number -= weight
            if number < 0:
                return history.clone()
        return histories[-1][0].clone()

    def _roll(self, state: pyspiel.State) -> tuple[float, int]:
        """Play a rollout on a state; return its utility and its number of moves."""
        before = state.move_number()
        play_on(state, self._both, self._number)
        return player_return(state, self._player), state.move_number() - before
