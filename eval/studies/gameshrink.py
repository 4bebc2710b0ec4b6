"""Study of GameShrink on Rhode Island Hold'em: published sizes, and its loss."""

import math
import time
from collections.abc import Iterator

import game_defs  # noqa: F401  registers the project's games
from spiel_cr.abstraction import gameshrink
from spiel_cr.abstraction.gameshrink.partition import Partition
from spiel_cr.games.public_tree.game import PublicTreeGame
from spiel_cr.games.public_tree.public_tree_loading import public_tree_game
from spiel_cr.policies import best_responses
from spiel_cr.solvers.algorithms import CFR, find
from spiel_cr.solvers.cfr import cfr

from .study import Study, StudyLine

_GAME = "python_rhode_island_holdem"
_ALGORITHM = "cfr+"
_ITERATIONS = 200
# Sizes of the linear program without abstraction and with it.
_FULL_ROWS = 91_224_226
_ROWS, _NONZEROS = 1_237_238, 50_428_638
# Classes by round that lead to these rows.
_CLASSES = [13, 205, 1774]
_EQUAL = 1e-9
_PAPER = "Gilpin & Sandholm 2007"
# Partitions that are solved, and the reason why they lose nothing.
_WAYS = {
    "by histograms": (gameshrink.histogram_partition, f"{_PAPER}, from its rows"),
    "equitable": (gameshrink.lossless_partition, "proved in gameshrink/equitable.py"),
}


def _run(share: float, way: str) -> Iterator[StudyLine]:
    """Compute the loss of the strategy of a partition's game in the full game."""
    if way not in _WAYS:
        yield from _partitions()
        return
    game, (make, claim) = public_tree_game(_GAME), _WAYS[way]
    iterations = max(10, int(share * _ITERATIONS))
    inside, lifted = _solved(game, make(game), iterations)
    off = abs(lifted - inside)
    shown = f"off by {off:.1e}" if off < _EQUAL else f"{lifted:.6f}"
    yield StudyLine(
        f"{way}: NashConv after {iterations} iterations of {_ALGORITHM}, in chips",
        f"the lifted strategy loses no more ({claim})",
        f"{inside:.6f} in the game of classes, {shown} when lifted",
        off < _EQUAL,
    )


def _partitions() -> Iterator[StudyLine]:
    """Compare two partitions of signals: by histograms, and the coarsest equitable."""
    game = public_tree_game(_GAME)
    started = time.perf_counter()
    counts = gameshrink.count(game)
    histograms = gameshrink.histogram_partition(game, counts=counts)
    seconds = time.perf_counter() - started
    yield _full_game(game)
    yield from _sizes(game, histograms, seconds)
    yield _test(game, histograms, counts)
    started = time.perf_counter()
    equitable = gameshrink.lossless_partition(game, counts)
    seconds = time.perf_counter() - started
    rows = gameshrink.lp_size(gameshrink.coarsen(game, equitable)).rows
    yield StudyLine(
        "the coarsest equitable partition, classes by round and LP rows",
        "none",
        f"{_listed(equitable)}; {rows:,}; found in {seconds:.2f} s",
        None,
    )


def _full_game(game: PublicTreeGame) -> StudyLine:
    """Return the linear program of the full game, without merged private states."""
    parameters = game.game.get_parameters()
    cards = parameters["num_ranks"] * parameters["num_suits"]
    deals = [math.perm(cards, r + 1) for r in range(game.num_rounds)]
    rows = gameshrink.lp_rows(game.betting, [deals, deals])
    return StudyLine(
        "LP rows without abstraction",
        f"{_FULL_ROWS:,} ({_PAPER})",
        f"{rows:,}",
        rows == _FULL_ROWS,
    )


def _sizes(
    game: PublicTreeGame, partition: Partition, seconds: float
) -> Iterator[StudyLine]:
    """Return sizes of the partition by histograms."""
    classes = [partition.num_classes(player) for player in range(2)]
    yield StudyLine(
        "classes by round, equal histograms of wins, ties and losses",
        f"{_CLASSES} (they give the rows of {_PAPER})",
        f"{_listed(partition)}; found in {seconds:.2f} s",
        classes == [_CLASSES, _CLASSES],
    )
    size = gameshrink.lp_size(gameshrink.coarsen(game, partition))
    yield StudyLine(
        "LP rows", f"{_ROWS:,} ({_PAPER})", f"{size.rows:,}", size.rows == _ROWS
    )
    rest = size.nonzeros - size.payoff_nonzeros
    yield StudyLine(
        "LP nonzeros",
        f"{_NONZEROS:,} ({_PAPER})",
        f"{size.nonzeros:,}: {size.payoff_nonzeros:,} payoffs, {rest:,} of the two "
        "matrices of constraints on strategies",
        size.nonzeros == _NONZEROS,
    )


def _test(
    game: PublicTreeGame, partition: Partition, counts: gameshrink.DealCounts
) -> StudyLine:
    """Return two signals that have equal histograms and are not equivalent.

    There is no verdict: the paper's theorem is about ordered game isomorphisms, for
    which histograms do not test. That its program merged by histograms is a conclusion
    from rows and nonzeros.
    """
    difference = gameshrink.difference(game, partition, counts)
    computed = "it does"
    if difference is not None:
        one, other = (
            game.reader.name(difference.player, difference.round, signal)
            for signal in difference.signals
        )
        first = partition.first(1 - difference.player, difference.round)
        opponent_cards = "the player's later cards"
        if difference.matrix >= 0:
            name = game.reader.name(
                1 - difference.player, difference.round, first[difference.other]
            )
            opponent_cards = f"the opponent's class of {name}"
        computed = (
            f"it does not: {one} and {other} are in one class, and their weights for "
            f"{opponent_cards} are {difference.shares[0]:g} and "
            f"{difference.shares[1]:g}"
        )
    return StudyLine(
        "no member of a class has more information about the opponent's class",
        "necessary for losing nothing; not tested by histograms",
        computed,
        None,
    )


def _solved(
    game: PublicTreeGame, partition: Partition, iterations: int
) -> tuple[float, float]:
    """Return NashConv of an average in the game of classes, and of its lift."""
    form = gameshrink.coarsen(game, partition).sequence_form
    solver = cfr.make_solver(
        form,
        config=find(_ALGORITHM, families=(CFR,)).config,
        compile=cfr.compile_for(form, iterations),
    )
    solver.run(iterations)
    average = solver.average(0), solver.average(1)
    lifted = gameshrink.lift(game, partition, average)
    pairs = (form, average), (game.sequence_form, lifted)
    inside, full_game = (best_responses.nash_conv(*pair) for pair in pairs)
    return inside, full_game


def _listed(partition: Partition) -> str:
    """Return numbers of classes by round, of both players if they differ."""
    first, second = (str(partition.num_classes(player)) for player in range(2))
    return first if first == second else f"{first} and {second}"


STUDY = Study(
    "gameshrink",
    "GameShrink's abstraction of Rhode Island Hold'em, and its loss",
    "Gilpin and Sandholm 2007, 'Lossless abstraction of imperfect information games'",
    _run,
    [("",), *((way,) for way in _WAYS)],
)
