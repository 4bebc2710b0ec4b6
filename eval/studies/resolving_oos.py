"""Study: continual resolving beside online outcome sampling, on the thesis's games."""

import tempfile
from collections.abc import Iterator
from typing import NamedTuple

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.traversing import evaluate_bot

from ..tournaments import tournament
from .study import Line, Study


class _Game(NamedTuple):
    """A game of the thesis.

    Attributes:
      title: for people.
      run_again: NashConv of the thesis's continual resolving at 50 ms per move, when
        its program was run again by us; it is not printed there.
    """

    title: str
    run_again: float | None = None


_EVERYWHERE = {
    "python_leduc_poker": _Game("Leduc(7)", 0.46),
    "python_ii_goofspiel(num_cards=4)": _Game("4-card goofspiel", 0.75),
    "python_princess_and_monster(horizon=4)": _Game("princess and monster"),
    "python_rock_paper_scissors(num_actions=5)": _Game("rock, paper, scissors"),
}
# Too large to be asked at every infoset: these players only meet.
_MATCHES = {"python_latent_tic_tac_toe(conflict=keep)": _Game("latent tic-tac-toe")}
_MOVE_MS = 50.0
_LARGE_MOVE_MS = 250.0
_NUM_MATCHES = 8
# The budget of a sampler's first look, as a share of the whole.
_LESS = 0.1
# Lisy et al. 2015: more weight on where the match is, exploration, explorative play.
_OOS = "oos(solver=os-mccfr(epsilon=0.4,exploration=0.01,batch={},delta=0.9),{})"
_RESOLVING = "resolving(solver=cfr+,{})"

_ITERATIONS_GAME = "python_leduc_poker"
_ITERATIONS = 1_000
_THESIS_CFR_PLUS = 0.0133
_CORRECT_CFR_PLUS = 1.05e-4


def _run(share: float) -> Iterator[Line]:
    """Equal time per move, ten times that before the first match."""
    yield _cfr_plus(max(10, int(share * _ITERATIONS)))
    for game, about in _EVERYWHERE.items():
        yield from _asked_everywhere(game, about, share * _MOVE_MS)
    matches = max(2, int(share * _NUM_MATCHES))
    for game, about in _MATCHES.items():
        yield _meeting(game, about, share * _LARGE_MOVE_MS, matches)


def _cfr_plus(iterations: int) -> Line:
    """What both players' solver does with the whole of a game.

    No verdict: one figure is of a faulty program, both of another deck.
    """
    nash_conv = spiel_cr.solve(_ITERATIONS_GAME, "cfr+", iterations).nash_conv()
    return Line(
        f"CFR+ on Leduc(7), {iterations} iterations, NashConv",
        f"not published; our runs, both after 1000 with equally likely ranks (here: a "
        f"real deck): {_THESIS_CFR_PLUS} by the thesis's program, "
        f"{_CORRECT_CFR_PLUS:.2e} by a correct one",
        f"{nash_conv:.2e}",
        None,
    )


def _asked_everywhere(game: str, about: _Game, move_ms: float) -> list[Line]:
    """NashConv of both players, by their answers at every infoset.

    Being below the figure of a faulty program is no agreement: no verdict.
    """
    tree = spiel_cr.compile_game(game, observations=True)
    resolving = _nash_conv(tree, _RESOLVING.format(_budget(move_ms)))
    less = _nash_conv(tree, _OOS.format(256, _budget(_LESS * move_ms)))
    oos = _nash_conv(tree, _OOS.format(256, _budget(move_ms)))
    claim = "no figure of this game at hand"
    if about.run_again is not None:
        claim = (
            f"not published; our run of the thesis's program, whose faults cost it "
            f"much: {about.run_again}"
        )
    return [
        Line(
            f"{about.title}: continual resolving, {move_ms:g} ms per move, NashConv",
            claim,
            f"{resolving:.2e}; online outcome sampling {oos:.2e}",
            None,
        ),
        Line(
            f"{about.title}: online outcome sampling, NashConv by time per move",
            "falls (Lisy et al. 2015)",
            f"{less:.2e} with {_LESS * move_ms:g} ms, {oos:.2e} with {move_ms:g} ms",
            oos < less,
        ),
    ]


def _meeting(game: str, about: _Game, move_ms: float, matches: int) -> Line:
    """Mean return of continual resolving in matches, both seats."""
    budget = _budget(move_ms)
    bots = [_RESOLVING.format(budget), _OOS.format(4096, budget)]
    with tempfile.TemporaryDirectory() as folder:
        result = tournament.play_tournament(game, bots, matches, folder)
    half = result.half_width[0][1]
    around = "" if half is None else f" ± {half:.2f}"
    return Line(
        f"{about.title}: continual resolving against online outcome sampling, "
        f"{move_ms:g} ms per move, mean return",
        "no figure of this game at hand; its value is 0",
        f"{result.mean[0][1]:+.2f}{around} in {result.matches[0][1]} matches",
        None,
    )


def _nash_conv(tree: CompiledGame, bot: str) -> float:
    """Of a player that is asked at every infoset, by OpenSpiel."""
    return evaluate_bot(tree, bot, seeds=(0, 1)).nash_conv


def _budget(move_ms: float) -> str:
    return f"move_ms={move_ms:g},init_ms={10 * move_ms:g}"


STUDY = Study(
    "resolving_oos",
    "continual resolving beside online outcome sampling on five games",
    "Schlindenbuch 2019, thesis on general continual resolving (its program, run "
    "again); Lisy et al. 2015, 'Online Monte Carlo counterfactual regret minimization "
    "for search in imperfect information games'",
    _run,
)
