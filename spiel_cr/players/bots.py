"""Fourth stage: players for matches, as OpenSpiel bots.

Bots are handed the true state of the game. `ResolvingBot` and `OOSBot` look at their
own information state string only; `PolicyBot` hands the state to its policy.
"""

import time

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.mccfr import mccfr, sample_tree
from spiel_cr.policies.bot_base import PolicyPlayer
from spiel_cr.resolving import clock, decomposition, resolver


def check_whole(game: Game) -> None:
    """Raises ValueError for a game compiled in part: matches go on where it ends."""
    if isinstance(game, CompiledGame) and game.frontier is not None:
        raise ValueError(
            f"{game.game} was compiled in part, so a player made of it would not know "
            f"the rest; give the game itself, with resolving(max_histories=...) if it "
            f"is too large to be compiled whole"
        )


class _Mind:
    """A compiled game as a player meets it: infosets by what it is told."""

    def __init__(self, tree: CompiledGame, player: int) -> None:
        check_whole(tree)
        self.tree = tree
        self.player = player
        keys = tree.infosets[player].keys
        self._infosets = {key: number for number, key in enumerate(keys)}

    def infoset(self, state: pyspiel.State) -> int:
        """The player's infoset, by its information state string alone."""
        key = state.information_state_string(self.player)
        try:
            return self._infosets[key]
        except KeyError:
            raise ValueError(
                f"player {self.player} has no information state {key!r} in "
                f"{self.tree.game}; the bot was made for another game"
            ) from None

    def actions(self, infoset: int) -> list[int]:
        """OpenSpiel's legal actions there."""
        infosets = self.tree.infosets[self.player]
        first = int(infosets.decisions.first_sequence[infoset]) - 1
        count = int(infosets.decisions.num_actions[infoset])
        return [int(action) for action in infosets.actions[first : first + count]]


class ResolvingBot(PolicyPlayer):
    """Plays by general continual resolving, see `resolver.py`.

    Attributes:
      resolver: its mind; `resolver.statistics` tells what it did.
    """

    def __init__(
        self,
        game: Game,
        player: int,
        config: resolver.ResolvingConfig | None = None,
        *,
        seed: int = 0,
    ) -> None:
        """Warms up: compiles the game and all programs, and solves the whole game once.

        Args:
          game: OpenSpiel game string, game, or compiled game (with
            `observations=True`).
          player: the seat, 0 or 1.
          config: how it thinks; None: CFR+ for 100 ms a move.
          seed: of the actions that it draws.

        Raises:
          pyspiel.SpielError, ValueError: as `resolve`.
        """
        super().__init__(player, seed=seed)
        tree = as_compiled(game, observations=True)
        self._mind = _Mind(tree, player)
        config = config or resolver.ResolvingConfig(move_ms=100)
        self.resolver = resolver.Resolver(tree, player, config, seed=seed)
        self._match = self.resolver.match()

    def restart(self) -> None:
        """A new match."""
        self._match = self.resolver.match()

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        infoset = self._mind.infoset(state)
        probabilities = self.resolver.strategy(self._match, infoset)
        return list(
            zip(self._mind.actions(infoset), probabilities.tolist(), strict=True)
        )


class OOSBot(PolicyPlayer):
    """Keeps solving the whole game by sampling, aimed at where the match is.

    Online outcome sampling (Lisý et al. 2015): what was learned stays, also from match
    to match.
    """

    def __init__(
        self,
        game: Game,
        player: int,
        *,
        solver: str = "os-mccfr(epsilon=0.4,exploration=0.01,batch=256)",
        move_ms: float | None = 100,
        iterations: int | None = None,
        init_ms: float | None = None,
        target: str = "infoset",
        iteration_weight: float = 1.0,
        seed: int = 0,
    ) -> None:
        """Compiles the game and the program, and solves for a while.

        Args:
          game: OpenSpiel game string, game, or compiled game.
          player: the seat, 0 or 1.
          solver: sampled algorithm; its `delta` is the share of aimed trajectories.
          move_ms: milliseconds a move; None: no clock.
          iterations: batches a move; at most, where there is a clock.
          init_ms: milliseconds before the first match; None: as long as a move.
          target: "infoset": what the player knows, or "subgame": whatever the opponent
            cannot tell from it, and so on.
          iteration_weight: weight of each batch in a match, relative to those before
            the first match.
          seed: of sampling and of the actions that it draws.

        Raises:
          ValueError: a full-width solver, no budget, or an unknown target.
        """
        super().__init__(player, seed=seed)
        config = algorithm_lib.parse_sampled(solver)
        if target not in ("infoset", "subgame"):
            raise ValueError(f"target={target!r} must be infoset or subgame")
        # The same checks as for a resolving player.
        resolver.ResolvingConfig(
            iterations=iterations, move_ms=move_ms, init_ms=init_ms
        )
        tree = as_compiled(game, observations=True)
        self._mind = _Mind(tree, player)
        layout = sample_tree.build(tree, target=np.ones(len(tree.histories), bool))
        self._solver = mccfr.make_solver(tree, config=config, seed=seed, layout=layout)
        self._target = target
        self._emphasis = iteration_weight
        self._subgames = None
        if target == "subgame":
            self._subgames = decomposition.decompose(tree, player).own_subgame
        self._clock = clock.Clock(move_ms, iterations)
        begin = move_ms if init_ms is None else init_ms
        deadline = None if begin is None else time.perf_counter() + begin / 1000
        # A bad iteration_weight is refused now.
        mccfr.aim(self._solver, tree, None, iteration_weight)
        mccfr.aim(self._solver, tree, None)
        for until, most in ((None, 1), (deadline, None)):
            # The first time tells what an answer takes besides iterating.
            with self._clock.solve(self._solver, until, most):
                self._solver.average_behaviour(player)
        self._clock.restart_statistics()

    @property
    def statistics(self) -> clock.Statistics:
        """What it did since it was made; `iterations` are batches of trajectories."""
        return self._clock.statistics

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        infoset = self._mind.infoset(state)
        programs = mccfr.programs()
        with self._clock.move():
            region = self._region(infoset)
            mccfr.aim(self._solver, self._mind.tree, region, self._emphasis)
            with self._clock.solve(self._solver, self._clock.deadline()):
                behaviour = self._solver.average_behaviour(self._mind.player)
        self.statistics.programs_compiled += mccfr.programs() - programs
        decisions = self._mind.tree.infosets[self._mind.player].decisions
        first = int(decisions.first_sequence[infoset])
        actions = self._mind.actions(infoset)
        probabilities = behaviour[first : first + len(actions)]
        return list(zip(actions, probabilities.tolist(), strict=True))

    def _region(self, infoset: int) -> np.ndarray:
        """bool [N], where the trajectories shall go."""
        histories = self._mind.tree.histories
        mine = histories.player == self._mind.player
        number = -1 if self._subgames is None else self._subgames[infoset]
        if self._subgames is None or number < 0:
            return mine & (histories.infoset == infoset)
        region, at = np.zeros(len(mine), bool), np.flatnonzero(mine)
        region[at] = self._subgames[histories.infoset[at]] == number
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

    def get_policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        given = self._policy.action_probabilities(state, self._player)
        return [(a, float(given.get(a, 0.0))) for a in state.legal_actions()]


def uniform_bot(game: Game, player: int, *, seed: int = 0) -> PolicyBot:
    """Plays all legal actions alike."""
    loaded = game.game if isinstance(game, CompiledGame) else game
    if isinstance(loaded, str):
        loaded = pyspiel.load_game(loaded)
    return PolicyBot(player, openspiel_policy.UniformRandomPolicy(loaded), seed=seed)
