"""A player of games that are never compiled whole, as an OpenSpiel bot.

Bots are handed the true state of the game. This one looks at its own information state
strings and its own actions only.
"""

import pyspiel

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation.observations import observations
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.resolving.clock import Statistics
from spiel_cr.resolving.gadget_fronts import Gadget
from spiel_cr.resolving.lookahead import lookahead_resolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolving_config import ResolvingConfig

# Of trees that are solved anew at each move, and of their gadget games
# (docs/how-to/resolving-bots.md).
DEFAULT_SOLVER = "pcfr+"
DEFAULT_GADGET: Gadget = "maxmargin"


class LookaheadResolvingBot(PolicyPlayer):
    """Plays by continual resolving on lookahead trees that follow the match.

    Attributes:
      agent: what decides.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        partial: LookaheadConfig,
        seed: int = 0,
    ) -> None:
        """Warms up: solves the start of the game, compiles all programs.

        Args:
          game: OpenSpiel game string or game.
          player: the seat, 0 or 1.
          config: how it resolves; None: PCFR+ for 1000 ms per move, max-margin.
          partial: how lookahead trees follow the match.
          seed: of all that it draws.

        Raises:
          pyspiel.SpielError, ValueError: as `LookaheadResolver`.
        """
        super().__init__(player, seed=seed)
        if config is None:
            config = ResolvingConfig(
                DEFAULT_SOLVER, move_ms=1000, gadget=DEFAULT_GADGET
            )
        self.agent = lookahead_resolver.LookaheadResolver(
            open_game(game).game, player, config, partial, seed=seed
        )

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self.agent.statistics

    @property
    def counts(self) -> lookahead_resolver.LookaheadStatistics:
        """How it came to its answers since it was made."""
        return self.agent.counts

    def restart(self) -> None:
        """A new match."""
        self.agent.restart()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        answer = self.agent.strategy(observations(state, self._player, waiting=False))
        if answer is None:
            probabilities = self.agent.blueprint.policy.action_probabilities(state)
            return sorted(probabilities.items())
        return list(zip(answer[0], answer[1].tolist(), strict=True))
