"""Study: how much of the best response ISMCTS-BR finds on small games."""

from collections.abc import Iterator

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.responses.ismcts_config import SearchConfig

from ..players import approximate_nash_conv
from .study import Line, Study

_GOOFSPIEL = (
    "turn_based_simultaneous_game(game=goofspiel(imp_info=true,num_cards={},players=2,"
    "points_order=descending))"
)
_GAMES = (
    ("leduc_poker", "Leduc"),
    (_GOOFSPIEL.format(4), "4-card goofspiel"),
    (_GOOFSPIEL.format(5), "5-card goofspiel"),
    ("liars_dice(numdice=1,dice_sides=4)", "liar's dice 1x4"),
)
_LEAST = 0.95
_POLICIES = {
    "uniform": f"at least {_LEAST:.0%} (Timbers et al. 2022)",
    "cfr+(iterations=10)": "part of it, by a learned search (Timbers et al. 2022; "
    "its figures are drawn, not printed)",
}
_SIMULATIONS = 10_000
# From every information state beforehand.
_LEARN = 2_000
_MATCHES = 1_000


def _run(share: float) -> Iterator[Line]:
    """Values of responses and best responses are exact; both seats together."""
    simulations, learn, matches = (
        max(2, int(share * n)) for n in (_SIMULATIONS, _LEARN, _MATCHES)
    )
    config = approximate_nash_conv.ResponseConfig(
        search=SearchConfig(simulations=simulations, learn=learn), matches=matches
    )
    for game, title in _GAMES:
        tree = spiel_cr.compile_game(game)
        for policy, claim in _POLICIES.items():
            behaviour = approximate_nash_conv.opponent_behaviour(tree, policy)
            found = approximate_nash_conv.both_on_tree(tree, behaviour, config)
            yield Line(
                f"{title} against {policy}, share of the best response's reward",
                claim,
                f"{found['share']:.2%}: {found['value']:.5f} of "
                f"{found['exact_value']:.5f}; {found['simulations']:,} simulations",
                found["share"] >= _LEAST if policy == "uniform" else None,
            )


STUDY = Study(
    "best_responses",
    "best responses by search beside the exact ones",
    "Timbers et al. 2022, 'Approximate exploitability: learning a best response'",
    _run,
)
