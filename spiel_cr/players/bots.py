"""Players of compiled games, and of signal games, for matches, as OpenSpiel bots.

Bots are handed the true state of the game. `ResolvingBot` and `OOSBot` look at their
own information state string only, or at the public actions and their own signal;
`PolicyBot` hands the state to its policy.
"""

import dataclasses
import time
from typing import cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common.checks import check_choice
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import announce
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.tree.compiler import Game, as_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.policies.policy_adapters import name_of
from spiel_cr.policies.queries import distribution
from spiel_cr.resolving.clock import Clock, Statistics, check_budget
from spiel_cr.resolving.continual import need_of
from spiel_cr.resolving.decomposition import decompose
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.resolving.tree_subgames import decision_of_bot
from spiel_cr.solvers import footprint
from spiel_cr.solvers.algorithms import MCCFR, find
from spiel_cr.solvers.cfr.solver import State
from spiel_cr.solvers.mccfr import choice, mccfr
from spiel_cr.solvers.representation import represent


def build_for_bot(game: Game, memory_limit: Limit = None) -> GameTree:
    """Compiles a game for a bot, if it is not compiled yet.

    Args:
      game: OpenSpiel game string, game, or compiled game.
      memory_limit: as for `build_tree`.

    Raises:
      GameTooLargeError: the game would take more memory than the limit.
    """
    return as_tree(game, observations=True, memory_limit=memory_limit)


class ResolvingBot(PolicyPlayer):
    """Plays by general continual resolving, see `Resolver`.

    Attributes:
      resolver: what it resolves with, on the compiled game or its signals.
    """

    def __init__(
        self,
        game: Game | PublicTreeGame,
        player: int,
        config: ResolvingConfig | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Warms up: compiles the game and all programs, and solves the whole game once.

        Args:
          game: OpenSpiel game string, game, compiled game (with `observations=True`),
            or signal game. A large game that declares its signals is played in their
            form, if the settings allow that.
          player: the seat, 0 or 1.
          config: how it resolves; None: CFR+ for 100 ms per move.
          seed: of the actions that it draws.

        Raises:
          pyspiel.SpielError, ValueError: as `resolve`.
        """
        super().__init__(player, seed=seed)
        config = config or ResolvingConfig(move_ms=100)
        form, _ = represent(game, None, need_of(config))
        resolved = cast(GameTree | PublicTreeGame, form)
        self.resolver = Resolver(resolved, player, config, seed=seed)
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self.resolver.statistics

    def restart(self) -> None:
        """A new match."""
        self._match = self.resolver.match()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        decision, actions = self.resolver.subgames.decision(state)
        probabilities = self.resolver.strategy(self._match, decision)
        return list(zip(actions, probabilities.tolist(), strict=True))


@dataclasses.dataclass(frozen=True)
class OOSConfig:
    """How an `OOSBot` samples.

    Attributes:
      solver: sampled algorithm; its `delta` is the share of aimed trajectories.
      iterations: batches per move; at most, where there is a clock.
      move_ms: milliseconds per move; None: no clock.
      init_ms: milliseconds before the first match; None: as long as a move.
      target: "infoset": what the player knows, or "subgame": whatever the opponent
        cannot tell from it, and so on.
      forget_matches: `restart` drops what the last match taught. The random numbers of
        sampling go on, so that matches differ.

    Raises:
      ValueError: a full-width solver, one that takes no targets, no budget, or a bad
        value.
    """

    solver: str = "os-mccfr(epsilon=0.4,exploration=0.01,batch=256)"
    iterations: int | None = None
    move_ms: float | None = 100.0
    init_ms: float | None = None
    target: str = "infoset"
    forget_matches: bool = False

    def __post_init__(self) -> None:
        choice.visits_only(
            find(self.solver, "solver", (MCCFR,)).config, 0, targets=True
        )
        check_choice(self.target, "target", ("infoset", "subgame"))
        if not isinstance(self.forget_matches, bool):
            raise ValueError(
                f"forget_matches={self.forget_matches!r} must be True or False"
            )
        times = self.move_ms, self.init_ms
        check_budget("resolving", "iterations", self.iterations, *times)


class OOSBot(PolicyPlayer):
    """Keeps solving the whole game by sampling, aimed at where the match is.

    Online outcome sampling (Lisý et al. 2015): what was learned stays, also from match
    to match, until `forget` is called; with `forget_matches` each match begins with
    what was learned when the bot was made.
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
        """Compiles the game and the program, and solves for a while.

        Args:
          game: OpenSpiel game string, game, or compiled game.
          player: the seat, 0 or 1.
          config: how it samples; None: the defaults.
          seed: of sampling and of the actions that it draws.
          memory_limit: refuse what would take more, as in `solve`.

        Raises:
          GameTooLargeError: game and solver would take more than the limit.
          ValueError: a bad seat or seed, or as of `build_for_bot`.
        """
        config = config or OOSConfig()
        solver = find(config.solver, "solver", (MCCFR,)).config
        super().__init__(player, seed=seed)
        self._tree = build_for_bot(game, memory_limit)
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
            # The first time tells what an answer takes besides iterating.
            with self._clock.solve(self._solver, until, most):
                self._solver.average_behaviour(player)
        self._clock.restart_statistics()
        self._first = self.memory
        self._forgets = config.forget_matches
        self._matches = np.random.default_rng((seed, player))

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made; `iterations` are batches of trajectories."""
        return self._clock.statistics

    @property
    def memory(self) -> State:
        """What it learned so far, and its random numbers to come; for `remember`."""
        return self._solver.state

    def remember(self, memory: State) -> None:
        """Puts a memory of this bot back: it answers as it did when it had that."""
        self._solver.state = memory

    def restart(self) -> None:
        """A new match."""
        if self._forgets:
            self.forget(int(self._matches.integers(2**31)))

    def forget(self, seed: int | None = None) -> None:
        """What it learned since it was made is dropped.

        Args:
          seed: of its random numbers to come; None: those that it was made with.
        """
        self.remember(self._first)
        if seed is not None:
            mccfr.reseed(self._solver, seed)

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        infoset, actions = decision_of_bot(self._tree, state)
        probabilities = self._strategy(infoset)
        return list(zip(actions, probabilities.tolist(), strict=True))

    def _strategy(self, infoset: int) -> np.ndarray:
        programs = mccfr.programs()
        with self._clock.move():
            region = self._region(infoset)
            mccfr.aim(self._solver, self._tree, region)
            with self._clock.solve(self._solver, self._clock.deadline()):
                behaviour = self._solver.average_behaviour(self._player)
        self.statistics.programs_compiled += mccfr.programs() - programs
        decisions = self._tree.infosets[self._player].decisions
        first = int(decisions.first_sequence[infoset])
        return behaviour[first : first + int(decisions.num_actions[infoset])]

    def _region(self, infoset: int) -> np.ndarray:
        """bool [N], where the trajectories shall go."""
        histories = self._tree.histories
        wanted = np.zeros(len(self._tree.infosets[self._player]), bool)
        wanted[infoset] = True
        if self._subgames is not None and self._subgames[infoset] >= 0:
            wanted = self._subgames == self._subgames[infoset]
        region = histories.player == self._player
        region[region] = wanted[histories.infoset[region]]
        return region


class PolicyBot(PolicyPlayer):
    """Plays a given OpenSpiel policy.

    OpenSpiel's own bot of this name returns an invalid action where the only legal one
    is 0.
    """

    def __init__(
        self, player: int, policy: openspiel_policy.Policy, *, seed: int = 0
    ) -> None:
        """Takes the policy as it is.

        Args:
          player: the seat.
          policy: any OpenSpiel policy.
          seed: of the actions that it draws.
        """
        super().__init__(player, seed=seed)
        self._policy = policy

    @property
    def policy(self) -> openspiel_policy.Policy:
        """What it plays."""
        return self._policy

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        self.check_turn(state)
        legal = state.legal_actions()
        probabilities = distribution(
            self._policy.action_probabilities(state, self._player),
            legal,
            state.num_distinct_actions(),
            lambda: (
                f"policy: a {name_of(self._policy)} after the actions {state.history()}"
            ),
        )
        return list(zip(legal, probabilities, strict=True))


def seated(
    player: pyspiel.Bot | openspiel_policy.Policy, index: int, seed: int
) -> pyspiel.Bot:
    """Return a bot as it is, and a policy as a bot.

    Args:
      player: The bot or policy.
      index: The player whose moves the bot makes.
      seed: Seed of the actions that a policy's bot draws.
    """
    if isinstance(player, pyspiel.Bot):
        return player
    return PolicyBot(index, player, seed=seed)


def policy_of(bot: pyspiel.Bot) -> openspiel_policy.Policy | None:
    """Return the policy that a `PolicyBot` plays; None for other bots."""
    return bot.policy if isinstance(bot, PolicyBot) else None


def uniform_bot(game: Game, player: int, *, seed: int = 0) -> PolicyBot:
    """A bot that plays all legal actions alike."""
    policy = openspiel_policy.UniformRandomPolicy(open_game(game).game)
    return PolicyBot(player, policy, seed=seed)
