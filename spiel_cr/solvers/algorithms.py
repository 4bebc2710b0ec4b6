"""Registry of all algorithms of `solve`, with their abilities as data.

Error messages, help texts and the contract test are generated from it.
"""

import functools
import inspect
from collections.abc import Sequence
from typing import Any, TypeAlias

from spiel_cr.common import plugins
from spiel_cr.common.parameters import parse, read_settings
from spiel_cr.games.opening.opened import Opened
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers import automatic, simulator_makers, tabular_makers
from spiel_cr.solvers.cfr import cfr_config as cfr
from spiel_cr.solvers.cfr.regret_matching import CustomRule, Rule
from spiel_cr.solvers.deep import deep_config as deep
from spiel_cr.solvers.deep import deep_footprint
from spiel_cr.solvers.deep.deep_solver import DeepSolver
from spiel_cr.solvers.deep.deep_training import Training, check_simulated
from spiel_cr.solvers.deep.self_play import self_play_config as self_play
from spiel_cr.solvers.deep.self_play.updates import SelfPlay
from spiel_cr.solvers.deep.tensors import simulated_tensors
from spiel_cr.solvers.first_order import first_order_config as first_order
from spiel_cr.solvers.mccfr import public_chance
from spiel_cr.solvers.mccfr.public import public_config as public
from spiel_cr.solvers.mccfr.table import table_solver
from spiel_cr.solvers.representation import PHANTOM, PUBLIC_TREE, SIMULATOR, TREE
from spiel_cr.solvers.task import Algorithm, Family, Maker, Task

_FULL_WIDTH = (
    "algorithm={!r} visits the whole game in each iteration, so it does not support "
    "simulated games; use a sampling algorithm: os-mccfr, es-mccfr or vr-mccfr"
)
_HISTORIES = {
    form: (
        f"form={form!r}: algorithm={{!r}} samples histories, which the {form} form "
        f"(--form {form}) does not have; use a full-width algorithm such as 'cfr+' or "
        f"'dcfr', or form='tree'"
    )
    for form in (PUBLIC_TREE, PHANTOM)
}
_BOARDS = (
    "algorithm={!r} samples boards for hands in buckets; set hand_buckets "
    "(--hand-buckets), such as '169-200-200-200' for limit hold'em, and "
    "form='simulator'"
)
_PUBLIC = (
    "algorithm={!r} samples public actions and cards, which only the public-tree form "
    "has; leave form out, or use 'evr-mccfr'"
)

_NO_LOCKS = "does not support node locks"
_NO_REGRETS = "supports neither shared regrets nor node locks"


_NETWORKS = {**deep.PRESETS, **self_play.SELF_PLAY_PRESETS}

# Classes of solvers that train networks.
Trainer: TypeAlias = type[DeepSolver] | type[SelfPlay]


def _read_simulated(algorithm: Any) -> Any:
    """Read settings for games that are simulated.

    Args:
      algorithm: Preset with parameters, or settings.

    Raises:
      ValueError: If a setting needs a game tree.
    """
    config = read_settings(algorithm, _NETWORKS)
    check_simulated(config)
    return config


def _train_on_tree(trainer: Trainer, represented: GameTree, task: Task) -> Training:
    """Make a solver that trains networks on a game tree.

    Args:
      trainer: Class of the solver.
      represented: The game tree.
      task: Algorithm, goal and options.

    Raises:
      GameTooLargeError, ValueError, ImportError: See `solve`.
    """
    config = task.algorithm.config
    deep_footprint.check_tree(config, represented, task.options.memory_limit)
    return trainer(represented, config, seed=task.seed)


def _train_simulated(trainer: Trainer, represented: Opened, task: Task) -> Training:
    """Make a solver that trains networks on a simulated game; see `_train_on_tree`."""
    game, config = represented.game, task.algorithm.config
    use_rules = task.options.batched_rules
    way = simulated_tensors(represented, config.features, use_rules=use_rules)
    try:
        iterations = task.most if task.most < 2**31 - 1 else None
        limit = task.options.memory_limit
        deep_footprint.check(config, game, way.knowledge, iterations, limit)
        return trainer(way, config, seed=task.seed)
    except BaseException:
        way.source.close()
        raise


def _networks(trainer: Trainer) -> dict[str, Maker]:
    """Return makers of solvers that train networks, by form."""
    return {
        TREE: functools.partial(_train_on_tree, trainer),
        SIMULATOR: functools.partial(_train_simulated, trainer),
    }


_BUILT = (TREE, PUBLIC_TREE, PHANTOM)

CFR = Family(
    "full-width",
    cfr.PRESETS,
    {
        **dict.fromkeys(_BUILT, tabular_makers.full_width),
        PUBLIC_TREE: tabular_makers.full_width_in_public,
    },
    {SIMULATOR: _FULL_WIDTH},
)
MCCFR = Family(
    "sampled",
    cfr.SAMPLED_PRESETS,
    {TREE: tabular_makers.sampled, SIMULATOR: simulator_makers.make_table},
    _HISTORIES,
    ("float32", "float64"),
    simulated=table_solver.read_config,
    without="locks",
    limitation=_NO_LOCKS,
)
BOARDS = Family(
    "sampled by boards",
    public_chance.PRESETS,
    {SIMULATOR: simulator_makers.make_boards},
    dict.fromkeys(_BUILT, _BOARDS),
    ("float32",),
    simulated=lambda algorithm: read_settings(algorithm, public_chance.PRESETS),
    without="locks",
    limitation=_NO_LOCKS,
)
FIRST_ORDER = Family(
    "first-order",
    first_order.PRESETS,
    dict.fromkeys(_BUILT, tabular_makers.first_order),
    {SIMULATOR: _FULL_WIDTH},
    without="buckets imperfect_recall locks",
    limitation=_NO_REGRETS,
)
PUBLIC = Family(
    "sampled in public",
    public.PRESETS,
    {PUBLIC_TREE: tabular_makers.sampled_in_public},
    {TREE: _PUBLIC, SIMULATOR: _PUBLIC, PHANTOM: _PUBLIC},
    ("float32", "float64"),
    without="buckets imperfect_recall locks",
    limitation=_NO_REGRETS,
)
DEEP = Family(
    "deep",
    deep.PRESETS,
    _networks(DeepSolver),
    _HISTORIES,
    ("float32",),
    simulated=_read_simulated,
    usual=100,
    without="dtype buckets imperfect_recall hand_buckets workers locks",
    limitation="trains networks and does not support this option",
    networks=True,
)
SELF_PLAY = DEEP._replace(
    name="self-play", presets=self_play.SELF_PLAY_PRESETS, makers=_networks(SelfPlay)
)
LP = Family(
    "exact",
    {"lp": "lp"},
    dict.fromkeys(_BUILT, tabular_makers.linear),
    {SIMULATOR: _FULL_WIDTH},
    without="seconds until wall_clock eval_every checkpoint buckets imperfect_recall",
    limitation="is exact: it has no iterations and no regrets",
    iterates=False,
)
AUTO = Family(
    "automatic",
    {"auto": "auto"},
    dict.fromkeys(
        (*_BUILT, SIMULATOR), functools.partial(automatic.choose, lambda x: find(x))
    ),
    {
        SIMULATOR: "algorithm={!r} chooses a full-width algorithm unless "
        "form='simulator'; choose this form (--form simulator), or an algorithm that "
        "samples: os-mccfr, es-mccfr or vr-mccfr"
    },
    simulated=lambda _: table_solver.read_config(*automatic.CANDIDATES[SIMULATOR]),
)
FAMILIES = (AUTO, CFR, MCCFR, BOARDS, FIRST_ORDER, PUBLIC, DEEP, SELF_PLAY, LP)
ALGORITHMS: dict[str, Family] = {
    name: family for family in FAMILIES for name in family.presets
}


def find(
    algorithm: Any, name: str = "algorithm", families: Sequence[Family] = FAMILIES
) -> Algorithm:
    """Read an algorithm.

    Args:
      algorithm: Preset with parameters, such as "dcfr(alpha=1.5)"; or settings; or a
        function, which is used as a `regret_matching.CustomRule` with linear averaging;
        or "module:name(parameter=value)", where the name is that of settings or of a
        function in a module that was imported with --import.
        If only full-width algorithms are allowed, "auto" is the algorithm that
        `automatic.OF_SUBGAMES` lists for game trees.
      name: Name of the argument, for error messages.
      families: Families to which the algorithm must belong.

    Raises:
      ValueError: If an algorithm or parameter is unknown, a value is out of range, or
        the algorithm belongs to another family.
    """
    presets = {key: one for family in families for key, one in family.presets.items()}
    if algorithm == "auto" and AUTO not in families:
        algorithm = automatic.OF_SUBGAMES[TREE]
    specification = algorithm
    if isinstance(algorithm, str) and ":" in (plain := parse(algorithm, name).name):
        named = plugins.named_object(plain, f"{name}={algorithm!r}")
        algorithm = read_settings(algorithm, {plain: _with_rule(named)}, name)
    algorithm = _with_rule(algorithm)
    if isinstance(algorithm, str):
        family = ALGORITHMS.get(parse(algorithm, name).name)
    else:
        same = (f for f in FAMILIES if type(algorithm) in map(type, f.presets.values()))
        family = next(same, None)
        if family is None:
            raise ValueError(
                f"{name}={algorithm!r}: not an algorithm; use a string such as "
                f"{next(iter(presets))!r}, or settings"
            )
    if family is not None and family not in families:
        kinds = " or ".join(one.name for one in families)
        raise ValueError(
            f"{name}={algorithm!r}: the algorithm is {family.name}, but must be "
            f"{kinds}; choose one of {', '.join(presets)}"
        )
    config = read_settings(algorithm, presets, name, kind="algorithm")
    assert family is not None
    kept = specification if isinstance(specification, str) else algorithm
    return Algorithm(family, config, kept)


def names_algorithm(text: str) -> bool:
    """Return whether "module:name(...)" names a rule or settings, and not a player.

    Raises:
      ValueError: If the module was not imported or has no such name.
    """
    named = plugins.named_object(parse(text, "algorithm").name, f"algorithm={text!r}")
    if inspect.isfunction(named):
        parameters = inspect.signature(named).parameters
        # Keyword-only parameters are numbers that `tune` changes.
        names = {k for k, p in parameters.items() if p.kind is not p.KEYWORD_ONLY}
        return len(names) == 4 and not names & {"game", "player", "seed"}
    presets = (preset for family in FAMILIES for preset in family.presets.values())
    return type(named) in {CustomRule, *map(type, presets)} - {str}


def _with_rule(algorithm: Any) -> Any:
    """Return settings for a user's rule with linear averages; others unchanged."""
    custom = CustomRule(algorithm) if callable(algorithm) else algorithm
    if isinstance(custom, CustomRule):
        gamma = 1.0 if custom.averaging is None else 0.0
        return cfr.CFRConfig(custom.name, Rule(custom=custom), gamma)
    return algorithm
