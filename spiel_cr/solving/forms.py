"""The forms in which a game is solved: compiled, history by history, or as signals.

`whole_game.solve` takes what it needs from a `Whole` and knows no form.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyspiel

from spiel_cr.cfr import cfr
from spiel_cr.cfr.abstraction import (
    Buckets,
    Labels,
    first_members,
    labels_by_number,
    labels_of,
    of_both,
)
from spiel_cr.cfr.config import CFRConfig, MCCFRConfig
from spiel_cr.cfr.solver import Solver
from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.memory import Limit
from spiel_cr.compilation.compiler import Game, as_compiled
from spiel_cr.compilation.loading import load_game
from spiel_cr.compilation.tree import TERMINAL, CompiledGame
from spiel_cr.first_order import solvers as first_order
from spiel_cr.first_order.config import FirstOrderConfig
from spiel_cr.gameshrink.merging import merged
from spiel_cr.mccfr import mccfr
from spiel_cr.policies.result import Result, SolveResult
from spiel_cr.sequence_form.layout import SequenceForm
from spiel_cr.signals import footprint as signal_footprint
from spiel_cr.signals import public_nodes
from spiel_cr.signals.finding import find_signals, naming_signals, prefer
from spiel_cr.signals.form import form_of
from spiel_cr.signals.game import SignalGame
from spiel_cr.signals.result import SignalResult
from spiel_cr.solving import footprint, lp

# A game in any of the ways in which users give it.
AnyGame: TypeAlias = Game | SignalGame
# Settings, or "lp".
Algorithm: TypeAlias = CFRConfig | MCCFRConfig | FirstOrderConfig | str
# Of solvers that iterate.
Settings: TypeAlias = CFRConfig | MCCFRConfig | FirstOrderConfig

_ONLY_COMPILED = (
    "{} needs the compiled game, for signal games have no information-state strings; "
    "give form='compiled', or buckets as numbers by logical infoset"
)
_SAMPLES = (
    "algorithm={!r} samples histories, and in the form of signals there are none; take "
    "a full-width one such as 'cfr+' or 'dcfr', or give form='compiled'"
)


class Whole(Protocol):
    """A whole game in one of the forms, as solving it needs it."""

    @property
    def form(self) -> SequenceForm:
        """The game in sequence form."""

    @property
    def source(self) -> CompiledGame | SignalGame:
        """What the form was made of, for checkpoints."""

    def check_memory(
        self, algorithm: Algorithm, dtype: np.typing.DTypeLike | None, limit: Limit
    ) -> None:
        """Raises GameTooLargeError where solving would take more than the limit."""

    def labels(self, buckets: Buckets | None, imperfect_recall: bool) -> Labels:
        """Numbers the buckets that a user gave; raises ValueError."""

    def make_solver(self, config: Settings, seed: int, **options: Any) -> Solver:
        """A solver by `cfr`, `mccfr` or `first_order`, with their options."""

    def equilibrium(self) -> lp.Solution:
        """The solution by linear programming."""

    def result(self, dtype: np.dtype, **fields: Any) -> Result:
        """What solving gave; fields are those of `Result`."""


@dataclasses.dataclass(frozen=True)
class CompiledWhole:
    """A compiled game as `Whole`."""

    source: CompiledGame

    @property
    def form(self) -> SequenceForm:
        return self.source.form

    def check_memory(
        self, algorithm: Algorithm, dtype: np.typing.DTypeLike | None, limit: Limit
    ) -> None:
        footprint.check(self.source, algorithm, dtype, limit)

    def labels(self, buckets: Buckets | None, imperfect_recall: bool) -> Labels:
        return labels_of(self.source, buckets, imperfect_recall=imperfect_recall)

    def make_solver(self, config: Settings, seed: int, **options: Any) -> Solver:
        if isinstance(config, MCCFRConfig):
            return mccfr.make_solver(self.source, config=config, seed=seed, **options)
        if isinstance(config, FirstOrderConfig):
            return _make_first_order(self.form, config, options)
        return cfr.make_solver(self.form, config=config, **options)

    def equilibrium(self) -> lp.Solution:
        histories = self.source.histories
        utility = histories.utility[histories.player == TERMINAL]
        return lp.equilibrium(self.form, utility)

    def result(self, dtype: np.dtype, **fields: Any) -> SolveResult:
        return SolveResult(tree=self.source, **fields)


@dataclasses.dataclass(frozen=True)
class SignalWhole:
    """A signal game as `Whole`."""

    source: SignalGame
    form: SequenceForm

    def check_memory(
        self, algorithm: Algorithm, dtype: np.typing.DTypeLike | None, limit: Limit
    ) -> None:
        if not isinstance(algorithm, str):
            return  # `build` did, before anything was laid out
        need = memory.BASE_BYTES + footprint.program_bytes(self.form)
        remedy = "take cfr+, or choose smaller game parameters"
        memory.check_need(f"{algorithm} on {self.source.game}", need, limit, remedy)

    def labels(self, buckets: Buckets | None, imperfect_recall: bool) -> Labels:
        if imperfect_recall:
            raise ValueError(_ONLY_COMPILED.format("imperfect_recall=True"))
        found = []
        for player, given in enumerate(of_both(buckets)):
            if isinstance(given, Mapping):
                raise ValueError(_ONLY_COMPILED.format(f"buckets[{player}] by string"))
            if given is not None:
                infosets = len(self.form.decisions[player])
                given = labels_by_number(given, infosets, player)
                _check_actions(self.source, given, player)
            found.append(given)
        return found[0], found[1]

    def make_solver(self, config: Settings, seed: int, **options: Any) -> Solver:
        if isinstance(config, MCCFRConfig):
            raise ValueError(_SAMPLES.format(config.name))
        if isinstance(config, FirstOrderConfig):
            return _make_first_order(self.form, config, options)
        return cfr.make_solver(self.form, config=config, **options)

    def equilibrium(self) -> lp.Solution:
        game = self.source.game
        return lp.equilibrium(
            self.form, np.array([game.min_utility(), game.max_utility()])
        )

    def result(self, dtype: np.dtype, **fields: Any) -> SignalResult:
        for name in ("average", "current"):
            if fields[name] is not None:
                first, second = fields[name]
                fields[name] = first.astype(dtype), second.astype(dtype)
        return SignalResult(
            signals=self.source, laid_out=self.form, dtype=dtype, **fields
        )


class Choice(NamedTuple):
    """The form in which a game is to be solved.

    Attributes:
      game: as it was given, strings loaded.
      form: "compiled" or "signals".
      why: half a sentence; empty where there was no choice.
    """

    game: pyspiel.Game | CompiledGame | SignalGame
    form: str
    why: str = ""


def choose(
    game: AnyGame,
    form: str,
    algorithm: Algorithm,
    *,
    buckets: Buckets | None = None,
    imperfect_recall: bool = False,
    vectorised: bool = True,
    memory_limit: Limit = None,
    checkpoint_path: atomic.Path | None = None,
) -> Choice:
    """Chooses a form and builds nothing; takes a second at most.

    Args:
      game: in any form.
      form: one of `finding.FORMS`.
      algorithm: settings, or "lp".
      buckets: as for `solve`, and so are all others.

    Raises:
      pyspiel.SpielError, ValueError: as `load_game`; or the form cannot do what is
        asked for.
    """
    if isinstance(game, SignalGame):
        game.check()
        if form == "compiled":
            raise ValueError(
                f"form='compiled': {game.game} was given as a signal game; give the "
                f"OpenSpiel game itself, or leave form out"
            )
        form = "signals"
    elif isinstance(game, CompiledGame):
        form = "compiled" if form == "auto" else form
    else:
        game = load_game(game)
    needs = _needs_histories(algorithm, buckets, imperfect_recall)
    if form == "signals" and needs:
        raise ValueError(needs)
    if form != "auto" or isinstance(game, CompiledGame | SignalGame):
        return Choice(game, form)
    begun = _begun_as(checkpoint_path)
    if begun is not None:
        return Choice(game, begun, f"{checkpoint_path} was begun so")
    if needs or algorithm == "lp" or not vectorised:
        return Choice(game, "compiled")
    preference = prefer(game, memory_limit)
    form = "signals" if preference.signals else "compiled"
    return Choice(game, form, preference.why)


def build(
    choice: Choice,
    algorithm: Algorithm,
    *,
    dtype: np.typing.DTypeLike | None = None,
    vectorised: bool = True,
    memory_limit: Limit = None,
    cache: atomic.Path | None = None,
    progress: bool = False,
) -> Whole:
    """Builds a game in the form that was chosen.

    Args:
      choice: of `choose`.
      algorithm: settings, or "lp".
      dtype: as for `solve`, and so are all others.

    Raises:
      GameTooLargeError: it takes more memory than the limit; of a signal game this is
        told before its form is laid out.
      ValueError: the game is not for us, or not of the form.
    """
    game = choice.game
    if choice.form == "signals":
        if not isinstance(game, SignalGame):
            game = merged(
                find_signals(
                    game, memory_limit=memory_limit, cache=cache, progress=progress
                )
            )
        if not isinstance(algorithm, str):
            kind = dtype or np.float64
            more = footprint.more_on_signals(game, algorithm, kind)
            signal_footprint.check(game, kind, memory_limit, more=more)
        memory.trim()
        whole = SignalWhole(game, form_of(game))
        memory.trim()
        return whole
    assert not isinstance(game, SignalGame)
    with naming_signals(game):
        tree = as_compiled(
            game,
            vectorised=vectorised,
            memory_limit=memory_limit,
            cache=cache,
            progress=progress,
        )
    return CompiledWhole(tree)


def _make_first_order(
    form: SequenceForm, config: FirstOrderConfig, options: Mapping[str, Any]
) -> Solver:
    """A solver that has no regrets, and so no buckets (`solve` refuses them)."""
    given = {name: value for name, value in options.items() if name != "buckets"}
    return first_order.make_solver(form, config=config, **given)


def _needs_histories(
    algorithm: Algorithm, buckets: Buckets | None, imperfect_recall: bool
) -> str | None:
    """Why what is asked for needs the compiled game; None: it does not."""
    if isinstance(algorithm, MCCFRConfig):
        return _SAMPLES.format(algorithm.name)
    if imperfect_recall:
        return _ONLY_COMPILED.format("imperfect_recall=True")
    for player, given in enumerate(buckets or ()):
        if isinstance(given, Mapping):
            return _ONLY_COMPILED.format(f"buckets[{player}] by string")
    return None


def _begun_as(path: atomic.Path | None) -> str | None:
    """The form of a checkpoint; None: there is none, or it cannot be read."""
    if path is None or not os.path.isfile(path):
        return None
    try:
        metadata = storage.load_metadata(path)
    except (OSError, ValueError):  # who opens it says so
        return None
    if metadata.get("kind") != "checkpoint":
        return None
    return "signals" if metadata.get("form") == "signals" else "compiled"


def _check_actions(signals: SignalGame, labels: np.ndarray, player: int) -> None:
    """Raises ValueError where a bucket holds infosets with different actions."""
    decisions = public_nodes.public_decisions(signals, player)
    finder = public_nodes.Finder(signals)
    kinds: dict[tuple[int, ...], int] = {}
    kind = [
        kinds.setdefault(tuple(finder.actions(node)), len(kinds))
        for node in decisions.node.tolist()
    ]
    kind_of = np.repeat(np.array(kind, np.int32), decisions.num_signals)
    odd = kind_of != kind_of[first_members(labels)[labels]]
    if odd.any():
        infoset = int(np.argmax(odd))
        usual = int(first_members(labels)[labels[infoset]])
        raise ValueError(
            f"{signals.game}: infosets {usual} and {infoset} of player {player} are in "
            f"one bucket and have different legal actions; put them into buckets of "
            f"their own"
        )
