"""`solve` with all its settings by name, for tests that list them as data."""

import numpy as np

import spiel_cr

GOAL = ("iterations", "seconds", "until", "eval_every")
GAME_OPTIONS = (
    *("form", "batched_rules", "workers", "memory_limit", "cache"),
    *("buckets", "imperfect_recall"),
)


def assert_same(result, expected):
    """Check that the strategies of both players are bitwise identical."""
    assert result.iterations == expected.iterations
    for mine, theirs in zip(
        (*result.average, *result.current),
        (*expected.average, *expected.current),
        strict=True,
    ):
        np.testing.assert_array_equal(mine, theirs)


def solve_with(game, algorithm="cfr+", iterations=None, **options):
    """Return the result of `solve`; options are settings or arguments by name."""

    def take(names):
        return {name: options.pop(name) for name in names if name in options}

    if iterations is not None:
        options["iterations"] = iterations
    goal = spiel_cr.Goal(**take(GOAL))
    game_options = spiel_cr.GameOptions(**take(GAME_OPTIONS))
    path, every = (options.pop(f"checkpoint_{n}", None) for n in ("path", "every"))
    if path is not None:
        every = 60.0 if every is None else every
        options["checkpoint"] = spiel_cr.Checkpoint(path, every)
    elif every is not None:
        spiel_cr.Checkpoint("unused", every)
    return spiel_cr.solve(game, algorithm, goal, options=game_options, **options)
