"""The form in which a game is solved, chosen in one place and said as data.

compiled: a tree of every history; signals: public actions and what cards tell; worlds:
hidden boards by what has succeeded; stepped: never laid out, but sampled as it is met.
"""

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

from spiel_cr.abstraction.gameshrink.merging import merged
from spiel_cr.common import atomic, memory, storage
from spiel_cr.common.checks import check_choice, check_whole, read_budget
from spiel_cr.common.errors import GameTooLargeError, ImperfectRecallError
from spiel_cr.common.executing import MOST_WORKERS
from spiel_cr.games.opening import estimate, game_checks
from spiel_cr.games.opening.opened import Openable, Opened, open_game
from spiel_cr.games.phantom.game import PhantomGame, phantom_game
from spiel_cr.games.phantom.hidden import phantom_rules
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import declared, public_tree_game
from spiel_cr.games.tree.compiler import build_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.solvers.cfr.bucket_labels import Buckets

TREE, PUBLIC_TREE, PHANTOM, SIMULATOR = "tree", "public-tree", "phantom", "simulator"
# Of games that are laid out, and of all.
BUILT = ("auto", TREE, PUBLIC_TREE, PHANTOM)
FORMS = (*BUILT, SIMULATOR)

# With more histories than these, games that declare another form are not compiled.
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
      workers: Number of processes that simulate OpenSpiel states, in games without a
        game tree.
      memory_limit: Memory limit: bytes, or a size such as "3GB"; "none" or `math.inf`:
        no limit; None: 70% of the memory available to the process, at least 1 GB (see
        `memory.default_limit`), or the limit of the checkpoint that is resumed.
      cache: Folder in which game trees are kept for later runs.
      buckets: For each player which infosets share one row of regrets and one strategy:
        None, numbers [I] by logical infoset, or a mapping from information state
        strings to anything hashable (strings that are left out are not shared). In
        public-tree form, infosets are numbered after private states with equal
        strategies were merged, as in the result's `form.decisions`; a `PublicTreeGame`
        is solved as it is, so its own infosets are numbered. The result is a strategy
        of the full game, and so is its NashConv.
      hand_buckets: Maximum number of hand buckets per round, such as "169-200-200-200":
        players know only the bucket of their hand. For simulated games whose rules
        assign hands to buckets (limit hold'em), and algorithms that sample (pcs,
        es-mccfr(averaging=sampled)).
      imperfect_recall: Whether to merge infosets that differ only in what the game's
        bucket_key leaves out: they share regrets, and NashConv is that of the full
        game. Excludes `buckets`.
      locks: Strategies that are kept as they are; the remaining strategies are solved
        against them, and the run converges in NashConv with locks. For game trees, a
        mapping from information state strings to probabilities, in order of actions or
        by their names. For public trees, a mapping from the actions that lead to a
        public node ("check bet-100") to probabilities, or to a mapping from hands to
        probabilities: the name of a private state or of a hand, or in spots a range
        ("QQ+,AKs"); if several apply, the last one takes precedence. Or for each player
        a policy, a result, the path of a policy file, or None. Private states are then
        not merged.
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
        check_whole(self.workers, "workers", 1, MOST_WORKERS)
        if self.hand_buckets is not None:
            read_budget(self.hand_buckets, "hand_buckets")


class Need(NamedTuple):
    """What is to be done with a game, as far as its form matters.

    Attributes:
      refused: why not, for each form that cannot do it.
      prefers_signals: whether a large game that declares signals is to have that form.
      observations: whether compiled games need observations.
      features: the tensors that networks read, as `deep_config.FEATURES`; None: none.
      begun: the form in which a checkpoint was begun, and its path.
    """

    refused: Mapping[str, str]
    prefers_signals: bool = True
    observations: bool = False
    features: str | None = None
    begun: tuple[str, str] | None = None


class Choice(NamedTuple):
    """A form, before anything is built.

    Attributes:
      form: one of `FORMS`, but not "auto".
      why: half a sentence; empty where there was no choice.
    """

    form: str
    why: str = ""


class Laid(NamedTuple):
    """A game in the form that it is solved in.

    Attributes:
      game: a compiled game, a signal game, one of hidden boards, or an open game that
        is to be stepped.
      form: one of `FORMS`, but not "auto".
      why: half a sentence; empty where there was no choice.
    """

    game: GameTree | PublicTreeGame | PhantomGame | Opened
    form: str
    why: str = ""


# A game in any of the ways in which users give it.
AnyGame: TypeAlias = Openable | GameTree | PublicTreeGame | PhantomGame


def prefer(opened: Opened, memory_limit: memory.Limit = None) -> Choice:
    """Signals, worlds or compiled: which suits a game. Takes up to a second.

    Signals and worlds suit large games, signals also those that list deals of
    probability zero, which OpenSpiel's tools walk through and may refuse.

    Args:
      opened: the game.
      memory_limit: what compiling may take.
    """
    other = PUBLIC_TREE if declared(opened) else PHANTOM
    if other == PHANTOM and phantom_rules(opened.rules) is None:
        return Choice(TREE)
    if impossible := game_checks.impossible_outcomes(opened.game.new_initial_state()):
        why = f"OpenSpiel lists {len(impossible):,} deals of probability zero, too"
        return Choice(PUBLIC_TREE, why)
    most = min(_MANY, memory.room_for(memory.parse_limit(memory_limit)))
    histories = estimate.estimate_histories(opened.game, room=most)
    said = estimate.describe_histories(histories)
    if histories > most:
        why = f"{said}, more than the {most:,} up to which games are compiled"
        return Choice(other, why)
    return Choice(TREE, f"{said}, and games are compiled up to {most:,}")


def choose(
    game: GameTree | PublicTreeGame | PhantomGame | Opened,
    need: Need,
    options: GameOptions,
) -> Choice:
    """Chooses a form and builds nothing; takes a second at most.

    Args:
      game: opened, or in a form already.
      need: what is to be done.
      options: what the user asks for.

    Raises:
      ValueError: the form that is asked for cannot do it, or is not that of the game or
        of the checkpoint.
    """
    form = options.form
    if form == "auto" and options.hand_buckets is not None:
        form = SIMULATOR
    if isinstance(game, PublicTreeGame):
        game.check()
        if form not in ("auto", PUBLIC_TREE):
            raise ValueError(
                f"form={form!r}: {game.game} was given as a signal game; give the "
                f"OpenSpiel game itself, or leave form out"
            )
        form = PUBLIC_TREE
    elif isinstance(game, PhantomGame) and form == "auto":
        form = PHANTOM
    elif isinstance(game, GameTree) and form == "auto":
        form = TREE
    if form in need.refused:
        raise ValueError(need.refused[form])
    if need.begun is not None:
        begun, path = need.begun
        _check_begun(begun, path, form)
        if form == "auto":
            if begun in need.refused:
                raise ValueError(f"{path} was begun so: {need.refused[begun]}")
            return Choice(begun, f"{path} was begun so")
    if form != "auto":
        return Choice(form)
    assert isinstance(game, Opened)
    if TREE in need.refused:
        if PUBLIC_TREE not in need.refused:
            return Choice(PUBLIC_TREE)
        raise ValueError(need.refused[TREE])
    if (
        PUBLIC_TREE not in need.refused
        and need.prefers_signals
        and options.batched_rules
    ):
        suits = prefer(game, options.memory_limit)
        if suits.form not in need.refused:
            return suits
    return Choice(TREE)


def lay_out(
    game: AnyGame, need: Need, options: GameOptions, *, progress: bool = False
) -> Laid:
    """Puts a game into the form that suits what is to be done.

    Args:
      game: in any form.
      need: what is to be done.
      options: what the user asks for.
      progress: show on stderr how far a long walk is.

    Raises:
      pyspiel.SpielError, ValueError: as `open_game` and `choose`; or the game is not of
        the form, or has not the features.
      GameTooLargeError: it takes more memory than the limit, and cannot be stepped.
    """
    if not isinstance(game, PublicTreeGame | GameTree | PhantomGame):
        game = open_game(game)
    if need.features is not None and isinstance(game, Opened | GameTree):
        game_checks.feature_count(game.game, need.features)
    choice = choose(game, need, options)
    if choice.form == PUBLIC_TREE:
        if not isinstance(game, PublicTreeGame):
            plain = game.game if isinstance(game, GameTree) else game
            limit = options.memory_limit
            game = public_tree_game(plain, progress=progress, memory_limit=limit)
            game = game if options.locks is not None else merged(game)
        memory.trim()
        return Laid(game, PUBLIC_TREE, choice.why)
    assert not isinstance(game, PublicTreeGame)
    opened = game if isinstance(game, Opened) else Opened(game.game)
    if choice.form == SIMULATOR:
        return Laid(opened, SIMULATOR, choice.why)
    if choice.form == PHANTOM:
        return _of_worlds(game, options, choice.why, progress)
    assert not isinstance(game, PhantomGame)
    if isinstance(game, GameTree):
        return Laid(game, TREE, choice.why)
    try:
        tree = build_tree(
            game,
            observations=need.observations,
            batched_rules=options.batched_rules,
            memory_limit=options.memory_limit,
            cache=options.cache,
            progress=progress,
        )
    except GameTooLargeError as error:
        return _too_large(game, need, options, error)
    except ImperfectRecallError:
        able = options.form == "auto" and PHANTOM not in need.refused
        if not able or phantom_rules(opened.rules) is None:
            raise
        why = "OpenSpiel's information states forget what players did"
        return _of_worlds(opened, options, why, progress)
    return Laid(tree, TREE, choice.why)


def _of_worlds(
    game: GameTree | PhantomGame | Opened,
    options: GameOptions,
    why: str,
    progress: bool,
) -> Laid:
    """A game of hidden boards; arguments and errors as of `lay_out`."""
    if not isinstance(game, PhantomGame):
        opened = game if isinstance(game, Opened) else Opened(game.game)
        limit = options.memory_limit
        game = phantom_game(opened, memory_limit=limit, progress=progress)
    memory.trim()
    return Laid(game, PHANTOM, why)


def _too_large(
    opened: Opened, need: Need, options: GameOptions, error: GameTooLargeError
) -> Laid:
    """A game that is too large to be compiled: stepped, or what may be done instead.

    Args:
      opened: the game.
      need: what is to be done.
      options: what the user asks for.
      error: that compiling raised.

    Raises:
      GameTooLargeError: it cannot be stepped, or must not be.
    """
    free = options.form == "auto" and need.begun is None
    if free and SIMULATOR not in need.refused:
        return Laid(opened, SIMULATOR, str(error).partition(";")[0])
    text = str(error)
    if PUBLIC_TREE not in need.refused and declared(opened):
        text += (
            "; or use the public-tree form, which this game declares "
            "(form='public-tree', --form public-tree), and a full-width algorithm such "
            "as cfr+"
        )
    if free and need.refused[SIMULATOR]:
        text += (
            f"; here it cannot be sampled without compiling: {need.refused[SIMULATOR]}"
        )
    elif need.begun is not None:
        text += (
            f"; here it cannot be sampled without compiling: the checkpoint "
            f"{need.begun[1]} is of the compiled game"
        )
    raise GameTooLargeError(text) from error


def begun_as(path: atomic.Path | None) -> tuple[str, str] | None:
    """The form of a checkpoint and its path; None: there is none that can be read."""
    if path is None or not os.path.isfile(path):
        return None
    try:
        metadata = storage.load_metadata(path)
    except (OSError, ValueError):  # who opens it says so
        return None
    if metadata.get("kind") != "checkpoint":
        return None
    form = metadata.get("form")
    begun = form if form in (PUBLIC_TREE, PHANTOM) else TREE
    if "keys" in metadata or form == "deep":
        begun = SIMULATOR
    return begun, os.fspath(path)


def _check_begun(begun: str, path: str, form: str) -> None:
    """Refuses a checkpoint that cannot be gone on with in the form asked for.

    Two forms that are laid out are told apart by what reads the file.

    Raises:
      ValueError: the game is to be laid out, and was not; or the other way round.
    """
    if begun == SIMULATOR and form not in ("auto", SIMULATOR):
        raise ValueError(
            f"the checkpoint {path} was begun without compiling the game; leave "
            f"form={form!r} (--form {form}, --form tree) out, or give another path"
        )
    if begun != SIMULATOR and form == SIMULATOR:
        raise ValueError(
            f"the checkpoint {path} was begun on the compiled game; leave "
            f"form='simulator' (--form simulator) out, or give another path"
        )
