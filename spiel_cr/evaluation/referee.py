"""One match between two players, with a referee."""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyspiel

from spiel_cr.common.errors import InvalidPolicyError
from spiel_cr.games.opening.game_checks import chance_outcomes, returns
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.policies import best_responses, bot_base
from spiel_cr.policies.queries import distribution_at
from spiel_cr.resolving.clock import KeepsStatistics, Statistics
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.mccfr import mccfr

# Called with (state, player, action) before the action is applied; the player is
# OpenSpiel's number, -1 for chance.
Observer = Callable[[pyspiel.State, int, int], None]

# Policies of bots that compute in float32 do not sum to 1 exactly.
_SUM_TOLERANCE = 1e-3


class IllegalMoveError(ValueError):
    """A bot chose an illegal action.

    Attributes:
      player: The player of the bot.
    """

    def __init__(self, player: int, words: str) -> None:
        super().__init__(words)
        self.player = player


class Match(NamedTuple):
    """Record of a match.

    Attributes:
      actions: OpenSpiel's actions from the root, including those of chance.
      returns: Utilities of players 0 and 1, in the game's units.
      seconds: Times of the answers of player 0 and of player 1.
      probabilities: Probabilities of all actions at each action's node; None if a bot
        did not provide its policy.
    """

    actions: tuple[int, ...]
    returns: tuple[float, float]
    seconds: tuple[tuple[float, ...], tuple[float, ...]]
    probabilities: tuple[dict[int, float] | None, ...] = ()


def play_match(
    game: Game,
    bots: Sequence[pyspiel.Bot],
    rng: np.random.Generator,
    *,
    chance: np.random.Generator | None = None,
    observers: Sequence[Observer] = (),
) -> Match:
    """Play a match from the root of a game to its end.

    If a bot provides its policy, the referee samples the action. A match then depends
    on its generators and not on earlier matches. Other bots choose an action by `step`.

    Args:
      game: OpenSpiel game string, game, or represented game; simultaneous moves are
        converted to turns.
      bots: The bots of player 0 and of player 1, which are restarted.
      rng: Random numbers of the bots' actions, one per action.
      chance: Random numbers of chance, one per outcome, so that equal generators give
        equal deals. By default `rng` is used.
      observers: Functions that are called with every action before it is applied.

    Raises:
      IllegalMoveError: If a bot chooses an illegal action.
      ValueError: If there are not two bots, or one is a bot of the other player.
    """
    if len(bots) != 2:
        raise ValueError(f"bots: a match needs two bots, not {len(bots)}; pass two")
    for seat, bot in enumerate(bots):
        bot_base.check_seat(bot, seat, f"bots[{seat}]")
    state = open_game(game).game.new_initial_state()
    seconds: tuple[list[float], list[float]] = ([], [])
    drawn: list[dict[int, float] | None] = []
    for bot in bots:
        bot.restart()
    while not state.is_terminal():
        player = state.current_player()
        if state.is_chance_node():
            probabilities: list[tuple[int, float]] | None = list(chance_outcomes(state))
            action = _draw(probabilities or (), rng if chance is None else chance)
        else:
            start = time.perf_counter()
            action, probabilities = _ask(bots[player], state, rng)
            seconds[player].append(time.perf_counter() - start)
        drawn.append(None if probabilities is None else dict(probabilities))
        for observer in observers:
            observer(state, player, action)
        for other, bot in enumerate(bots):
            if other != player:
                bot.inform_action(state, player, action)
        state.apply_action(action)
    for bot in bots:
        if isinstance(bot, bot_base.PolicyPlayer):
            bot.end_match(state)
    first, second = returns(state)
    return Match(
        tuple(state.history()),
        (float(first), float(second)),
        (tuple(seconds[0]), tuple(seconds[1])),
        tuple(drawn),
    )


def statistics_of(bot: pyspiel.Bot) -> Statistics | None:
    """Return a bot's counts and times since it was made; None if it records none."""
    return bot.statistics if isinstance(bot, KeepsStatistics) else None


class CompilationCounter:
    """An observer that counts JAX functions compiled before each player's actions.

    A bot's record begins when the bot is made, so it includes functions that were
    compiled for bots made later.

    Attributes:
      counts: Numbers of players 0 and 1 since the counter was made.
    """

    def __init__(self) -> None:
        self.counts = [0, 0]
        self._seen = _compilations()

    def __call__(self, state: pyspiel.State, player: int, action: int) -> None:
        now = _compilations()
        if player >= 0:
            self.counts[player] += now - self._seen
        self._seen = now


def _compilations() -> int:
    return cfr.compilations() + mccfr.compilations() + best_responses.compilations()


def _ask(
    bot: pyspiel.Bot, state: pyspiel.State, rng: np.random.Generator
) -> tuple[int, list[tuple[int, float]] | None]:
    """Return a bot's action, checked, and the policy from which it was sampled."""
    policy = None
    player, legal = state.current_player(), state.legal_actions()
    who = f"player {player}, a {type(bot).__name__},"
    if bot_base.gives_policy(bot):
        policy = bot_base.policy_at(bot, state)
        try:
            distribution_at(policy, state, who, tolerance=_SUM_TOLERANCE)
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
    """Sample an action from (action, probability) with a single random number."""
    possible = [(action, p) for action, p in outcomes if p > 0]
    ends = np.cumsum([p for _, p in possible])
    chosen = np.searchsorted(ends, rng.random() * ends[-1], side="right")
    # Rounding may give the end of the range.
    return possible[min(int(chosen), len(possible) - 1)][0]
