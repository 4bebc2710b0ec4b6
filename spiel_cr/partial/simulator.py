"""Second stage, games too large to be walked whole: histories, a few at a time.

A `Source` plays a game from histories that somebody holds: what comes after them, what
players know there, what they are worth by random rollouts. The one here plays the
game's own rules on arrays of states (`expansion.py`), that of `growing_states.py`
OpenSpiel's states.
"""

from collections.abc import Callable, Hashable, Sequence
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np
import pyspiel

from spiel_cr.common import arrays
from spiel_cr.compilation import numbering, vectorised

# Player 0's utility, float64 [n], of n histories: pyspiel states, or, where the game
# plays by an expansion, its array of states.
EdgeValue: TypeAlias = Callable[[np.ndarray], np.ndarray]


class Nodes(NamedTuple):
    """Some histories.

    Attributes:
      handles: [n, ...], states of the game: objects, or rows of an expansion.
      action: int32 [n], the action that leads here; -1 where there is none.
      player: int8 [n], who acts.
      label: int32 [n], a number for what the acting player knows, equal exactly where
        that is; it stays the same as long as the source lives. -1: nobody decides.
      told: int32 [n], the same for who does not act; -1 also if that is not known.
      factor: float64 [n], probability of the move of chance that leads here, else 1.
      utility: float64 [n], player 0's at terminals, else 0.
      legal: int32 [n], how many moves there are.
    """

    handles: np.ndarray
    action: np.ndarray
    player: np.ndarray
    label: np.ndarray
    told: np.ndarray
    factor: np.ndarray
    utility: np.ndarray
    legal: np.ndarray


class Rollouts(NamedTuple):
    """Edge values as means of random rollouts: `number` of each, drawn by `seed`."""

    number: int = 4
    seed: int = 0


class Labels:
    """Numbers for what players know, each new thing the next one."""

    def __init__(self) -> None:
        self._known: dict[Hashable, int] = {}

    def __len__(self) -> int:
        return len(self._known)

    def forget(self, count: int) -> None:
        """Keeps the first `count` of them."""
        while len(self._known) > count:
            self._known.popitem()

    def of(self, key: Hashable) -> int:
        return self._known.setdefault(key, len(self._known))

    def of_rows(self, keys: np.ndarray) -> np.ndarray:
        """int32 [n], of rows of integers [n] or [n, k]."""
        ranks = arrays.ranks([keys])
        first = np.empty(int(ranks.max()) + 1, np.int64)
        first[ranks[::-1]] = np.arange(len(ranks))[::-1]
        rows = np.ascontiguousarray(keys[first].astype(np.int64))
        numbers = [self.of(row.tobytes()) for row in rows.reshape(len(first), -1)]
        return np.array(numbers, np.int32)[ranks]


class Source(Protocol):
    """A game that can be played from any of its histories."""

    @property
    def tells(self) -> bool:
        """Whether players who do not act were told something, everywhere so far."""

    def root(self) -> Nodes:
        """The beginning of the game."""

    def children(
        self, handles: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        """What comes after some histories that go on, the children of one together.

        Args:
          handles: [n, ...], the histories.
          player: int8 [n], who acts.
          only: give the children after this action only; legal at all of them.

        Returns:
          The children, and int64, the index of the parent of each, ascending.
        """

    def values(self, handles: np.ndarray, player: np.ndarray) -> np.ndarray:
        """float64 [n], player 0's utility by the source's edge value."""

    def strings(self, handles: np.ndarray, player: int) -> Sequence[str]:
        """Information-state strings of a player at some histories."""

    @property
    def labels(self) -> tuple[Labels, ...]:
        """All labels in use: both players', where they act and where they do not."""


def parse_edge(edge: str | EdgeValue) -> Rollouts | EdgeValue:
    """Reads an edge value.

    Raises:
      ValueError: it is none.
    """
    if callable(edge):
        return edge
    wrong = ValueError(
        f"edge={edge!r} must be rollout, rollout(n=4,seed=0), or a function from an "
        f"array of states to player 0's utilities"
    )
    try:
        given = dict(pyspiel.game_parameters_from_string(edge))
    except (pyspiel.SpielError, RuntimeError, TypeError) as error:
        raise wrong from error
    if given.pop("name", "") != "rollout" or set(given) - {"n", "seed"}:
        raise wrong
    for value in given.values():
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise wrong
    if given.get("n", 1) < 1:
        raise wrong
    return Rollouts(given.get("n", Rollouts().number), given.get("seed", 0))


def check_values(values: np.ndarray, count: int) -> np.ndarray:
    """float64 [count], what an edge value gave.

    Raises:
      ValueError: it is of another shape, or no finite numbers.
    """
    values = np.asarray(values, np.float64)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ValueError(
            f"edge: the function gave an array of shape {values.shape} for {count} "
            f"histories, or something that is no finite number"
        )
    return values


class ArraySource:
    """The game's own rules on arrays."""

    def __init__(
        self,
        game: pyspiel.Game,
        rules: vectorised.VectorisedGame,
        value: Rollouts | EdgeValue,
        *,
        observations: bool,
    ) -> None:
        self._game = game
        self._rules = rules
        self.tells = observations
        self.labels = Labels(), Labels(), Labels(), Labels()
        self._labels, self._told = self.labels[:2], self.labels[2:]
        self._value = value
        seed = value.seed if isinstance(value, Rollouts) else 0
        self._random = np.random.default_rng(seed)

    def root(self) -> Nodes:
        states = self._rules.new_initial_states()
        visits = vectorised.visits(self._game, self._rules, observations=self.tells)
        visit = next(visits)
        return self._nodes(states, visit)

    def children(
        self, handles: np.ndarray, player: np.ndarray, only: int | None = None
    ) -> tuple[Nodes, np.ndarray]:
        states, visit = vectorised.below(
            self._game, self._rules, handles, player, observations=self.tells
        )
        nodes, where = self._nodes(states, visit), visit.parent
        if only is None:
            return nodes, where
        fits = nodes.action == only
        return Nodes(*(column[fits] for column in nodes)), where[fits]

    def values(self, handles: np.ndarray, player: np.ndarray) -> np.ndarray:
        if not isinstance(self._value, Rollouts):
            return check_values(self._value(handles), len(handles))
        total = np.zeros(len(handles))
        for _ in range(self._value.number):
            total += self._play(handles)
        return total / self._value.number

    def strings(self, handles: np.ndarray, player: int) -> Sequence[str]:
        make = getattr(self._rules, "information_state_strings", None)
        if make is None:
            raise ValueError(
                f"{self._game}: its expansion makes no information_state_strings; "
                f"give vectorised=False"
            )
        strings: Sequence[str] = make(handles, player)
        return strings

    def _play(self, states: np.ndarray) -> np.ndarray:
        """float64 [n], player 0's utility of one rollout each."""
        utility = np.zeros(len(states))
        at = np.arange(len(states))
        while len(at):
            player = self._rules.current_player(states)
            over = player == numbering.TERMINAL
            if over.any():
                utility[at[over]] = self._rules.returns(states[over])
                states, at, player = states[~over], at[~over], player[~over]
                if not len(at):
                    break
            odds = self._rules.legal_actions_mask(states).astype(np.float64)
            draws = player == numbering.CHANCE
            if draws.any():
                odds[draws] *= self._rules.chance_probabilities(states[draws])
            ends = np.cumsum(odds, axis=1)
            draw = self._random.random(len(at)) * ends[:, -1]
            states = self._rules.child(states, (ends <= draw[:, None]).sum(axis=1))
        return utility

    def _nodes(self, states: np.ndarray, visit: vectorised.Visit) -> Nodes:
        count, player = len(states), visit.player
        label, told = np.full(count, -1, np.int32), np.full(count, -1, np.int32)
        for p in range(2):
            known, seen = visit.information[p], visit.observations[p]
            if known is not None:
                label[player == p] = self._labels[p].of_rows(known)
            other = player == 1 - p
            if seen is not None:
                told[other] = self._told[p].of_rows(seen)
            elif other.any():
                self.tells = False
        legal = np.zeros(count, np.int32)
        goes_on = player != numbering.TERMINAL
        if goes_on.any():
            mask = self._rules.legal_actions_mask(states[goes_on])
            legal[goes_on] = mask.sum(axis=1)
        factor = np.ones(count) if visit.chance is None else visit.chance
        return Nodes(
            *(states, visit.action.astype(np.int32), player, label, told),
            *(factor, visit.utility, legal),
        )
