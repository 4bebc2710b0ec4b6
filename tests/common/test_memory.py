"""Memory limits: sizes, the estimate of histories, and what is refused."""

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.common import memory
from tests.support import games


@pytest.mark.parametrize(
    "text,size",
    [
        (3_000_000_000, 3_000_000_000),
        ("123456", 123_456),
        ("123 B", 123),
        ("3GB", 3 * 10**9),
        ("3G", 3 * 10**9),
        ("3gb", 3 * 10**9),
        ("500M", 500 * 10**6),
        ("1.5 GiB", 3 * 2**29),
        ("2GiB", 2**31),
        (" 7 KiB ", 7 * 2**10),
        ("64k", 64_000),
        ("0.5TB", 5 * 10**11),
        ("1Ti", 2**40),
    ],
)
def test_sizes(text, size):
    assert memory.parse_size(text) == size


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "GB",
        "3XB",
        "3 4GB",
        "1.2.3GB",
        ".",
        "-1GB",
        "nan",
        "inf",
        "3GBs",
        "lots",
    ],
)
def test_bad_sizes_refused(text):
    with pytest.raises(ValueError, match="memory_limit"):
        memory.parse_size(text)


@pytest.mark.parametrize("name", ["kuhn", "goofspiel4", "leduc", "nim", "dark_hex"])
def test_estimate_is_unbiased(name):
    """Means of many independent estimates; four of their standard errors."""
    game = games.compiled(name).game
    estimates = [
        memory.estimate_histories(game, rollouts=20, seed=seed) for seed in range(100)
    ]
    error = np.std(estimates, ddof=1) / np.sqrt(len(estimates))
    # A tree as regular as goofspiel's has no error but rounding.
    expected = games.BY_NAME[name].histories
    assert np.mean(estimates) == pytest.approx(expected, rel=1e-12, abs=4 * error)


def test_estimate_of_a_regular_tree_is_exact():
    game = games.compiled("rps5").game
    assert memory.estimate_histories(game, rollouts=1) == 31


@pytest.mark.parametrize("string", ["chess", "go(board_size=9)", "dark_chess"])
def test_clearly_too_large_refused(string):
    with pytest.raises(ValueError, match="memory_limit is 1 GB"):
        memory.check_limit(pyspiel.load_game(string), 10**9)


@pytest.mark.parametrize("limit", [0, 1, 10**6, memory.BASE_BYTES])
def test_too_little_for_any_game_refused(limit):
    with pytest.raises(ValueError, match="memory_limit.*too little"):
        memory.check_limit(games.compiled("kuhn").game, limit)


def test_how_many_fit():
    limit = memory.BASE_BYTES + 1000 * memory.BYTES_PER_HISTORY
    assert memory.check_limit(games.compiled("kuhn").game, limit) == 1000


@pytest.mark.parametrize(
    "string,limit",
    [
        ("kuhn_poker", "1MB"),
        ("kuhn_poker", "much"),
        ("chess", "1GB"),
        # Under twice the estimate: found out on the walk.
        ("leduc_poker", memory.BASE_BYTES + 9456 * memory.BYTES_PER_HISTORY),
    ],
)
@pytest.mark.parametrize("algorithm", ["cfr+", "lp"])
def test_solve_refuses(string, limit, algorithm):
    with pytest.raises(ValueError, match="memory_limit"):
        spiel_cr.solve(string, algorithm, 1, memory_limit=limit)


def test_solve_within_the_limit():
    limit = memory.BASE_BYTES + 58 * memory.BYTES_PER_HISTORY
    result = spiel_cr.solve("kuhn_poker", "cfr+", 1, memory_limit=limit)
    assert result.iterations == 1


def test_peak_is_more_than_what_is_held():
    held = np.ones(10**7)
    assert memory.peak_bytes() > held.nbytes
