"""OpenSpiel bots that re-solve, sample online, or play a policy.

Matches pass the true state of the game to bots. `ResolvingBot` and `OOSBot` use only
their player's information state string, or the public actions and the player's private
state. `LookaheadResolvingBot` uses its player's information state strings and actions.
`PolicyBot` passes the state to its policy.
"""

import dataclasses
import time
from typing import Any, cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.simulation.observations import observations
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import Game, as_tree
from spiel_cr.policies.beliefs.bot_beliefs import BotBeliefs, distribution_of
from spiel_cr.policies.beliefs.state_posterior import StatePosterior
from spiel_cr.policies.bot_base import PolicyPlayer, as_bot, check_seat
from spiel_cr.policies.policy_adapters import as_policy, name_of
from spiel_cr.policies.queries import distribution_at
from spiel_cr.resolving.clock import Clock, Statistics, check_budget
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.lookahead import lookahead_resolver
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.tree_beliefs import opponent_range
from spiel_cr.resolving.tree_subgames import decision_of_bot
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import MCCFR, find
from spiel_cr.solvers.cfr.solver import SolverState
from spiel_cr.solvers.mccfr import choice, mccfr
from spiel_cr.solvers.representation import represent


class ResolvingBot(PolicyPlayer):
    """A bot that plays by general continual re-solving, see `Resolver`.

    Attributes:
      resolver: The resolver on the game tree or the public tree.
    """

    def __init__(
        self,
        game: Game | PublicTreeGame,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Build the game, compile all functions, and solve the game once.

        Args:
          game: OpenSpiel game string, game, game tree (built with `observations=True`),
            or public-tree game. A large game that declares its public tree is played in
            that form, if the settings allow it.
          player: The player, 0 or 1.
          config: Settings of re-solving; by default CFR+ for 100 ms per move.
          seed: Seed of the sampled actions.

        Raises:
          pyspiel.SpielError, ValueError: See `resolve`.
        """
        super().__init__(player, seed=seed)
        config = config or ResolvingConfig(move_ms=100)
        form, _ = represent(game, None, need_of(config))
        resolved = cast(GameTree | PublicTreeGame, form)
        self.resolver = Resolver(resolved, player, config, seed=seed)
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """Counts and times since the bot was made."""
        return self.resolver.statistics

    def restart(self) -> None:
        """Begin a match."""
        self._match = self.resolver.match()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        decision, actions = self.resolver.subgames.decision(state)
        probabilities = self.resolver.strategy(self._match, decision)
        return list(zip(actions, probabilities.tolist(), strict=True))

    def beliefs(self, state: pyspiel.State) -> BotBeliefs:
        """Return ranges, values and NashConv of the last solve at a decision.

        The decision is solved first if it was not solved in this match.

        Args:
          state: A state at which the bot acts.

        Raises:
          ValueError: If the bot's player does not act.

        Example:
          >>> import spiel_cr
          >>> bot = spiel_cr.load_bot("kuhn_poker", "resolving(iterations=50)", 0)
          >>> state = spiel_cr.load_game("kuhn_poker").new_initial_state()
          >>> for action in (1, 0):  # player 0 has the queen, player 1 the jack
          ...     state.apply_action(action)
          >>> bot.beliefs(state).opponent_range
          {'0': 0.5, '2': 0.5}
        """
        self.check_turn(state)
        decision, _ = self.resolver.subgames.decision(state)
        return self.resolver.beliefs(self._match, decision)


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


@dataclasses.dataclass(frozen=True)
class OOSConfig:
    """Settings of an `OOSBot`.

    Attributes:
      solver: Sampled algorithm; its `delta` is the share of targeted trajectories.
      iterations: Number of batches per move; with a time limit, the largest number.
      move_ms: Milliseconds per move; None for no time limit.
      init_ms: Milliseconds before the first match; None for the time of a move.
      target: Histories that trajectories are targeted at: "infoset" for those of the
        player's infoset, "subgame" for those of its subgame.
      reset_matches: Whether `restart` restores the strategy that was learned when the
        bot was made. Random numbers continue, so that matches differ.

    Raises:
      ValueError: If the solver is a full-width one or does not support targets, no
        budget is given, or a value is invalid.
    """

    solver: str = "os-mccfr(epsilon=0.4,exploration=0.01,batch=256)"
    iterations: int | None = None
    move_ms: float | None = 100.0
    init_ms: float | None = None
    target: str = "infoset"
    reset_matches: bool = False

    def __post_init__(self) -> None:
        choice.visits_only(
            find(self.solver, "solver", (MCCFR,)).config, 0, targets=True
        )
        check_choice(self.target, "target", ("infoset", "subgame"))
        if not isinstance(self.reset_matches, bool):
            raise ValueError(
                f"reset_matches={self.reset_matches!r} must be True or False"
            )
        times = self.move_ms, self.init_ms
        check_budget("resolving", "iterations", self.iterations, *times)


class OOSBot(PolicyPlayer):
    """A bot that samples the full game during matches, targeted at the current state.

    It plays online outcome sampling (Lisý et al. 2015). The learned strategy is kept
    from match to match until `reset` is called. With `reset_matches`, each match
    begins with the strategy that was learned when the bot was made.
    """

    def __init__(
        self,
        game: Game,
        player: int,
        config: OOSConfig | None = None,
        *,
        seed: int = 0,
        memory_limit: Limit = None,
    ) -> None:
        """Build the game tree, compile the solver, and solve for a while.

        Args:
          game: OpenSpiel game string, game, or game tree.
          player: The player, 0 or 1.
          config: Settings of sampling.
          seed: Seed of sampling and of the sampled actions.
          memory_limit: Largest memory for the game tree and the solver, as in `solve`.

        Raises:
          GameTooLargeError: If game tree and solver exceed the memory limit.
          ValueError: If the player or the seed is invalid, or see `build_tree`.
        """
        config = config or OOSConfig()
        solver = find(config.solver, "solver", (MCCFR,)).config
        super().__init__(player, seed=seed)
        self._tree = as_tree(game, observations=True, memory_limit=memory_limit)
        if len(histories := self._tree.infosets[player].history):
            # The index of information states is built before the first match.
            self._tree.infoset_of(self._tree.state_at(int(histories[0])))
        footprint.check(self._tree, solver, None, memory_limit)
        everywhere = np.ones(len(self._tree.histories), bool)
        announce(f"player {player}: warming up {solver.name}")
        self._solver = mccfr.make_solver(
            self._tree, config=solver, seed=seed, target=everywhere
        )
        self._subgames = None
        if config.target == "subgame":
            self._subgames = decompose(self._tree, player).player_subgame
        self._clock = Clock(config.move_ms, config.iterations)
        begin = config.move_ms if config.init_ms is None else config.init_ms
        deadline = None if begin is None else time.perf_counter() + begin / 1000
        for until, most in ((None, 1), (deadline, None)):
            # The first solve, of one iteration, measures the time of an answer.
            with self._clock.solve(self._solver, until, most):
                self._solver.average_behaviour(player)
        self._clock.restart_statistics()
        self._first = self.memory
        self._forgets = config.reset_matches
        self._matches = np.random.default_rng((seed, player))

    @property
    def statistics(self) -> Statistics:
        """Counts and times since the bot was made, in batches of trajectories."""
        return self._clock.statistics

    @property
    def memory(self) -> SolverState:
        """The solver's state, with its random numbers; for `remember`."""
        return self._solver.state

    def remember(self, memory: SolverState) -> None:
        """Restore a memory, so that the bot answers as it did with that memory."""
        self._solver.state = memory

    def restart(self) -> None:
        """Begin a match."""
        if self._forgets:
            self.reset(int(self._matches.integers(2**31)))

    def reset(self, seed: int | None = None) -> None:
        """Restore the strategy that the bot had when it was made.

        Args:
          seed: Seed of further random numbers. If None, they start again from the state
            in which the bot was made.
        """
        self.remember(self._first)
        if seed is not None:
            mccfr.reseed(self._solver, seed)

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        infoset, actions = decision_of_bot(self._tree, state)
        probabilities = self._strategy(infoset)
        return list(zip(actions, probabilities.tolist(), strict=True))

    def beliefs(self, state: pyspiel.State) -> BotBeliefs:
        """Return the opponent's range at a decision, by the learned strategy so far.

        The bot learns nothing. It has no subgames, so the other fields are None.

        Args:
          state: A state at which the bot acts.

        Raises:
          ValueError: If the bot's player does not act.
        """
        self.check_turn(state)
        infoset, _ = decision_of_bot(self._tree, state)
        other = self._solver.average_behaviour(1 - self._player)
        probabilities = opponent_range(self._tree, self._player, infoset, other)
        return BotBeliefs(self._player, probabilities)

    def _strategy(self, infoset: int) -> np.ndarray:
        compilations = mccfr.compilations()
        with self._clock.move():
            region = self._region(infoset)
            mccfr.aim(self._solver, self._tree, region)
            with self._clock.solve(self._solver, self._clock.deadline()):
                behaviour = self._solver.average_behaviour(self._player)
        self.statistics.compilations += mccfr.compilations() - compilations
        decisions = self._tree.infosets[self._player].decisions
        first = int(decisions.first_sequence[infoset])
        return behaviour[first : first + int(decisions.num_actions[infoset])]

    def _region(self, infoset: int) -> np.ndarray:
        """Return the histories that trajectories are targeted at, bool [N]."""
        histories = self._tree.histories
        wanted = np.zeros(len(self._tree.infosets[self._player]), bool)
        wanted[infoset] = True
        if self._subgames is not None and self._subgames[infoset] >= 0:
            wanted = self._subgames == self._subgames[infoset]
        region = histories.player == self._player
        region[region] = wanted[histories.infoset[region]]
        return region


class PolicyBot(PolicyPlayer):
    """A bot that plays an OpenSpiel policy.

    OpenSpiel's bot of this name returns an invalid action if the only legal action
    is 0.
    """

    def __init__(
        self, player: int, policy: openspiel_policy.Policy, *, seed: int = 0
    ) -> None:
        """Keep a policy.

        Args:
          player: The player, 0 or 1.
          policy: Any OpenSpiel policy.
          seed: Seed of the sampled actions.
        """
        super().__init__(player, seed=seed)
        self._policy = policy

    @property
    def policy(self) -> openspiel_policy.Policy:
        """The policy that the bot plays."""
        return self._policy

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        answer = self._policy.action_probabilities(state, self._player)
        name = f"policy: a {name_of(self._policy)}"
        probabilities = distribution_at(answer, state, name)
        return list(zip(state.legal_actions(), probabilities, strict=True))


def bot_of(
    player_object: Any, game: pyspiel.Game, player: int, seed: int, name: str
) -> pyspiel.Bot:
    """Return a user's bot as it is, and a user's policy as a bot.

    Args:
      player_object: A bot, or any policy of `as_policy`.
      game: The sequential game.
      player: The player whose moves the bot makes.
      seed: Seed of the actions that a policy's bot draws.
      name: Name of the argument that is or made the object, for errors.

    Raises:
      ValueError: If the object is neither a bot nor a policy, or is a bot of the other
        player.
    """
    if (bot := as_bot(player_object)) is not None:
        check_seat(bot, player, name)
        return bot
    policy = as_policy(player_object, game, name)
    if policy is None:
        raise ValueError(
            f"{name} made a {type(player_object).__name__}; return a pyspiel.Bot, a "
            f"policy, a pair of policies, or a function of a state that returns "
            f"probabilities"
        )
    return PolicyBot(player, policy, seed=seed)


def policy_of(bot: pyspiel.Bot) -> openspiel_policy.Policy | None:
    """Return the policy that a `PolicyBot` plays; None for other bots."""
    return bot.policy if isinstance(bot, PolicyBot) else None


def uniform_bot(game: Game, player: int, *, seed: int = 0) -> PolicyBot:
    """Return a bot that plays all legal actions with equal probability."""
    policy = openspiel_policy.UniformRandomPolicy(open_game(game).game)
    return PolicyBot(player, policy, seed=seed)
