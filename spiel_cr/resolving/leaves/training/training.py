"""`train_values`: from a game and a depth to a value network in a file."""

import contextlib
import dataclasses
import json
import os
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common.announcing import announce
from spiel_cr.common.checks import check_number
from spiel_cr.common.errors import DamagedFileError
from spiel_cr.common.parameters import read_settings
from spiel_cr.games.tree.compiler import as_compiled
from spiel_cr.games.tree.fingerprints import fingerprint
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.resolving.leaves import set_network
from spiel_cr.resolving.leaves.leaf_strings import DepthUnit, check_lookahead
from spiel_cr.resolving.leaves.network_values import NetworkValues, known_states
from spiel_cr.resolving.leaves.training import fitting
from spiel_cr.resolving.leaves.training.data import Samples, joined, label
from spiel_cr.resolving.leaves.training.met_ranges import MeetSettings, Met, draw, meet
from spiel_cr.resolving.leaves.training.random_ranges import random_ranges
from spiel_cr.resolving.leaves.training.targets import TargetSolver
from spiel_cr.resolving.leaves.training.training_config import (
    PRESETS,
    TrainingConfig,
)
from spiel_cr.resolving.leaves.training.training_cuts import Cuts, find_cuts
from spiel_cr.solvers.algorithms import CFR, find

_KIND = "value training"


class TrainingPoint(NamedTuple):
    """A point of the curves.

    Attributes:
      step: steps of the optimiser so far.
      train_loss: mean over the newest steps, at most `fitting.CHUNK`; Huber's, see
        `fitting.loss`.
      validation_loss: of the averaged network at the random ranges that are held out.
      seconds: since the training began, interruptions left out.
      nash_conv: of the strategy that resolving with this network gives, in the game's
        units; None where it was not resolved.
      met_loss: as `validation_loss`, at the ranges held out of those that the resolver
        met, mean over the rounds so far; None before the first.
    """

    step: int
    train_loss: float
    validation_loss: float
    seconds: float
    nash_conv: float | None = None
    met_loss: float | None = None


class TrainingResult(NamedTuple):
    """What a training gives.

    Attributes:
      network: the value network, as it is in the file.
      curve: validation loss and NashConv over the training.
      finished: whether all steps were done; otherwise the checkpoint goes on.
    """

    network: NetworkValues
    curve: list[TrainingPoint]
    finished: bool


def train_values(
    game: str | pyspiel.Game | CompiledGame,
    depth: int,
    out: atomic.Path,
    *,
    depth_unit: DepthUnit = "moves",
    config: str | TrainingConfig = "general",
    minutes: float | None = None,
    checkpoint: atomic.Path | None = None,
    progress: bool = False,
) -> TrainingResult:
    """Trains a network for the values where a game's lookaheads end.

    The same arguments give the same bits, however often the training is interrupted and
    resumed: what is done depends on the number of steps alone.

    Args:
      game: OpenSpiel game string, game, or a game compiled with `observations=True`.
      depth: of lookaheads, in `depth_unit`; see `resolving.lookahead.look_ahead`.
      depth_unit: as there.
      out: the .npz file that the network is written to; its curves, JSON lines with one
        `TrainingPoint` each, go beside it, to the .jsonl file of that name. What is
        there is replaced.
      config: settings, or a string such as "leduc(hidden=64)".
      minutes: stop soon after; None: when all steps are done. What is there by then is
        written. A phase's data that are not complete by then are begun anew at the next
        time, so each run needs enough time for these.
      checkpoint: file to go on from where it exists, and to write the state to; None:
        none.
      progress: show a progress bar on stderr.

    Returns:
      The network and its curves.

    Raises:
      ImportError: optax is missing.
      pyspiel.SpielError: OpenSpiel does not know the game.
      GameTooLargeError: the game is too large to be compiled.
      ValueError: a bad argument, two paths of one file, no lookahead ends before the
        game does, or the checkpoint is of another training.
      DamagedFileError: the checkpoint was changed since it was written.
    """
    config = read_settings(config, PRESETS, "config")
    check_lookahead(depth, depth_unit, None)
    if minutes is not None:
        check_number(minutes, "minutes", "(0, inf)")
    curve = pathlib.Path(out).with_suffix(".jsonl")
    atomic.check_distinct({"out": out, "curve": curve, "checkpoint": checkpoint})
    for name, path in (("out", out), ("curve", curve)):
        atomic.check_writable(path, name)
    with atomic.reserved(checkpoint, "checkpoint"):
        announce("laying the game out", progress=progress)
        tree = as_compiled(game, observations=True, progress=progress)
        cuts = find_cuts(tree, depth, depth_unit)
        announce("making the network", progress=progress)
        result = _train(cuts, config, minutes, checkpoint, progress)
    result.network.save(out)
    lines = [json.dumps(point._asdict()) + "\n" for point in result.curve]
    atomic.write_text(curve, "".join(lines))
    return result


def _train(
    cuts: Cuts,
    config: TrainingConfig,
    minutes: float | None,
    checkpoint: atomic.Path | None,
    progress: bool,
) -> TrainingResult:
    """A training from its checkpoint on; arguments as of `train_values`."""
    training = _Training(cuts, config)
    training.resume(checkpoint)
    try:
        finished = training.run(minutes, checkpoint, progress)
    finally:
        training.save(checkpoint)
    return TrainingResult(training.network(), training.curve, finished)


class _TimeIsUp(Exception):
    """The minutes of a training are over."""


class _State(NamedTuple):
    """All that changes in a training.

    It is put in its place whole: an interruption may come anywhere.

    Attributes:
      fit: network and optimiser.
      blocks: random ranges first, then a block for each round; samples by part.
      curve: so far.
    """

    fit: fitting.Fit
    blocks: tuple[list[Samples], ...]
    curve: tuple[TrainingPoint, ...]

    def with_nash_conv(self, value: float | None) -> "_State":
        """The same, with NashConv at the last point of the curve."""
        point = self.curve[-1]._replace(nash_conv=value)
        return self._replace(curve=(*self.curve[:-1], point))


class _Training:
    """The state of a training: data, network, curve.

    Phases are counted from 0; phase k begins at step k * config.steps, with its data.
    """

    def __init__(self, cuts: Cuts, config: TrainingConfig) -> None:
        """Lays out what does not change."""
        self._cuts, self._config = cuts, config
        utility = cuts.tree.histories.utility
        self._scale = float(np.abs(utility).max()) or 1.0
        self._known = known_states([(cuts.tree, states) for states in cuts.parts])
        self._architecture = set_network.Architecture(
            self._known.rows.shape[1], config.hidden, config.blocks, config.pairs
        )
        self._solvers: list[TargetSolver] | None = None
        with jax.enable_x64(False):
            self._parts = tuple(
                fitting.lay_out(
                    states,
                    self._known.features(states, self._known.find(cuts.tree, states)),
                )
                for states in cuts.parts
            )
            initial = set_network.initial(self._architecture, config.seed)
            self._state = _State(fitting.begin(initial, config), (), ())
        self._before, self._limit = 0.0, float("inf")
        self._started = time.perf_counter()

    @property
    def _seconds(self) -> float:
        return self._before + time.perf_counter() - self._started

    @property
    def curve(self) -> list[TrainingPoint]:
        """So far."""
        return list(self._state.curve)

    def network(self) -> NetworkValues:
        """The averaged network so far."""
        average = {
            name: np.asarray(own) for name, own in self._state.fit.average.items()
        }
        return NetworkValues(
            self._architecture,
            average,
            self._known,
            scale=self._scale,
            game=str(self._cuts.tree.game),
            seal=fingerprint(self._cuts.tree),
            cut=self._cuts.text,
        )

    def run(
        self, minutes: float | None, checkpoint: atomic.Path | None, progress: bool
    ) -> bool:
        """Goes on until all steps are done, or until it is time; whether all are."""
        config, total = self._config, self._config.total_steps
        self._limit = float("inf") if minutes is None else 60 * minutes
        done = int(self._state.fit.step)
        bar = tqdm(total=total, initial=done, desc="train", disable=not progress)
        with bar, jax.enable_x64(False), contextlib.suppress(_TimeIsUp):
            while done < total:
                self._check_time()
                phase = done // config.steps
                while len(self._state.blocks) <= phase:
                    self._gather(len(self._state.blocks), bar.set_postfix)
                    self.save(checkpoint)
                end = min((phase + 1) * config.steps, done + fitting.CHUNK)
                bar.update(self._advance(done, end))
                done = end
                if done % config.steps == 0:
                    point = self.curve[-1]
                    bar.set_postfix(validation=f"{point.validation_loss:.2e}")
            rounds = len(self._state.blocks)
            if rounds == config.rounds + 1 and self.curve[-1].nash_conv is None:
                found = self._meet(rounds).nash_conv
                self._state = self._state.with_nash_conv(found)
            return True
        return False

    def _check_time(self) -> None:
        """Raises _TimeIsUp where it is."""
        if time.perf_counter() - self._started > self._limit:
            raise _TimeIsUp

    def _random(self, phase: int) -> np.random.Generator:
        return np.random.default_rng([self._config.seed, phase])

    def _meet(self, phase: int) -> Met:
        config = self._config
        settings = MeetSettings(
            iterations=config.met_iterations,
            looks=config.looks,
            config=find(config.met_algorithm, families=(CFR,)).config,
            random=np.random.default_rng([config.seed, phase, 1]),
            # In all phases the same iterations: neighbouring networks give like ranges.
            held_out=config.held_out,
            held_random=np.random.default_rng([config.seed, 0, 3]),
            before_solve=self._check_time,
        )
        return meet(self._cuts, self.network(), settings)

    def _gather(self, phase: int, tell: Callable[..., None]) -> None:
        """The data that a phase begins with."""
        config, random = self._config, self._random(phase)
        if self._solvers is None:
            labels = find(config.label_algorithm, families=(CFR,)).config
            self._solvers = [
                TargetSolver(self._cuts.tree, states, config.label_iterations, labels)
                for states in self._cuts.parts
            ]
        met, state = None, self._state
        if phase:
            tell(doing="resolving")
            met = self._meet(phase)
            state = state.with_nash_conv(met.nash_conv)
        tell(doing="solving")
        block = []
        for number, (states, solver) in enumerate(
            zip(self._cuts.parts, self._solvers, strict=True)
        ):
            count = config.met_ranges if met else config.random_ranges
            ranges = random_ranges(
                self._cuts.tree, states, count, random, pure=config.pure
            )
            if met is not None:
                kept = count - self._held_out(count)
                some = [
                    draw(pool, (ranges[0][rows], ranges[1][rows]), states, random)
                    for pool, rows in (
                        (met.pools[number], slice(kept)),
                        (met.held_out[number], slice(kept, None)),
                    )
                ]
                first, second = (np.concatenate(own) for own in zip(*some, strict=True))
                ranges = first, second
            block.append(label(solver, ranges, self._scale, self._check_time))
        self._state = state._replace(blocks=(*state.blocks, block))

    def _held_out(self, size: int) -> int:
        return min(size - 1, max(1, int(self._config.held_out * size)))

    def _advance(self, begin: int, end: int) -> int:
        """Steps up to `end`, which ends a chunk or a phase; how many they were."""
        config = self._config
        random = np.random.default_rng([config.seed, begin, 2])
        samples, rows = [], []
        for number in range(len(self._parts)):
            blocks = [block[number] for block in self._state.blocks]
            samples.append(self._padded(blocks))
            sizes = [len(one.ranges[0]) for one in blocks]
            starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]
            shape = end - begin, config.batch
            # Of each block the last rows are held out.
            chosen = random.integers(sizes[0] - self._held_out(sizes[0]), size=shape)
            if len(blocks) > 1:
                weights = np.arange(1, len(blocks)) ** config.recency
                block = 1 + random.choice(
                    len(weights), shape, p=weights / weights.sum()
                )
                kept = config.met_ranges - self._held_out(config.met_ranges)
                met = starts[block] + random.integers(kept, size=shape)
                chosen = np.where(random.random(shape) < config.met_share, met, chosen)
            rows.append(chosen.astype(np.int32))
        fit, found = fitting.advance(
            *(self._state.fit, self._parts, tuple(samples), tuple(rows)),
            config=config,
        )
        curve = self._state.curve
        if end % config.steps == 0 or end % (4 * fitting.CHUNK) == 0:
            first, *later = self._losses(fit)
            met_loss = sum(later) / len(later) if later else None
            point = TrainingPoint(end, float(found), first, self._seconds)
            curve = (*curve, point._replace(met_loss=met_loss))
        self._state = self._state._replace(fit=fit, curve=curve)
        return end - begin

    def _padded(self, blocks: list[Samples]) -> Samples:
        """Samples of all blocks, padded to those of a whole training: one program."""
        config = self._config
        capacity = config.random_ranges + config.rounds * config.met_ranges
        both = joined(blocks)
        missing = capacity - len(both.ranges[0])
        padded: Samples = jax.tree.map(
            lambda own: np.concatenate([own, np.zeros((missing, own.shape[1]), "f")]),
            both,
        )
        return padded

    def _losses(self, fit: fitting.Fit) -> list[float]:
        """Losses at held-out ranges: random ones, then those of each round so far."""
        losses = []
        for block in self._state.blocks:
            held = tuple(
                jax.tree.map(lambda own: own[-self._held_out(len(own)) :], one)
                for one in block
            )
            found = fitting.validation_loss(
                fit.average, self._parts, held, self._config.delta
            )
            losses.append(float(found))
        return losses

    def _identity(self) -> dict[str, Any]:
        return {
            "kind": _KIND,
            "game": str(self._cuts.tree.game),
            "fingerprint": fingerprint(self._cuts.tree),
            "cut": self._cuts.text,
            "config": dataclasses.asdict(self._config),
        }

    def save(self, path: atomic.Path | None) -> None:
        """Writes all that it needs to go on; None: nothing."""
        if path is None:
            return
        state = self._state
        leaves = jax.tree.leaves((state.fit, state.blocks))
        arrays = {f"state{k}": np.asarray(leaf) for k, leaf in enumerate(leaves)}
        metadata = {
            **self._identity(),
            "blocks": len(state.blocks),
            "curve": [point._asdict() for point in state.curve],
            "seconds": self._seconds,
            "versions": storage.versions(),
        }
        storage.save(path, arrays, metadata)

    def resume(self, path: atomic.Path | None) -> None:
        """Puts a file's state back; nothing where there is no file.

        Raises:
          DamagedFileError: the file was changed since it was written.
          ValueError: it is of another training.
        """
        if path is None or not os.path.exists(path):
            return
        with storage.called("checkpoint"):
            arrays, metadata = storage.load(path)
        for name, mine in self._identity().items():
            if metadata.get(name) != mine:
                raise ValueError(
                    f"checkpoint={os.fspath(path)!r} is of a training with {name} "
                    f"{metadata.get(name)!r}, and this one has {mine!r}; give another "
                    f"path or the same arguments"
                )
        try:
            self._restore(arrays, metadata)
        except (KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(
                f"checkpoint {os.fspath(path)} does not fit together ({error}); give "
                f"another path, or delete it to start anew"
            ) from error

    def _restore(self, arrays: dict[str, np.ndarray], metadata: dict[str, Any]) -> None:
        config, sizes = self._config, [part.infosets for part in self._cuts.parts]
        counts = [config.random_ranges] + [config.met_ranges] * config.rounds

        def empty(count: int, both: tuple[np.ndarray, np.ndarray]) -> Samples:
            first, second = (np.zeros((count, len(own)), "f") for own in both)
            return Samples((first, second), (first, second), (first, second))

        counts = counts[: metadata["blocks"]]
        blocks = tuple([empty(count, both) for both in sizes] for count in counts)
        leaves, structure = jax.tree.flatten((self._state.fit, blocks))
        state = [arrays[f"state{k}"] for k in range(len(leaves))]
        for kept, own in zip(leaves, state, strict=True):
            if kept.shape != own.shape or kept.dtype != own.dtype:
                raise ValueError(f"an array is {own.dtype} {own.shape}")
            if not np.isfinite(own).all():
                raise ValueError("an array has numbers that are not finite")
        fit, blocks = jax.tree.unflatten(structure, state)
        curve = tuple(TrainingPoint(**point) for point in metadata["curve"])
        done = int(fit.step)
        if done and done % config.steps == 0 and (not curve or curve[-1].step != done):
            raise ValueError(f"it has {done} steps, and no point of the curve there")
        self._before = float(metadata["seconds"])
        with jax.enable_x64(False):
            self._state = _State(jax.device_put(fit), blocks, curve)
