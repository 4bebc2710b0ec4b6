"""Every parser of strings rejects invalid ones, with the value and a remedy."""

import pytest

from spiel_cr import load_bot, solve
from spiel_cr.eval.adapters import registry
from spiel_cr.resolving.leaves.leaf_strings import parse_leaf
from spiel_cr.resolving.resolving_config import ResolvingConfig
from spiel_cr.solvers.algorithms import find
from tests.support import games
from tests.support.named_opponents import load_opponent


def resolve_at(leaf):
    return ResolvingConfig(iterations=5, depth=1, leaf=leaf)


PARSERS = {
    "algorithm": find,
    "solved": lambda text: solve(games.compiled("kuhn"), text),
    "leaf": parse_leaf,
    "leaf of a resolver": resolve_at,
    "bot": lambda text: load_bot(games.compiled("kuhn"), text, 0),
    # Without a game tree: the lookahead tree grows during the match.
    "lookahead bot": lambda text: load_bot("kuhn_poker", text, 0),
    "opponent": lambda text: load_opponent(text, games.compiled("kuhn")),
    "comparison": registry.expand,
}


# For each parser: strings, and patterns of the error messages.
ROWS = {
    "algorithm": [
        ("", "is not a name"),
        ("CFR", "choose one of auto, cfr"),
        ("cfr(x=1)", "unknown parameter 'x'"),
        ("cfr(", "cannot be read"),
        ("cfr(alpha)", "alpha"),
        ("cfr+(gamma=-1)", "gamma=-1"),
        ("cfr+(gamma=inf)", "gamma=inf"),
        ("dcfr(alpha=much)", "alpha=much must be a number"),
        ("dcfr(alpha=-inf)", "alpha=-inf"),
        ("dcfr(beta=nan)", "beta=nan"),
        ("cfr(alternating=2)", "alternating=2 must be true or false"),
        ("cfr(exploration=2)", "exploration=2"),
        ("sd-cfr(width=3)", "unknown parameter 'width'"),
        ("sd-cfr(hidden=0)", "hidden=0"),
        ("sd-cfr(hidden=65537)", "hidden=65537"),
        ("sd-cfr(layers=65)", "layers=65"),
        ("sd-cfr(gamma=11)", "gamma=11"),
        ("sd-cfr(linear=11)", "linear=11"),
        ("vr-deep-dcfr+(alpha=11)", "alpha=11.* inf discounts nothing"),
        ("sd-cfr(memory=fifo)", "memory='fifo'"),
        ("sd-cfr(averaging=ensemble+mean)", "averaging='mean'"),
        ("dream(epsilon=0)", "epsilon=0"),
        ("dream(importance=false)", "importance=false .* epsilon=1"),
        ("sd-cfr(predictive=true)", "accumulate=cumulative"),
        ("sd-cfr(sampling=full)", "sampling='full'"),
        ("sd-cfr(values=critic)", "sampling=outcome"),
        ("vr-deep-pdcfr+(averaging=ensemble)", "memory=exact"),
        ("dream(critic_capacity=8)", "critic_capacity=8"),
        ("ddpg", "ddpg"),
        ("mmd(size=3)", "size"),
        ("mmd(cooling=0)", "cooling"),
        ("mmd(temperature=-1)", "temperature"),
        ("mmd(trace=2)", "trace"),
        ("public-xs", "no algorithm 'public-xs'; choose one of .*public-es"),
        ("public-vr(batch=3)", "unknown parameter 'batch'"),
        ("public-vr(alpha=1.5)", "alpha=1.5: public sampling updates visited infosets"),
        ("public-vr(beta=0)", "beta=0.0: public sampling updates visited infosets"),
        ("public-vr(predictive=true)", "predictive=true: public sampling updates"),
        ("public-vr(epsilon=0)", "epsilon"),
        ("public-vr(baseline=oracle)", "baseline"),
        ("public-vr(gamma=9)", "gamma"),
    ],
    "solved": [
        ("os-mccfr(epsilon=0)", r"epsilon=0.0 must lie in \(0, 1\]"),
        ("os-mccfr(epsilon=1.5)", r"epsilon=1.5 must lie in"),
        ("os-mccfr(epsilon=nan)", r"epsilon=nan must lie in"),
        ("os-mccfr(epsilon=much)", "epsilon=much must be a number"),
        ("os-mccfr(batch=0)", "batch=0 must be a whole number from 1 to 1048576"),
        ("os-mccfr(batch=2000000)", "batch=2000000 must be a whole number from 1"),
        ("os-mccfr(batch=1.5)", "batch=1.5 must be a whole"),
        ("os-mccfr(batch=true)", "batch=true must be a number"),
        ("os-mccfr(baseline=best)", "baseline='best' must be one of none, average"),
        (
            "os-mccfr(averaging=none)",
            "averaging='none' must be one of exact, sampled",
        ),
        ("os-mccfr(explore=no)", "explore='no' must be one of uniform, balanced"),
        ("evr-mccfr(decay=0)", r"decay=0.0 must lie in \(0, 1\]"),
        ("os-mccfr(delta=1)", r"delta=1.0 must lie in \[0, 1\)"),
        ("as-mccfr(threshold=-1)", "threshold=-1.0 must be finite and >= 0"),
        ("as-mccfr(bonus=0)", "bonus=0.0 must be finite and above 0"),
        ("os-mccfr(gamma=-1)", "gamma=-1.0 must be finite and >= 0"),
        ("os-mccfr(incremental=2)", "incremental=2 must be true or false"),
        ("os-mccfr(exploration=2)", "exploration=2"),
        ("os-mccfr(size=2)", "unknown parameter 'size'; os-mccfr accepts .*epsilon"),
        ("os-mccfr(scheme=external)", "unknown parameter 'scheme'"),
        ("cfr+(batch=2)", "unknown parameter 'batch'"),
        ("ms-mccfr", "no algorithm 'ms-mccfr'; choose one of .*os-mccfr"),
        ("CFR++", r"no algorithm 'CFR\+\+'; .*\(did you mean 'cfr\+'\?\)$"),
    ],
    "leaf": [
        ("best", r"leaf='best': not a leaf value; use continuations.*uniform"),
        ("policy", "leaf='policy': not a leaf value; use continuations.*uniform"),
        ("continuations(k=1.5)", "k=1.5 must be a whole number"),
        ("uniform(n=2", "leaf='uniform\\(n=2' cannot be read"),
        ("uniform(n=3)", "unknown parameter 'n'; uniform accepts none"),
        ("rollouts(n=0)", "n=0"),
    ],
    "bot": [
        (
            "nobody",
            "bot='nobody': the player 'nobody' does not exist; choose one of ",
        ),
        (
            "nobody(x=1)",
            "the player 'nobody' does not exist; choose one of resolving, search, oos",
        ),
        ("", "bot='' cannot be read: '' is not a name; write name or name"),
        ("resolving(", r"bot='resolving\(' cannot be read.*write name or name\(param"),
        (
            "resolving(speed=3)",
            "unknown parameter 'speed'; resolving accepts solver, it",
        ),
        ("uniform(seed=3)", "unknown parameter 'seed'; uniform accepts none"),
        ("resolving(iterations=1.5)", "iterations=1.5 must be a whole number"),
        ("resolving(iterations=many)", "iterations=many must be a number"),
        ("resolving(iterations=true)", "iterations=true must be a number"),
        ("oos(move_ms=fast)", "move_ms=fast must be a number"),
        ("resolving(iterations=0)", "iterations=0 must be a whole number from 1"),
        ("resolving(move_ms=-4)", "move_ms=-4.0 must be finite and above 0"),
        ("resolving(gadget=safe)", "gadget='safe' must be one of cfrd, maxmargin"),
        ("resolving(solver=cfr++)", r"there is no algorithm 'cfr\+\+'"),
        ("resolving(solver=sarsa)", "^solver='sarsa': there is no algorithm"),
        ("resolving(target=true)", "target=True: .* such as solver='os-mccfr'"),
        ("resolving(solver=os-mccfr,target=2)", "target=2"),
        ("solved(solver=sarsa)", "^solver='sarsa': there is no algorithm"),
        ("oos(solver=sarsa)", "^solver='sarsa': there is no algorithm"),
        (
            "oos(solver=cfr+)",
            r"solver='cfr\+': the algorithm is full-width, but must be sampled; ",
        ),
        (
            "oos(iterations=2,target=hand)",
            "target='hand' must be one of infoset, subgame",
        ),
        ("solved(seconds=-1)", "seconds=-1.0 must be finite and above"),
        ("policy", "path"),
        ("resolving(iterations=2,depth=0)", "depth=0 must be a whole number from 1"),
        (
            "resolving(iterations=2,depth=1,depth_unit=plies)",
            "depth_unit='plies' must be one of moves, rounds",
        ),
        (
            "resolving(iterations=2,leaf=uniform)",
            "leaf='uniform' needs a depth limit; set depth=N",
        ),
        (
            "resolving(iterations=2,depth_unit=rounds)",
            "depth_unit='rounds' needs a depth limit; set depth=N",
        ),
        (
            "resolving(iterations=2,depth=1,leaf=continuations(k=(2))",
            "cannot be read: a bracket is not closed",
        ),
        (
            "resolving(iterations=2,depth=1,leaf=uniform,solver=os-mccfr)",
            "depth=1 needs a full-width solver, not 'os-mccfr'",
        ),
    ],
    "lookahead bot": [
        ("resolving(iterations=5,warmup_matches=2)", "max_histories"),
        (
            "resolving(iterations=5,max_histories=3,blueprint_iterations=1)",
            "max_histories=3: the lookahead tree does not reach a decision",
        ),
        ("resolving(iterations=5,max_histories=0)", "max_histories=0"),
        ("resolving(iterations=5,max_histories=58,depth=2)", "depth"),
        ("resolving(iterations=5,max_histories=58,values=best_response)", "iterates"),
        ("resolving(iterations=5,max_histories=58,solver=os-mccfr)", "full-width"),
        (
            "resolving(iterations=5,max_histories=58,leaf=best)",
            "continuations of the bl",
        ),
        (
            "resolving(iterations=5,max_histories=58,warmup_matches=-1)",
            "warmup_matches",
        ),
        ("oos(max_histories=58)", "max_histories"),
    ],
    "opponent": [
        ("nothing", "the player 'nothing' does not exist; choose one of .*uniform"),
        ("cfr+", "iterations=10"),
        ("cfr+(gamma=2)", r"cfr\+\(gamma=2,iterations=10\)"),
        ("cfr+(iterations=0)", "whole number"),
        ("cfr+(iterations=2,speed=3)", "unknown parameter 'speed'"),
        ("resolving(iteration=3)", "unknown parameter 'iteration'"),
    ],
    "comparison": [
        ("cfr++", "did you mean"),
        ("cfr;;lp", "a name is missing"),
        ("dcfr(speed=3)", "unknown parameter 'speed'"),
        ("resolve(gadget=cfrd)", "resolve accepts"),
        ("resolve(solver=sarsa)", "^solver='sarsa': there is no algorithm"),
        ("resolve(solver=evr-mccfr)", "full-width"),
        ("oos(steps=3)", "unknown parameter 'steps'"),
        ("lp(x=1)", "lp accepts none"),
    ],
    "leaf of a resolver": [
        ("best", "leaf='best': not a leaf value; use continuations"),
        ("uniform(n=3)", "unknown parameter 'n'; uniform accepts none"),
    ],
}


@pytest.mark.parametrize(
    ("parser", "text", "words"),
    [(parser, *row) for parser, rows in ROWS.items() for row in rows],
)
def test_invalid_strings_are_rejected(parser, text, words):
    with pytest.raises(ValueError, match=words):
        PARSERS[parser](text)
