"""All functions with a seed accept the same values."""

import pytest

import spiel_cr
from spiel_cr.evaluation.responses import ismcts_search
from spiel_cr.players import bots
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.resolving.lookahead.lookahead_config import LookaheadConfig
from spiel_cr.resolving.lookahead.lookahead_resolver import LookaheadResolver
from spiel_cr.resolving.resolver import Resolver
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import find
from spiel_cr.solvers.mccfr import mccfr
from tests.support import games

KUHN = "kuhn_poker"


def search(seed):
    tree = games.compiled("kuhn")
    other = uniform_behaviour(tree.infosets[1].decisions)
    ismcts_search.search_response(tree, 0, other, seed=seed)


def sample(seed):
    config = find("evr-mccfr(batch=4)").config
    mccfr.make_solver(games.compiled("kuhn"), config=config, seed=seed)


@pytest.mark.parametrize("seed", [99999999999999999999, -1, 1.5, "1", None, True])
@pytest.mark.parametrize(
    "function",
    [
        *(search, sample),
        lambda seed: bots.uniform_bot(KUHN, 0, seed=seed),
        lambda seed: Resolver(
            games.compiled("kuhn"), 0, ResolvingConfig(iterations=1), seed=seed
        ),
        lambda seed: LookaheadResolver(
            spiel_cr.load_game(KUHN),
            0,
            ResolvingConfig(iterations=1),
            LookaheadConfig(100, blueprint_iterations=1),
            seed=seed,
        ),
        lambda seed: spiel_cr.solve(KUHN, "os-mccfr", 1, seed=seed),
    ],
    ids=["search", "sample", "bot", "resolver", "lookahead resolver", "solve"],
)
def test_invalid_seeds_are_rejected(function, seed):
    with pytest.raises(ValueError, match="seed=.*must be a whole number from 0 to 2"):
        function(seed)
