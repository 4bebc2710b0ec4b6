"""Options of commands that compute responses to a policy."""

import dataclasses
from typing import Literal

from spiel_cr.common.memory import Limit
from spiel_cr.players.fixed_policies import FIXED_POLICIES
from spiel_cr.players.player_specs import MEMORY_LIMIT

from .command import Arguments, WorkerOptions


@dataclasses.dataclass(kw_only=True)
class PolicyOptions(WorkerOptions):
    """Options of commands that compute responses to a policy.

    Attributes:
      policy (PATH|NAME): Policy to respond to.
      player: Player that responds.
      memory_limit: Memory limit, such as 3GB, of the game tree, which makes results
        exact.
    """

    game: str
    policy: str
    player: Literal["0", "1", "both"] = "both"
    memory_limit: Limit = MEMORY_LIMIT
    seed: int = 0


# Values of --policy, for `LISTS` of commands.
POLICIES = f"""policies:
  uniform; {", ".join(FIXED_POLICIES)} (poker);
  an algorithm's average strategy: cfr+(iterations=10), lp;
  PATH.npz of --save; a bot: resolving(iterations=100);
  an agent in another program: process(command="python agent.py")"""


def players_of(arguments: Arguments) -> tuple[int, ...]:
    """Return the players that --player names."""
    return (0, 1) if arguments.player == "both" else (int(arguments.player),)
