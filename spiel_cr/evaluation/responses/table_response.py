"""A response as a table of its player's infosets: played in many matches, as a policy.

Where a search knows what may come after the response's action, and what that is worth,
a match is judged by less than its luck: the difference between what came and what was
to be expected has mean zero at every decision, whatever the worths are, if the odds are
exact. It is a control variate, as in AIVAT (Burch et al. 2018). A response that was
searched to all ends has no luck left.
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
from spiel_cr.policies.conversions import StatePolicy
from spiel_cr.policies.rollouts import by_legal_actions
from spiel_cr.solvers.deep.averages import SOFTMAX
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.deep.tensors import stepped
from spiel_cr.solvers.mccfr.table.index import Index
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy
from spiel_cr.solvers.mccfr.table.table_policy import TablePolicy, as_table

_TENSORS = "information_state"
# Actions at all decisions of matches side by side, each of which has a list of them.
_MOST_ACTIONS = 1 << 23

# Of positions, places of them, and the matches that these belong to: int64 [n], the
# place of an action among the legal ones.
Actor: TypeAlias = Callable[[Positions, np.ndarray, np.ndarray], np.ndarray]


class Setting(NamedTuple):
    """A game and a fixed opponent.

    Attributes:
      source: of histories.
      opponent: plays the other seat.
      own: plays the responder's where that knows nothing.
    """

    source: Simulator
    opponent: FixedPlayer
    own: FixedPlayer

    def side_by_side(self, most: int) -> int:
        """How many matches to play side by side: at most so many, and as memory allows.

        Args:
          most: where decisions have few actions.
        """
        return max(1, min(most, _MOST_ACTIONS // max(self.source.max_actions, 1)))

    def play(
        self, player: int, count: int, random: np.random.Generator, respond: Actor
    ) -> np.ndarray:
        """float64 [count], a responder's returns in matches side by side.

        Args:
          player: its seat.
          count: of matches.
          random: draws chance and the opponent; consumed.
          respond: gives the responder's actions where it is to act, see `play`.
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
    """Plays one match at random."""
    random, anyone = np.random.default_rng(0), fixed_players.UniformPlayer()
    play(source, 1, random, lambda now, live, _: anyone.draw(now, live, random))


def default_policy(opponent: Opponent) -> openspiel_policy.Policy:
    """How a responder plays where it knows nothing: as the target does in its seat.

    At random where the target is known by its moves alone.
    """
    if opponent.bots is not None:
        return openspiel_policy.UniformRandomPolicy(opponent.game)
    return opponent.policy


def on_states(
    game: pyspiel.Game, policy: openspiel_policy.Policy, *, use_rules: bool = True
) -> Setting:
    """A game that is not compiled, by its batched rules if the policy plays on them.

    That do uniform policies and chumps, tables (those by strings where the rules make
    strings), and networks. Any other policy is asked on OpenSpiel's states, once for
    each information state.

    Args:
      game: a sequential game.
      policy: of both seats; must depend on information states only.
      use_rules: take the game's batched rules where that is possible.
    """
    source, player = _plays_on(Opened(game), policy, use_rules)
    return Setting(source, player, player)


def _plays_on(
    opened: Opened, policy: openspiel_policy.Policy, use_rules: bool
) -> tuple[Simulator, FixedPlayer]:
    """See `on_states`."""
    game = opened.game
    rules = opened.rules if use_rules else None
    by_rules = None if rules is None else RulesSource(game, rules)
    source: Simulator = by_rules or StateSource(game)
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return source, fixed_players.UniformPlayer()
    table = as_table(policy)
    if table is not None and table.beyond is None:
        if (table.keys == STRINGS) == (by_rules is None):
            return source, fixed_players.TablePlayer(table.strategy)
    if isinstance(policy, DeepPolicy):
        average = policy.average
        if average.rule == SOFTMAX and average.features == _TENSORS:
            simulated = stepped(opened, _TENSORS, use_rules=use_rules)
            return simulated.source, fixed_players.NetworkPlayer(
                simulated.knowledge, policy
            )
    if by_rules is None:
        return source, fixed_players.StatePlayer(policy)
    strings = getattr(rules, "information_state_strings", None)
    if strings is not None and isinstance(policy, openspiel_policy.TabularPolicy):
        return source, fixed_players.StringPlayer(policy, by_rules)
    if by_legal_actions(policy):
        return source, fixed_players.LegalPlayer(game, policy)
    return _plays_on(opened, policy, False)


def on_bot(game: pyspiel.Game, bots: Sequence[pyspiel.Bot]) -> Setting:
    """A game on OpenSpiel's states, against bots that are known by their moves alone.

    Args:
      game: a sequential game.
      bots: of player 0 and of player 1.
    """
    return Setting(
        StateSource(game), fixed_players.BotPlayer(bots), fixed_players.UniformPlayer()
    )


class Unplanned:
    """Moves as the setting's own player does; or at random by actions that were not
    taken in the match, as long as there are any: who shoots at a board that way wins
    more than who repeats itself.

    Attributes:
      again: an action that was taken was legal once more, in a match that is varied.
    """

    def __init__(self, setting: Setting, varied: np.ndarray) -> None:
        """No move was made.

        Args:
          setting: of the matches.
          varied: bool [n], matches in which actions are not repeated.
        """
        self._own, self._varied, self.again = setting.own, varied, False
        # Where some match is varied; games may have many actions.
        rows = len(varied) if varied.any() else 0
        self._taken = np.zeros((rows, setting.source.max_actions), bool)

    def fill(
        self,
        positions: Positions,
        there: np.ndarray,
        games: np.ndarray,
        chosen: np.ndarray,
        random: np.random.Generator,
    ) -> None:
        """Moves where nothing is chosen, and remembers all moves.

        Args:
          positions: of all matches.
          there: int64 [m], places of those where the responder acts.
          games: int64 [m], matches to which these belong.
          chosen: int64 [m], places among the legal actions; -1, nothing, is replaced.
          random: consumed.
        """
        some = np.flatnonzero(self._varied[games])
        free = np.flatnonzero((chosen < 0) & ~self._varied[games])
        if len(free):
            chosen[free] = self._own.draw(positions, there[free], random)
        if len(some):
            legal = _legal(positions, there[some], self._taken.shape[1])
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


def _legal(positions: Positions, there: np.ndarray, width: int) -> np.ndarray:
    """bool [m, width], legal actions of some positions, by rules or states."""
    states = positions.states[there]
    if not isinstance(states, np.ndarray):
        return np.asarray(states.legal[:, :width])
    legal = np.zeros((len(states), width), bool)
    for row, decision in zip(legal, states, strict=True):
        row[decision.legal] = True
    return legal


# Own decisions, and legal actions, that habits tell apart.
_DEPTHS, _COUNTS = 32, 64
NUM_HABITS = _DEPTHS * _COUNTS


def habit_of(decided: np.ndarray, num_actions: np.ndarray) -> np.ndarray:
    """int64 [n], what is looked at where an infoset is not known.

    Args:
      decided: int [n], own decisions before.
      num_actions: int [n], legal ones.
    """
    depth, count = (
        np.minimum(decided, _DEPTHS - 1),
        np.minimum(num_actions, _COUNTS - 1),
    )
    return depth * _COUNTS + count


class Habits(StatePolicy):
    """What is played where no infoset is known, and in the other seat."""

    def __init__(self, response: "TableResponse", own: openspiel_policy.Policy) -> None:
        """Takes the habits of a response; `own` plays where there is none."""
        super().__init__(own.game)
        self._response, self._own = response, own

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
        return self._own.action_probabilities(state, player)


@dataclasses.dataclass(frozen=True, eq=False)
class TableResponse:
    """A fixed way to play in one seat, against a fixed opponent.

    Attributes:
      player: the seat.
      key: uint64 [R, 2], of its infosets, as the setting's source makes them.
      count: int [R], legal actions.
      action: int [R], which one is played, counted in ascending order; -1: a habit, as
        at infosets that have no row.
      worth: float64 [R], what each infoset is worth; NaN where nobody knows.
      expected: float64 [R], the expectation, after the action, of what is returned or
        what the next infoset is worth; NaN where the odds are not exact.
      habits: int [NUM_HABITS], actions by `habit_of`; -1: see `Unplanned`.
      start: as `expected`, at the start of the game.
      value: what it wins, where that is known exactly; else None.
      varied: where there is no habit it does not repeat itself, see `Unplanned`.
    """

    player: int
    key: np.ndarray
    count: np.ndarray
    action: np.ndarray
    worth: np.ndarray
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
        """float64 [count], its returns in matches, less their luck where it is known.

        Args:
          setting: of the opponent, with the keys of this table.
          count: of matches.
          random: of all that is drawn; consumed.
        """
        expected, luck = np.full(count, self.start), np.zeros(count)
        decided = np.zeros(count, np.int64)
        unplanned = Unplanned(setting, np.full(count, self.varied))

        def arrive(games: np.ndarray, worth: np.ndarray) -> None:
            change = worth - expected[games]
            luck[games] += np.where(np.isnan(change), 0.0, change)

        def respond(
            positions: Positions, there: np.ndarray, games: np.ndarray
        ) -> np.ndarray:
            row = self._index.find(positions.key[there])
            arrive(games, _looked_up(self.worth, row, np.nan))
            expected[games] = _looked_up(self.expected, row, np.nan)
            chosen = _looked_up(self.action, row, -1)
            habit = habit_of(decided[games], positions.num_actions[there])
            usual = np.minimum(self.habits[habit], positions.num_actions[there] - 1)
            chosen = np.where(chosen < 0, usual, chosen)
            decided[games] += 1
            unplanned.fill(positions, there, games, chosen, random)
            return chosen

        returns = setting.play(self.player, count, random, respond)
        arrive(np.arange(count), returns)
        return without_luck(returns, luck)

    def policy(
        self, game: pyspiel.Game, source: Simulator, own: openspiel_policy.Policy
    ) -> TablePolicy:
        """An OpenSpiel policy, which can be saved.

        Args:
          game: sequential.
          source: that made the keys.
          own: what is played where nothing is known, and in the other seat.
        """
        rows = np.flatnonzero(self.action >= 0)
        count = self.count[rows].astype(np.uint16)
        probability = np.zeros(int(count.sum()), np.float32)
        probability[np.cumsum(count, dtype=np.int64) - count + self.action[rows]] = 1
        strategy = TableStrategy(
            self.key[rows], count, np.ones(len(rows), np.uint32), probability
        )
        beyond = Habits(self, own)
        return TablePolicy(game, source, strategy, beyond)


def _looked_up(values: np.ndarray, row: np.ndarray, otherwise: float) -> np.ndarray:
    """[n], the values of some rows; where the row is -1, the other one."""
    result = np.full(len(row), otherwise, values.dtype)
    known_rows = np.flatnonzero(row >= 0)
    result[known_rows] = values[row[known_rows]]
    return result
