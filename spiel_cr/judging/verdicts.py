"""How good a player is, in one call: NashConv, best responses, evaluation.

`spiel_cr` has these functions at its top.
"""

import dataclasses

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_seed
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.common.memory import Limit
from spiel_cr.common.short_repr import short_repr
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.signals.form import form_of
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging import traversing
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_seats import Seat
from spiel_cr.judging.state_responses import on_states
from spiel_cr.judging.tree_responses import normalised, on_tree
from spiel_cr.players.given_players import (
    GivenPlayer,
    GivenPolicy,
    policy_of,
    prepare,
    seat_bot,
    tree_of,
)
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.best_responses import reach_of
from spiel_cr.policies.result import Result
from spiel_cr.policies.signal_policy import SignalPolicy


@dataclasses.dataclass(frozen=True, repr=False)
class BestResponse:
    """A response to a player, and what it gets.

    Attributes:
      player: the responder's seat.
      value: the responder's expected utility, in the game's units.
      half_width: of the 95 % confidence interval around it; 0 where it is exact.
      is_exact: whether `value` is exact, and no response gets more.
      policy: of both players: the response in its seat, in the other one the policy
        that it responds to; None where the response was searched.
      seat: all that was measured; None where the response is a best one.
    """

    player: int
    value: float
    half_width: float
    is_exact: bool
    policy: openspiel_policy.Policy | None
    seat: Seat | None

    __repr__ = short_repr


def nash_conv(game: Game, policy: GivenPolicy, *, memory_limit: Limit = None) -> float:
    """NashConv of a policy of both players: exact, by our own best responses.

    It is the sum of what both players gain by exact best responses, in the game's
    units; exploitability in most papers is half of it. OpenSpiel's
    `exploitability.nash_conv` gives the same number.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy: an OpenSpiel policy, a result of `solve` or `resolve`, or a string such as
        "uniform", "cfr+(iterations=10)" or the path of a file.
      memory_limit: refuse to compile larger games, as in `solve`.

    Raises:
      GameTooLargeError: the game does not fit; see `best_response`.
      ValueError: no policy, one of another game, or the arguments are exchanged.
    """
    _check_order(game, policy, "nash_conv(game, policy)")
    if isinstance(policy, Result):
        return policy.nash_conv()
    # A string's policy may have a form of its own.
    known = game
    if not isinstance(policy, SignalPolicy):
        known = tree_of(game, memory_limit)
        policy = policy_of(policy, known, 0, seed=0, memory_limit=memory_limit)
    if isinstance(policy, SignalPolicy):
        form = form_of(policy.signals)
        first, second = map(normalised, form.decisions, policy.behaviour)
        behaviour = first, second
    else:
        assert isinstance(known, CompiledGame)
        form = known.form
        behaviour = conversions.behaviour_from_policy(known, policy)
    low, high = best_responses.value_bounds(form, behaviour)
    return high - low


def best_response(
    game: Game,
    policy_or_bot: GivenPlayer,
    player: int,
    config: ResponseConfig | None = None,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
) -> BestResponse:
    """What can be won against a player.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy_or_bot: to respond to: an OpenSpiel policy; a result of `solve`; a string
        such as "cfr+(iterations=10)" or "resolving(iterations=100)"; a bot of the other
        seat; or a function of (player, seed) that makes one. Bots are asked at each
        infoset, see `BotPolicy`.
      player: the responder's seat, 0 or 1.
      config: how a response is searched (`ResponseConfig`, with a `SearchConfig`);
        None: an exact best response on the compiled game, or ISMCTS-BR in 1000 matches
        where that does not fit.
      seed: of what bots draw.
      memory_limit: compile the game if it needs no more, as in `solve`.

    Raises:
      ValueError: a bad argument, or a bot of the responder's own seat.
    """
    _check_order(game, policy_or_bot, "best_response(game, policy_or_bot, player)")
    check_seed(seed)
    _check_player(player)
    plain, tree = open_game(game).game, None
    try:
        tree = tree_of(game, memory_limit)
    except GameTooLargeError:
        config = config or ResponseConfig()
    known = plain if tree is None else tree
    opponent = policy_of(
        *(policy_or_bot, known, 1 - player), seed=seed, memory_limit=memory_limit
    )
    if tree is None:
        assert config is not None
        return _of_seat(on_states(plain, player, opponent, config))
    behaviour = _behaviour_of(
        tree, opponent, player, isinstance(policy_or_bot, pyspiel.Bot)
    )
    if config is not None and config.method != "exact":
        return _of_seat(on_tree(tree, player, behaviour, config))
    reach = reach_of(tree.form, behaviour)[1 - player]
    found = best_responses.best_response(tree.form, player, reach)
    both = (found, behaviour[1]) if player == 0 else (behaviour[0], found)
    value = best_responses.best_response_value(tree.form, player, reach)
    table = conversions.tabular_policy(tree, both)
    return BestResponse(player, float(value), 0.0, True, table, None)


def _check_order(game: object, judged: object, call: str) -> None:
    """Refuses a game that stands behind who is to be judged."""
    if _is_game(judged) and not _is_game(game):
        raise ValueError(f"the game comes first: {call}; exchange the two arguments")


def _is_game(given: object) -> bool:
    """Whether it is a game, or the string of one that is registered."""
    if isinstance(given, str):
        return given.partition("(")[0].strip() in pyspiel.registered_names()
    return isinstance(given, pyspiel.Game | CompiledGame)


def _check_player(player: int) -> None:
    if isinstance(player, bool) or player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1, the responder's seat")


def _behaviour_of(
    tree: CompiledGame, opponent: openspiel_policy.Policy, player: int, is_bot: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Both players' action probabilities; of a bot in its own seat only.

    Args:
      tree: the compiled game.
      opponent: of both seats, or of the one opposite.
      player: the responder.
      is_bot: the opponent is of one seat; the other one is uniform here.
    """
    if not is_bot:
        return conversions.behaviour_from_policy(tree, opponent)
    seats = [conversions.uniform_behaviour(own.decisions) for own in tree.infosets]
    infosets, other = tree.infosets[1 - player], seats[1 - player]
    first = infosets.decisions.first_sequence
    for number, history in enumerate(infosets.history.tolist()):
        state = tree.state_at(history)
        given = opponent.action_probabilities(state, 1 - player)
        answer = [given[action] for action in state.legal_actions()]
        begin = int(first[number])
        other[begin : begin + len(answer)] = answer
    return seats[0], seats[1]


def _of_seat(seat: Seat) -> BestResponse:
    return BestResponse(
        seat.player, seat.value, seat.half_width, seat.is_exact, None, seat
    )


def evaluate(
    game: Game,
    bot: GivenPlayer,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    progress: bool = False,
) -> traversing.Evaluation:
    """Asks a player at every infoset of both seats, and judges what it answers exactly.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      bot: a string such as "resolving(iterations=100)", a policy, a result of `solve`,
        or a function of (player, seed) that makes a bot.
      seed: of what the bots draw.
      memory_limit: refuse to compile larger games, as in `solve`.
      progress: show progress bars on stderr.

    Returns:
      NashConv in the game's units, and what the answers cost.

    Raises:
      GameTooLargeError: the game does not fit; play matches instead.
      ValueError: no player, one bot for both seats, a bot without `get_policy`, or the
        arguments are exchanged.
    """
    _check_order(game, bot, "evaluate(game, bot)")
    check_seed(seed)
    if isinstance(bot, pyspiel.Bot):
        raise ValueError(
            f"bot: a {type(bot).__name__} sits in one seat, and both are evaluated; "
            f"give a function of (player, seed) that makes one, or a string"
        )
    tree = tree_of(prepare(game, [bot], memory_limit), memory_limit)
    first, second = (
        traversing.traverse(
            tree,
            seat_bot(bot, tree, seat, seed=seed, name="bot"),
            progress=progress,
        )
        for seat in range(2)
    )
    return traversing.evaluate(tree, (first, second))
