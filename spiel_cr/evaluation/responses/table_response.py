"""Responses as tables of the responder's infosets, for matches and as policies.

If a search knows the continuations of the response's action and their values, a match
has a control variate, as in AIVAT (Burch et al. 2018): the difference between the value
that is reached and its expectation has mean zero at every decision, for any values, if
the probabilities are exact. A response that was searched to all terminal nodes has no
variance left.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.draws import choose
from spiel_cr.evaluation.control_variates import without_luck
from spiel_cr.evaluation.opponent import Opponent
from spiel_cr.evaluation.responses import fixed_players
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.simulation.key_making import STRINGS
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import FixedPlayer, Positions, Simulator, play
from spiel_cr.games.simulation.state_source import StateSource
from spiel_cr.policies.array_queries import as_tabular
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.rollouts import by_legal_actions
from spiel_cr.solvers.deep.averages import SOFTMAX
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.tensors import simulated_tensors
from spiel_cr.solvers.mccfr.table.index import Index
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy, as_table

_TENSORS = "information_state"
# Largest number of actions at all decisions of matches that are played at once.
_MOST_ACTIONS = 1 << 23

# A function of positions, places among them, and their matches, which returns places of
# actions among the legal ones, int64 [n].
Actor: TypeAlias = Callable[[Positions, np.ndarray, np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """A game and a fixed opponent.

    Attributes:
      source: Simulator of histories.
      opponent: The opponent.
      default: The responder's player at infosets that it has not visited.
    """

    source: Simulator
    opponent: FixedPlayer
    default: FixedPlayer

    def side_by_side(self, most: int) -> int:
        """Return the number of matches to play in parallel.

        Args:
          most: Largest number, for games with few actions.
        """
        return max(1, min(most, _MOST_ACTIONS // max(self.source.max_actions, 1)))

    def play(
        self, player: int, count: int, random: np.random.Generator, respond: Actor
    ) -> np.ndarray:
        """Play matches at once, and return the responder's returns, float64 [count].

        Args:
          player: The responder.
          count: Number of matches.
          random: Random numbers of chance and the opponent.
          respond: Function that returns the responder's actions, see `play`.
        """

        def act(
            positions: Positions, live: np.ndarray, match: np.ndarray
        ) -> np.ndarray:
            action = np.zeros(len(live), np.int64)
            responds = positions.player[live] == player
            if not responds.all():
                others = live[~responds]
                action[~responds] = self.opponent.draw(positions, others, random)
            if responds.any():
                action[responds] = respond(positions, live[responds], match[responds])
            return action

        utility = play(self.source, count, random, act)
        return -utility if player else utility


def setting_for(opponent: Opponent, method: str) -> Setting:
    """Return the setting in which a method learns and is evaluated.

    Args:
      opponent: The opponent.
      method: "search", which needs OpenSpiel's states, or "table".
    """
    if opponent.bots is not None:
        return on_bot(opponent.game, opponent.bots)
    return on_states(opponent.game, opponent.policy, use_rules=method != "search")


def warm_up(source: Simulator) -> None:
    """Play one match at random."""
    random, anyone = np.random.default_rng(0), fixed_players.UniformPlayer()
    play(source, 1, random, lambda now, live, _: anyone.draw(now, live, random))


def default_policy(opponent: Opponent) -> openspiel_policy.Policy:
    """Return the responder's policy at unvisited infosets: the opponent's own policy.

    It is uniform if the opponent is a bot without probabilities.
    """
    if opponent.bots is not None:
        return openspiel_policy.UniformRandomPolicy(opponent.game)
    return opponent.policy


def on_states(
    game: pyspiel.Game, policy: openspiel_policy.Policy, *, use_rules: bool = True
) -> Setting:
    """Return the setting of a policy, on batched rules if the policy supports them.

    Uniform and fixed policies, networks, and tables support them (tables by strings
    only if the rules provide strings). Other policies are queried at OpenSpiel's
    states, once for each information state.

    Args:
      game: A sequential game.
      policy: A policy of both players that depends on information states only.
      use_rules: Whether to use the game's batched rules if possible.
    """
    opened = Opened(game)
    rules = opened.rules if use_rules else None
    by_rules = None if rules is None else RulesSource(game, rules)
    source: Simulator = by_rules or StateSource(game)
    player: FixedPlayer
    table, by_string = as_table(policy), as_tabular(policy)
    if getattr(rules, "information_state_strings", None) is None:
        by_string = None
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        player = fixed_players.UniformPlayer()
    elif (
        table is not None
        and table.fallback is None
        and (table.keys == STRINGS) == (by_rules is None)
    ):
        player = fixed_players.TablePlayer(table.strategy)
    elif (
        isinstance(policy, DeepPolicy)
        and policy.average.rule == SOFTMAX
        and policy.average.features == _TENSORS
    ):
        simulated = simulated_tensors(opened, _TENSORS, use_rules=use_rules)
        source = simulated.source
        player = fixed_players.NetworkPlayer(simulated.knowledge, policy)
    elif by_rules is None:
        player = fixed_players.StatePlayer(policy)
    elif by_string is not None:
        player = fixed_players.StringPlayer(by_string, by_rules)
    elif by_legal_actions(policy):
        player = fixed_players.LegalPlayer(game, policy)
    else:
        return on_states(game, policy, use_rules=False)
    return Setting(source, player, player)


def on_bot(game: pyspiel.Game, bots: Sequence[pyspiel.Bot]) -> Setting:
    """Return the setting of bots that do not provide their policies, on states.

    Args:
      game: A sequential game.
      bots: The bots of player 0 and of player 1.
    """
    return Setting(
        StateSource(game), fixed_players.BotPlayer(bots), fixed_players.UniformPlayer()
    )


class Unplanned:
    """Moves at infosets without a known response.

    In varied matches they are random actions that were not played in the match before,
    as long as there are any. (In games of shots at a board, that wins more than
    repeated actions.) In other matches the setting's default player moves.

    Attributes:
      again: Whether an action that had been played was legal again in a varied match.
    """

    def __init__(self, setting: Setting, varied: np.ndarray) -> None:
        """Initialise before the first move.

        Args:
          setting: The setting of the matches.
          varied: Matches in which actions are not repeated, bool [n].
        """
        self._default, self._varied, self.again = setting.default, varied, False
        # Only varied matches need it, and games may have many actions.
        rows = len(varied) if varied.any() else 0
        self._taken = np.zeros((rows, setting.source.max_actions), bool)

    def fill(
        self,
        positions: Positions,
        acting: np.ndarray,
        games: np.ndarray,
        chosen: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Choose actions where none was chosen, and store all actions.

        Args:
          positions: Positions of all matches.
          acting: Places of positions at which the responder acts, int64 [m].
          games: Matches of these positions, int64 [m].
          chosen: Places among the legal actions, int64 [m]; -1 (none) is replaced.
          random: Random numbers.
        """
        some = np.flatnonzero(self._varied[games])
        free = np.flatnonzero((chosen < 0) & ~self._varied[games])
        if len(free):
            chosen[free] = self._default.draw(positions, acting[free], random)
        if len(some):
            legal = _legal(positions, acting[some], self._taken.shape[1])
            new = legal & ~self._taken[games[some]]
            self.again |= bool((new != legal).any())
            weights = np.where(new.any(axis=1, keepdims=True), new, legal)
            action = choose(
                weights / weights.sum(1, keepdims=True), random.random(len(some))
            )
            rank = legal.cumsum(axis=1) - 1
            drawn = rank[np.arange(len(some)), action]
            chosen[some] = np.where(chosen[some] < 0, drawn, chosen[some])
            self._taken[games[some]] |= legal & (rank == chosen[some, None])


def _legal(positions: Positions, acting: np.ndarray, width: int) -> np.ndarray:
    """Return the legal actions of some positions, bool [m, width]."""
    states = positions.states[acting]
    if not isinstance(states, np.ndarray):
        return np.asarray(states.legal[:, :width])
    legal = np.zeros((len(states), width), bool)
    for row, decision in zip(legal, states, strict=True):
        row[decision.legal] = True
    return legal


# Numbers of earlier decisions, and of legal actions, that habits distinguish.
_DEPTHS, _COUNTS = 32, 64
NUM_HABITS = _DEPTHS * _COUNTS


def habit_of(decided: np.ndarray, num_actions: np.ndarray) -> np.ndarray:
    """Return the habits that are used at unvisited infosets, int64 [n].

    Args:
      decided: Numbers of the player's earlier decisions, int [n].
      num_actions: Numbers of legal actions, int [n].
    """
    depth = np.minimum(decided, _DEPTHS - 1)
    return depth * _COUNTS + np.minimum(num_actions, _COUNTS - 1)


class Habits(StatePolicy):
    """The policy at unvisited infosets, and of the other player."""

    def __init__(
        self, response: "TableResponse", default: openspiel_policy.Policy
    ) -> None:
        """Use the habits of a response, and `default` where no habit is known."""
        super().__init__(default.game)
        self._response, self._default = response, default

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        response = self._response
        if player == response.player:
            legal = sorted(state.legal_actions())
            history = state.full_history()
            done = [m.action for m in history if m.player == response.player]
            place = response.habits[habit_of(np.array(len(done)), np.array(len(legal)))]
            some = [legal[min(place, len(legal) - 1)]] if place >= 0 else []
            if response.varied and not some:
                some = sorted(set(legal).difference(done)) or legal
            if some:
                return {action: (action in some) / len(some) for action in legal}
        return self._default.action_probabilities(state, player)


@dataclasses.dataclass(frozen=True, eq=False)
class TableResponse:
    """A deterministic response of one player, as a table.

    Attributes:
      player: The responder.
      key: Keys of the responder's infosets, made by the setting's source, uint64 [R,
        2].
      count: Numbers of legal actions, int [R].
      action: Places of the played actions among the legal ones, int [R]; -1 for a
        habit, which is also played at infosets without a row.
      infoset_values: Values of the infosets, float64 [R]; NaN if not known.
      expected: Expectation after the action of the return or of the value of the next
        infoset, float64 [R]; NaN if the probabilities are not exact.
      habits: Actions by `habit_of`, int [NUM_HABITS]; for -1 see `Unplanned`.
      start: Expectation at the start of the game, as in `expected`.
      value: Exact value of the response; None if it is not known.
      varied: Whether actions are not repeated where no habit is known, see `Unplanned`.
    """

    player: int
    key: np.ndarray
    count: np.ndarray
    action: np.ndarray
    infoset_values: np.ndarray
    expected: np.ndarray
    habits: np.ndarray
    start: float = math.nan
    value: float | None = None
    varied: bool = False

    @functools.cached_property
    def _index(self) -> Index:
        index = Index(self.key)
        index.extend(len(self.key))
        return index

    def play(
        self, setting: Setting, count: int, random: np.random.Generator
    ) -> np.ndarray:
        """Play matches, and return the returns minus control variates, float64 [count].

        Args:
          setting: Setting of the opponent, with the keys of this table.
          count: Number of matches.
          random: Random numbers for all choices.
        """
        expected, luck = np.full(count, self.start), np.zeros(count)
        decided = np.zeros(count, np.int64)
        unplanned = Unplanned(setting, np.full(count, self.varied))

        def arrive(games: np.ndarray, value: np.ndarray) -> None:
            change = value - expected[games]
            luck[games] += np.where(np.isnan(change), 0.0, change)

        def respond(
            positions: Positions, acting: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._index.find(positions.key[acting])
            arrive(games, _looked_up(self.infoset_values, row, np.nan))
            expected[games] = _looked_up(self.expected, row, np.nan)
            chosen = _looked_up(self.action, row, -1)
            habit = habit_of(decided[games], positions.num_actions[acting])
            usual = np.minimum(self.habits[habit], positions.num_actions[acting] - 1)
            chosen = np.where(chosen < 0, usual, chosen)
            decided[games] += 1
            unplanned.fill(positions, acting, games, chosen, random)
            return chosen

        returns = setting.play(self.player, count, random, respond)
        arrive(np.arange(count), returns)
        return without_luck(returns, luck)

    def policy(
        self, game: pyspiel.Game, source: Simulator, default: openspiel_policy.Policy
    ) -> TablePolicy:
        """Return the response as an OpenSpiel policy, which can be saved.

        Args:
          game: The sequential game.
          source: The simulator that made the keys.
          default: The policy at unvisited infosets, and of the other player.
        """
        rows = np.flatnonzero(self.action >= 0)
        count = self.count[rows].astype(np.uint16)
        probability = np.zeros(int(count.sum()), np.float32)
        probability[np.cumsum(count, dtype=np.int64) - count + self.action[rows]] = 1
        strategy = TableStrategy(
            self.key[rows], count, np.ones(len(rows), np.uint32), probability
        )
        fallback = Habits(self, default)
        return TablePolicy(game, source, strategy, fallback)


def _looked_up(values: np.ndarray, row: np.ndarray, otherwise: float) -> np.ndarray:
    """Return `values[row]`, with `otherwise` where the row is -1, [n]."""
    result = np.full(len(row), otherwise, values.dtype)
    known_rows = np.flatnonzero(row >= 0)
    result[known_rows] = values[row[known_rows]]
    return result
