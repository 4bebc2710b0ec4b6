"""Tests of the coverage of agents' bounds, for policies whose NashConv is known.

`python -m tests.evaluation.test_agent_coverage` writes the data of the page Evaluate a
language-model agent: docs/benchmarks/data/agents.json.
"""

import collections
import functools
import json
import pathlib
import sys

import numpy as np
import pytest

import spiel_cr
from spiel_cr.evaluation.agents.bounds import (
    AgentResponder,
    total_bounds,
    value_bounds,
)
from spiel_cr.evaluation.agents.evaluation import memory_test
from spiel_cr.policies import best_responses
from spiel_cr.policies.conversions import uniform_behaviour
from spiel_cr.policies.queries import query

DATA = pathlib.Path(__file__).parents[2] / "docs/benchmarks/data/agents.json"
GAMES = ("kuhn_poker", "leduc_poker", "liars_dice(numdice=1,dice_sides=4)")
NOISE = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5)
ITERATIONS = (1, 2, 4, 8, 16, 32, 64, 128)


@functools.cache
def tree_of(game):
    return spiel_cr.build_tree(game)


def random_behaviour(decisions, random):
    numbers = random.standard_exponential(decisions.num_sequences - 1)
    owner = decisions.owner[1:]
    return np.append(1.0, numbers / np.bincount(owner, numbers)[owner])


@functools.cache
def policies(game):
    """Return (kind, strategies): 66 for each game, and two more for Leduc poker."""
    tree, random = tree_of(game), np.random.default_rng(7)
    uniform = tuple(map(uniform_behaviour, tree.decisions))
    equilibrium = query(tree, spiel_cr.solve(tree, "lp").average_policy())
    made = [("uniform", uniform)] * 4
    for noise in NOISE:
        mixed = tuple(
            (1 - noise) * a + noise * b
            for a, b in zip(equilibrium, uniform, strict=True)
        )
        made += [("noisy equilibrium", mixed)] * 3
    for iterations in ITERATIONS:
        solved = spiel_cr.solve(tree, "cfr+", iterations).average_policy()
        made += [("cfr+", query(tree, solved))] * 2
    while len(made) < 66 + 2 * (game == "leduc_poker"):
        pair = tuple(random_behaviour(d, random) for d in tree.decisions)
        made.append(("random", pair))
    return made


def sample_pure_strategies(decisions, behaviour, count, random):
    """Sample independent pure strategies, float64 [count, S]."""
    answers = np.zeros((count, decisions.num_sequences))
    answers[:, 0] = 1
    for first, size in zip(
        decisions.first_sequence, decisions.num_actions, strict=True
    ):
        some = random.choice(size, count, p=behaviour[first : first + size])
        answers[np.arange(count), first + some] = 1
    return answers


def simulate(game, behaviours, count, random):
    """Simulate the evaluation of an agent with known strategies.

    Returns:
      The exact NashConv, both ends of its interval, and three estimates: held-out,
      plug-in, and by responses that are scored on the answers they were fitted to.
    """
    tree = tree_of(game)
    low, high = best_responses.value_bounds(tree.sequence_form, behaviours)
    parts, fitted = [], 0.0
    for player in range(2):
        agent = tree.decisions[1 - player]
        answers = sample_pure_strategies(agent, behaviours[1 - player], count, random)
        everywhere = np.ones(len(agent), bool)
        parts.append(value_bounds(tree, player, answers, everywhere))
        # The response is fitted to half of the answers and scored on the same half.
        half = answers[::2].mean(axis=0)[:, None]
        responder = AgentResponder(tree, player, everywhere)
        fitted += float(responder.response_values(half, half)[0])
    bounds = total_bounds(parts)
    lower, upper = bounds.interval
    return high - low, max(0.0, lower), upper, bounds.lower, bounds.upper, fitted


def coverage(count, games=GAMES, every=1):
    """Return the rows of the table, one for each game and kind of policies."""
    random, rows = np.random.default_rng(2026), collections.defaultdict(list)
    for game in games:
        for kind, behaviours in policies(game)[::every]:
            rows[game, kind].append(simulate(game, behaviours, count, random))
    table = []
    for (game, kind), results in rows.items():
        exact, lower, upper, cross, plug_in, fitted = np.array(results).T
        table.append(
            {
                "game": game,
                "policies": kind,
                "answers": count,
                "number": len(exact),
                "inside": int(
                    ((lower <= exact + 1e-9) & (exact <= upper + 1e-9)).sum()
                ),
                "lower_fails": int((lower > exact + 1e-9).sum()),
                "upper_fails": int((upper < exact - 1e-9).sum()),
                "mean_half_width": float((upper - lower).mean() / 2),
                "mean_nash_conv": float(exact.mean()),
                "bias_plug_in": float((plug_in - exact).mean()),
                "bias_own_answers": float((fitted - exact).mean()),
                "bias_held_out": float((cross - exact).mean()),
            }
        )
    return table


class Agent:
    """Simulated agent whose probabilities may differ after other hands of a session."""

    def __init__(self, shift, random):
        self._shift, self._random = shift, random

    def tables(self, infosets=40, fresh=17, later=10):
        for _ in range(infosets):
            one = self._random.dirichlet(np.ones(2))
            other = (1 - self._shift) * one + self._shift * one[::-1]
            yield (
                self._random.multinomial(fresh, one).astype(float),
                self._random.multinomial(self._random.integers(1, later), other) + 0.0,
            )


def memory_results():
    random, rows = np.random.default_rng(2027), []
    for shift, number in ((0.0, 100), (0.1, 20), (0.2, 20), (0.4, 20), (1.0, 20)):
        found = sum(
            memory_test(list(Agent(shift, random).tables()), seed=n).has_memory
            for n in range(number)
        )
        rows.append({"shift": shift, "agents": number, "found": found})
    return rows


@pytest.mark.slow
def test_bounds_have_nominal_coverage():
    """Check that about 95% of 200 intervals cover NashConv, with 2.5% on each side.

    With the nominal coverage of 95%, fewer than 184 of 200 have a probability of 2.4%.
    """
    table = coverage(20)
    assert sum(row["number"] for row in table) == 200
    assert sum(row["inside"] for row in table) >= 184
    assert sum(row["lower_fails"] for row in table) <= 9
    assert sum(row["upper_fails"] for row in table) <= 9
    assert mean(table, "mean_half_width", "leduc_poker") <= 0.6
    for game in GAMES:
        fitted, plug_in = (
            mean(table, f"bias_{n}", game) for n in ("own_answers", "plug_in")
        )
        assert fitted > plug_in > 0.02 > -0.02 > mean(table, "bias_held_out", game)


@pytest.mark.slow
def test_intervals_are_narrow_with_many_answers():
    table = coverage(200, games=GAMES[1:2], every=4)
    assert mean(table, "mean_half_width", "leduc_poker") <= 0.15


def mean(table, key, game):
    """Return the mean over the policies of a game."""
    rows = [row for row in table if row["game"] == game]
    return np.average([r[key] for r in rows], weights=[r["number"] for r in rows])


@pytest.mark.slow
def test_memory_test_has_few_false_alarms_and_detects_changes():
    """Four or more false alarms in 100 have a probability of 1.8%."""
    rows = memory_results()
    assert rows[0]["found"] <= 3 and rows[-1]["found"] == 20


def test_published_coverage_is_reproduced():
    data = json.loads(DATA.read_text())["coverage"]
    small = coverage(20, games=GAMES[:1])
    assert small == [pytest.approx(row) for row in data[: len(small)]]


if __name__ == "__main__":
    rows = coverage(20)
    rows += coverage(200, games=GAMES[1:2], every=4)
    text = {"coverage": rows, "memory": memory_results()}
    DATA.write_text(json.dumps(text, indent=1) + "\n")
    json.dump(text, sys.stdout)
