"""An OpenSpiel bot that re-solves on lookahead trees, without building the game tree.

Matches pass the true state of the game to bots. This bot uses only its player's
information state strings and actions.
"""

import dataclasses

import pyspiel

from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.simulation.observations import observations
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.resolving.clock import Statistics
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.lookahead import lookahead_resolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolving_config import ResolvingConfig

# Defaults for trees that are solved again at each move, and for their gadget games
# (docs/explanation/depth-limits.md).
DEFAULT_SOLVER = "pcfr+"
DEFAULT_GADGET: Gadget = "maxmargin"


class LookaheadResolvingBot(PolicyPlayer):
    """A bot that plays by continual re-solving on lookahead trees.

    Attributes:
      agent: The resolver that computes the strategies.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        lookahead: LookaheadConfig,
        seed: int = 0,
    ) -> None:
        """Solve the start of the game and compile all functions.

        Args:
          game: OpenSpiel game string or game.
          player: The player, 0 or 1.
          config: Settings of re-solving; by default PCFR+ for 1000 ms per move with the
            max-margin gadget.
          lookahead: Settings of the lookahead trees.
          seed: Seed for all random choices.

        Raises:
          pyspiel.SpielError, ValueError: See `LookaheadResolver`.
        """
        super().__init__(player, seed=seed)
        if config is None:
            config = ResolvingConfig(
                DEFAULT_SOLVER, move_ms=1000, gadget=DEFAULT_GADGET
            )
        self.agent = lookahead_resolver.LookaheadResolver(
            open_game(game).game, player, config, lookahead, seed=seed
        )

    @property
    def statistics(self) -> Statistics:
        """Counts and times since the bot was made."""
        return self.agent.statistics

    @property
    def counts(self) -> lookahead_resolver.LookaheadStatistics:
        """Numbers of answers by their origin since the bot was made."""
        return self.agent.counts

    def restart(self) -> None:
        """Begin a match."""
        self.agent.restart()

    def beliefs(self, state: pyspiel.State) -> BotBeliefs:
        """Return ranges, values and NashConv of the last solve at a decision.

        The opponent's range assumes that it plays the blueprint. The other fields are
        None if no solution of the decision's subgame was accepted.

        Args:
          state: A state at which the bot acts.

        Raises:
          ValueError: If the bot's player does not act.
        """
        self.check_turn(state)
        stages = observations(state, self._player, waiting=False)
        opponent = self.agent.blueprint.policy
        posterior = StatePosterior(state.get_game(), self._player, opponent)
        posterior.update(state)
        other = 1 - self._player
        labels = [each.information_state_string(other) for each in posterior.states]
        return dataclasses.replace(
            self.agent.subgame_beliefs(stages),
            opponent_range=distribution_of(labels, posterior.weights),
            sampled=posterior.approximate,
        )

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        answer = self.agent.strategy(observations(state, self._player, waiting=False))
        if answer is None:
            probabilities = self.agent.blueprint.policy.action_probabilities(state)
            return sorted(probabilities.items())
        return list(zip(answer[0], answer[1].tolist(), strict=True))
