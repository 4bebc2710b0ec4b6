"""Simulation by OpenSpiel's states, one by one.

It is used for games without batched rules, and if these are disabled. Keys are hashes
of information-state strings.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.batched_rules import VisitedHistories
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.simulator import Positions

# Properties of a state; see `Positions`.
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
    """State at which a player acts, and its actions.

    Attributes:
      state: OpenSpiel's state, which must not be modified.
      legal: OpenSpiel's actions, ascending.
    """

    state: pyspiel.State
    legal: list[int]


def key_of(state: pyspiel.State) -> np.ndarray:
    """Return the key of the acting player's information state, uint64 [2]."""
    player = state.current_player()
    return keys.of_bytes([_information(state, player)], player)[0]


class StateSource:
    """A `Simulator` that uses OpenSpiel's states in this process.

    Attributes:
      game: The (sequential) game.
      max_actions: Upper bound of the number of actions of a decision.
      state_bytes: Approximate size of an OpenSpiel state with its actions.
      key_kind: Kind of keys; see `key_making.KINDS`.
    """

    state_bytes = STATE_BYTES
    rules = None
    has_strings = True
    key_kind = "strings"

    def __init__(self, game: pyspiel.Game) -> None:
        """Initialise the simulation of a sequential game, from `load_game`."""
        self.game = game
        self.max_actions: int = self.game.num_distinct_actions()

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """Return the first decisions; see `Simulator`. Seeds come from `draws`."""
        return _in_objects(*first(self.game, draws(self.game, count, random)))

    def step(
        self,
        states: Sequence[Decision],
        action: np.ndarray,
        random: np.random.Generator,
    ) -> Positions:
        """Apply actions; see `Simulator`. Seeds come from `draws`."""
        drawn = draws(self.game, len(action), random)
        return _in_objects(*after(states, action, drawn))

    key_of = staticmethod(key_of)

    def keys_of(self, rows: np.ndarray, player: int) -> np.ndarray:
        """Raise ValueError, because arrays of states have no strings."""
        raise ValueError(
            f"the policy of {self.game} has keys of strings, which arrays of states do "
            f"not have; use action_probabilities for each state"
        )

    def root(self, *, observations: bool) -> tuple[np.ndarray, VisitedHistories]:
        """Return the initial state; see `Listing`."""
        state = self.game.new_initial_state()
        return _visited([state], [-1], [1.0], np.full(1, -1), observations)

    def below(
        self, states: np.ndarray, player: np.ndarray, *, observations: bool
    ) -> tuple[np.ndarray, VisitedHistories]:
        """Return the children of histories; see `Listing`."""
        children: list[pyspiel.State] = []
        actions: list[int] = []
        probabilities: list[float] = []
        counts = np.empty(len(states), np.int64)
        for place, (state, acts) in enumerate(
            zip(states, player.tolist(), strict=True)
        ):
            moves: Sequence[int]
            shares: Sequence[float]
            if acts == CHANCE:
                moves, shares = zip(*game_checks.chance_outcomes(state), strict=True)
            else:
                moves = state.legal_actions()
                shares = [1.0] * len(moves)
            children += map(state.child, moves)
            actions += moves
            probabilities += shares
            counts[place] = len(moves)
        parent = np.repeat(np.arange(len(states)), counts)
        return _visited(children, actions, probabilities, parent, observations)

    def num_actions(self, states: np.ndarray, visit: VisitedHistories) -> np.ndarray:
        """Return numbers of legal actions or outcomes; see `Listing`."""
        counts = np.zeros(len(states), np.int32)
        for place, acts in enumerate(visit.player.tolist()):
            if acts == CHANCE:
                counts[place] = len(game_checks.chance_outcomes(states[place]))
            elif acts != TERMINAL:
                counts[place] = len(states[place].legal_actions())
                if not counts[place]:
                    raise game_checks.no_action(states[place], acts)
        return counts

    def strings(self, states: np.ndarray, player: int) -> Sequence[str]:
        """Return information-state strings; see `Listing`."""
        return [state.information_state_string(player) for state in states]

    def close(self) -> None:
        """Do nothing, because no resource is open."""


def draws(game: pyspiel.Game, count: int, random: np.random.Generator) -> np.ndarray:
    """Return a seed of chance per history, uint64 [count]; zeros without chance.

    All seeds are drawn here, so that results do not depend on the number of workers.

    Args:
      game: Sequential game.
      count: Number of histories.
      random: Random generator, which is only used if the game has chance nodes.
    """
    if game.get_type().chance_mode == pyspiel.GameType.ChanceMode.DETERMINISTIC:
        return np.zeros(count, np.uint64)
    return random.integers(0, 1 << 64, count, np.uint64)


def first(
    game: pyspiel.Game, drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """Return the first decisions of some histories, and their facts, as `after` does.

    Args:
      game: Sequential game.
      drawn: Seeds, uint64 [n]; see `draws`.
    """
    root = game.new_initial_state()
    return _settled([root.clone() for _ in range(len(drawn))], drawn)


def after(
    before: Sequence[Decision], action: np.ndarray, drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """Return the decisions after actions, with chance outcomes drawn between them.

    Args:
      before: The m decisions before the actions.
      action: Indices among their actions, int64 [m].
      drawn: Seeds, uint64 [m]; see `draws`.

    Returns:
      m decisions, None where the game is over, and `FACTS` [m].

    Raises:
      InvalidGameError: If the game violates its declared type. The message names the
        history.
    """
    moves = zip(before, action.tolist(), strict=True)
    return _settled([at.state.child(at.legal[index]) for at, index in moves], drawn)


def _in_objects(decisions: list[Decision | None], facts: np.ndarray) -> Positions:
    """Return positions whose states are decisions in an array of objects."""
    states = np.fromiter(decisions, object, len(decisions))
    return as_positions(states, facts)


def as_positions(states: Any, facts: np.ndarray) -> Positions:
    """Convert `FACTS` [n] to positions.

    Args:
      states: States of any type.
      facts: Facts of the states.
    """
    return Positions(
        states,
        player=facts["player"].copy(),
        key=facts["key"].copy(),
        num_actions=facts["num_actions"].copy(),
        utility=facts["utility"].copy(),
    )


def _settled(
    states: list[pyspiel.State], drawn: np.ndarray
) -> tuple[list[Decision | None], np.ndarray]:
    """Return the result of `after` for new states, which are modified."""
    facts = np.zeros(len(states), FACTS)
    decisions: list[Decision | None] = [None] * len(states)
    player = np.full(len(states), TERMINAL, np.int8)
    utility: list[tuple[int, float]] = []
    counts = [0] * len(states)
    information: tuple[list[bytes], list[bytes]] = ([], [])
    for place, (state, seed) in enumerate(zip(states, drawn.tolist(), strict=True)):
        acts = _play_chance(state, seed)
        if acts == TERMINAL:
            utility.append((place, game_checks.returns(state)[0]))
            continue
        legal = sorted(state.legal_actions())
        if not legal:
            raise game_checks.no_action(state, acts)
        decisions[place], counts[place] = Decision(state, legal), len(legal)
        player[place] = acts
        information[acts].append(_information(state, acts))
    facts["player"], facts["num_actions"] = player, counts
    if utility:
        where, values = zip(*utility, strict=True)
        facts["utility"][list(where)] = values
    for acts, texts in enumerate(information):
        if texts:
            facts["key"][player == acts] = keys.of_bytes(texts, acts)
    return decisions, facts


def _play_chance(state: pyspiel.State, seed: int) -> int:
    """Apply chance outcomes until a player acts or the game ends.

    Returns:
      The acting player, or TERMINAL.
    """
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
    """Return the outcome whose interval of cumulative probability contains a number."""
    for outcome, probability in outcomes:
        left -= probability
        if left < 0:
            return outcome
    # The sum may be slightly below 1 because of rounding.
    return outcomes[-1][0]


def _uniform(seed: int) -> float:
    """Return a number in [0, 1) from an integer of 64 bits (SplitMix64)."""
    seed = ((seed ^ (seed >> 30)) * _MIX1) & _MASK
    seed = ((seed ^ (seed >> 27)) * _MIX2) & _MASK
    return ((seed ^ (seed >> 31)) >> 11) * 2.0**-53


def _information(state: pyspiel.State, player: int) -> bytes:
    text: str = state.information_state_string(player)
    return text.encode("utf-8", "surrogatepass")


def _visited(
    states: list[pyspiel.State],
    actions: list[int],
    probabilities: list[float],
    parent: np.ndarray,
    observations: bool,
) -> tuple[np.ndarray, VisitedHistories]:
    """Return states as an array of objects, and their properties.

    Information consists of strings, in arrays of objects.
    """
    rows = np.fromiter(states, object, len(states))
    acting = [state.current_player() for state in states]
    utility = np.zeros(len(states))
    for place, (state, actor) in enumerate(zip(states, acting, strict=True)):
        if actor == TERMINAL:
            utility[place] = game_checks.player_return(state, 0)
        elif actor not in (0, 1, CHANCE):
            raise game_checks.wrong_player(state, actor)
    player = np.array(acting, np.int8)
    information = [_texts(rows[player == acts], acts) for acts in range(2)]
    seen: list[np.ndarray | None] = [None, None]
    if observations:
        try:
            seen = [_texts(rows[player == 1 - acts], acts) for acts in range(2)]
        except pyspiel.SpielError:  # the game has no observations
            pass
    visit = VisitedHistories(
        depth=0,
        parent=parent,
        action=np.array(actions),
        player=player,
        chance=np.array(probabilities),
        utility=utility,
        information=information,
        observations=seen,
        dropped=np.zeros(0, np.int64),
    )
    return rows, visit


def _texts(states: np.ndarray, player: int) -> np.ndarray | None:
    """Return a player's information-state strings, objects [n]; None without states."""
    if not len(states):
        return None
    texts = [state.information_state_string(player) for state in states]
    return np.array(texts, object)
