"""Lookahead with whole beliefs, on OpenSpiel states: the search of `ISMCTSBRBot` where
the histories of a decision are few enough to be followed all together.

The opponent's policy is fixed, so the game is a decision problem of the responder, and
its model is known. An information state in the tree has its whole belief: histories and
their weights. To expand it, each action is applied to each history, and the opponent
and chance are gone through with all that they may do, so the rewards of terminals and
the odds of the next information states are expectations, not means of draws. Values are
backed up by the best action at each decision; a rollout or a prediction tells what is
not expanded yet. A subtree that is expanded to its ends is solved, and is not entered
again; where the root is solved, the answer is exact, and the search ends.

Such a search is best-first search in a tree of beliefs (AO*; Washington 1997,
"BI-POMDP: bounded, incremental partially-observable Markov-model planning"), with PUCT
and rollouts in the place of bounds.
"""

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
                probabilities = moves(state, answers)
                edges += [
                    (state, move, weight * p) for move, p in probabilities.items()
                ]
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


# Whole beliefs have no luck in them, so less exploration than of drawn histories is
# enough: this share of PUCT's c.
_EXPLORATION = 0.5
# Rollouts from the root that tell how many moves a simulation has.
_LENGTHS = 8
# The first expansion may take this share of all moves.
_FIRST = 0.25
# Histories that are followed side by side from one information state by one action.
_SIDE_BY_SIDE = 256


class PriorAndValue(Protocol):
    """What is thought of an information state before it is searched."""

    def __call__(
        self, state: pyspiel.State, player: int
    ) -> tuple[Sequence[float], float | None]:
        """Prior and value of the player's information state at `state`.

        Args:
          state: the player is to act; only its information may be used.
          player: the responder.

        Returns:
          The probability of each legal action, in their order; and what the player can
          expect, in the game's units, or None: a random rollout tells.
        """


def uniform_prior(
    state: pyspiel.State, player: int
) -> tuple[Sequence[float], float | None]:
    """All actions alike; values by rollout. A `PriorAndValue`."""
    legal = state.legal_actions()
    return [1 / len(legal)] * len(legal), None


class BeliefSearch:
    """The tree of one match, and its searches.

    Attributes:
      root: the information state of the last `enter`, or the start of the game.
      nodes: information states in the tree, by their strings.
      held: histories of those that are not expanded.
      forgetful: one string was met after different decisions.
    """

    root: BeliefNode

    def __init__(
        self,
        player: int,
        opponent: Answers,
        own: Answers,
        config: SearchConfig,
        *,
        exploration: float,
        prior_and_value: PriorAndValue,
        side_by_side: int = _SIDE_BY_SIDE,
    ) -> None:
        """An empty tree.

        Args:
          player: the responder.
          opponent: its policy.
          own: how the responder plays in rollouts.
          config: simulations and nodes.
          exploration: c of PUCT for drawn histories, in the game's units.
          prior_and_value: of information states.
          side_by_side: histories that are followed from one information state by one
            action; where there are more, so many are drawn.
        """
        self._player, self._config = player, config
        self._opponent = opponent
        self._both = {player: own, 1 - player: opponent}
        self._exploration = _EXPLORATION * exploration
        self._prior_and_value = prior_and_value
        self.nodes: dict[str, BeliefNode] = {}
        self.held, self.forgetful = 0, False
        self._side_by_side = side_by_side
        self._number: Callable[[], float]
        # Of this search: moves, those of a simulation, and predicted values.
        self._moves, self._length, self._predicted = 0, 1.0, 0

    def clear(self) -> None:
        """Drops the tree."""
        self.nodes.clear()

    def enter(
        self, state: pyspiel.State, belief: StatePosterior, random: np.random.Generator
    ) -> bool:
        """Goes to an information state, with what the tree knows of it.

        Args:
          state: the responder is to act.
          belief: there, with histories.
          random: consumed, also by the search that follows.

        Returns:
          Whether the belief is small enough for the simulations.
        """
        self._number = uniform_numbers(random)
        self._moves = self._predicted = 0
        lengths = [self._roll(belief.sample(random))[1] for _ in range(_LENGTHS)]
        self._length = max(1.0, sum(lengths) / _LENGTHS)
        if belief.approximate or len(self.nodes) >= self._config.max_nodes:
            # Other particles than those that the tree was made of.
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
        """Goes to the start of a game, to search all of it from there.

        Args:
          game: sequential.
          random: consumed, also by what follows.
        """
        self.draw_from(random)
        self.root = BeliefNode([None], [1.0], 0.0, [(game.new_initial_state(), 1.0)])

    def draw_from(self, random: np.random.Generator) -> None:
        """Goes on with other numbers; `random` is consumed by what follows."""
        self._number = uniform_numbers(random)

    def search(self) -> int | None:
        """Expands information states from the root on.

        It ends when the root is solved, the tree is full, values of as many information
        states were predicted as there are simulations, or as many moves were made as
        these have, if one of them is as long as a rollout from the root; and where an
        information state cannot be expanded with that many moves.

        Returns:
          How many simulations the moves are worth; None where the root cannot be
          expanded: nothing is known of it then.
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
        """Expands one information state, the one that the search goes to.

        Args:
          most: moves; where it takes more it is given up.
          stop: asked on the way whether to give it up; then nothing of it is left but
            the numbers that were drawn.

        Returns:
          Whether it was expanded.
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
        """All actions of an information state, and what comes next; see `grow`."""
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
            self._moves += found.made
            below, odds = [], []
            whole = node.whole and found.whole
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
                below.append(self._join(key, shares, whole))
                odds.append(total)
            node.branches.append(Branch(found.reward, below, odds, whole))
        self.held -= len(histories)
        node.histories = []
        node.update()
        return True

    def _join(
        self, key: str, histories: list[Weighted], whole: bool = True
    ) -> BeliefNode:
        """A new information state in the tree."""
        state = histories[0][0]
        prior, value = self._prior_and_value(state, self._player)
        if value is None:
            value, moves = self._roll(self._draw(histories))
            self._moves += moves
        else:
            self._predicted += 1
        self.forgetful = self.forgetful or key in self.nodes
        node = BeliefNode(state.legal_actions(), list(prior), value, histories, whole)
        self.held += len(histories)
        self.nodes[key] = node
        return node

    def _draw(self, histories: Sequence[Weighted]) -> pyspiel.State:
        """A copy of a history, by weight."""
        number = self._number()
        for history, weight in histories:
            number -= weight
            if number < 0:
                return history.clone()
        return histories[-1][0].clone()

    def _roll(self, state: pyspiel.State) -> tuple[float, int]:
        """The return of a rollout, and its moves; the state is moved to the end."""
        before = state.move_number()
        play_on(state, self._both, self._number)
        return player_return(state, self._player), state.move_number() - before
