"""Study: the value of Leduc poker, by linear programming and by iteration."""

from collections.abc import Iterator

import spiel_cr
from spiel_cr.evaluation import openspiel_evaluator

from .study import Line, Study

_PUBLISHED = -0.0856
_PLACES = 4


def _run(share: float, algorithm: str, iterations: int) -> Iterator[Line]:
    """A strategy's value is off by its NashConv at most."""
    tree = spiel_cr.build_tree("leduc_poker")
    result = spiel_cr.solve(tree, algorithm, max(1, int(share * iterations)))
    evaluation = openspiel_evaluator.evaluate(tree.game, result.average_policy())
    assert evaluation.game_value is not None
    off = abs(evaluation.game_value - _PUBLISHED)
    rounding = 0.5 * 10.0**-_PLACES
    yield Line(
        f"value by {algorithm}",
        f"{_PUBLISHED} (Southey et al. 2005's game; rounded)",
        f"{evaluation.game_value:.7f}, NashConv {evaluation.nash_conv:.1e}",
        off <= rounding + evaluation.nash_conv,
    )


STUDY = Study(
    "leduc",
    "the value of Leduc poker",
    "the game: Southey et al. 2005, 'Bayes' bluff'; its value is quoted to four places "
    "in many papers",
    _run,
    [("lp", 1), ("cfr+", 20_000), ("dcfr", 20_000)],
)
