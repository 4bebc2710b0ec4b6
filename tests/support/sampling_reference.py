"""Slow reference for sampled trajectories: recursions over `reference.Tree`.

The module shares no code with spiel_cr. `walks` enumerates all trajectories with the
random numbers that cause them; `estimate` is the textbook's estimate of one trajectory.
Histories are indices of `Tree.nodes`.
"""

import dataclasses
import functools
import itertools
import math
from typing import NamedTuple

from tests.support import reference

# The offset, modulo 1, between draws of different visits of one trajectory.
STRIDE = (math.sqrt(5) - 1) / 2


@dataclasses.dataclass(frozen=True, eq=False)
class Rules:
    """Settings of the sampling, compared by identity so that results can be cached.

    Attributes:
      tree: The game.
      policy: Strategies of both players.
      player: The player whose values are sampled.
      scheme: Sampling scheme: "outcome", "external" or "average".
      epsilon: Probability of exploration.
      balanced: Whether exploration is proportional to the numbers of the player's
        sequences below the actions.
      cumulative: Sums of the player's past strategies, weighted by reach, by infoset
        and action.
      threshold, bonus: Parameters of average-strategy sampling.
      target: Histories, one of which each targeted trajectory passes through.
      delta: Share of targeted trajectories; 0 without targets.
    """

    tree: reference.Tree
    policy: reference.Policy
    player: int
    scheme: str = "outcome"
    epsilon: float = 0.6
    balanced: bool = False
    cumulative: reference.Policy | None = None
    threshold: float = 1000.0
    bonus: float = 1e6
    target: frozenset[int] = frozenset()
    delta: float = 0.0

    def strategy(self, index: int) -> dict[int, float]:
        """Return the strategy of the acting player or of chance."""
        node = self.tree.nodes[index]
        return node.probabilities if node.key is None else self.policy[node.key]

    def mine(self, index: int) -> bool:
        return self.tree.nodes[index].player == self.player

    def all_followed(self, index: int) -> bool:
        """Return whether all actions are followed instead of a sampled one."""
        return self.mine(index) and self.scheme != "outcome"

    @functools.cache  # noqa: B019
    def follow(self, index: int) -> dict[int, float]:
        """Return the probability of each action in an untargeted trajectory."""
        actions, strategy = self.tree.nodes[index].children, self.strategy(index)
        if self.mine(index) and self.scheme == "external":
            return dict.fromkeys(actions, 1.0)
        if not self.mine(index):
            return strategy
        key = self.tree.nodes[index].key
        if self.scheme == "average":
            past = self.cumulative[key]
            rest = self.bonus + sum(past.values())
            return {
                a: max(
                    self.epsilon,
                    min(1.0, (self.bonus + self.threshold * past[a]) / rest),
                )
                for a in actions
            }
        even = dict.fromkeys(actions, 1.0)
        if self.balanced:
            even = {a: subtree_size(self.tree, self.player, key, a) for a in actions}
        total = sum(even.values())
        return {
            a: (1 - self.epsilon) * strategy[a] + self.epsilon * even[a] / total
            for a in actions
        }

    @functools.cache  # noqa: B019
    def follow_targeted(self, index: int) -> dict[int, float]:
        """Return the probability of each action in a targeted trajectory."""
        node, free = self.tree.nodes[index], self.follow(index)
        led = leads(self.tree, self.target)
        kept = {a: p if node.children[a] in led else 0.0 for a, p in free.items()}
        total = sum(kept.values())
        if total == 0:
            return free
        if self.all_followed(index):
            return kept
        return {a: p / total for a, p in kept.items()}

    @functools.cache  # noqa: B019
    def several(self, depth: int) -> bool:
        """Return whether trajectories can split at some history of a depth."""
        return any(
            self.all_followed(i)
            for i, node in enumerate(self.tree.nodes)
            if len(node.path) == depth
        )


class Walk(NamedTuple):
    """A trajectory, or several after it splits.

    Attributes:
      draws: The draw at each depth.
      share: Probability of these draws.
      followed: All histories that the trajectory visits.
    """

    draws: tuple[float, ...]
    share: float
    followed: frozenset[int]


@functools.cache
def _sequences(tree: reference.Tree, player: int) -> set[tuple]:
    return {node.sequences[player] for node in tree.nodes}


@functools.cache
def subtree_size(tree, player, key, action) -> int:
    """Return the number of the player's sequences that extend this action."""
    first = tree.nodes[tree.infosets[key][0]]
    prefix = (*first.sequences[player], (key[1], action))
    return sum(s[: len(prefix)] == prefix for s in _sequences(tree, player))


@functools.cache
def leads(tree: reference.Tree, target: frozenset[int]) -> frozenset[int]:
    """Return the targets with their ancestors and descendants."""
    paths = [tree.nodes[i].path for i in target]
    return frozenset(
        i
        for i, node in enumerate(tree.nodes)
        if any(node.path[: len(p)] == p[: len(node.path)] for p in paths)
    )


def depths(tree: reference.Tree) -> int:
    return 1 + max(len(node.path) for node in tree.nodes)


def _decide(rules: Rules, index: int, targeted: bool, draw: float) -> list[int]:
    """Return the children that are followed."""
    children = list(rules.tree.nodes[index].children.values())
    follow = rules.follow_targeted if targeted else rules.follow
    chances = list(follow(index).values())
    if rules.all_followed(index):
        return [
            child
            for a, (child, p) in enumerate(zip(children, chances, strict=True))
            if (draw + STRIDE * a) % 1 < p
        ]
    below = itertools.accumulate(chances)
    last = max(i for i, p in enumerate(chances) if p)
    return [children[next((i for i, b in enumerate(below) if draw < b), last)]]


def _cuts(rules: Rules, index: int, targeted: bool, shift: float) -> set[float]:
    """Return the draws, shifted, at which the result of `_decide` may change."""
    follow = rules.follow_targeted if targeted else rules.follow
    chances = list(follow(index).values())
    if rules.all_followed(index):
        edges = {(edge, a) for a, p in enumerate(chances) for edge in (0.0, p)}
    else:
        edges = {(edge, 0) for edge in (0.0, *itertools.accumulate(chances))}
    return {(edge - shift - STRIDE * a) % 1 for edge, a in edges}


def _move(
    rules: Rules, front: list, draw: dict[int, float], targeted, split: bool
) -> list:
    """Return the next depth's visits (history, walk); history None is the end."""
    ahead = []
    for place, (index, walk) in enumerate(front):
        over = index is None or not rules.tree.nodes[index].children
        if over and not split:
            ahead.append((None, walk))
        if not over:
            follow = _decide(rules, index, targeted[walk], draw[place])
            ahead += [(child, walk) for child in follow]
    return ahead


def _shifts(front: list, packed: bool) -> list[float]:
    return [STRIDE * place if packed else 0.0 for place in range(len(front))]


def walks(rules: Rules, targeted: bool) -> list[Walk]:
    """Return all walks of a single trajectory; their shares sum to one."""
    found: list[Walk] = []
    last = depths(rules.tree) - 1
    splits = [rules.several(depth) for depth in range(last)]

    def walk(depth, front, draws, share, followed):
        if depth == last:
            found.append(Walk((*draws, 0.5), share, frozenset(followed)))
            return
        shifts = _shifts(front, any(splits[:depth]))
        cuts = {0.0, 1.0}
        for (index, _), shift in zip(front, shifts, strict=True):
            if index is not None and rules.tree.nodes[index].children:
                cuts |= _cuts(rules, index, targeted, shift)
        for low, high in itertools.pairwise(sorted(cuts)):
            if high - low < 1e-12:
                continue
            draw = (low + high) / 2
            at = {i: (draw + shift) % 1 for i, shift in enumerate(shifts)}
            ahead = _move(rules, front, at, [targeted], splits[depth])
            more = [index for index, _ in ahead if index is not None]
            rest = (share * (high - low), [*followed, *more])
            walk(depth + 1, ahead, (*draws, draw), *rest)

    walk(0, [(0, 0)], (), 1.0, [0])
    return found


def simulate(rules: Rules, draws, targeted) -> list[frozenset[int]]:
    """Return the histories that each trajectory of a batch visits.

    Args:
      rules: Settings of the sampling.
      draws: Random draws by depth and trajectory.
      targeted: Whether each trajectory is targeted.
    """
    size = len(targeted)
    followed: list[set[int]] = [{0} for _ in range(size)]
    front = [(0, walk) for walk in range(size)]
    splits = [rules.several(depth) for depth in range(depths(rules.tree) - 1)]
    for depth, split in enumerate(splits):
        shifts = _shifts(front, any(splits[:depth]))
        at = {
            i: (draws[depth][walk] + shifts[i]) % 1 for i, (_, walk) in enumerate(front)
        }
        front = _move(rules, front, at, targeted, split)
        for index, walk in front:
            if index is not None:
                followed[walk].add(index)
    return [frozenset(visited) for visited in followed]


@functools.cache
def visit_probability(rules: Rules, index: int) -> float:
    """Return the probability that a trajectory visits a history."""
    path = rules.tree.nodes[index].path
    free = aimed = 1.0
    at = 0
    for action in path:
        free *= rules.follow(at)[action]
        if rules.delta:
            aimed *= rules.follow_targeted(at)[action]
        at = rules.tree.nodes[at].children[action]
    return rules.delta * aimed + (1 - rules.delta) * free


@functools.cache
def others_reach(rules: Rules, index: int) -> float:
    node = rules.tree.nodes[index]
    other = rules.tree.own_reach(index, 1 - rules.player, rules.policy)
    return node.chance * other


class Estimate(NamedTuple):
    """The estimate of one trajectory.

    Attributes:
      values: Sampled counterfactual values of the player, by (infoset, action).
      at: Player 0's sampled utility at each visited history.
    """

    values: dict[tuple, float]
    at: dict[int, float]


def estimate(rules: Rules, followed, baseline=None) -> Estimate:
    """Compute the estimate of Schmid et al. 2019, equations 9 to 12.

    Args:
      rules: Settings of the sampling.
      followed: The histories that the trajectory visits.
      baseline: An estimate of player 0's utility at every history; None for zeros.
    """
    values: dict[tuple, float] = {}
    at: dict[int, float] = {}
    sign = 1 - 2 * rules.player

    def value(index: int) -> float:
        node = rules.tree.nodes[index]
        if not node.children:
            return node.utility
        here = visit_probability(rules, index)
        result = 0.0
        for action, child in node.children.items():
            sampled = guess = 0.0 if baseline is None else baseline[child]
            if child in followed:
                at[child] = value(child)
                rho = visit_probability(rules, child) / here
                sampled += (at[child] - guess) / rho
            result += rules.strategy(index)[action] * sampled
            if rules.mine(index):
                gain = sign * sampled * others_reach(rules, index) / here
                values[node.key, action] = values.get((node.key, action), 0.0) + gain
        return result

    at[0] = value(0)
    return Estimate(values, at)


def textbook_outcome(rules: Rules, followed) -> dict[tuple, float]:
    """Compute the outcome-sampling estimate of Lanctot et al. 2009, without baselines.

    At each of the player's histories h, with action a on the path to the terminal z,
    the estimate is the utility, times the reach of the opponent and chance at h, times
    the probability of all moves from ha to z, divided by q(z).
    """
    end = max(followed, key=lambda i: len(rules.tree.nodes[i].path))
    node = rules.tree.nodes[end]
    at, way = 0, []
    for action in node.path:
        way.append((at, action))
        at = rules.tree.nodes[at].children[action]
    utility = (1 - 2 * rules.player) * node.utility
    result = {}
    for i, (index, action) in enumerate(way):
        if rules.mine(index):
            tail = math.prod(rules.strategy(j)[a] for j, a in way[i + 1 :])
            weight = others_reach(rules, index) * tail / visit_probability(rules, end)
            result[rules.tree.nodes[index].key, action] = utility * weight
    return result


def counterfactual(rules: Rules) -> dict[tuple, float]:
    """Return exact counterfactual values of actions."""
    result = {}
    for key, histories in rules.tree.infosets.items():
        for action in rules.tree.actions(key) if key[0] == rules.player else ():
            result[key, action] = (1 - 2 * rules.player) * sum(
                others_reach(rules, i)
                * reference.value_at(
                    rules.tree, rules.policy, rules.tree.nodes[i].children[action]
                )
                for i in histories
            )
    return result
