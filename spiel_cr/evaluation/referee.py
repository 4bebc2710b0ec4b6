"""One match between two players, with a referee."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.opening.game_checks import chance_outcomes, returns
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.policies import best_responses
from spiel_cr.policies.bot_base import check_seat, gives_policy, policy_at
from spiel_cr.policies.queries import distribution
from spiel_cr.resolving.clock import KeepsStatistics, Statistics
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr

# Called with (state, player, action) before the action is applied; the player is
# OpenSpiel's number, -1 for chance.
Observer = Callable[[pyspiel.State, int, int], None]

# Policies of bots that compute in float32 do not sum to 1 exactly.
_SUM_TOLERANCE = 1e-3


class IllegalMoveError(ValueError):
    """A bot chose what it may not.

    Attributes:
      player: who.
    """

    def __init__(self, player: int, words: str) -> None:
        super().__init__(words)
        self.player = player


class Match(NamedTuple):
    """What happened in a match.

    Attributes:
      actions: OpenSpiel's actions from the beginning, chance's included.
      returns: utilities of players 0 and 1, in the game's units.
      seconds: what each answer of player 0 and of player 1 took.
      odds: for each action the probabilities that it was drawn with; None where a bot
        gave no policy.
    """

    actions: tuple[int, ...]
    returns: tuple[float, float]
    seconds: tuple[tuple[float, ...], tuple[float, ...]]
    odds: tuple[dict[int, float] | None, ...] = ()


def play_match(
    game: Game,
    bots: Sequence[pyspiel.Bot],
    rng: np.random.Generator,
    *,
    chance: np.random.Generator | None = None,
    observers: Sequence[Observer] = (),
) -> Match:
    """Plays a match from the beginning of a game to its end.

    A bot that provides its policy is asked for that, and the referee draws the action:
    so a match depends on its own generators and not on what was played before. Any
    other bot is asked to step.

    Args:
      game: OpenSpiel game string, game, or compiled game; simultaneous moves are
        converted to turns.
      bots: of player 0 and of player 1; they are restarted.
      rng: draws the bots' actions; consumed, one number per action.
      chance: draws chance's actions; consumed, one number per action, so that equal
        generators deal alike. None: `rng` draws these too.
      observers: called with every action before it is applied.

    Raises:
      IllegalMoveError: a bot chose what it may not.
      ValueError: not two bots, or one of them is for the other seat.
    """
    if len(bots) != 2:
        raise ValueError(f"bots: {len(bots)} were given; a match has two players")
    for seat, bot in enumerate(bots):
        check_seat(bot, seat, f"bots[{seat}]")
    state = open_game(game).game.new_initial_state()
    seconds: tuple[list[float], list[float]] = ([], [])
    drawn: list[dict[int, float] | None] = []
    for bot in bots:
        bot.restart()
    while not state.is_terminal():
        player = state.current_player()
        if state.is_chance_node():
            odds: list[tuple[int, float]] | None = list(chance_outcomes(state))
            action = _draw(odds or (), rng if chance is None else chance)
        else:
            begun = time.perf_counter()
            action, odds = _ask(bots[player], state, rng)
            seconds[player].append(time.perf_counter() - begun)
        drawn.append(None if odds is None else dict(odds))
        for observer in observers:
            observer(state, player, action)
        for other, bot in enumerate(bots):
            if other != player:
                bot.inform_action(state, player, action)
        state.apply_action(action)
    first, second = returns(state)
    return Match(
        tuple(state.history()),
        (float(first), float(second)),
        (tuple(seconds[0]), tuple(seconds[1])),
        tuple(drawn),
    )


def statistics_of(bot: pyspiel.Bot) -> Statistics | None:
    """What a bot recorded since it was made; None if it keeps no record."""
    return bot.statistics if isinstance(bot, KeepsStatistics) else None


class ProgramCounter:
    """An observer that counts JAX programs compiled before each player's actions.

    A bot can only count since it was made, and bots that were made after it have
    compiled programs since.

    Attributes:
      counts: of players 0 and 1, since the counter was made.
    """

    def __init__(self) -> None:
        self.counts = [0, 0]
        self._seen = _programs()

    def __call__(self, state: pyspiel.State, player: int, action: int) -> None:
        now = _programs()
        if player >= 0:
            self.counts[player] += now - self._seen
        self._seen = now


def _programs() -> int:
    return cfr.programs() + mccfr.programs() + best_responses.programs()


def _ask(
    bot: pyspiel.Bot, state: pyspiel.State, rng: np.random.Generator
) -> tuple[int, list[tuple[int, float]] | None]:
    """The bot's action, checked, and the policy that it was drawn from, if any."""
    policy = None
    player, legal = state.current_player(), state.legal_actions()
    who = f"player {player}, a {type(bot).__name__},"
    if gives_policy(bot):
        policy = policy_at(bot, state)
        try:
            distribution(
                policy,
                legal,
                state.num_distinct_actions(),
                lambda: f"{who} after the actions {state.history()}",
                tolerance=_SUM_TOLERANCE,
            )
        except InvalidPolicyError as error:
            raise IllegalMoveError(player, str(error)) from error
        policy = list(policy.items()) if isinstance(policy, dict) else list(policy)
        action = _draw(policy, rng)
    else:
        action = bot.step(state)
    if action not in legal:
        raise IllegalMoveError(
            player,
            f"{who} chose the illegal action {action!r} after the actions "
            f"{state.history()}; it must be one of {legal}",
        )
    return int(action), policy


def _draw(outcomes: Sequence[tuple[int, float]], rng: np.random.Generator) -> int:
    """One of (action, probability), by one number whatever the outcomes are."""
    possible = [(action, p) for action, p in outcomes if p > 0]
    ends = np.cumsum([p for _, p in possible])
    chosen = np.searchsorted(ends, rng.random() * ends[-1], side="right")
    # The product may round up to the end.
    return possible[min(int(chosen), len(possible) - 1)][0]
