"""How good a player is, in one call: NashConv, best responses, evaluation.

`spiel_cr` has these functions at its top.
"""

import dataclasses
import time

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.announcing import listening
from spiel_cr.common.checks import check_seed
from spiel_cr.common.memory import Limit
from spiel_cr.common.short_repr import short_repr
from spiel_cr.evaluation import traversing
from spiel_cr.evaluation.responding import respond
from spiel_cr.evaluation.response_config import ResponseConfig
from spiel_cr.evaluation.response_seats import Seat
from spiel_cr.evaluation.targets import build_for_evaluation, load_target
from spiel_cr.games.opening.identity import same_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.tree.compiler import Game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.players.player_specs import (
    PlayerLike,
    PolicyLike,
    check_order,
    make_bot,
    read_player,
)
from spiel_cr.players.player_strings import read_string
from spiel_cr.policies import best_responses
from spiel_cr.policies.queries import query
from spiel_cr.policies.result import Result
from spiel_cr.solvers.locks import Locks


@dataclasses.dataclass(frozen=True, repr=False)
class BestResponse:
    """A response to a player, and what it gets.

    Attributes:
      player: the responder's seat.
      value: the responder's expected utility, in the game's units.
      half_width: of the 95 % confidence interval around it; 0 where it is exact.
      is_exact: whether `value` is exact, and no response gets more.
      policy: of both players: the response in its seat, in the other one the policy
        that it responds to; None where it is known by its matches alone.
      seat: all that was measured.
    """

    player: int
    value: float
    half_width: float
    is_exact: bool
    policy: openspiel_policy.Policy | None
    seat: Seat

    __repr__ = short_repr


def nash_conv(
    game: Game,
    policy: PolicyLike,
    *,
    memory_limit: Limit = None,
    progress: bool = False,
) -> float:
    """NashConv of a policy of both players: exact, by our own best responses.

    It is the sum of what both players gain by exact best responses, in the game's
    units; exploitability in most papers is half of it. OpenSpiel's
    `exploitability.nash_conv` gives the same number. Node locks of a result are lifted;
    `Result.nash_conv_with_locks` returns the loss at unlocked infosets alone.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      policy: an OpenSpiel policy, a result of `solve` or `resolve`, or a string such as
        "uniform", "cfr+(iterations=10)" or the path of a file.
      memory_limit: refuse to compile larger games, as in `solve`.
      progress: show progress bars on stderr.

    Raises:
      GameTooLargeError: the game does not fit; see `best_response`.
      ValueError: no policy, one of another game, or the arguments are exchanged.
    """
    check_order(game, policy, "nash_conv(game, policy)")
    if isinstance(policy, Result) and policy.form is not None:
        if same_game(policy.game, open_game(game).game):
            return policy.nash_conv()
    target = load_target(policy, game, memory_limit=memory_limit, progress=progress)
    if target.streamed is not None:
        return sum(seat.value for seat in target.streamed.seats)
    behaviour = target.strategy()
    assert target.form is not None
    low, high = best_responses.value_bounds(target.form, behaviour)
    return high - low


def best_response(
    game: Game,
    policy_or_bot: PlayerLike,
    player: int,
    config: ResponseConfig | None = None,
    *,
    seed: int = 0,
    memory_limit: Limit = None,
    locks: Locks | None = None,
    progress: bool = False,
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
      locks: what an exact response may not change, see `GameOptions`.
      progress: show progress bars on stderr.

    Raises:
      ValueError: a bad argument, or a bot of the responder's own seat.
    """
    check_order(game, policy_or_bot, "best_response(game, policy_or_bot, player)")
    check_seed(seed)
    _check_player(player)
    with listening(progress):
        target = load_target(
            policy_or_bot,
            game,
            seat=1 - player,
            seed=seed,
            signals=config is None or config.method == "exact",
            memory_limit=memory_limit,
            progress=progress,
        )
        if config is None and (target.form or target.streamed):
            config = ResponseConfig("exact")
        if locks is not None:
            if config is not None and config.method != "exact":
                raise ValueError(
                    f"locks: method={config.method!r} searches without them; leave "
                    f"them out, or take the method 'exact'"
                )
            target = target.with_locks(locks)
        seat = respond(target, player, config or ResponseConfig())
    policy = None
    if seat.behaviour is not None and target.behaviour is not None:
        policy = target.answered(player, seat.behaviour)
    return BestResponse(
        player, seat.value, seat.half_width, seat.is_exact, policy, seat
    )


def _check_player(player: int) -> None:
    if isinstance(player, bool) or player not in (0, 1):
        raise ValueError(f"player={player!r} must be 0 or 1, the responder's seat")


def evaluate(
    game: Game,
    bot: PlayerLike,
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
    check_order(game, bot, "evaluate(game, bot)")
    check_seed(seed)
    if isinstance(bot, pyspiel.Bot):
        raise ValueError(
            f"bot: a {type(bot).__name__} sits in one seat, and both are evaluated; "
            f"give a function of (player, seed) that makes one, or a string"
        )
    if isinstance(bot, str):
        read_string(bot, "bot")
    if isinstance(game, GameTree):
        tree: GameTree | PhantomGame = game
    else:
        tree = build_for_evaluation(open_game(game), memory_limit)
    if isinstance(tree, PhantomGame):
        return _evaluate_phantom_game(game, bot, seed, memory_limit)
    if not isinstance(bot, str):
        policy = read_player(bot, tree.game, name="bot").make_policy(tree, seed)
        if policy is not None:
            return traversing.evaluate(tree, _queried(tree, policy))
    first, second = (
        traversing.traverse(
            tree,
            make_bot(bot, tree, seat, seed=seed, name="bot"),
            seat,
            progress=progress,
        )
        for seat in range(2)
    )
    return traversing.evaluate(tree, (first, second))


def _queried(
    tree: GameTree, policy: openspiel_policy.Policy
) -> tuple[traversing.SeatStrategy, traversing.SeatStrategy]:
    """Query a policy at all infosets of both players, and check its answers."""
    start = time.perf_counter()
    behaviours = query(tree, policy)
    seconds = (time.perf_counter() - start) / 2
    first, second = (
        traversing.SeatStrategy(
            behaviour,
            np.ones(len(infosets), np.int64),
            traversing.Work(len(infosets), seconds=seconds),
        )
        for behaviour, infosets in zip(behaviours, tree.infosets, strict=True)
    )
    return first, second


def _evaluate_phantom_game(
    game: Game, bot: PlayerLike, seed: int, memory_limit: Limit
) -> traversing.Evaluation:
    """A player of a large hidden-board game; a bot by what it answers."""
    begun = time.perf_counter()
    target = load_target(bot, game, seed=seed, memory_limit=memory_limit)
    behaviour = target.strategy()
    seconds = time.perf_counter() - begun
    assert target.form is not None
    low, high = best_responses.value_bounds(target.form, behaviour)
    infosets = sum(map(len, target.form.decisions))
    return traversing.Evaluation(
        nash_conv=high - low,
        infosets=infosets,
        infosets_defined=infosets,
        moves=infosets,
        seconds=seconds,
        judge="spiel_cr",
    )
