"""NashConv of a policy."""

from spiel_cr.common.memory import Limit
from spiel_cr.evaluation.opponent import load_target
from spiel_cr.games.opening.identity import same_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.compiler import Game
from spiel_cr.players.player_specs import PolicyLike, check_order
from spiel_cr.policies import best_responses
from spiel_cr.policies.result import Result


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
