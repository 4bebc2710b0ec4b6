"""NashConv of a policy, computed by exact best responses of both players."""

from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import listening
from spiel_cr.evaluation.opponent import open_opponent
from spiel_cr.games.opening.identity import same_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.tree.tree_builder import Game
from spiel_cr.players.player_specs import PolicyLike, check_order
from spiel_cr.policies.result import Result


def nash_conv(
    game: Game,
    policy: PolicyLike,
    *,
    memory_limit: Limit = None,
    progress: bool | None = None,
) -> float:
    """Compute the exact NashConv of a policy of both players.

    NashConv is the sum of what both players gain by exact best responses, in the game's
    units; exploitability in most papers is half of it. OpenSpiel's
    `exploitability.nash_conv` returns the same number. Node locks of a result are
    lifted; `Result.nash_conv_with_locks` returns the loss at unlocked infosets alone.

    Args:
      game: OpenSpiel game string, game, or game tree.
      policy: An OpenSpiel policy, a result of `solve` or `resolve`, or a string such as
        "uniform", "cfr+(iterations=10)" or the path of a file.
      memory_limit: Largest memory for the representation of the game, as in `solve`.
      progress: Whether to show progress on stderr. If None, after ten seconds if stderr
        is a terminal.

    Raises:
      GameTooLargeError: If the game does not fit into memory; see `best_response`.
      ValueError: If it is not a policy of the game, or the arguments are exchanged.

    Example:
      >>> import spiel_cr
      >>> round(spiel_cr.nash_conv("kuhn_poker", "uniform"), 6)
      0.916667
    """
    check_order(game, policy, "nash_conv(game, policy)")
    if isinstance(policy, Result) and policy.form is not None:
        if same_game(policy.game, open_game(game).game):
            return policy.nash_conv()
    with listening(progress):
        return open_opponent(policy, game, memory_limit=memory_limit).nash_conv()
