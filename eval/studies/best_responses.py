"""Study: how much of the best response ISMCTS-BR finds on small games.

Two rows for each game and opponent: the search from where the response comes, which the
paper has (there with a network, here with random rollouts), and the search after a
table of values of every information state was learned, which it does not have. Only the
first is held against what was published.
"""

import functools
import itertools
from collections.abc import Iterator

import game_defs  # noqa: F401  registers the project's games
import spiel_cr
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.judging.responding import respond
from spiel_cr.judging.response_config import ResponseConfig
from spiel_cr.judging.response_seats import summary
from spiel_cr.judging.responses.ismcts_config import SearchConfig
from spiel_cr.judging.targets import load_target

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
# From every information state beforehand, with a title and why there is no verdict.
_TABLE = 2_000
_WAYS = (
    (0, "", ""),
    (
        _TABLE,
        " after a table of all information states",
        "; not comparable: the paper learns no such table",
    ),
)
_MATCHES = 1_000


def _run(
    share: float,
    named: tuple[str, str],
    opponent: tuple[str, str],
    way: tuple[int, str, str],
) -> Iterator[Line]:
    """Values of responses and best responses are exact; both seats together."""
    (game, title), (policy, claim), (learn, after, reason) = named, opponent, way
    simulations, matches = (max(2, int(share * n)) for n in (_SIMULATIONS, _MATCHES))
    config = ResponseConfig(
        search=SearchConfig(simulations=simulations, learn=int(share * learn)),
        matches=matches,
    )
    target = load_target(policy, _compiled(game))
    found = summary([respond(target, player, config) for player in (0, 1)])
    comparable = policy == "uniform" and not reason
    yield Line(
        f"{title} against {policy}, share of the best response's reward{after}",
        claim + reason,
        f"{found['share']:.2%}: {found['value']:.5f} of "
        f"{found['exact_value']:.5f}; {found['simulations']:,} simulations",
        found["share"] >= _LEAST if comparable else None,
    )


@functools.lru_cache(1)
def _compiled(game: str) -> CompiledGame:
    return spiel_cr.compile_game(game)


STUDY = Study(
    "best_responses",
    "best responses by search beside the exact ones",
    "Timbers et al. 2022, 'Approximate exploitability: learning a best response'",
    _run,
    list(itertools.product(_GAMES, _POLICIES.items(), _WAYS)),
)
