"""Policies of users, adapted and checked in one place.

`as_policy` accepts every kind of policy that users have, and returns a policy of
OpenSpiel's Python interface for the sequential game. Answers of foreign code are
checked whenever they are queried: an answer must be a distribution over the legal
actions, and the same at every history of an information state.
"""

import functools
import inspect
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.histories import TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules
from spiel_cr.games.opening.identity import check_same_decisions
from spiel_cr.policies import conversions
from spiel_cr.policies.array_queries import as_tabular, member
from spiel_cr.policies.conversions import SUM_TOLERANCE, StatePolicy
from spiel_cr.policies.queries import contradiction, distribution, place_of, short_text
from spiel_cr.policies.result import Result
from spiel_cr.policies.rollouts import play_on
from spiel_cr.policies.turns import is_simultaneous, simultaneous_state

# Largest number of answers that are stored for comparison with later answers.
_REMEMBERED = 100_000
# Largest depth of states whose answers are stored; deep ones have long histories.
_DEEPEST = 256
# Largest number of matches of `probe`, and seconds after which no match is started.
_ROLLOUTS, _PROBE_SECONDS = 256, 0.5

# Information state, the player's own actions (which the strings of some phantom games
# omit), and the player.
_Key = tuple[str, tuple[int, ...], int]


def name_of(policy: Any) -> str:
    """Return the name of a policy in messages: its class, or the name of a function."""
    if inspect.isroutine(policy):
        return f"function {getattr(policy, '__name__', repr(policy))}"
    return type(policy).__name__


def _game_of(policy: Any) -> pyspiel.Game | None:
    """Return the game that a foreign policy names; None if it names none."""
    game = getattr(policy, "game", None)
    return game if isinstance(game, pyspiel.Game) else None


class AdaptedPolicy(StatePolicy):
    """A foreign policy of both players, whose answers are checked.

    Attributes:
      policy: The foreign object.
      name: Name of the policy in messages.
      by_information_state: Whether it only looks up information state strings, so that
        it answers alike at all histories of an information state.
      table: The OpenSpiel table that batched rules can look up; None for other
        policies.
    """

    is_foreign = True

    def __init__(
        self,
        game: pyspiel.Game,
        policy: Any,
        answer: Callable[[pyspiel.State, int], Any],
    ) -> None:
        """Adapt a policy.

        Args:
          game: The sequential game.
          policy: The foreign object.
          answer: Function that queries it at a state, for the acting player.
        """
        super().__init__(game)
        self.policy, self.name = policy, name_of(policy)
        self._answer, self._own = answer, _game_of(policy)
        self._num_actions = game.num_distinct_actions()
        kinds = (openspiel_policy.TabularPolicy, pyspiel.TabularPolicy)
        self.by_information_state = type(policy) in kinds or isinstance(policy, Mapping)
        self.table = None if is_simultaneous(self._own) else as_tabular(policy)
        self._answers: dict[_Key, tuple[list[float], list[int]]] = {}
        if callable(getattr(policy, "array_probabilities", None)):
            self.array_probabilities = self._checked_arrays

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the answer at a state; see `StatePolicy`.

        Raises:
          InvalidPolicyError: If the answer is not a distribution over the legal
            actions, or differs from an earlier one at the same information state.
        """
        try:
            answer = self._answer(state, player)
        except (LookupError, pyspiel.SpielError) as error:
            raise self._no_row(state, player) from error
        legal = state.legal_actions()
        played = distribution(
            answer,
            legal,
            self._num_actions,
            lambda: f"{self.name}: {place_of(state, player)}: it",
        )
        if not self.by_information_state and state.move_number() <= _DEEPEST:
            self._compare(state, player, played)
        return dict(zip(legal, played, strict=True))

    def _no_row(self, state: pyspiel.State, player: int) -> InvalidPolicyError:
        origin = "" if self._own is None else f" of {self._own}"
        return InvalidPolicyError(
            f"{self.name}{origin}: it has no probabilities for {self.game} "
            f"{place_of(state, player)}; give a policy of {self.game} that covers "
            f"every information state of both players"
        )

    def _compare(self, state: pyspiel.State, player: int, played: list[float]) -> None:
        """Raise an error if the answer at this information state has changed."""
        history = state.history()
        moves = tuple(
            move.action for move in state.full_history() if move.player == player
        )
        key = state.information_state_string(player), moves, player
        if key not in self._answers:
            if len(self._answers) >= _REMEMBERED:
                self._answers.clear()
            self._answers[key] = played, history
            return
        before, earlier = self._answers[key]
        if max(abs(a - b) for a, b in zip(played, before, strict=True)) > SUM_TOLERANCE:
            raise contradiction(self.name, state, player, before, earlier, played)

    def _checked_arrays(
        self, rules: BatchedRules, states: np.ndarray, player: int
    ) -> np.ndarray:
        """Query `array_probabilities` of the foreign policy.

        Args:
          rules: The game's batched rules.
          states: Rows of states of these rules, at which `player` acts.
          player: The acting player.

        Returns:
          Probabilities by action, float64 [n, A].

        Raises:
          InvalidPolicyError: If a row is not a distribution over the legal actions.
        """
        answers = np.asarray(self.policy.array_probabilities(rules, states, player))
        legal = rules.legal_actions_mask(states)
        if answers.ndim == 2 and answers.shape[0] == len(states):
            played = answers.astype(np.float64)
            width = min(legal.shape[1], played.shape[1])
            inside = np.where(legal[:, :width], played[:, :width], 0.0)
            fine = (inside >= -SUM_TOLERANCE).all(axis=1)
            fine &= np.abs(inside.sum(axis=1) - 1) <= SUM_TOLERANCE
            fine &= np.abs(played).sum(axis=1) <= 1 + 3 * SUM_TOLERANCE
            if fine.all():
                return np.maximum(played, 0.0)
            row = int(np.argmin(fine))
            answer = f"{short_text(played[row].tolist())}, where the legal actions are "
            answer += f"{np.flatnonzero(legal[row]).tolist()}"
        else:
            answer = f"an array of shape {answers.shape} for {len(states)} states"
        raise InvalidPolicyError(
            f"{self.name}: array_probabilities gives player {player} {answer}; give a "
            f"row for each state, of probabilities by action that are at least 0 and "
            f"sum to 1 over the legal actions"
        )


class JointPolicy(StatePolicy):
    """Two policies, of which each is used for one player's decisions.

    Attributes:
      members: The policy of player 0 and that of player 1.
    """

    is_foreign = True

    def __init__(
        self,
        game: pyspiel.Game,
        members: tuple[openspiel_policy.Policy, openspiel_policy.Policy],
    ) -> None:
        """Join two policies of a sequential game."""
        super().__init__(game)
        self.members = members

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """Return the answer of the acting player's policy; see `StatePolicy`."""
        answer: dict[int, float] = self.members[player].action_probabilities(state)
        return answer


def pair_of(policy: object) -> tuple[Any, Any] | None:
    """Return the parts of players 0 and 1; None if an object is not a pair."""
    if isinstance(policy, Mapping) and set(policy) == {0, 1}:
        return policy[0], policy[1]
    if isinstance(policy, list | tuple) and len(policy) == 2:
        return policy[0], policy[1]
    return None


def as_policy(
    policy: Any, game: pyspiel.Game, name: str = "policy"
) -> openspiel_policy.Policy | None:
    """Return a user's policy as an OpenSpiel policy; None: the object is not a policy.

    Args:
      policy: A policy of OpenSpiel's Python or C++ interface, or of the simultaneous
        game behind `game`; a `Result`; a sequence of two of these or a mapping from 0
        and 1 to them, one for each player; a mapping from information state strings to
        probabilities; or a function of a state that returns probabilities by action.
      game: The sequential game.
      name: The argument's name, for errors.

    Raises:
      OtherGameError: If a result or a policy of spiel_cr belongs to another game.
      ValueError: If a pair has members that are not policies.
    """
    if (pair := pair_of(policy)) is None:
        return _adapted(policy, game, name)
    first, second = (
        as_policy(each, game, f"{name}[{player}]") for player, each in enumerate(pair)
    )
    if first is None or second is None:
        return None
    return JointPolicy(game, (first, second))


@functools.singledispatch
def _adapted(
    policy: Any, game: pyspiel.Game, name: str
) -> openspiel_policy.Policy | None:
    """Return `as_policy` of one object; the functions below adapt the other types."""
    if is_function_of_state(policy):
        return AdaptedPolicy(game, policy, lambda state, _: policy(state))
    return None


@_adapted.register
def _(policy: Result, game: pyspiel.Game, name: str) -> openspiel_policy.Policy:
    check_same_decisions(f"{name}: a result", policy.game, game)
    return policy.average_policy()


@_adapted.register(StatePolicy)
@_adapted.register(conversions.TabularPolicy)
def _(policy: Any, game: pyspiel.Game, name: str) -> openspiel_policy.Policy:
    check_same_decisions(f"{name}: a {type(policy).__name__}", policy.game, game)
    return policy


@_adapted.register
def _(
    policy: openspiel_policy.Policy, game: pyspiel.Game, name: str
) -> openspiel_policy.Policy:
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return policy
    if not is_simultaneous(own := _game_of(policy)):
        return AdaptedPolicy(
            game, policy, lambda state, _: policy.action_probabilities(state)
        )
    converted = pyspiel.convert_to_turn_based(own)
    check_same_decisions(f"{name}: a {type(policy).__name__}", converted, game)
    return AdaptedPolicy(
        game,
        policy,
        lambda state, player: policy.action_probabilities(
            simultaneous_state(state), player
        ),
    )


@_adapted.register
def _(policy: pyspiel.Policy, game: pyspiel.Game, name: str) -> AdaptedPolicy:
    def answer(state: pyspiel.State, player: int) -> Any:
        try:
            by_action = policy.action_probabilities(state)
        except pyspiel.SpielError:
            by_action = {}
        if not by_action and isinstance(state, pyspiel.TurnBasedSimultaneousState):
            # A policy of C++ does not name its game.
            key = simultaneous_state(state).information_state_string(player)
            by_action = policy.action_probabilities(key)
        if not by_action:
            raise LookupError
        return by_action

    return AdaptedPolicy(game, policy, answer)


@_adapted.register
def _(policy: Mapping, game: pyspiel.Game, name: str) -> AdaptedPolicy | None:
    if not policy or not all(isinstance(key, str) for key in policy):
        return None
    return AdaptedPolicy(
        game,
        policy,
        lambda state, player: policy[state.information_state_string(player)],
    )


def is_policy(policy: object) -> bool:
    """Return whether an object is a policy or a pair by its type, not by its calls."""
    is_adapted = _adapted.dispatch(type(policy)) is not _adapted.dispatch(object)
    return is_adapted or isinstance(policy, list | tuple)


def is_function_of_state(function: Any) -> bool:
    """Return whether something is called with one argument, a state.

    A function that can also be called with two arguments makes bots of a player and a
    seed, unless its first parameter is called `state`.
    """
    if not callable(function) or inspect.isclass(function):
        return False
    try:
        signature = inspect.signature(function)
        signature.bind(0)
    except (TypeError, ValueError):
        return False
    if next(iter(signature.parameters)) == "state":
        return True
    try:
        signature.bind(0, 0)
    except TypeError:
        return True
    return False


def probe(policy: openspiel_policy.Policy, game: pyspiel.Game) -> None:
    """Query a foreign policy in random matches, and compare its answers.

    If a policy is queried only while matches are played, contradictions show only if an
    information state occurs twice. Here each decision is queried twice, and the
    first ones of a game, which occur often, at many histories.

    Args:
      policy: Any policy; those of spiel_cr are consistent and not queried.
      game: The sequential game.

    Raises:
      InvalidPolicyError: See `AdaptedPolicy.probabilities_at`.
    """
    pair = [member(policy, player) for player in range(2)]
    # The answers of bots are cached, so they do not contradict each other.
    adapted = [
        getattr(each, "is_foreign", False) and not getattr(each, "asks_bots", False)
        for each in pair
    ]
    if not any(adapted):
        return
    random = np.random.default_rng(0)
    end = time.perf_counter() + _PROBE_SECONDS
    for number in range(_ROLLOUTS):
        if number and time.perf_counter() > end:
            return
        state = game.new_initial_state()
        while (player := play_on(state, {}, random.random)) != TERMINAL:
            if adapted[player]:
                for _ in range(2):
                    pair[player].action_probabilities(state)
            state.apply_action(int(random.choice(state.legal_actions())))
