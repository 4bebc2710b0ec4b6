"""Second stage: depth-limited lookahead, and what the game is worth where it ends.

A subgame is cut off where its histories are `depth` moves below its roots, but never
before the player's own next turn in a new subgame: continual resolving needs the values
there. What a history is worth where it is cut off comes from a `LeafValue`: a number
for each history, whatever the players' ranges.
"""

from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.compilation.numbering import CHANCE, TERMINAL
from spiel_cr.compilation.tree import CompiledGame, Histories
from spiel_cr.policies import conversions, result
from spiel_cr.resolving import decomposition as subgame

Strategies: TypeAlias = tuple[np.ndarray, np.ndarray] | openspiel_policy.Policy | str


class LeafValue(Protocol):
    """What histories are worth; write your own to plug in a network, say."""

    def __call__(self, tree: CompiledGame, histories: np.ndarray) -> np.ndarray:
        """Values histories at which the lookahead ends.

        Args:
          tree: the compiled game; `tree.histories.actions_to(h)` leads to a history.
          histories: int64 [L], none of them terminal.

        Returns:
          float64 [L], player 0's expected utility, in the game's units.
        """


class Lookahead(NamedTuple):
    """Where a layer's subgames end.

    Attributes:
      histories: int64 [L], terminals within reach and histories at which it is cut off.
      values: float64 [L], player 0's utility there.
      inside: for each player bool [I], the infosets that are not cut off.
    """

    histories: np.ndarray
    values: np.ndarray
    inside: tuple[np.ndarray, np.ndarray]


class PolicyValue:
    """Exact values when both players follow given strategies from there on."""

    def __init__(self, strategies: Strategies | None = None) -> None:
        """Takes strategies.

        Args:
          strategies: each player's action probabilities, float64 [S], an OpenSpiel
            policy, or the path of a file that `SolveResult.save` wrote; None: uniform.
        """
        self._strategies = strategies
        self._known: tuple[CompiledGame, np.ndarray] | None = None

    def __call__(self, tree: CompiledGame, histories: np.ndarray) -> np.ndarray:
        if self._known is None or self._known[0] is not tree:
            strategies = self._strategies
            if isinstance(strategies, str):
                strategies = result.load_policy(strategies, tree)
            if isinstance(strategies, openspiel_policy.Policy):
                strategies = conversions.behaviour_from_policy(tree, strategies)
            self._known = tree, conversions.history_values(tree, strategies)
        return self._known[1][histories]


class RolloutValue:
    """The mean of random rollouts: all legal actions alike, chance as it is.

    A history's rollouts are drawn once; asking again gives the same value.
    """

    def __init__(self, rollouts: int = 10, *, seed: int = 0) -> None:
        """Prepares.

        Args:
          rollouts: for each history.
          seed: of the rollouts.

        Raises:
          ValueError: no rollouts, or a negative seed.
        """
        if rollouts < 1:
            raise ValueError(f"rollouts={rollouts!r} must be at least 1")
        if seed < 0:
            raise ValueError(f"seed={seed!r} of rollouts must be 0 or more")
        self._rollouts = rollouts
        self._seed = seed

    def __call__(self, tree: CompiledGame, histories: np.ndarray) -> np.ndarray:
        arrays = tree.histories
        children = np.bincount(arrays.parent[1:], minlength=len(arrays))
        first = np.searchsorted(arrays.parent, np.arange(len(arrays)))
        total = np.zeros(len(histories))
        for round_number in range(self._rollouts):
            random = np.random.default_rng([self._seed, round_number])
            # Every history has its own number, whoever else is asked for.
            at = histories.copy()
            while (children[at] > 0).any():
                draw = random.random(len(arrays))[histories]
                at = np.where(
                    children[at] > 0, _follow(arrays, first, children, at, draw), at
                )
            total += arrays.utility[at]
        return total / self._rollouts


def _follow(
    arrays: Histories,
    first: np.ndarray,
    children: np.ndarray,
    at: np.ndarray,
    draw: np.ndarray,
) -> np.ndarray:
    """A child of each history: uniform at decisions, by its odds at chance nodes."""
    count = np.maximum(children[at], 1)
    child = first[at] + np.minimum((draw * count).astype(np.int64), count - 1)
    chance = np.flatnonzero((arrays.player[at] == CHANCE) & (children[at] > 0))
    for k in chance:
        outcomes = slice(first[at[k]], first[at[k]] + children[at[k]])
        odds = np.cumsum(arrays.chance[outcomes])
        outcome = np.searchsorted(odds, draw[k] * odds[-1], "right")
        child[k] = first[at[k]] + min(outcome, len(odds) - 1)
    return np.minimum(child, len(arrays) - 1)


LEAVES = ("uniform", "policy(path=FILE)", "rollouts(n=10,seed=0)")


def parse_leaf(text: str) -> LeafValue:
    """Reads a leaf value: exact values of "uniform" play or of a saved policy,
    "policy(path=leduc.npz)", or means of random rollouts, "rollouts(n=10)".

    Raises:
      ValueError: neither of these, or a bad parameter.
    """
    try:
        given = dict(pyspiel.game_parameters_from_string(text))
    except (pyspiel.SpielError, RuntimeError) as error:
        raise ValueError(f"leaf={text!r} cannot be read: {error}") from error
    name = given.pop("name", "")
    allowed: dict[str, set[str]] = {
        "uniform": set(),
        "policy": {"path"},
        "rollouts": {"n", "seed"},
    }
    missing = name == "policy" and "path" not in given
    if name not in allowed or set(given) - allowed[name] or missing:
        raise ValueError(f"leaf={text!r} must be one of {', '.join(LEAVES)}")
    if name != "rollouts":
        return PolicyValue(str(given["path"]) if given else None)
    for key, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int):
            raise ValueError(f"leaf={text!r}: {key}={value!r} must be a whole number")
    return RolloutValue(given.get("n", 10), seed=given.get("seed", 0))


def look_ahead(
    decomposition: subgame.Decomposition, number: int, depth: int, value: LeafValue
) -> Lookahead:
    """Cuts a layer's subgames off.

    Args:
      decomposition: from `subgame.decompose`.
      number: the layer, from 1.
      depth: moves (chance included) below the layer's roots, or, in layer 1, below the
        start of the game; where the player's next
        turn in a new subgame comes later, the cut is there.
      value: what histories are worth at the cut.

    Raises:
      ValueError: a depth below 1, or values that are no finite numbers.
    """
    if depth < 1:
        raise ValueError(f"depth={depth!r} moves must be at least 1")
    d, histories = decomposition, decomposition.tree.histories
    starts = histories.level_start
    root_level = np.full(len(histories), -1, np.int64)
    beyond = np.zeros(len(histories), bool)
    cut = np.zeros(len(histories), bool)
    is_root = np.zeros(len(histories), bool)
    is_root[d.roots[d.layer[d.roots] == number]] = True
    for level, (begin, end) in enumerate(zip(starts[:-1], starts[1:], strict=True)):
        here = slice(int(begin), int(end))
        if level:
            parent = histories.parent[here]
            root_level[here] = root_level[parent]
            beyond[here] = beyond[parent] | cut[parent]
        elif number == 1:
            root_level[here] = 0
        if number > 1:
            root_level[here] = np.where(is_root[here], level, root_level[here])
        deep = (root_level[here] >= 0) & (level - root_level[here] >= depth)
        new = (d.layer[here] > number) & (histories.player[here] != TERMINAL)
        cut[here] = deep & new & ~beyond[here]
    within = (root_level >= 0) & ~beyond
    leaves = np.flatnonzero(cut)
    ends = np.flatnonzero(within & (histories.player == TERMINAL))
    values = np.asarray(value(d.tree, leaves), np.float64)
    if values.shape != leaves.shape or not np.isfinite(values).all():
        raise ValueError(
            f"the leaf value gave an array of shape {values.shape} for {len(leaves)} "
            f"histories, or something that is no finite number"
        )
    inside = []
    for p, infosets in enumerate(d.tree.infosets):
        open_ = np.zeros(len(infosets), bool)
        open_[histories.infoset[within & ~cut & (histories.player == p)]] = True
        inside.append(open_)
    return Lookahead(
        histories=np.concatenate([ends, leaves]),
        values=np.concatenate([histories.utility[ends], values]),
        inside=(inside[0], inside[1]),
    )
