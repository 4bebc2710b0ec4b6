"""Simulation by a game's own batched rules (`games.opening.batched_rules`)."""

from collections.abc import Sequence

import numpy as np
import pyspiel

from spiel_cr.common.draws import choose
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import batched_rules
from spiel_cr.games.opening.batched_rules import BatchedRules, VisitedHistories
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.simulator import Positions

# Largest number of cached states after histories, which is then cleared. The cache
# shortens later queries of a match to one move.
_MOST_KEPT = 1 << 12


class States:
    """States and their legal actions, which are indexed together.

    Attributes:
      rows: States of the rules, [n, ...].
      legal: bool [n, A]; undefined at terminal states.
    """

    def __init__(self, rows: np.ndarray, legal: np.ndarray) -> None:
        self.rows, self.legal = rows, legal

    def __getitem__(self, index: np.ndarray) -> "States":
        return States(self.rows[index], self.legal[index])


class RulesSource:
    """A `Simulator` that uses a game's batched rules.

    Attributes:
      game: The game.
      rules: Batched rules of the game.
      max_actions: Largest number of actions of a decision.
      state_bytes: 0, because states are numbers in arrays.
      key_kind: Kind of keys; see `key_making.KINDS`.
    """

    state_bytes = 0
    key_kind = "rules"

    def __init__(self, game: pyspiel.Game, rules: BatchedRules | None = None) -> None:
        """Store the batched rules of a game.

        Args:
          game: Sequential game, from `load_game`.
          rules: Batched rules of the game; by default those of its class.

        Raises:
          ValueError: If the game has no batched rules.
        """
        rules = batched_rules.of_game(game) if rules is None else rules
        if rules is None:
            raise ValueError(
                f"game={game} has no batched rules (docs/how-to/batched-rules.md); "
                f"simulate its states instead"
            )
        self.game, self.rules = game, rules
        self._checked = batched_rules.CheckedRules(game, rules)
        self.max_actions: int = game.num_distinct_actions()
        self._kept: dict[tuple[int, ...], np.ndarray] = {}

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """Return the first decisions; see `Simulator`."""
        rows = np.repeat(self.rules.new_initial_states(), count, axis=0)
        return self._positions(rows, random)

    def step(
        self, states: States, action: np.ndarray, random: np.random.Generator
    ) -> Positions:
        """Apply actions; see `Simulator`."""
        width = states.legal.shape[1]
        # All legal actions in one row, those of each state one after another.
        flat = np.flatnonzero(states.legal)
        first = np.searchsorted(flat, np.arange(len(action)) * width)
        actions = flat[first + action] % width
        return self._positions(self.rules.child(states.rows, actions), random)

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        """Return the key of a state; see `Simulator`."""
        player = state.current_player()
        rows = self._after(tuple(state.history()))
        return self.keys_of(rows, player)[0]

    def keys_of(self, rows: np.ndarray, player: int) -> np.ndarray:
        """Return keys of a player's information at some states, uint64 [n, 2]."""
        information = self.rules.information_state(rows, player)
        return keys.of_rows(information.reshape(len(rows), -1), player)

    def root(self, *, observations: bool) -> tuple[np.ndarray, VisitedHistories]:
        """Return the initial state; see `Listing`."""
        visits = batched_rules.visits(self.game, self.rules, observations=observations)
        return self.rules.new_initial_states(), next(visits)

    def below(
        self, states: np.ndarray, player: np.ndarray, *, observations: bool
    ) -> tuple[np.ndarray, VisitedHistories]:
        """Return the children of histories; see `Listing`."""
        return batched_rules.below(
            self.game, self.rules, states, player, observations=observations
        )

    def num_actions(self, states: np.ndarray, visit: VisitedHistories) -> np.ndarray:
        """Return numbers of legal actions or outcomes; see `Listing`."""
        counts = np.zeros(len(states), np.int32)
        goes_on = np.flatnonzero(visit.player != TERMINAL)
        if not len(goes_on):
            return counts
        live, player = states[goes_on], visit.player[goes_on]
        mask = self.rules.legal_actions_mask(live)
        draws = player == CHANCE
        if draws.any():
            mask = mask.copy()
            mask[draws] &= self.rules.chance_probabilities(live[draws]) > 0
        counts[goes_on] = mask.sum(axis=1)
        if not counts[goes_on].all():
            odd = int(np.argmin(counts[goes_on]))
            stuck = self._checked.stuck(odd, int(player[odd]))
            if visit.parent[goes_on[odd]] < 0:
                raise stuck.at([])
            raise stuck.of(visit.parent[goes_on], visit.action[goes_on])
        return counts

    @property
    def has_strings(self) -> bool:
        """Whether the rules compute information-state strings; see `Listing`."""
        return getattr(self.rules, "information_state_strings", None) is not None

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Return information-state strings; see `Listing`.

        Raises:
          ValueError: If the rules do not compute them.
        """
        make = getattr(self.rules, "information_state_strings", None)
        if make is None:
            raise ValueError(
                f"{self.game}: its batched rules have no information_state_strings; "
                f"use batched_rules=False"
            )
        return make(states, player)

    def close(self) -> None:
        """Clear the cache of states."""
        self._kept.clear()

    def _after(self, history: tuple[int, ...]) -> np.ndarray:
        """Return the state after a history, which includes chance outcomes."""
        kept = len(history)
        while kept and history[:kept] not in self._kept:
            kept -= 1
        rows = self.rules.new_initial_states()
        if kept:
            rows = self._kept[history[:kept]]
        for end in range(kept, len(history)):
            rows = self.rules.child(rows, np.array(history[end : end + 1], np.int64))
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            self._kept[history[: end + 1]] = rows
        return rows

    def _positions(self, rows: np.ndarray, random: np.random.Generator) -> Positions:
        """Draw chance outcomes, and return the properties of decisions."""
        rows, player = self._play_chance(rows, random)
        count = len(rows)
        over = player == TERMINAL
        live = np.flatnonzero(~over)
        utility, key = np.zeros(count), np.zeros((count, 2), np.uint64)
        if len(live) < count:
            utility[over] = self.rules.returns(rows[over])
        some = rows if len(live) == count else rows[live]
        mask = self.rules.legal_actions_mask(some)
        legal = mask
        if len(live) < count:
            legal = np.zeros((count, mask.shape[1]), bool)
            legal[live] = mask
        num_actions = np.count_nonzero(legal, axis=1).astype(np.int32)
        if not num_actions[live].all():
            odd = int(np.argmin(num_actions[live]))
            raise self._checked.stuck(odd, int(player[live][odd]))
        for actor in range(2):
            acts = np.flatnonzero(player == actor)
            if len(acts):
                key[acts] = self.keys_of(rows[acts], actor)
        return Positions(States(rows, legal), player, key, num_actions, utility)

    def _play_chance(
        self, rows: np.ndarray, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the states after chance, and int8 [n], the acting players."""
        player = self.rules.current_player(rows).astype(np.int8)
        draws = np.flatnonzero(player == CHANCE)
        if len(draws):
            rows = rows.copy()
        while len(draws):
            drawing = rows[draws]
            outcome = self._draw(drawing, random)
            after = self.rules.child(drawing, outcome)
            rows[draws] = after
            acts = self.rules.current_player(after).astype(np.int8)
            player[draws] = acts
            draws = draws[acts == CHANCE]
        return rows, player

    def _draw(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        """Return random chance outcomes by their probabilities, int64 [n]."""
        return choose(
            self._checked.chance_probabilities(rows), random.random(len(rows))
        )
