"""Slow references: recursions over OpenSpiel's states that share no code with spiel_cr.

`Tree` contains every history of a game. Policies are dictionaries
{(player, information state): {action: probability}}.
"""

import math
from collections.abc import Hashable
from typing import NamedTuple

import numpy as np
import pyspiel
from open_spiel.python import policy as policy_lib

CHANCE = int(pyspiel.PlayerId.CHANCE)
TERMINAL = int(pyspiel.PlayerId.TERMINAL)

# Sums of positive regrets below this may be rounding; utilities are of size 1 to 10.
ROUNDING = 1e-11

Key = tuple[int, str]
Policy = dict[Key, dict[int, float]]


class Node(NamedTuple):
    """A history of a game.

    Attributes:
      path: Actions from the root, chance outcomes included.
      player: The player who acts, CHANCE or TERMINAL.
      key: The acting player and its information state; None at other nodes.
      observations: Each player's information state at a decision; None if the game
        does not provide it.
      children: Indices into `Tree.nodes`, by action.
      probabilities: Probabilities of the outcomes of a chance node.
      chance: Product of the chance probabilities on the path.
      sequences: For each player the (information state, action) pairs on the path.
      utility: Player 0's utility; 0 at nodes that are not terminal.
    """

    path: tuple[int, ...]
    player: int
    key: Key | None
    observations: tuple[str | None, str | None]
    children: dict[int, int]
    probabilities: dict[int, float]
    chance: float
    sequences: tuple[tuple[tuple[str, int], ...], tuple[tuple[str, int], ...]]
    utility: float


class Tree:
    """All histories of a sequential game, in which children follow their parents."""

    def __init__(self, game: pyspiel.Game) -> None:
        self.game = game
        self.nodes: list[Node] = []
        self.infosets: dict[Key, list[int]] = {}
        self._add(game.new_initial_state(), (), 1.0, ((), ()))

    def _add(self, state, path, chance, sequences) -> int:
        index = len(self.nodes)
        player = int(state.current_player())
        key = (player, state.information_state_string(player)) if player >= 0 else None
        observed = tuple(_observed(state, p) if player >= 0 else None for p in range(2))
        probabilities = dict(state.chance_outcomes()) if player == CHANCE else {}
        utility = state.returns()[0] if player == TERMINAL else 0.0
        children: dict[int, int] = {}
        self.nodes.append(
            Node(
                *(
                    path,
                    player,
                    key,
                    observed,
                    children,
                    probabilities,
                    chance,
                    sequences,
                ),
                utility,
            )
        )
        if key is not None:
            self.infosets.setdefault(key, []).append(index)
        for action in state.legal_actions() if player != TERMINAL else ():
            below = list(sequences)
            if key is not None:
                below[player] = (*below[player], (key[1], action))
            children[action] = self._add(
                state.child(action),
                (*path, action),
                chance * probabilities.get(action, 1.0),
                tuple(below),
            )
        return index

    def actions(self, key: Key) -> list[int]:
        return list(self.nodes[self.infosets[key][0]].children)

    def uniform(self) -> Policy:
        return {
            key: dict.fromkeys(self.actions(key), 1 / len(self.actions(key)))
            for key in self.infosets
        }

    def own_reach(self, index: int, player: int, policy: Policy) -> float:
        """Return the product of the player's own probabilities on the path."""
        return math.prod(
            policy[player, info][action]
            for info, action in self.nodes[index].sequences[player]
        )


def _observed(state: pyspiel.State, player: int) -> str | None:
    try:
        return state.information_state_string(player)
    except pyspiel.SpielError:
        return None


def from_openspiel(tree: Tree, policy: policy_lib.Policy) -> Policy:
    """Query an OpenSpiel policy at every infoset."""
    result = {}
    for key, histories in tree.infosets.items():
        state = tree.game.new_initial_state()
        for action in tree.nodes[histories[0]].path:
            state.apply_action(action)
        asked = policy.action_probabilities(state)
        result[key] = {a: asked.get(a, 0.0) for a in tree.actions(key)}
    return result


def from_behaviours(game, behaviours) -> Policy:
    """Return the policy of each player's action probabilities in a game tree."""
    policy = {}
    for player, infosets in enumerate(game.infosets):
        first = infosets.decisions.first_sequence
        for i, key in enumerate(infosets.keys):
            places = range(first[i], first[i] + infosets.decisions.num_actions[i])
            policy[player, key] = {
                int(infosets.actions[s - 1]): float(behaviours[player][s])
                for s in places
            }
    return policy


def node_numbers(tree: Tree, game) -> list[int]:
    """Return the index in `tree.nodes` of each history of a game tree."""
    index = {node.path: i for i, node in enumerate(tree.nodes)}
    histories = game.histories
    return [index[tuple(histories.actions_to(h))] for h in range(len(histories))]


def value_at(tree: Tree, policy: Policy, index: int = 0) -> float:
    """Return player 0's expected utility from a history on."""
    node = tree.nodes[index]
    if node.player == TERMINAL:
        return node.utility
    weights = node.probabilities if node.key is None else policy[node.key]
    return sum(
        weights[action] * value_at(tree, policy, child)
        for action, child in node.children.items()
        if weights[action]
    )


def counterfactual_regrets(
    tree: Tree, policy: Policy, player: int
) -> dict[Key, list[float]]:
    """Return counterfactual regrets by infoset and action, summed over histories."""
    regrets = {}
    for key, histories in tree.infosets.items():
        if key[0] != player:
            continue
        sums = np.zeros(len(tree.actions(key)))
        for index in histories:
            node = tree.nodes[index]
            others = node.chance * tree.own_reach(index, 1 - player, policy)
            worth = [value_at(tree, policy, child) for child in node.children.values()]
            mean = value_at(tree, policy, index)
            sums += others * (1 - 2 * player) * (np.array(worth) - mean)
        regrets[key] = sums.tolist()
    return regrets


def best_response_value(tree: Tree, policy: Policy, player: int) -> float:
    """Return the player's best-response value against the other's policy."""
    sign = 1 - 2 * player
    best: dict[Key, int] = {}

    def value(index: int) -> float:
        node = tree.nodes[index]
        if node.player == TERMINAL:
            return sign * node.utility
        if node.player == player:
            return value(node.children[choice(node.key)])
        weights = node.probabilities if node.key is None else policy[node.key]
        return sum(weights[a] * value(c) for a, c in node.children.items())

    def choice(key: Key) -> int:
        if key not in best:
            totals = {
                action: sum(
                    tree.nodes[i].chance
                    * tree.own_reach(i, 1 - player, policy)
                    * value(tree.nodes[i].children[action])
                    for i in tree.infosets[key]
                )
                for action in tree.actions(key)
            }
            best[key] = max(totals, key=totals.__getitem__)
        return best[key]

    return value(0)


def nash_conv(tree: Tree, policy: Policy) -> float:
    return sum(best_response_value(tree, policy, p) for p in range(2))


class CFR:
    """Counterfactual regret minimisers, implemented directly from their papers.

    Regrets are stored and matched at each infoset, without optimisations.

    Args:
      tree: The game.
      alpha, beta: Positive and negative regrets are multiplied by t^x / (t^x + 1) after
        iteration t (Brown & Sandholm 2019); beta None: negative ones are cut (CFR+).
      ramp: Number of iterations in which they change linearly from 1 and -1.
      gamma: Exponent of the averaging weight t^gamma.
      predictive: Match regrets plus the last instantaneous regret (Farina et al. 2021).
      alternating: Player 1 uses player 0's update of the same iteration.
      buckets: Infosets of one bucket share regrets and averages (Lanctot et al. 2012,
        but with each infoset, not each history, counted once in the average); None:
        each is alone.
    """

    def __init__(
        self,
        tree: Tree,
        *,
        alpha: float | None = None,
        beta: float | None = math.inf,
        gamma: float = 0.0,
        ramp: int = 0,
        predictive: bool = False,
        alternating: bool = True,
        buckets: dict[Key, Hashable] | None = None,
    ) -> None:
        self.tree = tree
        self._bucket = buckets or {key: key for key in tree.infosets}
        self._alpha, self._beta, self._gamma = alpha, beta, gamma
        self._ramp = ramp
        self._predictive, self._alternating = predictive, alternating
        self.policy = tree.uniform()
        self.regrets, self._total = (
            {
                b: dict.fromkeys(tree.actions(key), 0.0)
                for key, b in self._bucket.items()
            }
            for _ in range(2)
        )
        self.iteration = 0

    @property
    def _keys(self) -> list[Key]:
        return list(self.tree.infosets)

    def step(self) -> None:
        self.iteration += 1
        frozen = dict(self.policy)
        for player in range(2):
            seen = self.policy if self._alternating else frozen
            self._update(player, dict(seen))

    def _update(self, player: int, policy: Policy) -> None:
        counterfactual = {
            key: dict.fromkeys(self.tree.actions(key), 0.0) for key in self._keys
        }
        self._walk(0, player, policy, 1.0, counterfactual)
        t = self.iteration
        gains: dict[Hashable, dict[int, float]] = {}
        mine = [key for key in self._keys if key[0] == player]
        for key in mine:
            bucket = self._bucket[key]
            own = self.tree.own_reach(self.tree.infosets[key][0], player, policy)
            gained = counterfactual[key]
            mean = sum(policy[key][a] * v for a, v in gained.items())
            gain = gains.setdefault(bucket, dict.fromkeys(gained, 0.0))
            for a, v in gained.items():
                self._total[bucket][a] += t**self._gamma * own * policy[key][a]
                gain[a] += v - mean
        for bucket, gain in gains.items():
            regrets = self.regrets[bucket]
            for a, v in gain.items():
                regrets[a] = self._fade(regrets[a] + v, t)
        for key in mine:
            hopes = dict(self.regrets[self._bucket[key]])
            if self._predictive:
                hopes = {a: r + gains[self._bucket[key]][a] for a, r in hopes.items()}
            tie = sum(max(h, 0.0) for h in hopes.values()) < ROUNDING
            self.policy[key] = _match(dict.fromkeys(hopes, 0.0) if tie else hopes)

    def _fade(self, regret: float, t: int) -> float:
        if regret < 0 and self._beta is None:
            return 0.0
        exponent = self._alpha if regret > 0 else self._beta
        if t < self._ramp:
            begin = 1 if regret > 0 else -1
            exponent = begin + (exponent - begin) * t / self._ramp
        if exponent is None or exponent == math.inf:
            return regret
        return regret * t**exponent / (t**exponent + 1)

    def _walk(self, index, player, policy, others, counterfactual) -> float:
        """Return the player's utility from a history on, and collect action values."""
        node = self.tree.nodes[index]
        if node.player == TERMINAL:
            return (1 - 2 * player) * node.utility
        weights = node.probabilities if node.key is None else policy[node.key]
        result = 0.0
        for action, child in node.children.items():
            mine = node.player == player
            reach = others if mine else others * weights[action]
            value = self._walk(child, player, policy, reach, counterfactual)
            result += weights[action] * value
            if mine:
                counterfactual[node.key][action] += others * value
        return result

    def average(self) -> Policy:
        return {key: _match(self._total[b]) for key, b in self._bucket.items()}


def _match(regrets: dict[int, float]) -> dict[int, float]:
    total = sum(max(r, 0.0) for r in regrets.values())
    if total <= 0:
        return dict.fromkeys(regrets, 1 / len(regrets))
    return {a: max(r, 0.0) / total for a, r in regrets.items()}
