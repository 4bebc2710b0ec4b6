"""Exact NashConv by OpenSpiel's tools or, for large games, by spiel_cr."""

import sys
from typing import Any

import pyspiel
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import expected_game_score, exploitability

from spiel_cr.common import memory
from spiel_cr.common.checks import check_choice
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.common.messages import progress_bar
from spiel_cr.evaluation.result import Evaluation
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.game_checks import impossible_outcomes
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.result import Result
from spiel_cr.solvers import footprint

EVALUATORS = ("auto", "openspiel", "spiel_cr")

# OpenSpiel's Python tools take about 70 microseconds for each history.
MOST_HISTORIES = 500_000
# Bytes for each history, for each infoset with its state, and for each number of an
# infoset's tensor, which a `TabularPolicy` stores as Python and numpy floats.
_HISTORY, _INFOSET, _NUMBER = 450, 1400, 48
# Python's stack frames for each move of a history: the tools are recursive and use six
# of them. Two more leave room for the caller.
_FRAMES = 8
# Seconds before a progress bar appears.
_SILENT = 2.0
# Number of outcomes of probability zero that are tested with OpenSpiel.
_MOST_TRIED = 1000


def evaluate(game: pyspiel.Game, policy: policy_lib.Policy) -> Evaluation:
    """Compute exact NashConv and value with OpenSpiel's Python tools.

    Args:
      game: A sequential two-player game.
      policy: A policy of both players.
    """
    with progress_bar(
        desc="evaluating (OpenSpiel)",
        unit=" decisions",
        delay=_SILENT,
        leave=False,
    ) as bar:
        counted = _CountedPolicy(game, policy, bar)
        state = game.new_initial_state()
        value = expected_game_score.policy_value(state, [counted] * 2)
        nash_conv = float(exploitability.nash_conv(game, counted))
    return Evaluation(nash_conv, evaluator="openspiel", game_value=float(value[0]))


class _CountedPolicy(policy_lib.Policy):
    """A policy with a progress bar of its queries."""

    def __init__(self, game: pyspiel.Game, policy: policy_lib.Policy, bar: Any) -> None:
        super().__init__(game, list(range(2)))
        self._policy, self._bar = policy, bar

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        self._bar.update()
        return self._policy.action_probabilities(state, player_id)


def openspiel_bytes(tree: GameTree) -> int:
    """Estimate the memory of OpenSpiel's Python tools, without the game tree.

    Raises:
      GameTooLargeError: If there are more than a million histories below outcomes of
        probability zero, which the tools visit.
      InvalidGameError: If OpenSpiel does not accept such an outcome.
    """
    game, kind = tree.game, tree.game.get_type()
    numbers = game.num_distinct_actions()
    if kind.provides_information_state_tensor:
        numbers += game.information_state_tensor_size()
    elif kind.provides_observation_tensor:
        numbers += game.observation_tensor_size()
    infosets = sum(map(len, tree.infosets)) + len(tree.impossible.states)
    histories = len(tree.histories) + tree.impossible.histories
    return _HISTORY * histories + infosets * (_INFOSET + _NUMBER * numbers)


def is_too_deep(tree: GameTree) -> bool:
    """Return whether OpenSpiel's Python tools would exceed the recursion limit."""
    return tree.max_depth * _FRAMES > sys.getrecursionlimit()


def check_depth(tree: GameTree) -> None:
    """Reject games that are too deep for OpenSpiel's recursive Python tools.

    Raises:
      GameTooLargeError: If the longest history exceeds Python's recursion limit.
    """
    if is_too_deep(tree):
        raise GameTooLargeError(
            f"evaluator='openspiel': {tree.game} has histories of {tree.max_depth:,} "
            f"moves, and OpenSpiel's Python tools are recursive; leave --evaluator out "
            f"to use spiel_cr's exact best responses, or call sys.setrecursionlimit "
            f"with at least {tree.max_depth * _FRAMES:,}"
        )


def check_memory(
    tree: GameTree, limit: memory.Limit, *, before: float | None = None
) -> None:
    """Raise an error if OpenSpiel's tools need too much memory for a game.

    Args:
      tree: The game tree.
      limit: Memory limit.
      before: Peak memory of earlier work, in bytes; by default that of building the
        tree.

    Raises:
      GameTooLargeError: If the limit is exceeded, or the game is too deep.
      InvalidGameError: If the tools fail on this game.
    """
    check_depth(tree)
    memory.check_need(
        f"OpenSpiel's exact evaluator on {tree.game}",
        (before or footprint.tree_bytes(tree)) + openspiel_bytes(tree),
        limit,
        "choose smaller game parameters (solve and resolve: --evaluator spiel_cr)",
    )


def is_too_large(tree: GameTree, limit: memory.Limit) -> bool:
    """Return whether OpenSpiel's tools fail, or need too much time or memory."""
    if len(tree.histories) > MOST_HISTORIES or is_too_deep(tree):
        return True
    try:
        need = footprint.tree_bytes(tree) + openspiel_bytes(tree)
    except (GameTooLargeError, InvalidGameError):
        return True
    return need > memory.parse_limit(limit)


def check_public_tree(game: pyspiel.Game) -> None:
    """Raise an error if OpenSpiel's tools are too slow for a game, or fail.

    Args:
      game: A game that was solved in public-tree form, so that its histories were not
        counted.

    Raises:
      GameTooLargeError: If the game has more than half a million histories, by an
        estimate.
      InvalidGameError: If OpenSpiel does not accept outcomes of probability zero that
        it lists for the first deal.
    """
    state = game.new_initial_state()
    impossible = impossible_outcomes(state)
    for action in impossible[:_MOST_TRIED]:
        try:
            state.child(action)
        except pyspiel.SpielError as error:
            raise InvalidGameError(
                f"evaluator='openspiel': {game.get_type().short_name} lists "
                f"{len(impossible):,} deals of probability zero, and OpenSpiel's tools "
                f"fail there; leave --evaluator out to use spiel_cr's best responses "
                f"on the public-tree form, which are exact, too"
            ) from error
    histories = estimate.estimate_histories(game, threshold=MOST_HISTORIES)
    if histories > MOST_HISTORIES:
        raise GameTooLargeError(
            f"evaluator='openspiel': {game} has "
            f"{estimate.describe_histories(histories)}, and OpenSpiel's tools would "
            f"take too long above {MOST_HISTORIES:,}; leave --evaluator out to use "
            f"spiel_cr's exact best responses on the public-tree form"
        )


def evaluate_result(
    result: Result, evaluator: str = "auto", *, memory_limit: memory.Limit = None
) -> Evaluation:
    """Evaluate the average strategy of a result in the full game.

    If the result has node locks, they are lifted: best responses may deviate at locked
    infosets.

    Args:
      result: The result of `solve` or `resolve`.
      evaluator: "openspiel", or "spiel_cr" for best responses on the representation
        that was solved, which are exact, too, and hold no object per history. "auto"
        chooses OpenSpiel on game trees of up to half a million histories, if there is
        memory for it and its tools do not fail.
      memory_limit: Limit of the whole process, for "auto", as in `solve`.

    Raises:
      GameTooLargeError: If `evaluator` is "openspiel" and the game is too large or too
        deep for its tools.
      InvalidGameError: If `evaluator` is "openspiel" and its tools fail on the game.
      ValueError: If `evaluator` is invalid.
    """
    check_choice(evaluator, "evaluator", EVALUATORS)
    if result.tree is not None:
        if evaluator == "auto":
            too_large = is_too_large(result.tree, memory_limit)
            evaluator = "spiel_cr" if too_large else "openspiel"
        elif evaluator == "openspiel":
            check_depth(result.tree)
    elif evaluator == "openspiel":
        check_public_tree(result.game)
    if evaluator == "openspiel":
        return evaluate(result.game, result.average_policy())
    low, high = result.value_bounds()
    return Evaluation(high - low, game_value=result.game_value(), bounds=(low, high))
