"""Simulated games: keys of reference infosets, and random numbers that enumerate.

`Enumerated` and `Grid` give a batch all combinations of evenly spaced random numbers,
one trajectory each. If every probability is a multiple of the spacing, the mean over
the batch is exactly the expectation.
"""

import math
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.games.opening.opened import load_game
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table import InfosetTable
from tests.support import reference, tabled


def source_of(game: str) -> RulesSource:
    """Return a source with the game's batched rules, or those of its reference tree."""
    loaded = load_game(game)
    try:
        return RulesSource(loaded)
    except ValueError:
        return RulesSource(loaded, tabled.Tabled(reference.Tree(loaded)))


def key_of_each(
    source: RulesSource, tree: reference.Tree
) -> dict[reference.Key, np.ndarray]:
    """Return the key, uint64 [2], of each infoset of a reference tree."""
    keys = {}
    for key, histories in tree.infosets.items():
        state = tree.game.new_initial_state()
        for action in tree.nodes[histories[0]].path:
            state.apply_action(action)
        keys[key] = source.key_of(state)
    return keys


def policy_of(
    tree: reference.Tree,
    keys: dict[reference.Key, np.ndarray],
    strategy: TableStrategy,
) -> reference.Policy:
    """Return the average strategy at all infosets, uniform without a row."""
    policy = tree.uniform()
    for key, uniform in policy.items():
        row = int(strategy.find(keys[key][None])[0])
        if row >= 0:
            shares = strategy.probabilities(row).astype(float)
            policy[key] = dict(zip(uniform, shares / shares.sum(), strict=True))
    return policy


def current_policy(
    tree: reference.Tree, keys: dict[reference.Key, np.ndarray], table: InfosetTable
) -> reference.Policy:
    """Return the current strategy at all infosets, uniform without a row."""
    policy = tree.uniform()
    for key, uniform in policy.items():
        row = int(table.find(keys[key][None])[0])
        if row < 0:
            continue
        first, count = int(table.first[row]), int(table.count[row])
        positive = table.regret[first : first + count].clip(min=0).astype(float)
        if positive.sum() > 0:
            shares = positive / positive.sum()
            policy[key] = dict(zip(uniform, shares, strict=True))
    return policy


class Grid:
    """A replacement of a generator that returns midpoints of equal parts of [0, 1).

    Attributes:
      size: Number of trajectories, one for each combination of parts.
      live: Trajectories that the next draws belong to, in order.
    """

    def __init__(self, parts: tuple[int, ...]) -> None:
        """Set the number of parts for the draws of each step, in order."""
        self.size = math.prod(parts)
        digits = np.unravel_index(np.arange(self.size), parts)
        self._draws = [(d + 0.5) / n for d, n in zip(digits, parts, strict=True)]
        self.live = np.arange(self.size)

    def random(self, count: int) -> np.ndarray:
        """Return one draw for each live trajectory."""
        assert count == len(self.live)
        return self._draws.pop(0)[self.live]

    @property
    def left(self) -> int:
        """Return the number of steps without draws so far."""
        return len(self._draws)


class _Numbered:
    """States with the indices of their trajectories."""

    def __init__(self, inner: Any, number: np.ndarray) -> None:
        self.inner, self.number = inner, number

    def __getitem__(self, index: np.ndarray) -> "_Numbered":
        return _Numbered(self.inner[index], self.number[index])

    def __array__(self, *kind: Any, **how: Any) -> np.ndarray:
        return np.asarray(self.inner, *kind, **how)


class Enumerated:
    """A source that informs a `Grid` of live trajectories; chance moves only first."""

    def __init__(self, inner: RulesSource, grid: Grid) -> None:
        self.game, self.max_actions = inner.game, inner.max_actions
        self._inner, self._grid = inner, grid
        self._number = np.arange(grid.size)

    def start(self, count: int, random: np.random.Generator) -> Positions:
        assert count == self._grid.size
        return self._told(self._inner.start(count, random))

    def step(
        self, states: "_Numbered", action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        self._number = states.number
        return self._told(self._inner.step(states.inner, action, random))

    def _told(self, positions: Positions) -> Positions:
        self._grid.live = self._number[positions.player >= 0]
        return positions._replace(states=_Numbered(positions.states, self._number))

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        return self._inner.key_of(state)

    def close(self) -> None:
        self._inner.close()
