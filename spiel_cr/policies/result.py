"""Results of solving and resolving: strategies, timings and files."""

import dataclasses
import functools
import pathlib
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import pyspiel
from open_spiel.python import policy as openspiel_policy

from spiel_cr.common import atomic
from spiel_cr.common.messages import number_text
from spiel_cr.common.pairs import pair
from spiel_cr.games.game_form import HasSequenceForm
from spiel_cr.games.opening.game_checks import payoff_offset
from spiel_cr.games.sequence_form import locking
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies.behaviour_files import form_policy, save_behaviours
from spiel_cr.policies.best_responses import behaviour_value, value_bounds
from spiel_cr.policies.conversions import Behaviours
from spiel_cr.policies.notebook import page_of

# Works with the algorithms that use them; "*" means all, and "resolve" the function.
_CITATIONS = pathlib.Path(__file__).with_name("citations.bib")
_ALGORITHMS = re.compile(r",\n  algorithms = \{(.*)\}")
# Users' own rules and settings are variants of this algorithm.
_USUAL = "cfr"


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


class SolvedForm(NamedTuple):
    """A represented game as a solver solved it.

    Attributes:
      game_form: The game.
      sequence_form: The same in sequence form, with the node locks of the run.
      dtype: Data type of action probabilities in policies and files.
    """

    game_form: HasSequenceForm
    sequence_form: SequenceForm
    dtype: np.dtype = np.dtype(np.float64)

    def cast(self, behaviours: Behaviours) -> Behaviours:
        """Return action probabilities in `dtype`."""
        return pair(part.astype(self.dtype, copy=False) for part in behaviours)


class SavedPolicy(Protocol):
    """The average policy of a game that was simulated."""

    @property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""

    def save(self, path: atomic.Path, metadata: Mapping[str, Any]) -> None:
        """Write the policy to an `.npz` file, atomically.

        Args:
          path: Path of the file.
          metadata: Further fields of the file, in addition to kind, game, fingerprint
            and versions, as JSON values.

        Raises:
          OSError: If the file cannot be written; an existing file is unchanged.
        """


class TableFacts(NamedTuple):
    """Facts about a run that sampled a game and stored infosets in a growing table.

    Attributes:
      infosets: Number of infosets in the table.
      keys: Kind of keys of infosets: "rules" if batched rules make them, or "strings".
      bytes: Memory of the table at the end.
      limit: Most memory that the table may have; a batch uses the rest of the limit.
      full: Whether infosets were left out because the memory limit was reached.
      batch: Trajectories per player and iteration. If the caller gave none, it may be
        smaller than the algorithm's default, so that it fits into the memory limit.
        None for algorithms without batches.
      decisions: Decisions of updating players on all trajectories.
      hits: Those among them whose infoset was in the table before.
    """

    infosets: int
    keys: str
    bytes: int
    limit: int
    full: bool
    batch: int | None = None
    decisions: int = 0
    hits: int = 0


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Result:
    """The outcome of `solve` or `resolve`: policy, value, convergence curve and timing.

    If the game was simulated, its infosets are not numbered: `average`, `current`,
    `game_form` and `form` are None, and methods that need them raise ValueError.

    Attributes:
      solved: The represented game; None if the game was simulated.
      policy: The average policy of a simulated game, otherwise None.
      networks: The networks of the average policy; None for other algorithms, and if
        the policy consists of tables.
      algorithm: The algorithm as given; for "auto" the one that was chosen.
      reason: Why that algorithm was chosen; empty if the caller named it.
      stop_reason: Why the run stopped: "iterations", "seconds" or "nash_conv", the part
        of the goal that was reached; or "exact", because a linear program or resolving
        was complete.
      schedule_share: Completed share of the schedule of learning rates, if it has one;
        below 1, the run was cut short, and a warning said so.
      iterations: Number of iterations, of each solve if there are several; for "lp" the
        simplex iterations of both programs.
      average: Average strategy: probability of each sequence's last action, float64 [S]
        of each player; in the public-tree form in the data type of the solve.
      current: Action probabilities of the last iterate, as in `average`; None for
        resolving and "lp", and for hold'em with more than 5 million sequences.
      seconds: Time spent on iterations.
      compile_seconds: Time spent on tracing and compiling JAX functions.
      build_seconds: Time spent on building the represented game.
      solves: Number of solves.
      trajectories: Number of sampled trajectories; 0 for full-width algorithms.
      nodes: Number of decisions and terminal nodes that the trajectories visited, if
        networks were trained.
      evaluated: Value bounds of the average strategy without locks and without the
        offset of constant-sum games, if the run computed them at its end; None:
        computed when needed.
      evaluated_with_locks: The same with locks.
      curve: Points of the convergence curve, if the goal requested an evaluation.
      table: Facts about the table of a sampled game; None if the run had no table.

    Example:
      >>> import spiel_cr
      >>> result = spiel_cr.solve("kuhn_poker", "lp")
      >>> round(result.game_value(), 6)
      -0.055556
    """

    solved: SolvedForm | None = None
    policy: SavedPolicy | None = None
    networks: SavedPolicy | None = None
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
    evaluated: tuple[float, float] | None = None
    evaluated_with_locks: tuple[float, float] | None = None
    curve: tuple[CurvePoint, ...] = ()
    table: TableFacts | None = None
    reason: str = ""
    stop_reason: str = "exact"
    schedule_share: float = 1.0

    @property
    def game(self) -> pyspiel.Game:
        """The sequential OpenSpiel game."""
        if self.solved is not None:
            return self.solved.game_form.game
        assert self.policy is not None
        return self.policy.game

    @property
    def game_form(self) -> HasSequenceForm | None:
        """The represented game: a built tree, a public tree or a phantom game."""
        return None if self.solved is None else self.solved.game_form

    @property
    def form(self) -> SequenceForm | None:
        """The represented game in sequence form, with the node locks of the run."""
        return None if self.solved is None else self.solved.sequence_form

    @property
    def tree(self) -> GameTree | None:
        """The game tree, if it was built."""
        return None if self.solved is None else self.solved.game_form.tree

    @property
    def iterations_per_second(self) -> float:
        """Iterations per second, without compile time; 0 if nothing was done."""
        return self.iterations * self.solves / self.seconds if self.seconds else 0.0

    @property
    def trajectories_per_second(self) -> float:
        """Trajectories per second, without compile time; 0 if nothing was done."""
        return self.trajectories / self.seconds if self.seconds else 0.0

    def __repr__(self) -> str:
        text = f"{type(self).__name__}(game={self.game}, algorithm={self.algorithm!r}"
        names = "iterations solves seconds compile_seconds trajectories"
        for name in names.split():
            if value := getattr(self, name):
                text += f", {name}={value:.6g}"
        return f"{text})"

    def _repr_html_(self) -> str:
        facts = [("iterations", f"{self.iterations:,}")]
        if self.trajectories:
            facts.append(("trajectories", f"{self.trajectories:,}"))
        if self.form is not None:
            facts.append(("NashConv", number_text(self.nash_conv(), ".3e")))
            if self.has_locks:
                with_locks = number_text(self.nash_conv_with_locks(), ".3e")
                facts.append(("NashConv with locks", with_locks))
            facts.append(
                ("game value", f"{number_text(self.game_value(), '+.6f')} (player 0)")
            )
        spent = f"{self.seconds:.2f} s, compiling {self.compile_seconds:.1f} s"
        facts.append(("solving", spent))
        title = f"{self.algorithm} on {self.game}"
        points = [(point.iterations, point.gap) for point in self.curve]
        name = "NashConv with locks" if self.has_locks else "NashConv"
        return page_of(title, facts, (name, points), self.tree, self.average)

    def average_policy(self) -> openspiel_policy.Policy:
        """Return the average strategy at every infoset of the game."""
        if self.solved is None:
            return cast(openspiel_policy.Policy, self.policy)
        return self._policy(self.average)

    def _policy(self, behaviours: Behaviours | None) -> openspiel_policy.Policy:
        assert self.solved is not None and behaviours is not None
        cast_behaviours = self.solved.cast(behaviours)
        return form_policy(self.solved.game_form, cast_behaviours)

    def citations(self) -> str:
        """Return BibTeX entries of the papers of the algorithm, and of the software.

        Example:
          >>> import spiel_cr
          >>> text = spiel_cr.solve("kuhn_poker", "cfr+", 1).citations()
          >>> [line for line in text.splitlines() if line.startswith("@misc{T")]
          ['@misc{Tammelin2014,']
        """
        return bibtex(self.algorithm, resolved=self.solves > 1)

    def current_policy(self) -> openspiel_policy.Policy:
        """Return the last iterate at every infoset of the game.

        Raises:
          ValueError: If the result has no last iterate.
        """
        if self.current is None:
            raise ValueError(
                "current_policy: this result has no last iterate; use average_policy()"
            )
        return self._policy(self.current)

    def nash_conv(self) -> float:
        """Compute the NashConv of the average strategy in the whole game.

        NashConv is the sum of both players' gains from exact best responses.
        Node locks are lifted: a best response may also deviate at locked infosets. For
        the loss at unlocked infosets alone, see `nash_conv_with_locks`.

        Returns:
          NashConv in the game's units, computed by spiel_cr.

        Raises:
          ValueError: If the game was simulated.
        """
        low, high = self.value_bounds()
        return high - low

    def nash_conv_with_locks(self) -> float:
        """Compute the NashConv of the average strategy in the game with locks.

        Best responses keep the node locks, so the result is the sum of both players'
        losses at unlocked infosets. It converges to zero during a solve with locks, and
        `Goal.until` compares with it. It never exceeds `nash_conv`, which it equals if
        nothing is locked.

        Returns:
          NashConv with locks in the game's units, computed by spiel_cr.

        Raises:
          ValueError: If the game was simulated.
        """
        low, high = self.value_bounds_with_locks()
        return high - low

    def value_bounds(self) -> tuple[float, float]:
        """Compute bounds on the value of the whole game, with locks lifted.

        Returns:
          The smallest value of player 0's average strategy against any opponent, and
          the largest value of any strategy of player 0 against player 1's average
          strategy. Both are expected utilities of player 0 in the game's units.
          NashConv is the difference. A game with rake has no value: there, the first
          number is player 0's expected utility minus player 1's gain from a best
          response.

        Raises:
          ValueError: If the game was simulated.
        """
        return self._bounds

    def value_bounds_with_locks(self) -> tuple[float, float]:
        """Compute bounds on the value of the game with locks.

        Returns:
          As `value_bounds`, but against opponents that keep their own locks. The
          difference is `nash_conv_with_locks`.

        Raises:
          ValueError: If the game was simulated.
        """
        return self._bounds_with_locks

    @functools.cached_property
    def _bounds(self) -> tuple[float, float]:
        form, average = self.sequence_form_and_average()
        bounds = self.evaluated or value_bounds(locking.lifted(form), average)
        return self._in_units(bounds)

    @functools.cached_property
    def _bounds_with_locks(self) -> tuple[float, float]:
        if not self.has_locks:
            return self._bounds
        form, average = self.sequence_form_and_average()
        bounds = self.evaluated_with_locks or value_bounds(form, average)
        return self._in_units(bounds)

    def _in_units(self, bounds: tuple[float, float]) -> tuple[float, float]:
        """Return bounds of player 0's utility in the units of a constant-sum game."""
        offset = payoff_offset(self.game)
        return bounds[0] + offset, bounds[1] + offset

    def regrets(self) -> tuple[float, float]:
        """Compute each player's gain from a best response in the whole game.

        Returns:
          For each player the gain of a best response that may change locked infosets,
          in the game's units. Their sum is `nash_conv`. The regret of a player with
          locks includes the cost of its locks.

        Raises:
          ValueError: If the game was simulated.
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
        form, _ = self.sequence_form_and_average()
        return pair(int(locking.infosets(form, p).sum()) for p in range(2))

    def game_value(self) -> float:
        """Compute player 0's expected utility if both play the average strategy.

        Raises:
          ValueError: If the game was simulated.
        """
        return self.values()[0]

    def values(self) -> tuple[float, float]:
        """Compute both players' expected utilities if both play the average strategy.

        Their sum is the sum of the game, or minus the expected rake of a poker spot.

        Raises:
          ValueError: If the game was simulated.
        """
        return self._values

    @functools.cached_property
    def _values(self) -> tuple[float, float]:
        form, average = self.sequence_form_and_average()
        offset = payoff_offset(self.game)
        first = behaviour_value(form, average)
        second = -first if form.is_zero_sum else behaviour_value(form, average, 1)
        return first + offset, second + offset

    def sequence_form_and_average(self) -> tuple[SequenceForm, Behaviours]:
        """Return the game in sequence form and the average strategy in it.

        Raises:
          ValueError: If the game was simulated.
        """
        if self.form is None or self.average is None:
            raise ValueError(
                f"{self.game}: the game was simulated, so exact best responses are not "
                f"available; use spiel_cr.best_response(...) for a bound"
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
        metadata = self._metadata()
        if self.solved is None:
            assert self.policy is not None
            self.policy.save(path, metadata)
            return
        assert self.average is not None
        behaviours = self.solved.cast(self.average)
        save_behaviours(path, self.solved.game_form, behaviours, metadata)

    def save_network(self, path: atomic.Path) -> None:
        """Write the networks of the average strategy to an `.npz` file, atomically.

        The file contains weights and biases of each layer
        (docs/reference/formats.md). `spiel_cr.load_policy` reads it, too.

        Raises:
          OSError: If the file cannot be written; an existing file is unchanged.
          ValueError: If the result has no networks.

        Example:
          >>> import spiel_cr
          >>> algorithm = "mmd(hidden=8,episodes=16,schedule=100)"
          >>> result = spiel_cr.solve("kuhn_poker", algorithm, 1)
          >>> result.save_network("/tmp/network.npz")
        """
        if self.networks is None:
            raise ValueError(
                f"algorithm={self.algorithm!r}: the result has no networks; use a deep "
                f"algorithm such as 'mmd', without network=table and averaging=exact"
            )
        self.networks.save(path, self._metadata())

    def _metadata(self) -> dict[str, Any]:
        """Return the metadata of a policy file."""
        metadata: dict[str, Any] = {
            "algorithm": self.algorithm,
            "iterations": self.iterations,
            "trajectories": self.trajectories,
        }
        if self.form is not None:
            metadata["nash_conv"] = self.nash_conv()
        if self.form is not None and not self.form.is_zero_sum:
            metadata |= {"values": self.values(), "regrets": self.regrets()}
        if self.has_locks:
            metadata["nash_conv_with_locks"] = self.nash_conv_with_locks()
        if self.nodes is not None:
            metadata |= {"nodes": self.nodes, "seconds": self.seconds}
        if self.table is not None:
            metadata["infosets"] = self.table.infosets
        return metadata


def bibtex(algorithm: str, *, resolved: bool = False) -> str:
    """Return the entries of an algorithm, and those of the software.

    Args:
      algorithm: Algorithm string; a name that is not one of spiel_cr's is treated as a
        variant of CFR.
      resolved: Whether the algorithm re-solved a game.
    """
    entries = {
        _ALGORITHMS.sub("", entry): set(_ALGORITHMS.findall(entry)[0].split())
        for entry in _CITATIONS.read_text("utf-8").strip().split("\n\n")
    }
    name = algorithm.partition("(")[0]
    if not any(name in algorithms for algorithms in entries.values()):
        name = _USUAL
    names = {"*", name, *(["resolve"] if resolved else [])}
    return "\n\n".join(
        entry for entry, algorithms in entries.items() if algorithms & names
    )
