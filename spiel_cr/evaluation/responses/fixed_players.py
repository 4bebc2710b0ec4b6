"""Fixed opponents that answer many decisions at once, as `FixedPlayer`."""

import abc
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.draws import BELOW_ONE, choose
from spiel_cr.games.histories import after_deals
from spiel_cr.games.simulation.rules_source import RulesSource
from spiel_cr.games.simulation.simulator import Positions
from spiel_cr.games.simulation.state_source import Decision
from spiel_cr.policies.bot_base import gives_policy, policy_at
from spiel_cr.policies.bot_policies import restart_at
from spiel_cr.policies.queries import distribution_at, shares
from spiel_cr.policies.rollouts import REMEMBERED, Answers
from spiel_cr.solvers.deep.infosets import Knowledge
from spiel_cr.solvers.deep.network_policy import DeepPolicy
from spiel_cr.solvers.mccfr.table.strategy import TableStrategy


class UniformPlayer:
    """A player that plays all legal actions with equal probability."""

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """See `FixedPlayer`."""
        drawn = random.random(len(places)) * positions.num_actions[places]
        return drawn.astype(np.int64)


class _SamplingPlayer(abc.ABC):
    """A player that draws its actions by their probabilities."""

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """See `FixedPlayer`."""
        return choose(
            self._probabilities(positions, places), random.random(len(places))
        )

    @abc.abstractmethod
    def _probabilities(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        """Return probabilities of the legal actions, ascending, float64 [n, A].

        Raises:
          InvalidPolicyError: If a policy's answer is not a distribution.
        """


class TablePlayer(_SamplingPlayer):
    """Player that follows a table of keys; uniform at keys without a row."""

    def __init__(self, strategy: TableStrategy) -> None:
        """Keep a strategy whose keys are made as those of the source."""
        self._strategy = strategy

    def _probabilities(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        num_actions = positions.num_actions[places][:, None]
        row = self._strategy.find(positions.key[places])
        legal = np.arange(num_actions.max()) < num_actions
        played = self._strategy.spread(row, legal)
        return np.where(row[:, None] >= 0, played, legal / num_actions)


class NetworkPlayer:
    """A player that follows networks, which evaluate many decisions at once."""

    def __init__(self, knowledge: Knowledge, policy: DeepPolicy) -> None:
        """Keep the policy; nothing is queried yet.

        Args:
          knowledge: Inputs of networks at the source's positions.
          policy: The policy of both players.
        """
        self._knowledge, self._policy = knowledge, policy

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """See `FixedPlayer`."""
        player = int(positions.player[places[0]])
        seen = self._knowledge.seen(positions, places, player)
        probabilities = self._policy.strategies(seen.rows, seen.legal, player)[0]
        action = choose(probabilities, random.random(len(places)))
        rank = np.cumsum(seen.legal, axis=1)[np.arange(len(places)), action] - 1
        return rank


class _Acting:
    """Replacement of a state that has an acting player and legal actions only."""

    def __init__(self, names: pyspiel.State, player: int, legal: list[int]) -> None:
        self._names, self._player, self._legal = names, player, legal

    def current_player(self) -> int:
        return self._player

    def legal_actions(self) -> list[int]:
        return self._legal

    def action_to_string(self, player: int, action: int) -> str:
        return str(self._names.action_to_string(player, action))


class LegalPlayer(_SamplingPlayer):
    """A player that follows a policy that depends on the legal actions alone.

    The policy is queried once for each set of legal actions, so it can play on a game's
    batched rules, where OpenSpiel's states do not exist.
    """

    def __init__(self, game: pyspiel.Game, policy: openspiel_policy.Policy) -> None:
        """Keep the policy; nothing is queried yet.

        Args:
          game: The game, whose first decision names the actions.
          policy: The policy, see `rollouts.by_legal_actions`.
        """
        self._names, self._policy = after_deals(game.new_initial_state()), policy

    def _probabilities(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        player = int(positions.player[places[0]])
        legal = positions.states[places].legal
        sets, which = np.unique(legal, axis=0, return_inverse=True)
        probabilities = np.zeros((len(sets), legal.sum(axis=1).max()))
        for row, one in zip(probabilities, sets, strict=True):
            actions = np.flatnonzero(one).tolist()
            state: Any = _Acting(self._names, player, actions)
            row[: len(actions)] = shares(
                self._policy.action_probabilities(state, player),
                actions,
                len(one),
                functools.partial(
                    "opponent: its policy where {} are legal".format, actions
                ),
            )
        return probabilities[which.reshape(-1)]


class _CachedPlayer(_SamplingPlayer):
    """A player that follows a policy, which is queried once for each key."""

    def __init__(self) -> None:
        self._cache: dict[bytes, list[float]] = {}

    def _probabilities(self, positions: Positions, places: np.ndarray) -> np.ndarray:
        probabilities = np.zeros(
            (len(places), int(positions.num_actions[places].max()))
        )
        for row, place in zip(probabilities, places.tolist(), strict=True):
            key = positions.key[place].tobytes()
            answer = self._cache.get(key)
            if answer is None:
                if len(self._cache) >= REMEMBERED:
                    self._cache.clear()
                answer = self._cache[key] = self._query(positions, place)
            row[: len(answer)] = answer
        return probabilities

    @abc.abstractmethod
    def _query(self, positions: Positions, place: int) -> list[float]:
        """Return the probabilities of the legal actions at one position."""


class StatePlayer(_CachedPlayer):
    """A player that follows an OpenSpiel policy, on a `StateSource`."""

    def __init__(self, policy: openspiel_policy.Policy) -> None:
        """Keep a policy that depends on the player's information states only."""
        super().__init__()
        self._answers = [Answers(policy, player) for player in range(2)]

    def _query(self, positions: Positions, place: int) -> list[float]:
        state, legal = positions.states[place]
        by_action = self._answers[state.current_player()](state).by_action
        return [by_action.get(action, 0.0) for action in legal]


class StringPlayer(_CachedPlayer):
    """Player that follows a table of strings of batched rules (`RulesSource`)."""

    def __init__(
        self, table: openspiel_policy.TabularPolicy, source: RulesSource
    ) -> None:
        """Keep the table and the source of the positions."""
        super().__init__()
        self._table, self._source = table, source

    def _query(self, positions: Positions, place: int) -> list[float]:
        state = positions.states[np.array([place])]
        (text,) = self._source.strings(state.rows, int(positions.player[place]))
        legal = np.flatnonzero(state.legal[0]).tolist()
        answer = self._table.policy_for_key(text)
        return shares(answer, legal, len(answer), lambda: f"opponent: at {text!r}")


class BotPlayer:
    """A player that calls bots, which need not provide probabilities.

    The positions are those of a `StateSource`.

    At every decision the bot is moved to the state by `pyspiel.Bot.restart_at`. If it
    does not support that, it is informed of all moves after `restart`. One bot can
    therefore play many matches at once. It keeps its memory of other matches.
    """

    def __init__(self, bots: Sequence[pyspiel.Bot]) -> None:
        """Keep the bots.

        Args:
          bots: The bots of player 0 and of player 1; only those that play are used.
        """
        self._bots = tuple(bots)

    def draw(
        self, positions: Positions, places: np.ndarray, random: np.random.Generator
    ) -> np.ndarray:
        """See `FixedPlayer`.

        Raises:
          ValueError: If a bot chooses an illegal action.
        """
        bot = self._bots[int(positions.player[places[0]])]
        points = random.random(len(places)) * BELOW_ONE
        moves = [
            self._move(bot, positions.states[place], point)
            for place, point in zip(places.tolist(), points.tolist(), strict=True)
        ]
        return np.array(moves, np.int64)

    def _move(self, bot: pyspiel.Bot, decision: Decision, point: float) -> int:
        """Return the place of the bot's action among the legal ones."""
        state, legal = decision
        restart_at(bot, state)
        if gives_policy(bot):
            name = f"bots: a {type(bot).__name__}"
            probabilities = distribution_at(policy_at(bot, state), state, name)
            ends = list(itertools.accumulate(probabilities))
            return sum(end <= point * ends[-1] for end in ends)
        action = int(bot.step(state))
        if action not in legal:
            raise ValueError(
                f"bots: a {type(bot).__name__} chose {action} where {legal} are legal, "
                f"after the actions {state.history()}; give a bot that plays "
                f"{state.get_game()}"
            )
        return legal.index(action)
