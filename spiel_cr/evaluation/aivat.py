"""AIVAT: variance reduction of matches by values that are fixed before the matches.

Burch, Schmid, Moravčík, Morrill & Bowling 2018, "AIVAT: A new variance reduction
technique for agent evaluation in imperfect information games". At each move with known
probabilities (of chance, or of a bot that provides its policy), the value of the move
is subtracted and the mean value of all possible moves is added. This correction has
mean zero for any values. The better the values are, the smaller is the variance.

Deviation: the paper also averages over the hands that a known player might hold
(imaginary observations). This is omitted, because a bot's policy is queried only at the
decisions that it faces in its match, not for hands that it might have held.
"""

import abc
import math
from collections.abc import Sequence

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.memory import Limit
from spiel_cr.evaluation.opponent import build_for_evaluation, open_opponent
from spiel_cr.evaluation.referee import Match
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.game_checks import player_return
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import PolicyLike, read_player
from spiel_cr.policies.array_queries import row_probabilities, rules_for
from spiel_cr.policies.conversions import Behaviours, history_values
from spiel_cr.policies.rollouts import Answers, moves

# Seconds for building the game tree.
_PATIENCE = 600.0
# Number of rollouts for each move of a match, divided among all possible moves: with
# batched rules, and with OpenSpiel's states.
_ON_ARRAYS, _BY_STATES = 4800, 480


class Baseline(abc.ABC):
    """Values of histories for player 0.

    Estimates are unbiased with any numbers that depend on the history alone.

    Attributes:
      instance: The game in the form in which matches are played.
      root: Array [1], the place of the root. Subclasses define what places are.
    """

    instance: GameTree | pyspiel.Game
    root: np.ndarray

    @abc.abstractmethod
    def after(
        self, places: np.ndarray, actions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """Return the places after an action at each of n places."""

    @abc.abstractmethod
    def values(self, places: np.ndarray, path: tuple[int, ...]) -> np.ndarray:
        """Return the values of some children of a history, float64 [n].

        Args:
          places: Places [n] of the children.
          path: All actions from the root to the history.
        """

    def luck(self, match: Match, most: float = math.inf) -> float:
        """Return the effect of moves with known probabilities, of mean zero.

        Args:
          match: A finished match.
          most: Largest absolute value, if it is less than the game's.
        """
        place, luck = self.root, 0.0
        for number, action in enumerate(match.actions):
            probabilities = match.probabilities[number] or {}
            possible = [move for move, share in probabilities.items() if share > 0]
            if len(possible) > 1:
                below = self.after(np.repeat(place, len(possible), axis=0), possible)
                values = self.values(below, match.actions[:number]).clip(-most, most)
                weights = [probabilities[move] for move in possible]
                mean = np.average(values, weights=weights)
                luck += float(values[possible.index(action)] - mean)
            place = self.after(place, [action])
        return luck

    def estimate(self, match: Match) -> float:
        """Return player 0's return of a match minus `luck`."""
        return match.returns[0] - self.luck(match)


class TreeValues(Baseline):
    """Values of all histories of a game tree.

    Attributes:
      instance: The game tree.
      strategy: The policy of these values, float64 [S] of each player; None if they are
        not those of a policy.
    """

    instance: GameTree

    def __init__(
        self, tree: GameTree, values: np.ndarray, strategy: Behaviours | None = None
    ) -> None:
        """Keep player 0's values, float64 [N]."""
        self.instance, self._values, self.strategy = tree, values, strategy
        self.root = np.zeros(1, np.int64)

    def after(
        self, places: np.ndarray, actions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """See `Baseline`."""
        histories = self.instance.histories
        begin, end = np.searchsorted(histories.parent, [places[0], places[0] + 1])
        return begin + np.searchsorted(histories.action[begin:end], actions)

    def values(self, places: np.ndarray, path: tuple[int, ...]) -> np.ndarray:
        """See `Baseline`."""
        return self._values[places]


class RolloutValues(Baseline):
    """Values of histories: means of rollouts in which a policy plays both players.

    The seed of the rollouts depends on the history only.

    The children of one history use the same random numbers, which reduces the noise of
    their differences. Each action has an exponential random number. The move is the
    action with the largest ratio of its probability to its random number. In card
    games, the children therefore get the same cards, if possible.
    """

    def __init__(self, game: pyspiel.Game, policy: openspiel_policy.Policy) -> None:
        """Keep a sequential game and a policy of both players."""
        self.instance, self._policy = game, policy
        # Without batched rules, places are OpenSpiel's states.
        self._rules = rules_for(game, policy)
        self._answers = [Answers(policy, player) for player in range(2)]
        self._width = max(game.num_distinct_actions(), game.max_chance_outcomes())
        if self._rules is None:
            self.root = np.array([game.new_initial_state()], object)
        else:
            self.root = self._rules.new_initial_states()

    def after(
        self, places: np.ndarray, actions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """See `Baseline`."""
        if self._rules is not None:
            return self._rules.child(places, np.asarray(actions))
        moved = zip(places, actions, strict=True)
        return np.array([state.child(int(action)) for state, action in moved], object)

    def values(self, places: np.ndarray, path: tuple[int, ...]) -> np.ndarray:
        """See `Baseline`."""
        random = np.random.default_rng([len(path), *path])
        most = _BY_STATES if self._rules is None else _ON_ARRAYS
        each = max(1, most // len(places))
        places, row = np.repeat(places, each, axis=0), np.arange(len(places) * each)
        utility = np.zeros(len(row))
        while len(row):
            over, returns, weights = self._moves(places)
            utility[row[over]] = returns
            places, row = places[~over], row[~over]
            noise = random.standard_exponential((each, weights.shape[1]))
            places = self.after(places, np.argmax(weights / noise[row % each], axis=1))
        return utility.reshape(-1, each).mean(axis=1)

    def _moves(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the terminal places and returns, and the moves at other places.

        Returns:
          bool [n], whether a place is terminal; float64 [n - m], player 0's returns
          there; and float64 [m, A], weights of actions at the m other places.
        """
        if self._rules is None:
            players = [state.current_player() for state in places]
            over = np.array(players) == TERMINAL
            weights = np.zeros((len(places), self._width))
            for row in np.flatnonzero(~over):
                by_action = moves(places[row], self._answers[max(players[row], 0)])
                weights[row, list(by_action)] = list(by_action.values())
            returns = np.array([player_return(state, 0) for state in places[over]])
            return over, returns, weights[~over]
        player = self._rules.current_player(places)
        over = player == TERMINAL
        returns = self._rules.returns(places[over]) if over.any() else np.zeros(0)
        live, player = places[~over], player[~over]
        if not len(live):
            return over, returns, np.zeros((0, 1))
        legal = self._rules.legal_actions_mask(live)
        weights = legal.astype(np.float64)
        draws = player == CHANCE
        if draws.any():
            weights[draws] *= self._rules.chance_probabilities(live[draws])
        for actor in np.unique(player[~draws]).tolist():
            acts = player == actor
            weights[acts] = row_probabilities(
                self._policy, self._rules, live[acts], actor, legal[acts]
            )
        return over, returns, weights


def baseline(
    game: Game,
    policy: PolicyLike,
    *,
    memory_limit: Limit = None,
    name: str = "aivat",
) -> Baseline:
    """Return the values of a policy against itself: exact, or by rollouts.

    Args:
      game: OpenSpiel game string, game, or game tree.
      policy: A policy of both players: an OpenSpiel policy, a result of `solve`, or a
        string such as "cfr+(iterations=100)" or the path of a file.
      memory_limit: Largest memory for the game tree; larger games use rollouts.
      name: Name of the argument, for errors.

    Raises:
      GameTooLargeError: If the game tree does not fit into memory, and the policy needs
        it.
      ValueError: If it is not a policy, or belongs to another game.
    """
    try:
        try:
            tree = build_for_evaluation(
                game, memory_limit, worlds=False, seconds=_PATIENCE
            )
        except (GameTooLargeError, ImperfectRecallError) as error:
            plain = open_game(game).game
            return RolloutValues(plain, _policy(plain, policy, error))
        target = open_opponent(
            policy, tree, other_forms=False, memory_limit=memory_limit
        )
    except (OSError, ValueError) as error:
        kind = GameTooLargeError if isinstance(error, GameTooLargeError) else ValueError
        raise kind(f"{name}={policy!r}: {error}") from error
    assert target.tree is not None
    strategy = target.strategy()
    return TreeValues(target.tree, history_values(target.tree, strategy), strategy)


def _policy(
    game: pyspiel.Game, policy: PolicyLike, error: ValueError
) -> openspiel_policy.Policy:
    """Return a policy of a game whose tree could not be built because of `error`."""
    spec = read_player(policy, game, name="aivat")
    if not isinstance(policy, str) and spec.make_policy(game, 0) is None:
        raise ValueError("not a policy; give a policy, a result or a string")
    if spec.needs_tree:
        raise GameTooLargeError(
            f"the policy needs the game tree: {error}; leave aivat out, or "
            f"give a policy without a tree, such as a file that `solve` saved"
        )
    return spec.policy(game, 0, lazy=False)
