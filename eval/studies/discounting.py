"""Study: discounted CFR beside CFR+ and CFR, iteration by iteration."""

from collections.abc import Iterator

import spiel_cr

from .study import Line, Study

_GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,players=2,num_cards=5,"
    "points_order=descending,returns_type=win_loss))"
)
_GAMES = (("leduc_poker", "Leduc"), (_GOOFSPIEL, "5-card goofspiel"))
_CLAIM = "DCFR(3/2, 0, 2) beats CFR+ in every game tested"


def _run(share: float) -> Iterator[Line]:
    """NashConv after equally many iterations; what is below 1 is won."""
    for game, title in _GAMES:
        tree = spiel_cr.compile_game(game)
        for iterations in (100, 1000):
            count = max(10, int(share * iterations))
            found = {
                name: spiel_cr.solve(tree, name, count).nash_conv()
                for name in ("cfr", "cfr+", "dcfr")
            }
            numbers = ", ".join(f"{name} {x:.2e}" for name, x in found.items())
            ratio = found["dcfr"] / found["cfr+"]
            yield Line(
                f"{title}, {count} iterations",
                _CLAIM,
                f"{numbers}; DCFR / CFR+ = {ratio:.2f}",
                ratio < 1,
            )


STUDY = Study(
    "discounting",
    "discounted CFR beside CFR+ on two games",
    "Brown and Sandholm 2019, 'Solving imperfect-information games via discounted "
    "regret minimization'",
    _run,
)
