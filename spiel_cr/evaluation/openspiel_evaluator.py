"""Exact NashConv, by OpenSpiel's tools or, on large games, by our own."""

import sys
from typing import Any, NamedTuple

import pyspiel
from open_spiel.python import policy as policy_lib
from open_spiel.python.algorithms import expected_game_score, exploitability
from tqdm import tqdm

from spiel_cr.common import memory
from spiel_cr.common.announcing import is_wanted
from spiel_cr.common.checks import check_choice
from spiel_cr.common.errors import GameTooLargeError, InvalidGameError
from spiel_cr.games.opening import estimate
from spiel_cr.games.opening.game_checks import impossible_outcomes
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses
from spiel_cr.policies.result import Result
from spiel_cr.solvers import footprint

JUDGES = ("auto", "openspiel", "spiel_cr")

# OpenSpiel's Python tools take about 70 microseconds for each history.
_MOST_HISTORIES = 500_000
# And bytes: for each history, for each infoset with its state, and for each number of
# an infoset's tensor, which a `TabularPolicy` holds as Python's floats and as numpy's.
_HISTORY, _INFOSET, _NUMBER = 450, 1400, 48
# They are recursive, and take six of Python's stack frames for each move of a history;
# two more leave room for the frames of the caller.
_FRAMES = 8
# Nothing is shown of what takes fewer seconds.
_SILENT = 2.0
# So many outcomes of probability zero are tried, for whether OpenSpiel takes them.
_MOST_TRIED = 1000


class Verdict(NamedTuple):
    """How good a policy is.

    Attributes:
      nash_conv: sum of both players' gains from exact best responses, in the game's
        units; exploitability in most papers is half of it.
      game_value: player 0's expected utility when both players follow the policy.
      by: who computed NashConv: one of `JUDGES`, or who compared solvers.
      bounds: what player 0 gets against a best response, and by one: the value of the
        game is between them; None where OpenSpiel judged.
      reason: why not OpenSpiel; empty where it did, or where it was not asked.
    """

    nash_conv: float
    game_value: float
    by: str = "openspiel"
    bounds: tuple[float, float] | None = None
    reason: str = ""


def judge(game: pyspiel.Game, policy: policy_lib.Policy) -> Verdict:
    """Computes exact NashConv and value with OpenSpiel's Python tools.

    Args:
      game: a sequential two-player game.
      policy: a policy for both players.
    """
    with tqdm(
        desc="judging (OpenSpiel)",
        unit=" decisions",
        delay=_SILENT,
        leave=False,
        disable=not is_wanted(),
    ) as bar:
        asked = _Counted(game, policy, bar)
        state = game.new_initial_state()
        value = expected_game_score.policy_value(state, [asked] * 2)
        nash_conv = float(exploitability.nash_conv(game, asked))
    return Verdict(nash_conv=nash_conv, game_value=float(value[0]))


class _Counted(policy_lib.Policy):
    """A policy that shows how often it was asked."""

    def __init__(self, game: pyspiel.Game, policy: policy_lib.Policy, bar: Any) -> None:
        super().__init__(game, list(range(2)))
        self._policy, self._bar = policy, bar

    def action_probabilities(
        self, state: pyspiel.State, player_id: int | None = None
    ) -> dict[int, float]:
        self._bar.update()
        return self._policy.action_probabilities(state, player_id)


def openspiel_bytes(tree: GameTree) -> int:
    """What OpenSpiel's Python tools take on a game, besides the compiled game.

    Raises:
      GameTooLargeError: they would walk through more than a million histories below
        outcomes of probability zero.
      InvalidGameError: OpenSpiel refuses such an outcome.
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
    """Whether OpenSpiel's recursive Python tools would exceed the recursion limit."""
    return tree.max_depth * _FRAMES > sys.getrecursionlimit()


def check_depth(tree: GameTree) -> None:
    """Reject games that are too deep for OpenSpiel's recursive Python tools.

    Raises:
      GameTooLargeError: If the longest history exceeds Python's recursion limit.
    """
    if is_too_deep(tree):
        raise GameTooLargeError(
            f"evaluator='openspiel': {tree.game} has histories of {tree.max_depth:,} "
            f"moves, and OpenSpiel's Python tools are recursive; leave --evaluator out to "
            f"use spiel_cr's exact best responses, or call sys.setrecursionlimit with "
            f"at least {tree.max_depth * _FRAMES:,}"
        )


def check_memory(
    tree: GameTree, limit: memory.Limit, *, before: float | None = None
) -> None:
    """Refuses games on which OpenSpiel's tools take too much memory.

    Args:
      tree: the compiled game.
      limit: as users give it.
      before: the peak of what is done before, in bytes; None: compiling.

    Raises:
      GameTooLargeError: they take more, or the game is too deep for them.
      InvalidGameError: they fail on this game.
    """
    check_depth(tree)
    memory.check_need(
        f"OpenSpiel's exact judge on {tree.game}",
        (before or footprint.tree_bytes(tree)) + openspiel_bytes(tree),
        limit,
        "choose smaller game parameters (solve and resolve: --evaluator spiel_cr)",
    )


def is_beyond(tree: GameTree, limit: memory.Limit) -> bool:
    """Whether OpenSpiel's tools fail on a game, or take too much time or memory."""
    if len(tree.histories) > _MOST_HISTORIES or is_too_deep(tree):
        return True
    try:
        need = footprint.tree_bytes(tree) + openspiel_bytes(tree)
    except (GameTooLargeError, InvalidGameError):
        return True
    return need > memory.parse_limit(limit)


def check_public_tree(game: pyspiel.Game) -> None:
    """Refuses games that OpenSpiel's tools are too slow for, or fail on.

    Args:
      game: solved in the form of signals, so that nobody has counted its histories.

    Raises:
      GameTooLargeError: by an estimate it has more than half a million histories.
      InvalidGameError: OpenSpiel refuses outcomes of probability zero that it lists
        for the first deal.
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
                f"fail in them; leave --evaluator out: our own best response on the signal "
                f"form is exact, too"
            ) from error
    histories = estimate.estimate_histories(game, room=_MOST_HISTORIES)
    if histories > _MOST_HISTORIES:
        raise GameTooLargeError(
            f"evaluator='openspiel': {game} has {estimate.describe_histories(histories)}, "
            f"and OpenSpiel's tools would take too long from {_MOST_HISTORIES:,} on; "
            f"leave --evaluator out: our own best response on the signal form is exact, too"
        )


def judge_result(
    result: Result, by: str = "auto", *, memory_limit: memory.Limit = None
) -> Verdict:
    """Evaluate the average strategy of a result in the whole game.

    If the result has node locks, they are lifted: best responses may deviate at locked
    infosets.

    Args:
      result: of solving or resolving.
      by: "openspiel", or "spiel_cr" for our own best response on the form of the game
        that was solved, which is exact, too, and holds no object per history; "auto"
        asks OpenSpiel on compiled games of up to half a million histories, where there
        is memory for it, and where its tools do not fail.
      memory_limit: of the whole process, for "auto"; as for `spiel_cr.solve`.

    Raises:
      GameTooLargeError: OpenSpiel was asked about a signal game that is too large, or
        about a game that is too deep for its tools.
      InvalidGameError: OpenSpiel was asked, and its tools fail on the game.
      ValueError: there is no such judge.
    """
    check_choice(by, "evaluator", JUDGES)
    if result.tree is not None:
        if by == "auto":
            by = "spiel_cr" if is_beyond(result.tree, memory_limit) else "openspiel"
        elif by == "openspiel":
            check_depth(result.tree)
    elif by == "openspiel":
        check_public_tree(result.game)
    if by == "openspiel":
        return judge(result.game, result.average_policy())
    low, high = result.value_bounds()
    value = best_responses.behaviour_value(*result.laid_out())
    return Verdict(high - low, value, "spiel_cr", (low, high))
