"""Public states of a game that is never compiled, for the training of a network.

The game is laid out as far as a cut, not below it. Of the public states there some are
taken, the likelier under uniform play the sooner, and the game below these is laid out
and solved at many ranges, as for compiled games (`targets.py`).
"""

import dataclasses
import hashlib

import numpy as np
import pyspiel

from spiel_cr.cfr import cfr
from spiel_cr.common.arrays import Groups
from spiel_cr.common.errors import GameTooLargeError
from spiel_cr.compilation import loading
from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.lookahead.features import tell_apart
from spiel_cr.lookahead.frontier import Frontier
from spiel_cr.lookahead.frontier_network import (
    CutUnit,
    FrontierNetwork,
    Reading,
    next_cut,
)
from spiel_cr.lookahead.public_states import PublicStates
from spiel_cr.lookahead.set_network import Architecture
from spiel_cr.partial import growth
from spiel_cr.partial.compiler import Snapshot
from spiel_cr.partial.cut_off.places import cut_place, frontier_of
from spiel_cr.partial.cut_off.shapes import CutPlace
from spiel_cr.partial.nodes import Ids, NodeTable
from spiel_cr.partial.solved_tree import SolvedTree, find_numbers
from spiel_cr.partial.tree import PartialTree
from spiel_cr.resolving.gadget import attach_cut
from spiel_cr.value_training.met_ranges import (
    Look,
    MeetSettings,
    Met,
    Pairs,
    add_pair,
    run_and_look,
)
from spiel_cr.value_training.random_ranges import random_ranges

# The most histories of a game above a cut, and below the public states that are taken.
_MOST_HISTORIES = 4_000_000


@dataclasses.dataclass(frozen=True)
class _Part:
    """Public states after one number of moves.

    Attributes:
      frontier: the states; `history` of them are in `above`.
      above: the game as far as the cut.
      below: the game below the states, which begins with a chance move to them.
      states: the same states, `history` in `below`.
      keys: what the players know at each, see `_key`.
      whole: whether these are all public states of the cut.
    """

    frontier: Frontier
    above: CompiledGame
    below: CompiledGame
    states: PublicStates
    keys: list[bytes]
    whole: bool


class UncompiledProblem:
    """A `Problem` of a game that is never compiled.

    Attributes:
      game, cut, seal, scale, parts, games: see `problem.Problem`.
    """

    def __init__(
        self,
        game: str | pyspiel.Game,
        depth: int,
        unit: CutUnit,
        *,
        states: int,
        seed: int,
    ) -> None:
        """Finds public states, and lays out what is below them.

        Args:
          game: OpenSpiel game string or game.
          depth, unit: where trees end, see `FrontierNetwork`.
          states: public states of each cut to take at most.
          seed: for the choice.

        Raises:
          pyspiel.SpielError, ValueError: as `load_game`; no tree ends before the game
            does, a player may not have acted before one ends, or the game does not say
            what players observe who do not act.
          GameTooLargeError: what is above a cut, or below the states, is too large.
        """
        loaded = loading.load_game(game)
        self._depth, self._unit = depth, unit
        self._start = PartialTree.start(loaded, _MOST_HISTORIES)
        self.game, self.cut = str(loaded), f"{depth} {unit}"
        largest = max(abs(loaded.min_utility()), abs(loaded.max_utility()))
        self.scale = float(largest) or 1.0
        random, parts, moves = np.random.default_rng([seed, 0, 5]), [], 0
        while (cut := next_cut(depth, unit, moves)) is not None:
            part = self._part_at(cut, states, random)
            if part is None:
                break
            parts.append(part)
            moves = cut
        if not parts:
            raise ValueError(
                f"depth={depth} ({unit}): {loaded} is over after so many moves, so no "
                f"values are needed; take a smaller depth"
            )
        self._parts = parts
        self.parts = tuple(part.states for part in parts)
        self.games = tuple(part.below for part in parts)
        self.seal = hashlib.sha256(
            b"".join(key for part in parts for key in part.keys)
        ).hexdigest()
        self._reading, self._features = _read(parts)

    def features(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """See `Problem`."""
        return self._features[number]

    def random(
        self, number: int, count: int, random: np.random.Generator, pure: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """See `Problem`."""
        part = self._parts[number]
        return random_ranges(part.above, part.frontier.public, count, random, pure=pure)

    def meet(self, network: FrontierNetwork, settings: MeetSettings) -> Met:
        """Resolves the game down to its first cut in both roles; see `Problem`.

        Ranges below that, at later cuts, are not met.
        """
        learned, held_out = self._empty_pools(), self._empty_pools()
        for player in range(2):
            self._resolve(player, network, settings, (learned[0], held_out[0]))
        return Met(learned, held_out, None)

    def _empty_pools(self) -> list[list[Pairs]]:
        return [[([], []) for _ in part.keys] for part in self._parts]

    def network(
        self, architecture: Architecture, parameters: dict[str, np.ndarray]
    ) -> FrontierNetwork:
        """See `Problem`."""
        return FrontierNetwork(
            *(architecture, parameters, self._reading),
            scale=self.scale,
            game=self.game,
            depth=self._depth,
            unit=self._unit,
        )

    def _tree(self, next_cut: int | None) -> PartialTree:
        """The start of the game, whose histories get the labels of all such trees."""
        simulator = self._start.simulator
        table = NodeTable(_MOST_HISTORIES, Ids(), simulator.root())
        table.next_cut = next_cut
        return dataclasses.replace(self._start, table=table, player=0)

    def _part_at(
        self, cut: int, states: int, random: np.random.Generator
    ) -> _Part | None:
        """The public states after some moves; None: the game is over then."""
        tree = self._tree(cut)
        self._grow(tree, f"{self.cut}: as far as move {cut}", "a smaller depth")
        table = tree.table
        rows = table.cuts()
        if not len(rows):
            return None
        group = growth.public_states(table, rows)
        likely = np.bincount(group, table.reach[rows])
        count = min(states, len(likely))
        chosen = random.choice(
            len(likely), count, replace=False, p=likely / likely.sum()
        )
        rows = rows[np.isin(group, chosen)]
        frontier = frontier_of(table, tree.simulator, rows, table.chance[rows])
        rows = frontier.public.history
        below = tree.rooted_at(tree.nodes(table.id[rows]), table.chance[rows])
        self._grow(
            *(below, f"below {count} public states after move {cut}"),
            "a greater depth or fewer states in config",
        )
        above, rest = tree.compile(), below.compile()
        self._check_both_acted(above, _place(above, table.id[table.cuts()]), cut)
        roots = _place(rest, below.table.id[1 : 1 + len(rows)])
        return _Part(
            frontier._replace(
                public=dataclasses.replace(
                    frontier.public, history=_place(above, table.id[rows])
                )
            ),
            above.tree,
            rest.tree,
            dataclasses.replace(
                *(frontier.public,),
                history=roots,
                chance=np.broadcast_to(rest.tree.histories.chance, len(rest.ids))[
                    roots
                ],
            ),
            _keys(frontier.public, table),
            count == len(likely),
        )

    def _check_both_acted(self, above: Snapshot, rows: np.ndarray, cut: int) -> None:
        """A player's solve promises its opponent values below its own first decision.

        Raises:
          ValueError: a player has not acted at a history of the cut.
        """
        for player, sequence in enumerate(above.tree.histories.sequence):
            if not sequence[rows].all():
                raise ValueError(
                    f"depth={self._depth} ({self._unit}): after move {cut} of "
                    f"{self.game} player {player} may not have acted yet; take a "
                    f"greater depth"
                )

    def _grow(self, tree: PartialTree, what: str, remedy: str) -> None:
        """Expands a tree as far as it goes.

        Raises:
          GameTooLargeError: there is no room.
        """
        tree.grow()
        if tree.can_grow:
            raise GameTooLargeError(
                f"{self.game}: {what} there are more than {_MOST_HISTORIES} histories; "
                f"take {remedy}"
            )

    def _resolve(
        self,
        player: int,
        network: FrontierNetwork,
        settings: MeetSettings,
        pools: tuple[list[Pairs], list[Pairs]],
    ) -> None:
        """Resolves one player's layers above the first cut.

        Args:
          player: i.
          network: at the cut.
          settings: of the solves.
          pools: where ranges go, those to learn from and those that validate.
        """
        tree = dataclasses.replace(self._tree(network.next_cut(0)), player=player)
        tree.grow()
        solved = SolvedTree.of(tree, player)
        for _ in range(solved.decomposition.num_layers):
            game = solved.forest()
            cut = cut_place(solved, game)
            form = game.form
            if cut is not None:
                below = network.lay_out_frontier(cut.frontier)
                form = attach_cut(form, below, cut.sequences, cut.weights)
            solver = cfr.make_solver(
                form,
                config=settings.config,
                values=True,
                first=player,
                compile=cfr.compile_for(form, settings.iterations),
            )
            if cut is None:
                settings.before_solve()
                solver.run(settings.iterations)
            else:
                note = self._noting(cut, tree, pools)
                run_and_look(solver, player, settings, note)
            solved.take_strategies(game, solver)
            solved.take_values(game, solver)

    def _noting(
        self, cut: CutPlace, tree: PartialTree, pools: tuple[list[Pairs], list[Pairs]]
    ) -> Look:
        """Adds the ranges at a cut to pools."""
        known = {key: number for number, key in enumerate(self._parts[0].keys)}
        public = cut.frontier.public
        numbers = [known.get(key, -1) for key in _keys(public, tree.table)]
        bounds = [public.bounds(p) for p in range(2)]

        def note(reach: list[np.ndarray], validates: bool) -> None:
            ranges = [
                own[sequences] * weights
                for own, sequences, weights in zip(
                    reach, cut.sequences, cut.weights, strict=True
                )
            ]
            for k, number in enumerate(numbers):
                if number >= 0:
                    pair = [
                        own[mine[k] : mine[k + 1]]
                        for own, mine in zip(ranges, bounds, strict=True)
                    ]
                    add_pair(pools[int(validates)][number], pair)

        return note


def _place(snapshot: Snapshot, ids: np.ndarray) -> np.ndarray:
    """int64 [n], the histories of some ids in a compiled tree."""
    found, place = find_numbers(snapshot.ids, ids)
    assert found.all()
    return place


def _keys(public: PublicStates, table: NodeTable) -> list[bytes]:
    """For each public state what players know there, by a simulator's labels.

    Args:
      public: `history` are rows of the table.
      table: the histories.
    """
    groups = Groups(public.root_state)
    both = [table.known(public.history, p) for p in range(2)]
    return [
        b"".join(np.unique(own[groups.of(k)]).tobytes() + b"|" for own in both)
        for k in range(len(public))
    ]


def _read(
    parts: list[_Part],
) -> tuple[Reading, list[tuple[np.ndarray, np.ndarray]]]:
    """What to read of histories so that infosets can be told apart, and that.

    Entries that never vary are left out where all public states are there. Of a sample
    they may vary elsewhere.

    Raises:
      ValueError: the game says the same of different infosets of a public state.
    """
    frontiers = [part.frontier for part in parts]
    for strings in (False, True):
        try:
            features = [own.features(strings=strings) for own in frontiers]
        except ValueError:
            if strings:
                raise
            continue
        pairs = zip(features, frontiers, strict=True)
        if strings or all(tell_apart(own, f.public) for own, f in pairs):
            break
    rows = np.concatenate([own[:, :-2] for both in features for own in both])
    varies = (rows != rows[:1]).any(axis=0)
    if not all(part.whole for part in parts):
        varies[:] = True
    columns = np.flatnonzero(varies).astype(np.int32)
    kept = np.append(columns, rows.shape[1] + np.arange(2))
    return Reading(strings, columns), [
        (first[:, kept], second[:, kept]) for first, second in features
    ]
