"""A game that is sampled, by OpenSpiel's own states, stepped one by one.

For games without rules on arrays, and where these are turned off. Keys are hashes of
information-state strings.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.compilation import game_checks
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CHANCE, TERMINAL
from spiel_cr.uncompiled import keys
from spiel_cr.uncompiled.source import Positions

# What is to be known of a state; see `Positions`.
FACTS = np.dtype(
    [
        ("player", np.int8),
        ("num_actions", np.int32),
        ("utility", np.float64),
        ("key", np.uint64, 2),
    ]
)
# An OpenSpiel state with its actions.
STATE_BYTES = 4000
# Steele et al. 2014, "Fast splittable pseudorandom number generators", figure 14.
_GAMMA, _MIX1, _MIX2 = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_MASK = (1 << 64) - 1


class Decision(NamedTuple):
    """A state at which a player acts, and its actions.

    Attributes:
      state: it; nobody may change it.
      legal: OpenSpiel's actions, ascending.
    """

    state: pyspiel.State
    legal: list[int]


class StateSource:
    """Steps OpenSpiel's states in this process.

    Attributes:
      game: the (sequential) game.
      max_actions: no decision has more actions.
      state_bytes: of an OpenSpiel state with its actions, about.
    """

    state_bytes = STATE_BYTES

    def __init__(self, game: str | pyspiel.Game) -> None:
        """Loads the game.

        Raises:
          pyspiel.SpielError, ValueError: as `load_game`; among others where it has no
            information-state strings.
        """
        self.game = load_game(game)
        self.max_actions: int = self.game.num_distinct_actions()

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """The first decisions of some histories.

        Args:
          count: of them.
          random: draws chance; consumed where the game has chance.
        """
        return _in_objects(*first(self.game, draws(self.game, count, random)))

    def step(
        self,
        positions: Positions,
        parent: np.ndarray,
        action: np.ndarray,
        random: np.random.Generator,
    ) -> Positions:
        """Plays actions, and then chance until somebody acts or the game is over.

        Args:
          positions: some.
          parent: int64 [m], of them, at decisions.
          action: int64 [m], indices among the legal actions.
          random: draws chance; consumed where the game has chance.
        """
        before: Sequence[Decision] = positions.states[parent]
        drawn = draws(self.game, len(parent), random)
        return _in_objects(*after(before, action, drawn))

    def key_of(self, state: pyspiel.State) -> np.ndarray:
        """uint64 [2], what the player who acts knows; see `keys`."""
        return key_of(state)

    def close(self) -> None:
        """Nothing is open."""


def key_of(state: pyspiel.State) -> np.ndarray:
    """uint64 [2], the key of the information state of the player who acts."""
    player = state.current_player()
    return keys.of_bytes([_information(state, player)], player)[0]


def draws(game: pyspiel.Game, count: int, random: np.random.Generator) -> np.ndarray:
    """uint64 [count], a seed of chance for each history; zeros in a game without it.

    Drawn in one place, so that results do not depend on who steps the states.

    Args:
      game: a sequential game.
      count: of histories.
      random: consumed where the game has chance.
    """
    if game.get_type().chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC:
        return np.zeros(count, np.uint64)
    return random.integers(0, 1 << 64, count, np.uint64)


def first(
    game: pyspiel.Game, drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """The first decisions of some histories, and their facts; as `after`.

    Args:
      game: a sequential game.
      drawn: uint64 [n], see `draws`.
    """
    root = game.new_initial_state()
    return _settled([root.clone() for _ in range(len(drawn))], drawn)


def after(
    before: Sequence[Decision], action: np.ndarray, drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """What follows actions at decisions, chance played on.

    Args:
      before: decisions [m].
      action: int64 [m], indices among their actions.
      drawn: uint64 [m], see `draws`.

    Returns:
      Decisions [m], None where the game is over; and `FACTS` [m].

    Raises:
      InvalidGameError: the game breaks a promise; names the history.
    """
    moves = zip(before, action.tolist(), strict=True)
    return _settled([at.state.child(at.legal[index]) for at, index in moves], drawn)


def _in_objects(found: list[Decision | None], facts: np.ndarray) -> Positions:
    """Positions whose states are decisions in an array of objects."""
    states = np.fromiter(found, object, len(found))
    return as_positions(states, facts)


def as_positions(states: Any, facts: np.ndarray) -> Positions:
    """Positions of `FACTS` [n].

    Args:
      states: whatever they belong to.
      facts: of the states.
    """
    return Positions(
        states,
        *(facts[name].copy() for name in ("player", "key", "num_actions", "utility")),
    )


def _settled(
    states: list[pyspiel.State], drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """As `after`, of new states, which are changed."""
    facts = np.zeros(len(states), FACTS)
    found: list[Decision | None] = [None] * len(states)
    player = np.full(len(states), TERMINAL, np.int8)
    utility: list[tuple[int, float]] = []
    counts = [0] * len(states)
    known: tuple[list[bytes], list[bytes]] = ([], [])
    for place, (state, seed) in enumerate(zip(states, drawn.tolist(), strict=True)):
        acts = _play_chance(state, seed)
        if acts == TERMINAL:
            utility.append((place, game_checks.returns(state)[0]))
            continue
        legal = sorted(state.legal_actions())
        if not legal:
            raise game_checks.no_action(state, acts)
        found[place], counts[place] = Decision(state, legal), len(legal)
        player[place] = acts
        known[acts].append(_information(state, acts))
    facts["player"], facts["num_actions"] = player, counts
    if utility:
        where, worth = zip(*utility, strict=True)
        facts["utility"][list(where)] = worth
    for acts, texts in enumerate(known):
        if texts:
            facts["key"][player == acts] = keys.of_bytes(texts, acts)
    return found, facts


def _play_chance(state: pyspiel.State, seed: int) -> int:
    """Plays a state on until somebody acts or the game is over; who acts."""
    acts: int = state.current_player()
    while acts == CHANCE:
        seed = (seed + _GAMMA) & _MASK
        outcomes = game_checks.chance_outcomes(state)
        state.apply_action(_outcome(outcomes, _uniform(seed)))
        acts = state.current_player()
    if acts not in (0, 1, TERMINAL):
        raise game_checks.wrong_player(state, acts)
    return acts


def _outcome(outcomes: list[tuple[int, float]], left: float) -> int:
    """The outcome at a number of [0, 1), probabilities laid side by side."""
    for outcome, probability in outcomes:
        left -= probability
        if left < 0:
            return outcome
    # Rounded sums may leave a little.
    return outcomes[-1][0]


def _uniform(seed: int) -> float:
    """A number of [0, 1) from one of 64 bits (SplitMix64)."""
    seed = ((seed ^ (seed >> 30)) * _MIX1) & _MASK
    seed = ((seed ^ (seed >> 27)) * _MIX2) & _MASK
    return ((seed ^ (seed >> 31)) >> 11) * 2.0**-53


def _information(state: pyspiel.State, player: int) -> bytes:
    text: str = state.information_state_string(player)
    return text.encode("utf-8", "surrogatepass")
