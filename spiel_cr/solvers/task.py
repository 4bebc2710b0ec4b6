"""Class `Task`: algorithm, goal and options of a solve, checked before any work.

The abilities of a family of algorithms are data; `algorithms` lists the families.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import atomic, memory
from spiel_cr.common.network_fits import optax_package
from spiel_cr.solvers.cfr.bucket_labels import Buckets
from spiel_cr.solvers.cfr.cfr_config import CFRConfig, MCCFRConfig
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.mccfr import choice
from spiel_cr.solvers.representation import (
    BUILT,
    PHANTOM,
    PUBLIC_TREE,
    SIMULATOR,
    TREE,
    FormRequirements,
    GameOptions,
    RepresentedGame,
    checkpoint_form,
)
from spiel_cr.solvers.run import Checkpoint, Goal

_ONLY_TREE = (
    "{} needs the game tree, because public-tree games have no information state "
    "strings; use form='tree', or buckets as numbers by logical infoset"
)
_ONLY_SIMULATED = (
    "hand_buckets={!r}: hand buckets are supported only for simulated games; use "
    "form='simulator' and an algorithm such as 'es-mccfr(averaging=sampled)'"
)
_ONLY_TREES = (
    "form='phantom': infosets cannot share regrets in the phantom form; leave buckets "
    "and imperfect_recall out, or use form='tree'"
)


# Makes a solver for a represented game of one form, and raises GameTooLargeError,
# ValueError and ImportError as `solve` does.
Maker: TypeAlias = Callable[[Any, "Task"], IterativeSolver]


class Family(NamedTuple):
    """Algorithms with the same abilities.

    Attributes:
      name: Adjective that describes its algorithms.
      presets: Settings by the names of algorithms.
      makers: Makers of solvers by the forms that it can solve.
      rejected: Error messages by form, for each form that it cannot solve, or solves
        only if the caller names the form; "{!r}" is replaced by the algorithm.
      dtypes: Types of arithmetic; the first one is the default.
      simulated: Function from a preset with parameters, or settings, to the settings
        for simulated games; it raises ValueError if a setting needs a game tree. None:
        the family does not solve simulated games.
      usual: Number of iterations if the goal has no stopping criterion.
      without: Names of the options that it does not support, separated by spaces.
      limitation: Reason, as half a sentence for error messages.
      iterates: Whether it can be stopped, evaluated on the way, and resumed.
      networks: Whether it trains networks.
    """

    name: str
    presets: Mapping[str, Any]
    makers: Mapping[str, Maker]
    rejected: Mapping[str, str]
    dtypes: tuple[str, ...] = ("float64", "float32")
    simulated: Callable[[Any], Any] | None = None
    usual: int = 1000
    without: str = ""
    limitation: str = ""
    iterates: bool = True
    networks: bool = False

    @property
    def samples(self) -> bool:
        """Whether it can sample simulated games."""
        return SIMULATOR in self.makers


class Algorithm(NamedTuple):
    """An algorithm with its settings.

    Attributes:
      family: Its abilities.
      config: Its settings for represented games; "lp" has none.
      specification: The algorithm as the caller specified it.
    """

    family: Family
    config: Any
    specification: Any

    @property
    def name(self) -> str:
        """Name for messages."""
        return self.config if isinstance(self.config, str) else self.config.name

    def simulated_config(self) -> Any:
        """Return the settings for simulated games.

        Raises:
          ValueError: If a setting needs a game tree.
        """
        read = self.family.simulated
        return self.config if read is None else read(self.specification)


@dataclasses.dataclass(frozen=True)
class Task:
    """Checked arguments of `solve`, without the game.

    Attributes:
      algorithm: The algorithm with its settings.
      goal: Stopping criteria.
      options: Options of the representation.
      checkpoint: Checkpoint of the run.
      dtype: Arithmetic; None: the algorithm's default.
      seed: Seed for all random choices.
    """

    algorithm: Algorithm
    goal: Goal = Goal()
    options: GameOptions = GameOptions()
    checkpoint: Checkpoint | None = None
    dtype: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        family, text = self.algorithm.family, self.algorithm.specification
        if changed := self._changed(family.without):
            raise ValueError(
                f"{changed}: algorithm={text!r} {family.limitation}; leave out "
                f"{changed.partition('=')[0]}, or choose one such as 'cfr+'"
            )
        if self.options.locks is not None and self._shares:
            raise ValueError(
                "locks: infosets that share regrets cannot be locked; leave buckets "
                "and imperfect_recall out"
            )
        if _reads_tensors(self.algorithm.config):
            optax_package()
        if error := self.need().rejected.get(self.options.form):
            raise ValueError(error)

    def _changed(self, names: str) -> str:
        """Return the first of some options that differs from its default.

        Args:
          names: Names of options, of the goal or of the task, separated by spaces.

        Returns:
          The option as in "dtype='float32'"; empty if all have their defaults.
        """
        chosen = {**vars(self.options), **vars(self.goal), **vars(self)}
        defaults = {**vars(GameOptions()), **vars(Goal())}
        for name in names.split():
            value, default = chosen[name], defaults.get(name)
            # Arrays cannot be compared with None.
            if value is not default and (default is None or value != default):
                return f"{name}={value!r}"
        return ""

    @property
    def _shares(self) -> bool:
        """Whether infosets share regrets."""
        return bool(self._changed("buckets imperfect_recall"))

    @property
    def kind(self) -> np.dtype:
        """Arithmetic."""
        return np.dtype(self.dtype or self.algorithm.family.dtypes[0])

    @property
    def most(self) -> int:
        """Number of iterations to stop at."""
        return self.goal.most(self.algorithm.family.usual)

    @property
    def path(self) -> atomic.Path | None:
        """Path of the checkpoint; None if there is none."""
        return None if self.checkpoint is None else self.checkpoint.path

    def solver(self, represented: RepresentedGame) -> IterativeSolver:
        """Make the solver; raises as `solve` does.

        Args:
          represented: The game in a form that `need` does not reject.
        """
        return self.algorithm.family.makers[represented.kind](represented, self)

    def need(self) -> FormRequirements:
        """Return the requirements on the form of the game."""
        family, options = self.algorithm.family, self.options
        rejected = {
            form: text.format(self.algorithm.name)
            for form, text in family.rejected.items()
            if form not in family.makers or options.form != form
        }
        if options.hand_buckets is not None:
            text = _ONLY_SIMULATED.format(options.hand_buckets)
            rejected |= dict.fromkeys(BUILT[1:], text)  # "auto" is simulated
            if error_text := rejected.get(SIMULATOR):
                rejected[SIMULATOR] = (
                    f"hand_buckets={options.hand_buckets!r}: {error_text}"
                )
        elif PUBLIC_TREE not in rejected:
            if error_text := _needs_strings(options.buckets, options.imperfect_recall):
                rejected[PUBLIC_TREE] = error_text
        if self._shares:
            rejected.setdefault(PHANTOM, _ONLY_TREES)
        if SIMULATOR not in rejected and (error_text := self._needs_laying_out()):
            rejected[SIMULATOR] = error_text
        if isinstance(self.algorithm.config, MCCFRConfig):
            try:
                choice.visits_only(self.algorithm.config, 0, buckets=self._shares)
            except ValueError as error:  # settings that are incompatible there
                rejected[TREE] = str(error)
        config = self.algorithm.config
        return FormRequirements(
            rejected,
            prefers_declared=family.iterates,
            features=config.features if _reads_tensors(config) else None,
            checkpoint=checkpoint_form(self.path),
            general_sum=isinstance(config, CFRConfig),
        )

    def _needs_laying_out(self) -> str | None:
        """Return why the task cannot be done on a simulated game, or None if it can."""
        options, family = self.options, self.algorithm.family
        needing_tree = "until eval_every dtype buckets imperfect_recall"
        if changed := self._changed(needing_tree):
            return (
                f"{changed} needs the game tree; leave it out, or leave "
                f"form='simulator' (--form simulator) out"
            )
        try:
            config = self.algorithm.simulated_config()
        except ValueError as error:
            buckets = options.hand_buckets
            return f"hand_buckets={buckets!r}: {error}" if buckets else str(error)
        if options.hand_buckets and getattr(config, "averaging", None) == "exact":
            return (
                f"hand_buckets={options.hand_buckets}: averages are not exact with "
                f"imperfect recall; use 'pcs', or 'es-mccfr(averaging=sampled)'"
            )
        if not family.networks and math.isinf(memory.parse_limit(options.memory_limit)):
            return (
                f"memory_limit={options.memory_limit!r}: the table of visited infosets "
                f"grows without bound; use a finite limit such as 4GB"
            )
        return None


def _reads_tensors(config: Any) -> bool:
    """Return whether an algorithm has networks that read a game's tensors."""
    return getattr(config, "network", None) == "mlp"


def _needs_strings(buckets: Buckets | None, imperfect_recall: bool) -> str | None:
    """Return why the options need information state strings, or None if they do not."""
    if imperfect_recall:
        return _ONLY_TREE.format("imperfect_recall=True")
    for player, bucket_map in enumerate(buckets or ()):
        if isinstance(bucket_map, Mapping):
            return _ONLY_TREE.format(f"buckets[{player}] by string")
    return None
