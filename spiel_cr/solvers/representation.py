"""Representation of a game in memory: the only place that chooses a form.

The forms are a built game tree, a public tree, the worlds of a phantom game, and a
simulator, which plays the game move by move and enumerates nothing.
"""

import dataclasses
import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias, cast

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.checks import check_choice, check_integer, read_budget
from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.executor import MOST_WORKERS
from spiel_cr.games.game_form import GameForm
from spiel_cr.games.opening import estimate, game_checks
from spiel_cr.games.opening.opened import Openable, Opened, has_rake, open_game
from spiel_cr.games.phantom.game import PhantomGame, phantom_game
from spiel_cr.games.phantom.phantom_rules import phantom_rules
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import build_tree
from spiel_cr.solvers.cfr.bucket_labels import Buckets

TREE, PUBLIC_TREE, PHANTOM, SIMULATOR = "tree", "public-tree", "phantom", "simulator"
# Values of the option for games that are enumerated, and all values.
BUILT = ("auto", TREE, PUBLIC_TREE, PHANTOM)
FORMS = (*BUILT, SIMULATOR)

_WORKERS = (
    "workers={}: only simulated games use workers; leave workers out, or use "
    "form='simulator' (--form simulator) and an algorithm that samples"
)
# With more histories, games that declare another form are not built as trees.
_MANY = 1_000_000


@dataclasses.dataclass(frozen=True)
class GameOptions:
    """Options for the representation of a game in memory.

    Attributes:
      form: Representation of the game. "tree": every history in arrays. "public-tree":
        public actions and private states, for games that declare them. "phantom":
        sequences of successful moves, for phantom games that declare them. "simulator":
        the game is played move by move, for algorithms that sample. "auto": public-tree
        or phantom for games that declare it and have more than a million histories or
        too many for the memory limit; otherwise tree, or simulator if the tree is too
        large for the memory limit and the algorithm can sample.
      batched_rules: Whether to use the game's batched rules, if it has them.
      workers: Number of processes that simulate OpenSpiel states. With more than one,
        "auto" is "simulator", because no other form uses them.
      memory_limit: Memory limit: bytes, or a size such as "3GB"; "none" or `math.inf`:
        no limit; None: 70% of the memory available to the process, at least 1 GB (see
        `memory.default_limit`), or the limit of the checkpoint that is resumed.
      cache: Folder in which game trees are kept for later runs.
      buckets: Sets of infosets that share one row of regrets and one strategy, for each
        player: None, numbers [I] by logical infoset, or a mapping from information
        state strings to anything hashable (strings that are left out are not shared).
        In public-tree form, infosets are numbered after private states with equal
        strategies were merged, as in the result's `form.decisions`; a `PublicTreeGame`
        is solved as it is, so its own infosets are numbered. The result is a strategy
        of the full game, and so is its NashConv.
      hand_buckets: Maximum number of hand buckets per round, such as "169-200-200-200":
        players know only the bucket of their hand. For simulated games whose rules
        assign hands to buckets (limit hold'em), and algorithms that sample (pcs,
        es-mccfr(averaging=sampled)).
      imperfect_recall: Whether to merge infosets that differ only in what the game's
        bucket_key leaves out: they share regrets, and NashConv is that of the full
        game.
      locks: Strategies that stay fixed. The others are optimised against them, and the
        run converges in the NashConv of the game with these locks. For game trees, a
        mapping from information state strings to probabilities, in order of actions or
        by their names. For public trees, a mapping from the actions that lead to a
        public node ("check bet-100") to probabilities, or to a mapping from hands to
        probabilities: the name of a private state or of a hand, or in spots a range
        ("QQ+,AKs"); if several apply, the last one takes precedence. Or for each player
        a policy, a result, the path of a policy file, or None. Private states are then
        not merged.

    Example:
      >>> import spiel_cr
      >>> options = spiel_cr.GameOptions(form="simulator", memory_limit="2GB")
      >>> result = spiel_cr.solve("kuhn_poker", "os-mccfr", 10, options=options)
      >>> result.trajectories > 0
      True
    """

    form: str = "auto"
    batched_rules: bool = True
    workers: int = 1
    memory_limit: memory.Limit = None
    cache: atomic.Path | None = None
    buckets: Buckets | None = None
    hand_buckets: str | None = None
    imperfect_recall: bool = False
    locks: Any = None

    def __post_init__(self) -> None:
        check_choice(self.form, "form", FORMS)
        check_integer(self.workers, "workers", 1, MOST_WORKERS)
        if self.workers > 1 and self.form not in ("auto", SIMULATOR):
            raise ValueError(_WORKERS.format(self.workers))
        if self.hand_buckets is not None:
            read_budget(self.hand_buckets, "hand_buckets")


class FormRequirements(NamedTuple):
    """Requirements of a task on the representation of a game.

    Attributes:
      rejected: Error messages by form, for forms that cannot serve the task.
      prefers_declared: Whether a large game is represented in the form that it
        declares.
      observations: Whether game trees need observations.
      features: Tensors that networks read, as `deep_config.FEATURES`; None: none.
      checkpoint: Form and path of the checkpoint that is resumed, if any.
      general_sum: Whether the task supports poker spots with rake.
    """

    rejected: Mapping[str, str]
    prefers_declared: bool = True
    observations: bool = False
    features: str | None = None
    checkpoint: tuple[str, str] | None = None
    general_sum: bool = False


class Reason(NamedTuple):
    """A chosen form and the reason.

    Attributes:
      form: One of `FORMS`, but not "auto".
      text: Half a sentence; empty if only one form was possible.
    """

    form: str
    text: str = ""


class SimulatedGame(Opened):
    """A game that is played move by move."""

    kind: ClassVar[str] = SIMULATOR


# A form of a game, or a game that is simulated.
RepresentedGame: TypeAlias = GameTree | PublicTreeGame | PhantomGame | SimulatedGame


def represent(
    game: Openable,
    options: GameOptions | None = None,
    need: FormRequirements | None = None,
    *,
    progress: bool | None = None,
) -> tuple[RepresentedGame, Reason]:
    """Represent a game in the form that suits a task.

    Args:
      game: OpenSpiel game string, game, or a form of it, which is kept if it suits.
      options: Options of the representation; by default all defaults.
      need: Requirements of the task; by default no requirements.
      progress: Whether to show the progress of long enumerations on stderr.

    Returns:
      The represented game, and the reason for its form.

    Raises:
      pyspiel.SpielError: If OpenSpiel does not know the game.
      ValueError: If the requested form cannot serve the task, or is not that of the
        game or of the checkpoint; or if the game does not have the features.
      GameTooLargeError: If the game takes more memory than the limit, and cannot be
        simulated.
    """
    options = GameOptions() if options is None else options
    need = FormRequirements({}) if need is None else need
    # A game written in Python may have unrelated attributes.
    opened = open_game(game, general_sum=need.general_sum)
    source: Any = game if isinstance(game, RepresentedGame) else opened
    if need.features is not None:
        game_checks.feature_count(source.game, need.features)
    reason = choose_form(source, options, need)
    if reason.form == source.kind:
        return source, reason
    if (build := _BUILDERS.get(reason.form)) is not None:
        return build(opened, options, progress), reason
    try:
        tree = build_tree(
            opened,
            observations=need.observations,
            batched_rules=options.batched_rules,
            memory_limit=options.memory_limit,
            cache=options.cache,
            progress=progress,
        )
    except GameTooLargeError as error:
        reason = _reason_to_simulate(opened, options, need, error)
        return SimulatedGame(opened.game), reason
    except ImperfectRecallError:
        able = options.form == "auto" and PHANTOM not in need.rejected
        if not able or phantom_rules(opened.rules) is None:
            raise
        reason = Reason(PHANTOM, "OpenSpiel's information states have imperfect recall")
        return _phantom(opened, options, progress), reason
    return tree, reason


def _phantom(
    opened: Opened, options: GameOptions, progress: bool | None
) -> PhantomGame:
    form = phantom_game(opened, memory_limit=options.memory_limit, progress=progress)
    memory.trim()
    return form


def _public_tree(
    opened: Opened, options: GameOptions, progress: bool | None
) -> PublicTreeGame:
    limit = options.memory_limit
    form = public_tree_game(opened, memory_limit=limit, progress=progress)
    # Locks name private states, so these stay as they are.
    form = form if options.locks is not None else merged(form)
    memory.trim()
    return form


_WITH_RAKE = (
    "with rake, the game is not zero-sum; use the public-tree form "
    "(form='public-tree'), or leave rake out"
)
# Builders of forms other than the tree; if building a tree fails, one of them may run.
_BUILDERS: Mapping[
    str, Callable[[Opened, GameOptions, bool | None], RepresentedGame]
] = {
    PHANTOM: _phantom,
    PUBLIC_TREE: _public_tree,
    SIMULATOR: lambda opened, *_: SimulatedGame(opened.game),
}


def choose_form(
    game: GameForm | Opened, options: GameOptions, need: FormRequirements
) -> Reason:
    """Choose a form without building anything; takes a second at most.

    Args:
      game: The opened game, or a form of it.
      options: Options of the representation.
      need: Requirements of the task.

    Raises:
      ValueError: See `represent`.
    """
    if has_rake(game.game):
        others = dict.fromkeys((TREE, PHANTOM, SIMULATOR), _WITH_RAKE)
        need = need._replace(rejected={**others, **need.rejected})
    form = options.form
    if options.workers > 1 and SIMULATOR in need.rejected:
        raise ValueError(_WORKERS.format(options.workers))
    if form == "auto" and (options.hand_buckets is not None or options.workers > 1):
        form = SIMULATOR
    if isinstance(game, PublicTreeGame):
        game.check()
        if form not in ("auto", PUBLIC_TREE):
            raise ValueError(
                f"form={form!r}: {game.game} is a `PublicTreeGame` already; use the "
                f"OpenSpiel game itself, or leave form out"
            )
    if form == "auto":
        form = game.kind or form
    if form in need.rejected:
        raise ValueError(need.rejected[form])
    if need.checkpoint is not None:
        checkpoint_form, path = need.checkpoint
        _check_checkpoint_form(checkpoint_form, path, form)
        if form == "auto":
            text = f"the checkpoint {path} has this form"
            if checkpoint_form in need.rejected:
                raise ValueError(f"{text}: {need.rejected[checkpoint_form]}")
            return Reason(checkpoint_form, text)
    if form != "auto":
        return Reason(form)
    if TREE in need.rejected:
        if PUBLIC_TREE not in need.rejected:
            return Reason(PUBLIC_TREE)
        raise ValueError(need.rejected[TREE])
    if need.prefers_declared and options.batched_rules:
        return _preferred(cast(Opened, game), options.memory_limit, need)
    return Reason(TREE)


def _preferred(
    opened: Opened, memory_limit: memory.Limit, need: FormRequirements
) -> Reason:
    """Return the form that a game declares, if the game is large, or the tree.

    Public trees are also used for games with deals of probability zero, which
    OpenSpiel's tools enumerate and may reject. The estimate takes up to a second.
    """
    if declared(opened):
        other = PUBLIC_TREE
    elif phantom_rules(opened.rules) is not None:
        other = PHANTOM
    else:
        return Reason(TREE)
    if other in need.rejected:
        return Reason(TREE)
    if impossible := game_checks.impossible_outcomes(opened.game.new_initial_state()):
        text = f"OpenSpiel also lists {len(impossible):,} deals of probability zero"
        return Reason(PUBLIC_TREE, text)
    most = min(_MANY, memory.histories_within(memory.parse_limit(memory_limit)))
    histories = estimate.estimate_histories(opened.game, threshold=most)
    count = estimate.describe_histories(histories)
    if histories > most:
        return Reason(other, f"{count}, more than the {most:,} of the largest tree")
    return Reason(TREE, f"{count}, and trees are built up to {most:,}")


def _reason_to_simulate(
    opened: Opened,
    options: GameOptions,
    need: FormRequirements,
    error: GameTooLargeError,
) -> Reason:
    """Return the reason for simulating a game whose tree is too large.

    Args:
      opened: The game.
      options: Options of the representation.
      need: Requirements of the task.
      error: The error that building the tree raised.

    Raises:
      GameTooLargeError: If the game cannot or must not be simulated.
    """
    free = options.form == "auto" and need.checkpoint is None
    if free and SIMULATOR not in need.rejected:
        return Reason(SIMULATOR, str(error).partition(";")[0])
    text = str(error)
    if PUBLIC_TREE not in need.rejected and declared(opened):
        text += (
            "; or use the public-tree form, which this game declares "
            "(form='public-tree', --form public-tree), and a full-width algorithm such "
            "as cfr+"
        )
    if free and need.rejected[SIMULATOR]:
        text += f"; here it cannot be simulated: {need.rejected[SIMULATOR]}"
    elif need.checkpoint is not None:
        text += (
            f"; here it cannot be simulated: the checkpoint {need.checkpoint[1]} is of "
            f"a game tree"
        )
    raise GameTooLargeError(text) from error


# What a checkpoint of each form belongs to, for error messages.
_ORIGINS = dict.fromkeys(BUILT, "a game tree") | {SIMULATOR: "a simulated game"}


def checkpoint_metadata(path: atomic.Path | None) -> Mapping[str, Any]:
    """Return the metadata of a checkpoint; empty if it cannot be read."""
    if path is None or not os.path.isfile(path):
        return {}
    try:
        return storage.load_metadata(path)
    except (OSError, ValueError):  # the solver that opens it raises
        return {}


def checkpoint_form(path: atomic.Path | None) -> tuple[str, str] | None:
    """Return the form and the path of a checkpoint, or None if it cannot be read."""
    metadata = checkpoint_metadata(path)
    if path is None or metadata.get("kind") != "checkpoint":
        return None
    form = metadata.get("form")
    if "keys" in metadata or form == "deep":
        form = SIMULATOR
    elif form not in (PUBLIC_TREE, PHANTOM):
        form = TREE
    return form, os.fspath(path)


def _check_checkpoint_form(checkpoint_form: str, path: str, form: str) -> None:
    """Raise an error if a checkpoint cannot be resumed in the requested form.

    Errors about different enumerated forms are raised when the file is read.

    Raises:
      ValueError: If exactly one of the two forms is simulated.
    """
    origin = _ORIGINS[checkpoint_form]
    if form != "auto" and _ORIGINS[form] != origin:
        raise ValueError(
            f"form={form!r}: the checkpoint {path} is of {origin}; leave form (--form "
            f"{form}) out, or use another path"
        )
