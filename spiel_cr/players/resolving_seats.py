"""A resolving player's seat: which decision a state is, in either form of the game."""

import functools

import numpy as np
import pyspiel

from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.gameshrink.merging import merged
from spiel_cr.resolving.clock import Statistics
from spiel_cr.resolving.config import ResolvingConfig
from spiel_cr.resolving.public_resolver import PublicResolver, check_public
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.signals import finding, loading
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.public_nodes import Finder


class InfosetFinder:
    """Finds infosets of a compiled game by the player's own string alone."""

    def __init__(self, tree: CompiledGame, player: int) -> None:
        """Sorts the player's infosets."""
        self._tree, self._player = tree, player
        keys = tree.infosets[player].keys
        self._numbers = {key: number for number, key in enumerate(keys)}

    def infoset(self, state: pyspiel.State) -> int:
        """The player's infoset; raises ValueError in states of another game."""
        key = state.information_state_string(self._player)
        infoset = self._numbers.get(key)
        if infoset is None:
            raise ValueError(
                f"player {self._player} has no information state {key!r} in "
                f"{self._tree.game}; the bot was made for another game"
            )
        return infoset

    def named(self, infoset: int, probabilities: np.ndarray) -> list[tuple[int, float]]:
        """OpenSpiel's actions at an infoset with their probabilities, float64 [A]."""
        infosets = self._tree.infosets[self._player]
        first = int(infosets.decisions.first_sequence[infoset]) - 1
        actions = infosets.actions[first : first + len(probabilities)].tolist()
        return list(zip(actions, probabilities.tolist(), strict=True))


class CompiledSeat:
    """A seat at a compiled game.

    Attributes:
      resolver: what it resolves with.
    """

    def __init__(
        self, tree: CompiledGame, player: int, config: ResolvingConfig, *, seed: int
    ) -> None:
        """Warms up, see `Resolver`."""
        self.resolver = Resolver(tree, player, config, seed=seed)
        self._finder = InfosetFinder(tree, player)
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self.resolver.statistics

    def restart(self) -> None:
        """A new match."""
        self._match = self.resolver.match()

    def policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        """Legal actions and their probabilities at a decision of the player."""
        infoset = self._finder.infoset(state)
        return self._finder.named(infoset, self.resolver.strategy(self._match, infoset))


class SignalSeat:
    """A seat at a signal game.

    It looks at the players' actions, which are public, and at the player's own signal.

    Attributes:
      resolver: what it resolves with.
    """

    def __init__(self, game: SignalGame, player: int, config: ResolvingConfig) -> None:
        """Warms up, see `PublicResolver`."""
        self.resolver = PublicResolver(game, player, config)
        self._finder = Finder(game)
        self.restart()

    @property
    def statistics(self) -> Statistics:
        """What it did since it was made."""
        return self.resolver.statistics

    def restart(self) -> None:
        """A new match."""
        self._match = self.resolver.match()

    def policy(self, state: pyspiel.State) -> list[tuple[int, float]]:
        """Legal actions and their probabilities at a decision of the player."""
        node = self._finder.of_state(state)
        actions = self._finder.actions(node)
        if actions != state.legal_actions():
            raise ValueError(
                f"state: after the actions {state.history()} the legal actions are "
                f"{state.legal_actions()}, and {self.resolver.game.game} has {actions} "
                f"there; the bot was made for another game"
            )
        signal = self.resolver.game.reader.signal(state, self.resolver.player)
        probabilities = self.resolver.strategy(self._match, node, signal)
        return list(zip(actions, probabilities.tolist(), strict=True))


def signals_to_resolve(
    game: str | pyspiel.Game | CompiledGame | SignalGame, config: ResolvingConfig
) -> SignalGame | None:
    """The signal game that a player resolves; None: it resolves the compiled one.

    Args:
      game: a signal game, or one that declares its signals and is large.
      config: settings; with some of them (a depth, say) no signal game is resolved.

    Raises:
      ValueError: a signal game is given, and settings that only compiled games know.
    """
    if isinstance(game, SignalGame):
        game.check()
        check_public(config)
        return game
    if isinstance(game, CompiledGame) or not suits_signals(config):
        return None
    loaded = load_game(game)
    return _shared(str(loaded)) if finding.prefer(loaded).signals else None


def suits_signals(config: ResolvingConfig) -> bool:
    """Whether signal games are resolved with such settings."""
    try:
        check_public(config)
    except ValueError:
        return False
    return True


@functools.lru_cache(maxsize=1)
def _shared(game: str) -> SignalGame:
    """The signal game of both seats, and of all bots of a tournament."""
    return merged(loading.signal_game(game))
