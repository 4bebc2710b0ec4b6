"""Queries of policies for arrays of states, by a game's batched rules."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.histories import CHANCE, TERMINAL
from spiel_cr.games.opening.batched_rules import BatchedRules, of_game
from spiel_cr.policies.conversions import SUM_TOLERANCE


def member(policy: openspiel_policy.Policy, player: int) -> openspiel_policy.Policy:
    """Return the policy that a player follows; its member of a pair of policies."""
    members = getattr(policy, "members", None)
    return policy if members is None else members[player]


def named(policy: openspiel_policy.Policy) -> str:
    """Return the name of a policy in messages; for adapted objects, their name."""
    return str(getattr(policy, "name", type(policy).__name__))


def as_tabular(policy: object) -> openspiel_policy.TabularPolicy | None:
    """Return a policy if it is a table of OpenSpiel, otherwise None."""
    return policy if isinstance(policy, openspiel_policy.TabularPolicy) else None


def row_probabilities(
    policy: openspiel_policy.Policy,
    rules: BatchedRules,
    rows: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> np.ndarray:
    """Query a policy for an array of states.

    Args:
      policy: A policy of both players.
      rules: The game's batched rules.
      rows: [n, ...], states of these rules.
      player: The player who acts at all of them.
      legal: The legal actions, bool [n, A].

    Returns:
      Probabilities in any scale, float64 [n, A]; equal for all legal actions where the
      policy has no answer.

    Raises:
      ValueError: If the policy cannot be queried for arrays of states.
    """
    return _filled(policy, rules, rows, player, legal)[0]


def rules_for(
    game: pyspiel.Game, policy: openspiel_policy.Policy
) -> BatchedRules | None:
    """Return batched rules by which a policy can be queried, or None.

    Args:
      game: The game.
      policy: The policy. A strategy of a phantom game has its own batched rules.
    """
    if (rules := getattr(policy, "rules", None)) is not None:
        return rules
    if (rules := of_game(game)) is None:
        return None
    # Along one line of play.
    rows = rules.new_initial_states()
    while (player := int(rules.current_player(rows)[0])) != TERMINAL:
        legal = rules.legal_actions_mask(rows)
        if player == CHANCE:
            legal = legal & (rules.chance_probabilities(rows) > 0)
        else:
            try:
                row_probabilities(policy, rules, rows, player, legal)
            except InvalidPolicyError:
                raise
            except ValueError:
                return None
        rows = rules.child(rows, legal.argmax(axis=1))
    return rules


class LineQueries:
    """Queries of a policy along many lines of play, each from its beginning.

    Most tables that were sampled have no row below a decision of the same player for
    which they have no row (`TablePolicy.from_roots`), and are not queried there: in a
    large game most decisions of a rollout have no row.
    """

    def __init__(
        self, policy: openspiel_policy.Policy, lines: int, *, single: bool
    ) -> None:
        """Prepare queries.

        Args:
          policy: A policy of both players.
          lines: The number of lines.
          single: Whether a line has one state at a time; otherwise every state is
            queried.
        """
        self._policy = policy
        self._stops = single and getattr(policy, "from_roots", False)
        self._visited = np.ones((2, lines), bool)

    def __call__(
        self,
        rules: BatchedRules,
        rows: np.ndarray,
        lines: np.ndarray,
        player: int,
        legal: np.ndarray,
    ) -> np.ndarray:
        """Query as `row_probabilities`; `lines`, int64 [n], has each state's line."""
        visited = self._visited[player]
        queried = np.flatnonzero(visited[lines])
        played = legal.astype(np.float64)
        if len(queried):
            played[queried], silent = _filled(
                self._policy, rules, rows[queried], player, legal[queried]
            )
            if self._stops:
                # Decisions with one action have no row, but may have rows below.
                visited[lines[queried]] = ~silent | (legal[queried].sum(axis=1) == 1)
        return played


def _filled(
    policy: openspiel_policy.Policy,
    rules: BatchedRules,
    rows: np.ndarray,
    player: int,
    legal: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """Return `row_probabilities`, and whether a row has no answer, bool [n]."""
    policy = member(policy, player)
    if type(policy) is openspiel_policy.UniformRandomPolicy:
        return legal.astype(np.float64), np.zeros(len(rows), bool)
    answers = row_answers(policy, rules, rows, player)
    played = np.zeros(legal.shape)
    shared = min(legal.shape[1], answers.shape[1])
    played[:, :shared] = answers[:, :shared]
    played = np.where(legal, np.maximum(played, 0.0), 0.0)
    total = played.sum(axis=1)
    # Written so that NaN fails.
    valid = np.abs(total - 1) <= SUM_TOLERANCE
    if getattr(policy, "table", None) is not None and not valid.all():
        row = int(np.argmin(valid))
        raise InvalidPolicyError(
            f"{named(policy)}: it gives player {player} the probabilities "
            f"{answers[row].tolist()} where the legal actions are "
            f"{np.flatnonzero(legal[row]).tolist()}; they must be at least 0 and sum "
            f"to 1"
        )
    silent = ~(total > 0)
    played[silent] = legal[silent]
    return played, silent


def answers_rows(policy: openspiel_policy.Policy, rules: BatchedRules | None) -> bool:
    """Return whether a policy may be queried for arrays of states of batched rules."""
    return _rows_source(policy, rules) is not None


def _rows_source(
    policy: Any, rules: BatchedRules | None
) -> Callable[[np.ndarray, int], np.ndarray] | None:
    """Return a function of rows and a player that gives answers, float64 [n, A].

    None if the policy has to be queried state by state.
    """
    at_once = getattr(policy, "array_probabilities", None)
    if rules is not None and at_once is not None:
        return functools.partial(at_once, rules)
    table = as_tabular(getattr(policy, "table", None) or policy)
    strings = getattr(rules, "information_state_strings", None)
    if strings is None or table is None:
        return None
    return functools.partial(_table_rows, named(policy), table, rules)


def row_answers(
    policy: Any, rules: BatchedRules, rows: np.ndarray, player: int
) -> np.ndarray:
    """Return answers by action, float64 [n, A], or raise ValueError."""
    answers = _rows_source(policy, rules)
    if answers is None:
        raise ValueError(
            f"policy: a {named(policy)} cannot be queried for arrays of states; give a "
            f"TabularPolicy, or a policy with array_probabilities"
        )
    return np.asarray(answers(rows, player), np.float64)


def _table_rows(
    name: str, table: Any, rules: Any, rows: np.ndarray, player: int
) -> np.ndarray:
    """Look up states in a table by information state strings, float64 [n, A]."""
    information = rules.information_state(rows, player).reshape(len(rows), -1)
    _, first, same = np.unique(
        information, axis=0, return_index=True, return_inverse=True
    )
    keys = rules.information_state_strings(rows[first], player)
    if missing := [key for key in keys if key not in table.state_lookup]:
        raise InvalidPolicyError(
            f"{name} of {table.game}: it has no row for the information state "
            f"{missing[0]!r} of player {player}; give a policy that covers every "
            f"information state"
        )
    places = np.array([table.state_lookup[key] for key in keys])[same.reshape(-1)]
    answers: np.ndarray = table.action_probability_array[places]
    return answers
