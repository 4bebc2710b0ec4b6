"""Endgames in two phases: a whole strategy, and its last round solved anew.

Gilpin & Sandholm 2006 and 2007 (GS1, GS2): what is played in the early rounds comes
from an abstraction; the last round is solved with all signals when it is reached. They
took the opponent to play the early rounds as we do, and weighed its hands by Bayes'
rule. That is *unsafe*: the opponent need not. *Safe* is a gadget game (Burch, Johanson
& Bowling 2014): the opponent may take what a best response to the first strategy gets
instead, so that solved to the end it never gains.

All endgames are asked for at once, at every public state, so NashConv of the
combination is exact. Those of a player whose first decision in the last round is
equally deep in its own decisions (a *layer*) are one game in sequence form, all boards
side by side: Rhode Island Hold'em has eight of them.
"""

import dataclasses
import hashlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

from spiel_cr.common import atomic, storage
from spiel_cr.common.checks import check_choice, check_dtype, check_iterations
from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.games.signals import public_nodes
from spiel_cr.games.signals.game import SignalGame
from spiel_cr.policies import best_responses, conversions
from spiel_cr.policies.signal_files import fingerprint
from spiel_cr.resolving.public_gadget import PublicSubgame, cut_public
from spiel_cr.resolving.public_layers import PublicDecomposition, decompose_public
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.solver import Solver

GADGETS = ("cfrd", "unsafe")

_KIND = "endgames"


def solve_endgames(
    game: SignalGame,
    behaviour: Sequence[np.ndarray],
    *,
    gadget: str = "cfrd",
    algorithm: str = "cfr+",
    iterations: int,
    dtype: np.typing.DTypeLike = np.float64,
    progress: bool = False,
    checkpoint: atomic.Path | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Solves the last round of a signal game anew, for both players.

    Args:
      game: the whole game.
      behaviour: for each player float [S], action probabilities by logical sequence,
        such as `gameshrink.lift` gives.
      gadget: "cfrd" is safe; "unsafe" believes that the opponent plays `behaviour`.
      algorithm: of the CFR family.
      iterations: of it, for the endgames of each layer of decisions.
      dtype: float64 or float32, of the iterations.
      progress: whether to show bars on stderr.
      checkpoint: a file to go on from, which is written after each layer; None: none.
        A run that was stopped and goes on to as many iterations gives the same bits.

    Returns:
      For each player float64 [S]: `behaviour` with other probabilities in the last
      round.

    Raises:
      ValueError: there is no such gadget, algorithm or dtype; or some player first acts
        in the last round, so that there is no phase before it; or the checkpoint is one
        of other arguments, or has more iterations.
      DamagedFileError: the checkpoint was changed since it was written.
      FileInUseError: another process writes the checkpoint.
      OSError: the checkpoint cannot be written.
    """
    check_iterations(iterations)
    with atomic.reserved(checkpoint, "checkpoint"):
        endgames = Endgames(
            *(game, behaviour),
            gadget=gadget,
            algorithm=algorithm,
            dtype=dtype,
            planned=iterations,
            progress=progress,
            checkpoint=checkpoint,
        )
        endgames.run_to(iterations, progress=progress)
        return endgames.behaviour()


class _Layer(NamedTuple):
    """The endgames of a player that begin in one layer of its decisions.

    Attributes:
      player: whose strategy is asked for.
      inside: bool [S], which of its sequences are in them.
      solver: of all of them side by side.
    """

    player: int
    inside: np.ndarray
    solver: Solver


class _Saved(NamedTuple):
    """What a checkpoint holds.

    Attributes:
      arrays: of each layer's state.
      done: for each layer its iterations and seconds.
    """

    arrays: dict[str, np.ndarray]
    done: list[tuple[int, float]]


class Endgames:
    """All endgames of both players, which may be solved on from where they stand.

    Attributes:
      layers: the solvers.
      counts: for each player, how many endgames there are: first public decisions in
        the last round times boards.
    """

    def __init__(
        self,
        game: SignalGame,
        behaviour: Sequence[np.ndarray],
        *,
        gadget: str = "cfrd",
        algorithm: str = "cfr+",
        dtype: np.typing.DTypeLike = np.float64,
        planned: int,
        progress: bool = False,
        checkpoint: atomic.Path | None = None,
    ) -> None:
        """Lays the endgames out and compiles their programs.

        Args:
          game: see `solve_endgames` for this and what is not named here.
          behaviour: of the first phase.
          gadget: one of `GADGETS`.
          algorithm: of the CFR family.
          dtype: of the iterations.
          planned: iterations in all; short runs have programs that compile faster, and
            no checkpoint may have more.
          progress: whether to show a bar on stderr.
          checkpoint: its state is taken, if the file is there; going on from it gives
            the same bits where as many are planned. Who runs several processes
            reserves it (`atomic.reserved`).

        Raises:
          ValueError, DamagedFileError: see `solve_endgames`.
          OSError: the checkpoint cannot be read.
        """
        check_choice(gadget, "gadget", GADGETS)
        self._game, self._gadget = game, gadget
        self._config = find(algorithm, families=(CFR,)).config
        self._dtype = check_dtype(dtype)
        self._given = [np.asarray(own, np.float64) for own in behaviour]
        self._checkpoint = checkpoint
        if checkpoint is not None:
            atomic.check_writable(checkpoint, "checkpoint")
        saved = self._read(planned)  # refused before the work, if at all
        cuts = [decompose_public(game, player) for player in range(2)]
        roots = [endgame_roots(d) for d in cuts]
        last = game.num_rounds - 1
        self.counts = tuple(
            len(some) * len(np.intersect1d(*d.boards[last]))
            for d, some in zip(cuts, roots, strict=True)
        )
        total = sum(
            len(np.unique(d.layer[d.roots[some]]))
            for d, some in zip(cuts, roots, strict=True)
        )
        self.layers: list[_Layer] = []
        with tqdm(total=total, desc="compiling", disable=not progress) as bar:
            for d, some in zip(cuts, roots, strict=True):
                for subgame, form in _forms(d, some, self._given, gadget):
                    owner = d.decisions.owner[1:]
                    inside = np.append(False, np.isin(owner, subgame.own))
                    solver = cfr.make_solver(
                        form,
                        config=self._config,
                        dtype=self._dtype,
                        compile=cfr.compile_for(form, planned),
                    )
                    self.layers.append(_Layer(d.player, inside, solver))
                    bar.update()
        if saved is not None:
            self._restore(saved)

    @property
    def seconds(self) -> float:
        """Time spent iterating so far, compiling apart."""
        return sum(layer.solver.seconds for layer in self.layers)

    @property
    def compile_seconds(self) -> float:
        """Time spent compiling so far."""
        return sum(layer.solver.compile_seconds for layer in self.layers)

    def run_to(self, iterations: int, *, progress: bool = False) -> None:
        """Iterates until every layer has so many iterations in all.

        The checkpoint, if there is one, is written after each layer.

        Args:
          iterations: of each; what has them already stays as it is.
          progress: whether to show a bar on stderr.

        Raises:
          OSError: the checkpoint cannot be written.
        """
        done = [layer.solver.iterations for layer in self.layers]
        total = iterations * len(self.layers)
        with tqdm(total=total, initial=sum(done), disable=not progress) as bar:

            def advance(count: int) -> None:
                bar.update(count)

            for number, layer in enumerate(self.layers):
                bar.set_description(f"endgames {number + 1} of {len(self.layers)}")
                left = iterations - layer.solver.iterations
                if left > 0:
                    layer.solver.run(left, after_chunk=advance)
                    self.save()

    def behaviour(self) -> tuple[np.ndarray, np.ndarray]:
        """For each player float64 [S]: see `solve_endgames`."""
        found = [own.copy() for own in self._given]
        for layer in self.layers:
            solved = layer.solver.average_behaviour(layer.player)[1:]
            found[layer.player][layer.inside] = solved
        return found[0], found[1]

    def save(self) -> None:
        """Writes the checkpoint, if there is one, atomically and without pickle.

        Raises:
          OSError: it cannot be written; the old file is as it was.
        """
        if self._checkpoint is None:
            return
        arrays, done = {}, []
        for number, layer in enumerate(self.layers):
            leaves = layer.solver.leaves()
            done.append([layer.solver.iterations, layer.solver.seconds])
            for k, leaf in enumerate(leaves):
                arrays[f"layer{number}_leaf{k}"] = leaf
        described = {"layers": done, "versions": storage.versions()}
        storage.save(self._checkpoint, arrays, {**self._identity(), **described})

    def _read(self, most: int) -> _Saved | None:
        """What the checkpoint holds, if it is there and of these endgames."""
        path = self._checkpoint
        if path is None or not os.path.exists(path):
            return None
        arrays, said = storage.load(path)
        for name, mine in self._identity().items():
            if said.get(name) != mine:
                raise ValueError(
                    f"checkpoint={os.fspath(path)!r} has {name} {said.get(name)!r}, "
                    f"and this run has {mine!r}; give another path or the same "
                    "arguments"
                )
        done = said["layers"]
        if max(count for count, _ in done) > most:
            raise ValueError(
                f"checkpoint={os.fspath(path)!r} has more than iterations={most} "
                "already; ask for more, or give another path"
            )
        return _Saved(arrays, done)

    def _restore(self, saved: _Saved) -> None:
        """Puts back what a file held."""
        for number, (layer, (_, seconds)) in enumerate(
            zip(self.layers, saved.done, strict=True)
        ):
            size = len(layer.solver.leaves())
            leaves = [saved.arrays[f"layer{number}_leaf{k}"] for k in range(size)]
            layer.solver.restore(leaves, seconds=seconds)

    def _identity(self) -> dict[str, Any]:
        """What a file must have in common with this; JSON values."""
        digest = hashlib.sha256()
        for own in self._given:
            digest.update(np.ascontiguousarray(own).data)
        settings = dataclasses.asdict(self._config)
        settings.pop("name")
        return {
            "kind": _KIND,
            "game": str(self._game.game),
            "fingerprint": fingerprint(self._game),
            "behaviour": digest.hexdigest(),
            "gadget": self._gadget,
            "config": repr(settings),
            "dtype": self._dtype.name,
        }


def endgame_roots(d: PublicDecomposition) -> np.ndarray:
    """int32, which of `d.roots` are the player's first decisions of the last round.

    Raises:
      ValueError: one of them is the player's first decision at all.
    """
    betting, last = d.game.betting, d.game.num_rounds - 1
    acted = np.zeros(len(betting), bool)
    for node in range(1, len(betting)):
        above = betting.parent[node]
        acts = betting.player[above] == d.player and betting.round[above] == last
        acted[node] = acted[above] or acts
    found = np.flatnonzero((betting.round[d.roots] == last) & ~acted[d.roots])
    if (d.layer[d.roots[found]] == 1).any():
        raise ValueError(
            f"{d.game.game}: player {d.player} first acts in the last round {last}, so "
            "there is no phase before the endgame; give a game of several rounds"
        )
    return found.astype(np.int32)


def _forms(
    d: PublicDecomposition,
    roots: np.ndarray,
    given: Sequence[np.ndarray],
    gadget: str,
) -> Iterator[tuple[PublicSubgame, SequenceForm]]:
    """The endgames of one player, layer by layer; `roots` as `endgame_roots` says."""
    i = d.player
    reach = conversions.reach_from_behaviour(d.decisions, given[i])
    for layer in np.unique(d.layer[d.roots[roots]]).tolist():
        mine = roots[d.layer[d.roots[roots]] == layer]
        if gadget == "unsafe":
            subgame = cut_public(d, layer, mine, gadget=False)
            ranges = [
                [_reach(d, given[p], p, node) for node in d.roots[mine].tolist()]
                for p in range(2)
            ]
            yield subgame, subgame.form_by_beliefs(ranges)
        else:
            subgame = cut_public(d, layer, mine)
            own = reach[d.decisions.parent[subgame.openings]]
            yield subgame, subgame.form(own, _values(d, subgame, own, given[i]))


def _values(
    d: PublicDecomposition, subgame: PublicSubgame, own: np.ndarray, given: np.ndarray
) -> np.ndarray:
    """float64 [g], what a best response gets at the gadget, in o's utility."""
    i, count = d.player, len(subgame.augmented)
    # Nobody terminates for this; a maximum, so nothing is rounded.
    form = subgame.form(own, np.full(count, -1e30))
    inside = np.isin(d.decisions.owner[1:], subgame.own)
    behaviour = np.append(1.0, given[1:][inside])
    reach = conversions.reach_from_behaviour(form.decisions[i], behaviour)
    return best_responses.infoset_values(form, 1 - i, reach)[:count]


def _reach(
    d: PublicDecomposition, given: np.ndarray, player: int, node: int
) -> np.ndarray:
    """float64 [H], a player's reach of a public node, by signal; ones if it is none."""
    game, betting = d.game, d.game.betting
    decisions = public_nodes.public_decisions(game, player)
    round_ = int(betting.round[node])
    reach = np.ones(game.num_signals(player)[round_])
    while betting.parent[node] >= 0:
        above = int(betting.parent[node])
        if betting.player[above] == player:
            then = game.ancestors(player, round_, int(betting.round[above]))
            reach *= decisions.block(given, above)[then, d.index[node]]
        node = above
    return reach if reach.any() else np.ones_like(reach)
