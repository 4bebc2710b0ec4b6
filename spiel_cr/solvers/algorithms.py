"""All algorithms of `solve` in one registry, with what they can do as data.

Refusals, help and the contract test are made from it.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from spiel_cr.common import atomic, memory
from spiel_cr.common.fits import optax_package
from spiel_cr.common.parameters import parse, read_settings
from spiel_cr.solvers.cfr import cfr_config as cfr
from spiel_cr.solvers.cfr.abstraction import Buckets
from spiel_cr.solvers.deep import deep_config as deep
from spiel_cr.solvers.deep.self_play import self_play_config as self_play
from spiel_cr.solvers.first_order import first_order_config as first_order
from spiel_cr.solvers.laying_out import (
    COMPILED,
    SIGNALS,
    STEPPED,
    WORLDS,
    Layout,
    Need,
    begun_as,
)
from spiel_cr.solvers.mccfr import choice
from spiel_cr.solvers.mccfr.public import public_config as public
from spiel_cr.solvers.mccfr.table import table_solver
from spiel_cr.solvers.run import Checkpoint, Goal

_FULL_WIDTH = (
    "algorithm={!r} looks at the whole game in each iteration, so the game must be "
    "compiled; choose an algorithm that samples: os-mccfr, es-mccfr or vr-mccfr"
)
_HISTORIES = {
    form: (
        f"form={form!r}: algorithm={{!r}} samples histories, and in the form of {form} "
        f"(--form {form}) there are none; take a full-width one such as 'cfr+' or "
        f"'dcfr', or give form='compiled'"
    )
    for form in (SIGNALS, WORLDS)
}
_PUBLIC = (
    "algorithm={!r} samples public actions and cards, which are known of games in the "
    "form of signals; leave the form out, or choose 'evr-mccfr'"
)
_ONLY_COMPILED = (
    "{} needs the compiled game, for signal games have no information-state strings; "
    "give form='compiled', or buckets as numbers by logical infoset"
)
_ONLY_TREES = (
    "form='worlds': infosets share no regrets in the form of worlds; leave buckets and "
    "imperfect_recall out, or give form='compiled'"
)


class Family(NamedTuple):
    """Algorithms that can do the same.

    Attributes:
      name: what its algorithms are, as an adjective.
      presets: settings by the names of algorithms.
      refused: why not, of each form that a game of which it cannot solve; "{!r}" stands
        for the algorithm.
      dtypes: of the arithmetic; the first one is the default.
      usual: iterations where nothing says when to stop.
      buckets: whether infosets may share regrets.
      iterates: whether it can be stopped, evaluated on the way, and kept in a file.
      what: half a sentence of what it does, for refusals.
    """

    name: str
    presets: Mapping[str, Any]
    refused: Mapping[str, str]
    dtypes: tuple[str, ...] = ("float64", "float32")
    usual: int = 1000
    buckets: bool = False
    iterates: bool = True
    what: str = "has no regrets that infosets could share"

    @property
    def samples(self) -> bool:
        """Whether games need not be laid out, but may be sampled as they are met."""
        return STEPPED not in self.refused


CFR = Family("full-width", cfr.PRESETS, {STEPPED: _FULL_WIDTH}, buckets=True)
MCCFR = Family(
    "sampled",
    cfr.SAMPLED_PRESETS,
    _HISTORIES,
    ("float32", "float64"),
    buckets=True,
)
FIRST_ORDER = Family(
    "first-order",
    first_order.PRESETS,
    {STEPPED: _FULL_WIDTH},
)
PUBLIC = Family(
    "sampled in public",
    public.PRESETS,
    {COMPILED: _PUBLIC, STEPPED: _PUBLIC, WORLDS: _PUBLIC},
    ("float32", "float64"),
)
DEEP = Family(
    "deep",
    deep.PRESETS,
    _HISTORIES,
    ("float32",),
    usual=100,
    what="trains networks, which have no such option",
)
SELF_PLAY = DEEP._replace(
    name="self-play",
    presets=self_play.SELF_PLAY_PRESETS,
)
LP = Family(
    "exact",
    {"lp": "lp"},
    {STEPPED: _FULL_WIDTH},
    ("float64", "float32"),
    iterates=False,
)
FAMILIES = (CFR, MCCFR, FIRST_ORDER, PUBLIC, DEEP, SELF_PLAY, LP)
ALGORITHMS: dict[str, Family] = {
    name: family for family in FAMILIES for name in family.presets
}


class Algorithm(NamedTuple):
    """An algorithm with its settings.

    Attributes:
      family: what it can do.
      config: its settings, for games that are laid out; "lp" has none.
      asked: as it was given.
    """

    family: Family
    config: Any
    asked: Any

    @property
    def name(self) -> str:
        """For people."""
        return self.config if isinstance(self.config, str) else self.config.name

    def config_in(self, form: str) -> Any:
        """Settings for games in a form; those that are stepped have other defaults.

        Raises:
          ValueError: a setting that needs the compiled game.
        """
        if form == STEPPED and self.family is MCCFR:
            settings = read_settings(self.asked, table_solver.PRESETS)
            return table_solver.check_config(settings)
        return self.config


def find(
    algorithm: Any, name: str = "algorithm", families: Sequence[Family] = FAMILIES
) -> Algorithm:
    """Reads an algorithm.

    Args:
      algorithm: a preset with parameters, such as "dcfr(alpha=1.5)", or settings.
      name: of the argument, for errors.
      families: of which it must be.

    Raises:
      ValueError: unknown algorithm or parameter, a value out of range, or an algorithm
        of another family.
    """
    presets = {key: one for family in families for key, one in family.presets.items()}
    if isinstance(algorithm, str):
        plain = parse(algorithm, name).name
        family = ALGORITHMS.get(plain)
    else:
        same = (f for f in FAMILIES if type(algorithm) in map(type, f.presets.values()))
        family = next(same, None)
        if family is None:
            raise ValueError(
                f"{name}={algorithm!r} must be a string such as "
                f"{next(iter(presets))!r}, or its settings"
            )
    if family is not None and family not in families:
        kinds = " or ".join(one.name for one in families)
        raise ValueError(
            f"{name}={algorithm!r} is {family.name}, and must be {kinds}: choose one "
            f"of {', '.join(presets)}"
        )
    config = read_settings(algorithm, presets, name, kind="algorithm")
    assert family is not None
    return Algorithm(family, config, algorithm)


@dataclasses.dataclass(frozen=True)
class Task:
    """All that `solve` is asked for, but the game; checked.

    Attributes:
      algorithm: with its settings.
      goal: when to stop.
      layout: what is asked of the form.
      checkpoint: what the run is kept in.
      dtype: of the arithmetic; None: the algorithm's own.
      seed: of what is sampled.
    """

    algorithm: Algorithm
    goal: Goal = Goal()
    layout: Layout = Layout()
    checkpoint: Checkpoint | None = None
    dtype: str | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        family, asked, goal = self.algorithm.family, self.algorithm.asked, self.goal
        shares = self.layout.buckets is not None or self.layout.imperfect_recall
        if not family.iterates:
            if (
                goal.seconds is not None
                or goal.evaluates
                or self.checkpoint is not None
            ):
                raise ValueError(
                    f"algorithm={asked!r} is exact and does not iterate: leave out "
                    f"seconds, until, eval_every and checkpoints"
                )
        if shares and not family.buckets and family.dtypes != ("float32",):
            raise ValueError(
                f"algorithm={asked!r} {family.what}; choose another one such as "
                f"'cfr+', or leave out buckets and imperfect_recall"
            )
        if family in (DEEP, SELF_PLAY):
            self._check_networks()
        if why := self.need().refused.get(self.layout.form):
            raise ValueError(why)

    def _check_networks(self) -> None:
        """Networks have float32, and no buckets.

        Raises:
          ValueError: an option that networks do not have.
          ImportError: optax is missing, and networks are asked for.
        """
        layout = self.layout
        options = {
            "dtype": self.dtype,
            "buckets": layout.buckets,
            "imperfect_recall": layout.imperfect_recall or None,
            "workers": None if layout.workers == 1 else layout.workers,
        }
        for name, value in options.items():
            if value is not None:
                raise ValueError(
                    f"{name}={value!r}: algorithm={self.algorithm.asked!r} "
                    f"{self.algorithm.family.what}; leave it out"
                )
        if _reads_tensors(self.algorithm.config):
            optax_package()

    @property
    def most(self) -> int:
        """The iterations to stop at."""
        return self.goal.most(self.algorithm.family.usual)

    @property
    def path(self) -> atomic.Path | None:
        """Of the checkpoint."""
        return None if self.checkpoint is None else self.checkpoint.path

    def need(self) -> Need:
        """What is to be done, as far as the form of the game matters."""
        family, layout = self.algorithm.family, self.layout
        refused = {
            form: text.format(self.algorithm.name)
            for form, text in family.refused.items()
        }
        if SIGNALS not in refused:
            if why := _needs_strings(layout.buckets, layout.imperfect_recall):
                refused[SIGNALS] = why
        if layout.buckets is not None or layout.imperfect_recall:
            refused.setdefault(WORLDS, _ONLY_TREES)
        if STEPPED not in refused and (why := self._needs_laying_out()):
            refused[STEPPED] = why
        if family is MCCFR:
            shares = layout.buckets is not None or layout.imperfect_recall
            try:
                choice.visits_only(self.algorithm.config, 0, buckets=shares)
            except ValueError as error:  # settings that do not go together there
                refused[COMPILED] = str(error)
        if layout.workers > 1 and layout.form == COMPILED:
            refused[COMPILED] = (
                f"workers={layout.workers} are for games that are not compiled; leave "
                f"them out, or give form='stepped' (--compile never)"
            )
        config = self.algorithm.config
        return Need(
            refused,
            prefers_signals=family is not LP,
            features=config.features if _reads_tensors(config) else None,
            begun=begun_as(self.path),
        )

    def _needs_laying_out(self) -> str | None:
        """Why what is asked for needs the game laid out; None: it does not."""
        goal, layout, family = self.goal, self.layout, self.algorithm.family
        options = {
            "until": goal.until,
            "eval_every": goal.eval_every,
            "dtype": self.dtype,
            "buckets": layout.buckets,
            "imperfect_recall": layout.imperfect_recall or None,
        }
        for name, value in options.items():
            if value is not None:
                return (
                    f"{name}={value!r} needs the compiled game; leave it out, or leave "
                    f"form='stepped' (--compile never) out"
                )
        if family is not MCCFR:
            if self.algorithm.config.needs_compiled:
                return (
                    f"algorithm={self.algorithm.name!r}: "
                    f"{self.algorithm.config.needs_compiled} needs the compiled game; "
                    f"choose another setting, or let the game be compiled"
                )
            return None
        try:
            self.algorithm.config_in(STEPPED)
        except ValueError as error:
            return str(error)
        if math.isinf(memory.parse_limit(layout.memory_limit)):
            return (
                f"memory_limit={layout.memory_limit!r}: the table grows as long as "
                f"there is room, so it needs a limit; give one such as 4GB"
            )
        return None


def _reads_tensors(config: Any) -> bool:
    """Whether an algorithm has networks that read a game's tensors."""
    return getattr(config, "network", None) == "mlp"


def _needs_strings(buckets: Buckets | None, imperfect_recall: bool) -> str | None:
    """Why what is asked for needs information-state strings; None: it does not."""
    if imperfect_recall:
        return _ONLY_COMPILED.format("imperfect_recall=True")
    for player, given in enumerate(buckets or ()):
        if isinstance(given, Mapping):
            return _ONLY_COMPILED.format(f"buckets[{player}] by string")
    return None
