"""AIVAT: luck taken out of matches by values that are fixed before them.

Burch, Schmid, Moravčík, Morrill & Bowling 2018, "AIVAT: A new variance reduction
technique for agent evaluation in imperfect information games". At each move whose
probabilities are known, chance's or a bot's that gives its policy, the value of what
was drawn is taken off and the mean of what might have been is added. That has mean zero
whatever the values are; the better these are, the less is left of the luck.

Left out are the paper's imaginary observations, means over the hands that a known
player might have held: bots are asked in their own match only.
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
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.player_specs import PolicyLike, as_policy_source, read_player
from spiel_cr.policies.conversions import history_values
from spiel_cr.policies.queries import row_probabilities, rules_for
from spiel_cr.policies.rollouts import Answers, moves

# Seconds for laying a game out.
_PATIENCE = 600.0
# Rollouts for each move of a match, shared out among what might have been drawn: on
# arrays, and by OpenSpiel's states.
_ON_ARRAYS, _BY_STATES = 4800, 480


class Baseline(abc.ABC):
    """What histories of a game are worth to player 0.

    Any numbers that depend on the history alone keep estimates unbiased.

    Attributes:
      instance: where matches are played.
      root: [1], the place of the first history; what places are is its own business.
    """

    instance: GameTree | pyspiel.Game
    root: np.ndarray

    @abc.abstractmethod
    def after(
        self, places: np.ndarray, actions: Sequence[int] | np.ndarray
    ) -> np.ndarray:
        """The places after actions, one at each of n places."""

    @abc.abstractmethod
    def values(self, places: np.ndarray, path: tuple[int, ...]) -> np.ndarray:
        """float64 [n], what some children of a history are worth.

        Args:
          places: of these, [n].
          path: all actions down to that history.
        """

    def luck(self, match: Match, most: float = math.inf) -> float:
        """What known odds brought player 0; of mean zero.

        Args:
          match: that is over.
          most: what can be won or lost, where that is less than in the game.
        """
        place, luck = self.root, 0.0
        for number, action in enumerate(match.actions):
            odds = match.odds[number] or {}
            known = [move for move, share in odds.items() if share > 0]
            if len(known) > 1:
                below = self.after(np.repeat(place, len(known), axis=0), known)
                worth = self.values(below, match.actions[:number]).clip(-most, most)
                mean = np.average(worth, weights=[odds[move] for move in known])
                luck += float(worth[known.index(action)] - mean)
            place = self.after(place, [action])
        return luck

    def estimate(self, match: Match) -> float:
        """Player 0's return of a match without what luck is known of it."""
        return match.returns[0] - self.luck(match)


class TreeValues(Baseline):
    """Values of all histories of a compiled game.

    Attributes:
      instance: the compiled game.
    """

    instance: GameTree

    def __init__(self, tree: GameTree, values: np.ndarray) -> None:
        """Takes float64 [N], player 0's."""
        self.instance, self._values = tree, values
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
    """Means of rollouts of a policy against itself, drawn by a seed of the history.

    Siblings draw from the same numbers: each move takes the action whose probability
    is the largest multiple of a random number of its own. So in games of cards siblings
    meet the same cards, and differ by little else than what they are worth.
    """

    def __init__(self, game: pyspiel.Game, policy: openspiel_policy.Policy) -> None:
        """Takes a sequential game, and a policy of both players."""
        self.instance, self._policy = game, policy
        # Without batched rules places are OpenSpiel's states.
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
            over, worth, odds = self._look(places)
            utility[row[over]] = worth
            places, row = places[~over], row[~over]
            noise = random.standard_exponential((each, odds.shape[1]))
            places = self.after(places, np.argmax(odds / noise[row % each], axis=1))
        return utility.reshape(-1, each).mean(axis=1)

    def _look(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """What is over, bool [n], what is paid there, and odds of moves elsewhere.

        The odds are float64 [m, A], in any scale.
        """
        if self._rules is None:
            players = [state.current_player() for state in places]
            over = np.array(players) == TERMINAL
            odds = np.zeros((len(places), self._width))
            for row in np.flatnonzero(~over):
                shares = moves(places[row], self._answers[max(players[row], 0)])
                odds[row, list(shares)] = list(shares.values())
            worth = np.array([player_return(state, 0) for state in places[over]])
            return over, worth, odds[~over]
        player = self._rules.current_player(places)
        over = player == TERMINAL
        worth = self._rules.returns(places[over]) if over.any() else np.zeros(0)
        live, player = places[~over], player[~over]
        if not len(live):
            return over, worth, np.zeros((0, 1))
        legal = self._rules.legal_actions_mask(live)
        odds = legal.astype(np.float64)
        draws = player == CHANCE
        if draws.any():
            odds[draws] *= self._rules.chance_probabilities(live[draws])
        for actor in np.unique(player[~draws]).tolist():
            acts = player == actor
            asked = live[acts], actor, legal[acts]
            odds[acts] = row_probabilities(self._policy, self._rules, *asked)
        return over, worth, odds


def baseline(game: Game, policy: PolicyLike, *, memory_limit: Limit = None) -> Baseline:
    """Values of a policy that plays itself: exact, or by rollouts.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy: of both players: an OpenSpiel policy, a result of `solve`, or a string
        such as "cfr+(iterations=100)" or the path of a file.
      memory_limit: take rollouts of larger games, which are not compiled.

    Raises:
      GameTooLargeError: the game does not fit, and the policy needs it whole.
      ValueError: no policy, or one of another game.
    """
    try:
        try:
            tree = build_for_evaluation(
                game, memory_limit, worlds=False, seconds=_PATIENCE
            )
        except (GameTooLargeError, ImperfectRecallError) as error:
            plain = open_game(game).game
            return RolloutValues(plain, _policy(plain, policy, error))
        target = open_opponent(policy, tree, signals=False, memory_limit=memory_limit)
    except (OSError, ValueError) as error:
        kind = GameTooLargeError if isinstance(error, GameTooLargeError) else ValueError
        raise kind(f"aivat={policy!r}: {error}") from error
    assert target.tree is not None
    return TreeValues(target.tree, history_values(target.tree, target.strategy()))


def _policy(
    game: pyspiel.Game, given: PolicyLike, error: ValueError
) -> openspiel_policy.Policy:
    """A policy of a game that is not compiled, as `error` says."""
    spec = read_player(given, game, name="aivat")
    if not isinstance(given, str) and spec.make_policy(game, 0) is None:
        raise ValueError("it is not a policy; give a policy, a result or a string")
    if spec.needs_tree:
        raise GameTooLargeError(
            f"it needs the whole game: {error}; leave it out, or give a policy that "
            f"does not, such as a file that `solve` saved"
        )
    return as_policy_source(spec, game)
