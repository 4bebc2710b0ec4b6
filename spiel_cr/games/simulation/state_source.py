"""A game that is sampled, by OpenSpiel's own states, stepped one by one.

For games without batched rules, and where these are turned off. Keys are hashes of
information-state strings.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyspiel

from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening import game_checks
from spiel_cr.games.opening.batched_rules import Visit
from spiel_cr.games.simulation import keys
from spiel_cr.games.simulation.simulator import Positions

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


def key_of(state: pyspiel.State) -> np.ndarray:
    """uint64 [2], the key of the information state of the player who acts."""
    player = state.current_player()
    return keys.of_bytes([_information(state, player)], player)[0]


class StateSource:
    """Steps OpenSpiel's states in this process.

    Attributes:
      game: the (sequential) game.
      max_actions: no decision has more actions.
      state_bytes: of an OpenSpiel state with its actions, about.
    """

    state_bytes = STATE_BYTES

    def __init__(self, game: pyspiel.Game) -> None:
        """Steps a sequential game, as from `load_game`."""
        self.game = game
        self.max_actions: int = self.game.num_distinct_actions()

    def start(self, count: int, random: np.random.Generator) -> Positions:
        """See `Simulator`; `random` is advanced as by `draws`."""
        return _in_objects(*first(self.game, draws(self.game, count, random)))

    def step(
        self,
        states: Sequence[Decision],
        action: np.ndarray,
        random: np.random.Generator,
    ) -> Positions:
        """See `Simulator`; `random` is advanced as by `draws`."""
        drawn = draws(self.game, len(action), random)
        return _in_objects(*after(states, action, drawn))

    key_of = staticmethod(key_of)

    @property
    def rules(self) -> pyspiel.Game:
        """The game, whose states are stepped."""
        return self.game

    def root(self, *, observations: bool) -> tuple[np.ndarray, Visit]:
        """See `Listing`."""
        state = self.game.new_initial_state()
        return _visited([state], [-1], [1.0], np.full(1, -1), observations)

    def below(
        self, states: np.ndarray, player: np.ndarray, *, observations: bool
    ) -> tuple[np.ndarray, Visit]:
        """See `Listing`."""
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

    def num_actions(self, states: np.ndarray, visit: Visit) -> np.ndarray:
        """See `Listing`."""
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
        """See `Listing`."""
        return [state.information_state_string(player) for state in states]

    def close(self) -> None:
        """Nothing is open."""


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


def _in_objects(decisions: list[Decision | None], facts: np.ndarray) -> Positions:
    """Positions whose states are decisions in an array of objects."""
    states = np.fromiter(decisions, object, len(decisions))
    return as_positions(states, facts)


def as_positions(states: Any, facts: np.ndarray) -> Positions:
    """Positions of `FACTS` [n].

    Args:
      states: whatever they belong to.
      facts: of the states.
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
    """As `after`, of new states, which are changed."""
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


def _visited(
    states: list[pyspiel.State],
    actions: list[int],
    probabilities: list[float],
    parent: np.ndarray,
    observations: bool,
) -> tuple[np.ndarray, Visit]:
    """States as an array of objects, and what is to be known of them.

    Information is strings here, in arrays of objects.
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
        except pyspiel.SpielError:  # the game does not provide that
            pass
    visit = Visit(
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
    """A player's information-state strings, objects [n]; None where there are none."""
    if not len(states):
        return None
    texts = [state.information_state_string(player) for state in states]
    return np.array(texts, object)
