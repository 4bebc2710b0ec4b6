"""What `solve` is asked for, checked before any work: a `Task`.

What the families of algorithms can do is data; `algorithms` lists them.
"""

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from spiel_cr.common import atomic, memory
from spiel_cr.common.network_fits import optax_package
from spiel_cr.solvers.cfr.bucket_labels import Buckets
from spiel_cr.solvers.cfr.cfr_config import MCCFRConfig
from spiel_cr.solvers.iterative_solver import IterativeSolver
from spiel_cr.solvers.mccfr import choice
from spiel_cr.solvers.representation import (
    BUILT,
    PHANTOM,
    PUBLIC_TREE,
    SIMULATOR,
    TREE,
    GameOptions,
    Need,
    RepresentedGame,
    checkpoint_form,
)
from spiel_cr.solvers.run import Checkpoint, Goal

_ONLY_TREE = (
    "{} needs the compiled game, for signal games have no information-state strings; "
    "give form='tree', or buckets as numbers by logical infoset"
)
_ONLY_SIMULATED = (
    "hand_buckets={!r} are for games that are sampled without laying them out: give "
    "form='simulator' and an algorithm such as 'es-mccfr(averaging=sampled)'"
)
_ONLY_TREES = (
    "form='phantom': infosets share no regrets in the phantom form; leave buckets and "
    "imperfect_recall out, or give form='tree'"
)


# Makes a solver for a represented game of one form, and raises GameTooLargeError,
# ValueError and ImportError as `solve` does.
Maker: TypeAlias = Callable[[Any, "Task"], IterativeSolver]


class Family(NamedTuple):
    """Algorithms that can do the same.

    Attributes:
      name: what its algorithms are, as an adjective.
      presets: settings by the names of algorithms.
      makers: what makes its runs, by the forms that it can solve.
      refused: why not, of each form that a game of which it cannot solve, or solves
        only if that is asked for; "{!r}" stands for the algorithm.
      dtypes: of the arithmetic; the first one is the default.
      stepped: settings for games that are stepped, from those asked for: a preset with
        parameters, or settings; raises ValueError where they need the compiled game.
        None: such games are refused.
      usual: iterations where nothing says when to stop.
      buckets: whether infosets may share regrets.
      locks: whether strategies of infosets may be kept as they are.
      iterates: whether it can be stopped, evaluated on the way, and kept in a file.
      networks: whether it trains networks.
      limitation: half a sentence of what it does, for refusals.
    """

    name: str
    presets: Mapping[str, Any]
    makers: Mapping[str, Maker]
    refused: Mapping[str, str]
    dtypes: tuple[str, ...] = ("float64", "float32")
    stepped: Callable[[Any], Any] | None = None
    usual: int = 1000
    buckets: bool = False
    locks: bool = False
    iterates: bool = True
    networks: bool = False
    limitation: str = "has no regrets that infosets could share"

    @property
    def samples(self) -> bool:
        """Whether games need not be laid out, but may be sampled as they are met."""
        return SIMULATOR in self.makers


class Algorithm(NamedTuple):
    """An algorithm with its settings.

    Attributes:
      family: what it can do.
      config: its settings, for games that are laid out; "lp" has none.
      specification: as it was given.
    """

    family: Family
    config: Any
    specification: Any

    @property
    def name(self) -> str:
        """For people."""
        return self.config if isinstance(self.config, str) else self.config.name

    def config_in(self, form: str) -> Any:
        """Settings for games in a form; those that are stepped have other defaults.

        Raises:
          ValueError: a setting that needs the compiled game.
        """
        if form == SIMULATOR and self.family.stepped is not None:
            return self.family.stepped(self.specification)
        return self.config


@dataclasses.dataclass(frozen=True)
class Task:
    """All that `solve` is asked for, but the game; checked.

    Attributes:
      algorithm: with its settings.
      goal: when to stop.
      options: what is asked of the form.
      checkpoint: what the run is kept in.
      dtype: of the arithmetic; None: the algorithm's own.
      seed: of what is sampled.
    """

    algorithm: Algorithm
    goal: Goal = Goal()
    options: GameOptions = GameOptions()
    checkpoint: Checkpoint | None = None
    dtype: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        family, text, goal = (
            self.algorithm.family,
            self.algorithm.specification,
            self.goal,
        )
        shares = self.options.buckets is not None or self.options.imperfect_recall
        if not family.iterates:
            if (
                goal.seconds is not None
                or goal.evaluates
                or self.checkpoint is not None
            ):
                raise ValueError(
                    f"algorithm={text!r} is exact and does not iterate: leave out "
                    f"seconds, until, eval_every and checkpoints"
                )
        if shares and not family.buckets and not family.networks:
            raise ValueError(
                f"algorithm={text!r} {family.limitation}; choose another one such as "
                f"'cfr+', or leave out buckets and imperfect_recall"
            )
        if self.options.locks is not None and (shares or not family.locks):
            raise ValueError(
                f"locks: algorithm={text!r} with these options keeps no strategies as "
                f"they are; choose one such as 'cfr+', 'dcfr' or 'lp', and leave "
                f"buckets and imperfect_recall out"
            )
        if family.networks:
            self._check_networks()
        if error := self.need().rejected.get(self.options.form):
            raise ValueError(error)

    def _check_networks(self) -> None:
        """Networks have float32, and no buckets.

        Raises:
          ValueError: an option that networks do not have.
          ImportError: optax is missing, and networks are asked for.
        """
        options = self.options
        requested = {
            "dtype": self.dtype,
            "buckets": options.buckets,
            "imperfect_recall": options.imperfect_recall or None,
            "hand_buckets": options.hand_buckets,
            "workers": None if options.workers == 1 else options.workers,
        }
        for name, value in requested.items():
            if value is not None:
                raise ValueError(
                    f"{name}={value!r}: algorithm={self.algorithm.specification!r} "
                    f"{self.algorithm.family.limitation}; leave it out"
                )
        if _reads_tensors(self.algorithm.config):
            optax_package()

    @property
    def kind(self) -> np.dtype:
        """Of the arithmetic."""
        return np.dtype(self.dtype or self.algorithm.family.dtypes[0])

    @property
    def most(self) -> int:
        """The iterations to stop at."""
        return self.goal.most(self.algorithm.family.usual)

    @property
    def path(self) -> atomic.Path | None:
        """Of the checkpoint."""
        return None if self.checkpoint is None else self.checkpoint.path

    def solver(self, represented: RepresentedGame) -> IterativeSolver:
        """Make the solver; raises as `solve` does.

        Args:
          represented: The game in a form that `need` does not reject.
        """
        return self.algorithm.family.makers[represented.kind](represented, self)

    def need(self) -> Need:
        """What is to be done, as far as the form of the game matters."""
        family, options = self.algorithm.family, self.options
        refused = {
            form: text.format(self.algorithm.name)
            for form, text in family.refused.items()
            if form not in family.makers or form != options.form
        }
        if options.hand_buckets is not None:
            text = _ONLY_SIMULATED.format(options.hand_buckets)
            refused |= dict.fromkeys(BUILT[1:], text)  # "auto" is stepped
            if error_text := refused.get(SIMULATOR):
                refused[SIMULATOR] = (
                    f"hand_buckets={options.hand_buckets!r}: {error_text}"
                )
        elif PUBLIC_TREE not in refused:
            if error_text := _needs_strings(options.buckets, options.imperfect_recall):
                refused[PUBLIC_TREE] = error_text
        if options.buckets is not None or options.imperfect_recall:
            refused.setdefault(PHANTOM, _ONLY_TREES)
        if SIMULATOR not in refused and (error_text := self._needs_laying_out()):
            refused[SIMULATOR] = error_text
        if isinstance(self.algorithm.config, MCCFRConfig):
            shares = options.buckets is not None or options.imperfect_recall
            try:
                choice.visits_only(self.algorithm.config, 0, buckets=shares)
            except ValueError as error:  # settings that do not go together there
                refused[TREE] = str(error)
        if options.workers > 1 and options.form == TREE:
            refused[TREE] = (
                f"workers={options.workers} are for games that are not compiled; leave "
                f"them out, or give form='simulator' (--form simulator)"
            )
        config = self.algorithm.config
        return Need(
            refused,
            prefers_declared=family.iterates,
            features=config.features if _reads_tensors(config) else None,
            checkpoint=checkpoint_form(self.path),
        )

    def _needs_laying_out(self) -> str | None:
        """Why what is asked for needs the game laid out; None: it does not."""
        goal, options, family = self.goal, self.options, self.algorithm.family
        requested = {
            "until": goal.until,
            "eval_every": goal.eval_every,
            "dtype": self.dtype,
            "buckets": options.buckets,
            "imperfect_recall": options.imperfect_recall or None,
        }
        for name, value in requested.items():
            if value is not None:
                return (
                    f"{name}={value!r} needs the compiled game; leave it out, or leave "
                    f"form='simulator' (--form simulator) out"
                )
        try:
            config = self.algorithm.config_in(SIMULATOR)
        except ValueError as error:
            hand_buckets = options.hand_buckets
            return (
                str(error)
                if hand_buckets is None
                else f"hand_buckets={hand_buckets!r}: {error}"
            )
        if options.hand_buckets and getattr(config, "averaging", None) == "exact":
            return (
                f"hand_buckets={options.hand_buckets}: players forget, so averages are "
                f"not exact; choose 'pcs', or 'es-mccfr(averaging=sampled)'"
            )
        if not family.networks and math.isinf(memory.parse_limit(options.memory_limit)):
            return (
                f"memory_limit={options.memory_limit!r}: the table grows as long as "
                f"there is room, so it needs a limit; give one such as 4GB"
            )
        return None


def _reads_tensors(config: Any) -> bool:
    """Whether an algorithm has networks that read a game's tensors."""
    return getattr(config, "network", None) == "mlp"


def _needs_strings(buckets: Buckets | None, imperfect_recall: bool) -> str | None:
    """Why what is asked for needs information-state strings; None: it does not."""
    if imperfect_recall:
        return _ONLY_TREE.format("imperfect_recall=True")
    for player, bucket_map in enumerate(buckets or ()):
        if isinstance(bucket_map, Mapping):
            return _ONLY_TREE.format(f"buckets[{player}] by string")
    return None
