"""Public functions write to stderr only if the caller requests progress."""

import pytest

import spiel_cr
from spiel_cr.evaluation.response_config import SearchConfig

KUHN = "kuhn_poker"
_FEW = SearchConfig(simulations=4)


def _responds(method, **options):
    config = spiel_cr.ResponseConfig(method, matches=4, **options)
    return lambda **more: spiel_cr.best_response(KUHN, _bot, 0, config, **more)


def _bot(player, seed):
    return spiel_cr.load_bot(KUHN, "uniform", player, seed=seed)


CALLS = {
    "solve": lambda **more: spiel_cr.solve(KUHN, "cfr+", 2, **more),
    "resolve": lambda **more: spiel_cr.resolve(KUHN, iterations=2, **more),
    "evaluate": lambda **more: spiel_cr.evaluate(KUHN, "uniform", **more),
    "play_matches": lambda **more: spiel_cr.play_matches(
        KUHN, ["uniform", "uniform"], 4, **more
    ),
    "ismcts": _responds("ismcts", search=_FEW),
    "lbr": _responds("lbr", rollouts=2),
    "learned": _responds("learned", search=_FEW, rounds=1),
}
# These functions are quick or have no progress bar.
SILENT = {
    "nash_conv": lambda: spiel_cr.nash_conv(KUHN, "uniform"),
    "exact": lambda: spiel_cr.best_response(KUHN, "uniform", 0),
    "load_bot": lambda: spiel_cr.load_bot(KUHN, "resolving(iterations=2)", 0),
    "build_tree": lambda: spiel_cr.build_tree(KUHN),
    "exploit": lambda: spiel_cr.exploit(KUHN, "uniform", methods=["exact"]),
}


@pytest.mark.parametrize("name", [*CALLS, *SILENT])
def test_functions_print_nothing_by_default(name, capfd):
    (CALLS | SILENT)[name]()
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", CALLS)
def test_progress_is_printed_to_stderr_on_request(name, capfd):
    CALLS[name](progress=True)
    output = capfd.readouterr()
    assert not output.out and output.err
