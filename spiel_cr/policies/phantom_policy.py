"""Strategies of hidden-board games: as OpenSpiel policies, and of any policy."""

from collections.abc import Callable, Sequence

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy
from tqdm import tqdm

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.histories import state_after, string_at
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.phantom.abrupt import AbruptGame
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.sequence_form.decisions import Decisions
from spiel_cr.policies.conversions import (
    SUM_TOLERANCE,
    Behaviours,
    StatePolicy,
    check_numbers,
    member,
    named,
    odd_infoset,
    uniform_behaviour,
)

# At so many histories of each piece a policy is asked twice.
_TWICE = 64


class MoreKnowledgeError(ValueError):
    """A policy depends on more than what its player did and was told."""


class PhantomPolicy(StatePolicy):
    """Action probabilities by what a player did and was told, for both players.

    A state is looked up by its history, so also where its strings forget.

    Attributes:
      worlds: the game.
      behaviour: for each player float64 or float32 [S], by logical sequence.
    """

    def __init__(self, worlds: PhantomGame, behaviour: Sequence[np.ndarray]) -> None:
        """Takes the probabilities as they are, without a copy.

        Raises:
          ValueError: they are of another size or type, or no probabilities.
        """
        super().__init__(worlds.game)
        self.worlds = worlds
        for player, side in enumerate(worlds.sides):
            given, whose = behaviour[player], f"behaviour of player {player}"
            check_numbers(given, side.decisions.num_sequences, whose)
            if odd_infoset(given[1:], side.decisions.first_sequence - 1) is not None:
                raise ValueError(
                    f"{whose}: at some infoset the probabilities are negative or do "
                    f"not sum to 1"
                )
        self.behaviour = behaviour[0], behaviour[1]

    def probabilities_at(self, state: pyspiel.State, player: int) -> dict[int, float]:
        """See `StatePolicy`."""
        _, infoset = self.worlds.infoset_of(state)
        actions = self.worlds.actions(player, infoset)
        first = int(self.worlds.first_sequences[player][infoset])
        played = self.behaviour[player][first : first + len(actions)]
        odds = played.astype(np.float64)
        return dict(zip(actions.tolist(), (odds / odds.sum()).tolist(), strict=True))


def normalised(decisions: Decisions, behaviour: np.ndarray) -> np.ndarray:
    """float64 [S], probabilities that sum to 1 also where they were kept in float32.

    Infosets without any are uniform.
    """
    owner, played = decisions.owner[1:], behaviour[1:].astype(np.float64)
    total = np.bincount(owner, played, minlength=len(decisions))
    silent = total == 0
    if silent.any():
        played[silent[owner]] = 1.0
        total[silent] = decisions.num_actions[silent]
    return np.append(1.0, played / total[owner])


def behaviour_from_policy(
    worlds: PhantomGame,
    policy: openspiel_policy.Policy,
    *,
    progress: bool = False,
    check_time: Callable[[], None] = lambda: None,
) -> Behaviours:
    """Query a policy at every infoset, many at once if it supports that.

    It is queried at a history in which the other player's moves were never rejected,
    and, at some infosets, at one more in which some were.

    Args:
      worlds: The game.
      policy: A policy of both players. One with `array_probabilities`, such as tables
        and networks of spiel_cr, is queried for arrays of states, any other one state
        by state.
      progress: Whether to show a progress bar on stderr.
      check_time: Called now and then; may raise an error to stop.

    Returns:
      For each player float64 [S], action probabilities by logical sequence.

    Raises:
      MoreKnowledgeError: If the policy depends on more than its player's moves and
        what the player was told.
      InvalidPolicyError: If two answers at one OpenSpiel information state differ.
      ValueError: If an answer is not a distribution over the legal actions.
    """
    total = sum(len(side.decisions) for side in worlds.sides)
    with tqdm(total=total, desc="infosets", disable=not progress) as bar:
        first, second = (
            _asked(worlds, policy, player, bar, check_time) for player in range(2)
        )
    return first, second


def behaviour_of_player(
    worlds: PhantomGame, policy: openspiel_policy.Policy, player: int
) -> np.ndarray:
    """Query a policy at one player's infosets; see `behaviour_from_policy`.

    Returns:
      float64 [S], action probabilities by logical sequence.
    """
    with tqdm(disable=True) as bar:
        return _asked(worlds, policy, player, bar, lambda: None)


def _asked(
    worlds: PhantomGame,
    policy: openspiel_policy.Policy,
    player: int,
    bar: tqdm,
    check_time: Callable[[], None],
) -> np.ndarray:
    """float64 [S], what a policy plays at a player's infosets, checked."""
    policy, decisions = member(policy, player), worlds.sides[player].decisions
    if isinstance(policy, PhantomPolicy) and policy.worlds is not worlds:
        if policy.worlds.decisions_id != worlds.decisions_id:
            raise other_game("policy: a PhantomPolicy", policy.game, worlds.game)
    if isinstance(policy, PhantomPolicy):
        return normalised(decisions, policy.behaviour[player])
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return uniform_behaviour(decisions)
    behaviour = np.ones(decisions.num_sequences)
    sequence = 1
    for part, actions in worlds.histories(player):
        counts = decisions.num_actions[part]
        owner = np.repeat(np.arange(len(counts)), counts)
        check_time()
        end = sequence + len(owner)
        attempts = worlds.sides[player].actions[sequence - 1 : end - 1]
        answers = ask(worlds, policy, player, actions, check_time)
        behaviour[sequence:end] = answers[owner, attempts]
        sequence = end
        bar.update(len(counts))
        _check_knowledge(worlds, policy, player, actions)
    played = normalised(decisions, np.maximum(behaviour, 0))
    # Where it has no answer, it plays uniformly.
    silent = np.bincount(decisions.owner[1:], behaviour[1:] != 0) == 0
    # Written so that NaN fails.
    fine = np.abs(played - behaviour)[1:] <= SUM_TOLERANCE
    if not (fine | silent[decisions.owner[1:]]).all():
        raise ValueError(
            f"{named(policy)}: at some infoset of player {player} its "
            f"probabilities are negative or do not sum to 1"
        )
    return played


def _check_knowledge(
    worlds: PhantomGame,
    policy: openspiel_policy.Policy,
    player: int,
    actions: np.ndarray,
) -> None:
    """Asks a policy twice, at histories that its player cannot tell apart.

    Args:
      worlds: the game.
      policy: that is asked.
      player: whose infosets they are.
      actions: int16 [n, L], histories, of which a few are taken.

    Raises:
      MoreKnowledgeError: it answers differently.
    """
    some = actions[:: max(1, len(actions) // _TWICE)]
    longer = [
        worlds.with_failures([action for action in row if action >= 0], player)
        for row in some.tolist()
    ]
    padded = np.full((len(longer), 1 + max(map(len, longer))), -1, np.int16)
    for row, history in zip(padded, longer, strict=True):
        row[: len(history)] = history
    first, second = (ask(worlds, policy, player, asked) for asked in (some, padded))
    if not np.allclose(first, second, rtol=0, atol=SUM_TOLERANCE):
        odd = int(np.abs(first - second).max(axis=1).argmax())
        _check_strings(worlds, policy, player, some[odd].tolist(), longer[odd])
        raise MoreKnowledgeError(
            f"{named(policy)} of {worlds.game} plays otherwise after the "
            f"actions {longer[odd]} than without the other player's failures, which "
            f"nobody told it of (the strings of dark_hex have the number of turns): so "
            f"it is no strategy of the game that reveals nothing; measure it by "
            f"responses that are searched"
        )


def _check_strings(
    worlds: PhantomGame,
    policy: openspiel_policy.Policy,
    player: int,
    first: Sequence[int],
    second: Sequence[int],
) -> None:
    """Raise an error if a policy is inconsistent even by OpenSpiel's strings.

    `AdaptedPolicy` compares its answers by these. A policy that is queried for arrays
    of states is compared here.

    Args:
      worlds: The game.
      policy: The policy, whose answers after both histories differ.
      player: The acting player.
      first: A history, then -1.
      second: Another one of the same infoset.

    Raises:
      InvalidPolicyError: If the information state strings are equal, or the policy
        gives two answers at one history.
    """
    paths = [[a for a in path if a >= 0] for path in (first, second)]
    known = [string_at(worlds.game, path, player) for path in paths]
    again = np.array([paths[0]], np.int16)
    one, other = (ask(worlds, policy, player, again) for _ in range(2))
    random = not np.allclose(one, other, rtol=0, atol=SUM_TOLERANCE)
    if known[0] == known[1] or random:
        raise InvalidPolicyError(
            f"{named(policy)}: at the information state {known[0]!r} of player "
            f"{player} its answers after the actions {paths[0]} and "
            f"{paths[0] if random else paths[1]} differ; a strategy must depend on the "
            f"player's information state alone"
        )


def ask(
    worlds: PhantomGame | AbruptGame,
    policy: openspiel_policy.Policy,
    player: int,
    actions: np.ndarray,
    check_time: Callable[[], None] = lambda: None,
) -> np.ndarray:
    """float64 [n, A], a policy's answers after histories int16 [n, L]."""
    at_once = getattr(policy, "array_probabilities", None)
    if at_once is not None:
        rules = worlds.rules
        states = np.repeat(rules.new_initial_states(), len(actions), axis=0)
        for step in actions.T:
            going = np.flatnonzero(step >= 0)
            states[going] = rules.child(states[going], step[going].astype(np.int64))
        return at_once(rules, states, player)
    found = np.zeros((len(actions), worlds.game.num_distinct_actions()))
    for row, history in zip(found, actions.tolist(), strict=True):
        check_time()
        state = state_after(worlds.game, (step for step in history if step >= 0))
        for action, odds in policy.action_probabilities(state, player).items():
            row[action] = odds
    return found
