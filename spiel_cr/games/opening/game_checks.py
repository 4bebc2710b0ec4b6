"""Checks of a game's rules, made when states are queried.

A game must have two players, zero sum, and chance probabilities that sum to 1. Code
that simulates OpenSpiel's states queries chance outcomes and payoffs through this
module, so that a violation is reported at the first state that shows it, even if the
game tree is never built.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.arrays import order_pairs
from spiel_cr.common.errors import InvalidGameError
from spiel_cr.common.messages import one_line
from spiel_cr.games.histories import CHANCE, TERMINAL, Histories

# Tolerance for the sum of the probabilities at a chance node.
CHANCE_TOLERANCE = 1e-9
# Tolerances for the sum of two returns: relative to the larger one, and relative to
# the game's declared utilities, for payoffs that are differences of such utilities.
PAYOFF_TOLERANCE = 1e-9
DECLARED_TOLERANCE = 1e-13
# Number of moves within which `_try_information` looks for a decision.
_FIRST_MOVES = 20


def chance_outcomes(state: pyspiel.State) -> list[tuple[int, float]]:
    """Return the outcomes and probabilities of a chance node, in the game's order.

    Outcomes of probability zero are omitted, because they are unreachable and
    conditional probabilities below them would be 0 / 0. The probabilities are not
    normalised.

    Args:
      state: State at a chance node.

    Raises:
      InvalidGameError: If a probability is negative or not a number, or if they do not
        sum to 1.
    """
    return possible_outcomes(state, state.chance_outcomes())


def possible_outcomes(
    state: pyspiel.State, outcomes: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Check chance outcomes that were already queried, as `chance_outcomes` does.

    Args:
      state: State at a chance node.
      outcomes: All outcomes of the node, with their probabilities.

    Returns:
      The same list, if all outcomes have a positive probability.

    Raises:
      InvalidGameError: As `chance_outcomes`.
    """
    total = 0.0
    for _, probability in outcomes:
        if not probability > 0:
            break
        total += probability
    else:
        if abs(total - 1) <= CHANCE_TOLERANCE:
            return outcomes
    return _positive(state, outcomes)


def _positive(
    state: pyspiel.State, outcomes: list[tuple[int, float]]
) -> list[tuple[int, float]]:
    """Return outcomes of positive probability; raise an error for invalid ones."""
    for action, probability in outcomes:
        if not 0 <= probability <= 1 + CHANCE_TOLERANCE:
            raise invalid(
                state,
                f"chance outcome {action} has probability {probability}",
                "a probability must lie in [0, 1]; correct the game's chance_outcomes",
            )
    total = math.fsum(probability for _, probability in outcomes)
    if not abs(total - 1) <= CHANCE_TOLERANCE:
        raise invalid(
            state,
            f"the probabilities of chance sum to {total}",
            "they must sum to 1 (in a file, write 1/3 and not 0.333); correct the "
            "game's chance_outcomes",
        )
    return [(action, p) for action, p in outcomes if p > 0]


def payoff_offset(game: pyspiel.Game) -> float:
    """Return half of the sum of both players' payoffs, which is constant.

    It is subtracted from each payoff that is read from a game, so that solvers see a
    zero-sum game, and added to values that are reported. It is 0.0 in zero-sum games.
    """
    if game.get_type().utility != pyspiel.GameType.Utility.CONSTANT_SUM:
        return 0.0
    return float(game.utility_sum() or 0.0) / 2


def returns(state: pyspiel.State) -> tuple[float, float]:
    """Return both players' payoffs at a terminal state, less `payoff_offset`.

    Raises:
      InvalidGameError: If they are not two finite numbers of the declared sum; the
        tolerance is 1e-9 of the larger one.
    """
    return checked_returns(state, state.returns())


def player_return(state: pyspiel.State, player: int) -> float:
    """Return one player's utility at a terminal state, see `returns`."""
    return returns(state)[player]


def checked_returns(
    state: pyspiel.State, utilities: Sequence[float]
) -> tuple[float, float]:
    """Check what a terminal state returned, and return it as `returns` does.

    Callers in a hurry may skip the call if two numbers sum to exactly zero: those are
    payoffs of a zero-sum game, because NaN and infinite numbers never do.
    """
    if len(utilities) != 2:
        raise invalid(
            state,
            f"there are {len(utilities)} returns",
            "a game of two players has two; correct the game's returns",
        )
    first, second = utilities
    if first + second == 0:
        return first, second
    if not (math.isfinite(first) and math.isfinite(second)):
        raise invalid(
            state,
            f"the returns are {first} and {second}",
            "payoffs must be finite numbers; correct the game's returns",
        )
    game = state.get_game()
    offset = payoff_offset(game)
    if abs(first + second - 2 * offset) > sum_tolerance(game, first, second):
        constant = f"of the constant sum {2 * offset}" if offset else "zero-sum"
        raise invalid(
            state,
            f"the returns {first} and {second} sum to {first + second}",
            f"the game says that its payoffs are {constant}; choose a zero-sum variant "
            f"among the game's parameters, or correct its returns",
        )
    return first - offset, second - offset


def check_declaration(game: pyspiel.Game, *, asks: bool) -> None:
    """Raise an error if a game cannot be the two-player zero-sum game that it declares.

    Args:
      game: Sequential game.
      asks: Whether to test one query of an information state.

    Raises:
      InvalidGameError: If the declared utilities are not zero-sum, or information
        states cannot be queried.
    """
    if asks:
        _try_information(game)
    low, high = game.min_utility(), game.max_utility()
    # For an EFG file, OpenSpiel declares the rounded sum of the first terminal node.
    tolerance = sum_tolerance(game, low, high)
    tolerance = tolerance if math.isfinite(tolerance) else 0.0
    total = game.utility_sum()
    if game.get_type().utility == pyspiel.GameType.Utility.CONSTANT_SUM:
        if total is None or not math.isfinite(total):
            raise InvalidGameError(
                f"{one_line(game)}: the game type is constant-sum, but "
                f"utility_sum={total} is not a finite number; set utility_sum in its "
                f"GameInfo"
            )
    elif total is not None and not abs(total) <= tolerance:
        raise InvalidGameError(
            f"{one_line(game)}: the game type is zero-sum, but "
            f"utility_sum={total}, the declared sum of both players' utilities; "
            f"correct utility_sum in its GameInfo, or its utilities"
        )


def _try_information(game: pyspiel.Game) -> None:
    """Query one information state of a game that is written in Python.

    If states do not implement information states, OpenSpiel uses an observer of the
    game. Without an observer, Python raises AttributeError.
    """
    state = game.new_initial_state()
    for _ in range(_FIRST_MOVES):
        player = state.current_player()
        if player in (0, 1):
            try:
                state.information_state_string(player)
            except (AttributeError, NotImplementedError) as error:
                raise InvalidGameError(
                    f"{one_line(game)}: information_state_string({player}) fails "
                    f"({error}), and spiel_cr needs to know what a player remembers; "
                    f"give the game's states that method, or the game make_py_observer"
                ) from error
            return
        legal = [] if state.is_terminal() else state.legal_actions()
        if not legal:
            return
        state.apply_action(legal[0])


def check_state(state: pyspiel.State) -> None:
    """Raise an error for a state of a simultaneous game that was not converted.

    Raises:
      ValueError: If the state is of such a game.
    """
    game = state.get_game()
    if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
        raise ValueError(
            f"state: it is of {one_line(game)}, whose moves are simultaneous, and "
            f"players take turns here; pass states of spiel_cr.load_game({str(game)!r})"
        )


def impossible_outcomes(state: pyspiel.State) -> list[int]:
    """Return chance outcomes with probability zero; [] at other nodes."""
    if not state.is_chance_node():
        return []
    return [action for action, chance in state.chance_outcomes() if not chance > 0]


def feature_count(game: Any, features: str) -> int:
    """Return the number of features F: the length of a game's tensors.

    Args:
      game: OpenSpiel game.
      features: "information_state" or "observation".

    Raises:
      ValueError: If the game does not provide them.
    """
    if not getattr(game.get_type(), f"provides_{features}_tensor"):
        raise ValueError(
            f"features={features}: {one_line(game)} offers no {features}_tensor, which "
            f"a network reads; implement it in the game, or choose other features or "
            f"network=table"
        )
    return int(np.prod(getattr(game, f"{features}_tensor_shape")()))


def utility_bounds(game: pyspiel.Game) -> tuple[float, float] | None:
    """Return the least and the greatest of the payoffs that a game declares.

    They are payoffs as `returns` gives them. None if one of them is not finite.
    """
    offset = payoff_offset(game)
    low, high = float(game.min_utility()) - offset, float(game.max_utility()) - offset
    return (low, high) if math.isfinite(low) and math.isfinite(high) else None


def sum_tolerance(game: pyspiel.Game, first: float, second: float) -> float:
    """Return the tolerance for the sum of two returns of a game."""
    declared = max(abs(game.min_utility()), abs(game.max_utility()))
    larger = max(abs(first), abs(second))
    rounding = DECLARED_TOLERANCE * declared if math.isfinite(declared) else 0.0
    return max(PAYOFF_TOLERANCE * larger, rounding)


def no_action(state: pyspiel.State, player: int) -> InvalidGameError:
    """Return the error for a player that is to act without a legal action."""
    return invalid(
        state,
        f"player {player} has no legal action",
        "a game without moves must be terminal there; correct the game's "
        "legal_actions, or choose other parameters",
    )


def wrong_action(state: pyspiel.State, action: int) -> InvalidGameError:
    """Return the error for an action whose number is not a valid int32."""
    return invalid(
        state,
        f"the last action is {action}",
        "actions are numbers from 0 to 2^31 - 1; correct the game's legal_actions",
    )


def wrong_player(state: pyspiel.State, player: int) -> InvalidGameError:
    """Return the error for an acting player that is not supported."""
    return invalid(
        state,
        f"current_player gives {player}",
        f"only players 0 and 1, chance ({CHANCE}) and the end of the game "
        f"({TERMINAL}) are supported; correct the game's current_player",
    )


def check_moves(game: pyspiel.Game, histories: Histories) -> None:
    """Check actions and chance probabilities after a walk over states.

    Args:
      game: Game, for messages.
      histories: All N histories, in breadth-first order.

    Raises:
      InvalidGameError: If an action is negative or listed twice, or the probability of
        a history underflows to zero.
    """

    def wrong(history: int, problem: str, remedy: str) -> InvalidGameError:
        place = describe_history(game, histories.actions_to(history))
        return InvalidGameError(f"{one_line(game)}: {place} {problem}; {remedy}")

    parent, action = histories.parent[1:], histories.action[1:]
    if (bad := action < 0).any():
        odd = 1 + int(np.argmax(bad))
        raise wrong(
            int(histories.parent[odd]),
            f"{histories.action[odd]} is an action",
            "actions are numbers from 0 on; correct the game's legal_actions",
        )
    ascends = (action[1:] > action[:-1]) | (parent[1:] != parent[:-1])
    if not ascends.all():
        order = order_pairs(parent, action)
        twice = (np.diff(parent[order]) == 0) & (np.diff(action[order]) == 0)
        if twice.any():
            odd = 1 + int(order[np.argmax(twice)])
            raise wrong(
                int(histories.parent[odd]),
                f"action {histories.action[odd]} is offered twice",
                "correct the game's legal_actions or chance_outcomes",
            )
    if not (histories.chance > 0).all():
        odd = int(np.argmin(histories.chance > 0))
        raise wrong(
            odd,
            "the probability of chance's moves together is too small for a float64",
            "give these outcomes larger probabilities, or none",
        )


def invalid(state: pyspiel.State, problem: str, remedy: str) -> InvalidGameError:
    """Return the error for a state that violates a requirement for games.

    Args:
      state: The state.
      problem: Problem at the state, with the value.
      remedy: Requirement and remedy.
    """
    game = state.get_game()
    place = describe_history(game, state.history())
    return InvalidGameError(f"{one_line(game)}: {place} {problem}; {remedy}")


def describe_history(game: pyspiel.Game, actions: Iterable[int]) -> str:
    """Return a history as text: its moves by name, and as OpenSpiel's actions.

    Args:
      game: Sequential game.
      actions: Actions from the root, chance included.
    """
    path = [int(action) for action in actions]
    if not path:
        return "at the root"
    state, names = game.new_initial_state(), []
    try:
        for action in path:
            names.append(state.action_to_string(state.current_player(), action))
            state.apply_action(action)
    # The game has errors, so only the numbers of the actions are printed.
    except BaseException:
        return f"after actions {path}"
    return f"after {', '.join(names)} (actions {path})"
