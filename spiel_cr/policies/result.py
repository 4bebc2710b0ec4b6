"""What solving or resolving gives: strategies, timings, files."""

import dataclasses
import functools
import os
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic, storage
from spiel_cr.common.errors import CorruptFileError
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.opening.identity import other_game
from spiel_cr.games.opening.opened import open_game
from spiel_cr.games.phantom.game import PhantomGame
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.sequence_form import locking
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.compiler import Game, as_tree
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.best_responses import behaviour_value, value_bounds
from spiel_cr.policies.conversions import (
    DTYPES,
    Behaviours,
    check_behaviour,
    tabular_policy,
)
from spiel_cr.policies.notebook import page_of
from spiel_cr.policies.phantom_policy import PhantomPolicy
from spiel_cr.policies.public_tree_policy import PublicTreePolicy

_Laid = TypeVar("_Laid")


class _Kind(NamedTuple):
    """Policies of the games of a form.

    Attributes:
      file: what files say that they hold.
      form: what checkpoints say of the form.
      policy: a strategy of a game as an OpenSpiel policy.
    """

    file: str
    form: str | None
    policy: Callable[[Any, Behaviours], openspiel_policy.Policy]


_KINDS: Mapping[type, _Kind] = {
    GameTree: _Kind("policy", None, tabular_policy),
    PublicTreeGame: _Kind("public-tree policy", "public-tree", PublicTreePolicy),
    PhantomGame: _Kind("phantom policy", "phantom", PhantomPolicy),
}
# What files say that they hold.
TABULAR, OF_SIGNALS, OF_WORLDS = (kind.file for kind in _KINDS.values())


class CurvePoint(NamedTuple):
    """A point of a convergence curve.

    Attributes:
      iterations: Number of iterations so far.
      seconds: Time spent on iterations so far, without compilation and evaluation.
      nash_conv: Exact NashConv of the average strategy in the whole game, in the game's
        units.
      nash_conv_with_locks: Exact NashConv of the average strategy in the game with
        locks, where only unlocked infosets can deviate; None if the run has no locks.
    """

    iterations: int
    seconds: float
    nash_conv: float
    nash_conv_with_locks: float | None = None

    @property
    def gap(self) -> float:
        """The distance from an equilibrium of the game that the run solves.

        It is `nash_conv_with_locks` if the run has locks, otherwise `nash_conv`.
        """
        value: float = getattr(self, self.gap_name)
        return value

    @property
    def gap_name(self) -> str:
        """Name of the field that `gap` returns."""
        locked = self.nash_conv_with_locks is not None
        return "nash_conv_with_locks" if locked else "nash_conv"

    def as_json(self) -> dict[str, float]:
        """Return the numbers of the point by name, without those that are None."""
        return {k: v for k, v in self._asdict().items() if v is not None}


class Holder(Protocol):
    """What a solver held its strategies in: a form of the game, or a policy."""

    @property
    def game(self) -> pyspiel.Game:
        """The (sequential) OpenSpiel game."""

    @property
    def form(self) -> SequenceForm | None:
        """The game in sequence form, if it was laid out."""

    def policy(self, behaviour: Behaviours | None) -> openspiel_policy.Policy:
        """A strategy of both players as an OpenSpiel policy.

        Args:
          behaviour: for each player float64 [S], by logical sequence; None: the average
            strategy of a game that was not laid out.

        Raises:
          ValueError: it does not cover the whole game.
        """

    def write(
        self, path: atomic.Path, average: Behaviours | None, metadata: Mapping[str, Any]
    ) -> None:
        """Writes the average strategy to an `.npz` file.

        Args:
          path: the file.
          average: as of `policy`.
          metadata: what the file says beside kind, game, fingerprint and versions.

        Raises:
          OSError: the file cannot be written; the old one is as it was.
          ValueError: as of `policy`.
        """


class TableFacts(NamedTuple):
    """What sampling a game by a table that grows tells.

    Attributes:
      infosets: how many the table has.
      keys: what infosets are told apart by: "rules" on arrays, or "strings".
      bytes: what the table took in the end.
      limit: what it might have taken; a batch takes the rest of the memory.
      full: whether infosets were left out because there was no more memory.
      batch: Trajectories per player and iteration. If the caller gave none, it may be
        smaller than the algorithm's default, so that it fits into the memory limit.
        None for algorithms without batches.
      met: decisions of updating players on all trajectories.
      known: those among them whose infoset was in the table before.
    """

    infosets: int
    keys: str
    bytes: int
    limit: int
    full: bool
    batch: int | None = None
    met: int = 0
    known: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Result:
    """What solving or resolving a game gave, whatever form the game was in.

    A game that was not laid out has no strategies in numbers: `average`, `current`,
    `form`, `tree` and `signals` are None then, for nobody has listed its infosets, and
    what needs them raises ValueError.

    Attributes:
      held: the game in its form, or the policy of a game that was not laid out.
      algorithm: as given; for "auto" the one that was chosen.
      reason: Why that algorithm was chosen; empty if the caller named it.
      stop_reason: Why the run stopped: "iterations", "seconds" or "nash_conv", the part
        of the goal that was reached; or "exact", because a linear program or resolving
        was complete.
      iterations: iterations done, of each solve where there are several; for "lp" the
        simplex iterations of both programs.
      average: for each player float64 [S], the average strategy's action
        probabilities by logical sequence; of a signal game in the dtype of the solve.
      current: the same of the last iterate; None where there is none (resolving, lp).
      seconds: time spent iterating.
      compile_seconds: time spent tracing and compiling JAX programs.
      build_seconds: time spent walking the game and laying out arrays.
      solves: how many solves that took.
      trajectories: how many were sampled; 0 for full-width algorithms.
      nodes: decisions and ends that these visited, where networks are trained.
      curve: Points of the convergence curve, if the goal requested an evaluation.
      table: of a game that was sampled by a table that grows.
    """

    held: Holder
    algorithm: str
    iterations: int
    average: Behaviours | None = None
    current: Behaviours | None = None
    seconds: float
    compile_seconds: float = 0.0
    build_seconds: float
    solves: int = 1
    trajectories: int = 0
    nodes: int | None = None
    curve: tuple[CurvePoint, ...] = ()
    table: TableFacts | None = None
    reason: str = ""
    stop_reason: str = "exact"

    @property
    def game(self) -> pyspiel.Game:
        """The (sequential) OpenSpiel game."""
        return self.held.game

    @property
    def form(self) -> SequenceForm | None:
        """The game in sequence form, if it was laid out."""
        return self.held.form

    @property
    def tree(self) -> GameTree | None:
        """The compiled game, if the game was compiled."""
        return self._laid_as(GameTree)

    @property
    def signals(self) -> PublicTreeGame | None:
        """The `PublicTreeGame`, if the game was solved in that form."""
        return self._laid_as(PublicTreeGame)

    def _laid_as(self, kind: type[_Laid]) -> _Laid | None:
        laid = getattr(self.held, "laid", None)
        return laid if isinstance(laid, kind) else None

    @property
    def iterations_per_second(self) -> float:
        """Iterations per second, compile time apart; 0 if nothing was done."""
        return self.iterations * self.solves / self.seconds if self.seconds else 0.0

    @property
    def trajectories_per_second(self) -> float:
        """Trajectories per second, compile time apart; 0 if nothing was done."""
        return self.trajectories / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        said = f"{type(self).__name__}(game={self.game}, algorithm={self.algorithm!r}"
        names = "iterations solves seconds compile_seconds trajectories"
        for name in names.split():
            if value := getattr(self, name):
                said += f", {name}={value:.6g}"
        return f"{said})"

    def _repr_html_(self) -> str:
        facts = [("iterations", f"{self.iterations:,}")]
        if self.trajectories:
            facts.append(("trajectories", f"{self.trajectories:,}"))
        if self.form is not None:
            facts.append(("NashConv", f"{self.nash_conv():.3e}"))
            if self.has_locks:
                with_locks = f"{self.nash_conv_with_locks():.3e}"
                facts.append(("NashConv with locks", with_locks))
            facts.append(("game value", f"{self.game_value():+.6f} (player 0)"))
        spent = f"{self.seconds:.2f} s, compiling {self.compile_seconds:.1f} s"
        facts.append(("solving", spent))
        title = f"{self.algorithm} on {self.game}"
        points = [(point.iterations, point.gap) for point in self.curve]
        name = "NashConv with locks" if self.has_locks else "NashConv"
        return page_of(title, facts, (name, points), self.tree, self.average)

    def average_policy(self) -> openspiel_policy.Policy:
        """The average strategy, for every infoset of the game."""
        return self.held.policy(self.average)

    def current_policy(self) -> openspiel_policy.Policy:
        """The last iterate, for every infoset of the game.

        Raises:
          ValueError: the result has no last iterate.
        """
        if self.current is None:
            raise ValueError(
                "this result has an average policy only; use average_policy()"
            )
        return self.held.policy(self.current)

    def nash_conv(self) -> float:
        """Compute the NashConv of the average strategy in the whole game.

        NashConv is the sum over both players of what an exact best response gains.
        Node locks are lifted: a best response may also deviate at locked infosets. For
        the loss at unlocked infosets alone, see `nash_conv_with_locks`.

        Returns:
          NashConv in the game's units, computed by spiel_cr.

        Raises:
          ValueError: If the game was solved without building its tree.
        """
        low, high = self.value_bounds()
        return high - low

    def nash_conv_with_locks(self) -> float:
        """Compute the NashConv of the average strategy in the game with locks.

        Best responses keep the node locks, so the result is what both players lose at
        unlocked infosets. It converges to zero during a solve with locks, and
        `Goal.until` compares with it. It never exceeds `nash_conv`, which it equals if
        nothing is locked.

        Returns:
          NashConv with locks in the game's units, computed by spiel_cr.

        Raises:
          ValueError: If the game was solved without building its tree.
        """
        low, high = self.value_bounds_with_locks()
        return high - low

    def value_bounds(self) -> tuple[float, float]:
        """Compute bounds on the value of the whole game, with locks lifted.

        Returns:
          What player 0's average strategy gets at least against any opponent, and what
          any player 0 gets at most against player 1's average strategy. Both are
          expected utilities of player 0 in the game's units. NashConv is the
          difference.

        Raises:
          ValueError: If the game was solved without building its tree.
        """
        return self._bounds

    def value_bounds_with_locks(self) -> tuple[float, float]:
        """Compute bounds on the value of the game with locks.

        Returns:
          As `value_bounds`, but against opponents that keep their own locks. The
          difference is `nash_conv_with_locks`.

        Raises:
          ValueError: If the game was solved without building its tree.
        """
        return self._bounds_with_locks

    @functools.cached_property
    def _bounds(self) -> tuple[float, float]:
        form, average = self.laid_out()
        return value_bounds(locking.lifted(form), average)

    @functools.cached_property
    def _bounds_with_locks(self) -> tuple[float, float]:
        return value_bounds(*self.laid_out()) if self.has_locks else self._bounds

    def regrets(self) -> tuple[float, float]:
        """Compute what each player gains by a best response in the whole game.

        Returns:
          For each player the gain of a best response that may change locked infosets,
          in the game's units. Their sum is `nash_conv`. The regret of a player with
          locks includes the cost of its locks.

        Raises:
          ValueError: If the game was solved without building its tree.
        """
        low, high = self.value_bounds()
        value = self.game_value()
        return high - value, value - low

    @property
    def has_locks(self) -> bool:
        """Whether any infoset is locked."""
        return self.form is not None and locking.has_locks(self.form)

    def locked_infosets(self) -> tuple[int, int]:
        """Return the number of locked infosets of each player."""
        form, _ = self.laid_out()
        first, second = (int(locking.infosets(form, p).sum()) for p in range(2))
        return first, second

    def game_value(self) -> float:
        """Player 0's expected utility where both play the average strategy.

        Raises:
          ValueError: the game was not laid out.
        """
        return behaviour_value(*self.laid_out())

    def laid_out(self) -> tuple[SequenceForm, Behaviours]:
        """The game in sequence form, and the average strategy in it.

        Raises:
          ValueError: the game was not laid out.
        """
        if self.form is None or self.average is None:
            raise ValueError(
                f"{self.game} was sampled without laying it out, so there is no exact "
                f"best response; measure it by spiel_cr.best_response(...)"
            )
        return self.form, self.average

    def save(self, path: atomic.Path) -> None:
        """Write the average strategy to an `.npz` file, atomically.

        The metadata of the file (JSON) contain the game string, the versions, the
        algorithm and the number of iterations. They also contain `nash_conv`, if it is
        known, and `nash_conv_with_locks`, if infosets were locked.
        `spiel_cr.load_policy` reads the file.

        Raises:
          OSError: If the file cannot be written; an existing file is unchanged.
        """
        metadata = {
            "algorithm": self.algorithm,
            "iterations": self.iterations,
            "trajectories": self.trajectories,
        }
        if self.form is not None:
            metadata["nash_conv"] = self.nash_conv()
        if self.has_locks:
            metadata["nash_conv_with_locks"] = self.nash_conv_with_locks()
        if self.nodes is not None:
            metadata |= {"nodes": self.nodes, "seconds": self.seconds}
        if self.table is not None:
            metadata["infosets"] = self.table.infosets
        self.held.write(path, self.average, metadata)


@dataclasses.dataclass(frozen=True)
class Held:
    """Strategies of a game that was laid out; see `Holder`.

    Attributes:
      laid: the game in its form.
      form: the same in sequence form.
      dtype: of strategies as policies and in files.
    """

    laid: HasSequenceForm
    form: SequenceForm
    dtype: np.dtype = np.dtype(np.float64)

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.laid.game

    def identity(self) -> tuple[str | None, str]:
        """What checkpoints say of the form, and the fingerprint of the game."""
        kind = _KINDS[type(self.laid)]
        return kind.form, self.laid.game_id

    def policy(self, behaviour: Behaviours | None) -> openspiel_policy.Policy:
        """See `Holder`; of a compiled game a table over every infoset."""
        return _KINDS[type(self.laid)].policy(self.laid, self._checked(behaviour))

    def write(
        self, path: atomic.Path, average: Behaviours | None, metadata: Mapping[str, Any]
    ) -> None:
        """See `Holder`; JSON values."""
        arrays = {f"player{p}": own for p, own in enumerate(self._checked(average))}
        kind = _KINDS[type(self.laid)]
        about = {
            "kind": kind.file,
            "game": str(self.game),
            "fingerprint": self.laid.game_id,
            "decisions": self.laid.decisions_id,
            **metadata,
            "versions": storage.versions(),
        }
        storage.save(path, arrays, about)

    def _checked(self, behaviour: Behaviours | None) -> Behaviours:
        """A strategy in the dtype."""
        assert behaviour is not None
        first, second = (own.astype(self.dtype, copy=False) for own in behaviour)
        return first, second


@dataclasses.dataclass(frozen=True)
class HeldByPolicy:
    """A strategy of a game that was not laid out; see `Holder`.

    Attributes:
      average: the policy: by hashes of information states, or of networks.
      save: writes it to a file, given its path and `metadata`.
    """

    average: openspiel_policy.Policy
    save: Callable[..., None]
    form: None = None

    @property
    def game(self) -> pyspiel.Game:
        """The OpenSpiel game."""
        return self.average.game

    def policy(self, behaviour: Behaviours | None) -> openspiel_policy.Policy:
        """The average strategy."""
        return self.average

    def write(
        self, path: atomic.Path, average: Behaviours | None, metadata: Mapping[str, Any]
    ) -> None:
        """See `Holder`."""
        self.save(path, metadata=metadata)


def read_metadata(path: atomic.Path) -> dict[str, Any]:
    """What a policy file says of itself; its arrays are not read.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file is no file of ours, or was changed since.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(
            f"path={os.fspath(path)!r}: there is no such file; give one written by "
            f"Result.save or --save"
        )
    return storage.load_metadata(path)


def damaged(path: object, why: object) -> CorruptFileError:
    """The error to raise for a policy file that is none; says what is wrong with it."""
    return CorruptFileError(f"{path} is a damaged policy file: {why}")


def text_of(metadata: Mapping[str, Any], name: str, path: atomic.Path) -> str:
    """A text that the metadata of a policy file must have.

    Args:
      metadata: of the file.
      name: of the text.
      path: of the file, for the error.

    Raises:
      CorruptFileError: it is missing.
    """
    text = metadata.get(name)
    if not isinstance(text, str):
        raise damaged(path, f"it has no {name}")
    return text


def named_game(name: str, path: atomic.Path) -> pyspiel.Game:
    """The game that a policy file names.

    Args:
      name: of the game, in the file.
      path: of the file, for the error.

    Raises:
      ValueError: OpenSpiel cannot load it by name.
    """
    try:
        return open_game(name).game
    except (pyspiel.SpielError, ValueError) as error:
        raise ValueError(
            f"{path} is for {name}, which OpenSpiel does not load by that name "
            f"({error}); give the game, too"
        ) from error


def read_policy(path: atomic.Path, laid: HasSequenceForm) -> openspiel_policy.Policy:
    """Reads what `Held.write` wrote.

    Args:
      path: the file.
      laid: the game that it must be for, in its form.

    Raises:
      OSError: there is no such file, or it cannot be read.
      CorruptFileError: the file was changed since, or its numbers are no probabilities.
      OtherGameError: If it belongs to a game with other infosets or actions.
    """
    behaviour, named, seal = _read(path)
    kind = _KINDS[type(laid)]
    if laid.game_id != seal:
        # A game that pays otherwise has the same policies.
        decisions = read_metadata(path).get("decisions")
        if decisions != laid.decisions_id:
            raise other_game(f"{path}: a policy", named, laid.game)
    try:
        if isinstance(laid, GameTree):
            first, second = (
                check_behaviour(laid, player, own, tolerance=1e-6)
                for player, own in enumerate(behaviour)
            )
            behaviour = first, second
        return kind.policy(laid, behaviour)
    except ValueError as error:
        raise damaged(path, error) from error


def check_policy_file(path: atomic.Path) -> None:
    """Refuses what `read_policy` refuses whatever the game.

    Raises:
      OSError, CorruptFileError: as `read_policy`.
    """
    _read(path)


def _read(path: atomic.Path) -> tuple[Behaviours, str, str]:
    """What `Held.write` wrote: strategies, the game's name, and its fingerprint."""
    arrays, metadata = storage.load(path)
    named, seal = (text_of(metadata, name, path) for name in ("game", "fingerprint"))
    # Solvers of compiled games give float64 in any dtype.
    dtypes = DTYPES[1:] if metadata.get("kind") == TABULAR else DTYPES
    found: list[np.ndarray] = []
    for player in range(2):
        own = arrays.get(f"player{player}")
        if own is None or own.ndim != 1 or own.dtype.name not in dtypes:
            raise damaged(path, f"it has no probabilities of player {player}")
        found.append(own)
    return (found[0], found[1]), named, seal


def check_tabular_file(path: atomic.Path) -> None:
    """Refuses what `load_tabular_policy` refuses whatever the game.

    Raises:
      OSError, CorruptFileError, ValueError: as `load_tabular_policy`.
    """
    kind = read_metadata(path).get("kind", "file of another kind")
    if kind != TABULAR:
        raise ValueError(
            f"{path} holds a {kind}, not a policy of a compiled game; give a file that "
            f"Result.save or --save wrote of a compiled game (solve without --compile "
            f"never)"
        )
    _read(path)


def load_tabular_policy(
    path: atomic.Path, game: Game | None = None
) -> openspiel_policy.TabularPolicy:
    """Reads a policy of a compiled game, which `Result.save` wrote.

    Args:
      path: the file.
      game: the game it must be for; None: the one named in the file.

    Returns:
      A table over every infoset; the game is compiled for it.

    Raises:
      OSError, CorruptFileError: as `read_policy`.
      ValueError: the file holds no policy of a compiled game, or one for another game;
        or OpenSpiel cannot load its game by name.
    """
    check_tabular_file(path)
    if game is None:
        game = named_game(text_of(read_metadata(path), "game", path), path)
    policy = read_policy(path, as_tree(game))
    return cast(openspiel_policy.TabularPolicy, policy)
