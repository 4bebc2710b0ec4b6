"""Networks on games that are never compiled: what is judged, and how."""

import numpy as np
import pytest

from benchmarks.deep import uncompiled
from spiel_cr.deep.infosets import Seen
from spiel_cr.deep.tensors import stepped
from spiel_cr.root_responses.players import SeenPlayer


def test_what_is_drawn_is_what_is_played():
    """Actions are counted among the legal ones; those of no probability never come."""
    way = stepped("phantom_ttt")
    random = np.random.default_rng(0)
    start = way.source.start(200, random)
    centre = np.full(200, 4)
    then = way.source.step(start, np.arange(200), centre, random)
    again = way.source.step(then, np.arange(200), centre, random)
    # Player 1 has met the stone in the centre, and may not try it again.
    assert (again.player == 1).all() and (again.num_actions == 8).all()

    def strategy(player: int, seen: Seen) -> np.ndarray:
        odds = np.zeros(seen.legal.shape)
        odds[:, 5], odds[:, 8] = 0.75, 0.25
        return odds

    opponent = SeenPlayer(way.knowledge, strategy)
    drawn = opponent.draw(again, np.arange(200), random)
    # 5 standard deviations of 200 draws are 31.
    counts = np.bincount(drawn, minlength=8)
    assert counts[4] + counts[7] == 200 and abs(counts[4] - 150) < 31


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", ["uniform", "vr-deep-dcfr+", "mmd"])
def test_a_run_and_its_responses(algorithm):
    settings = "traversals=50 steps=2 critic_steps=2 average_steps=2".split()
    row = uncompiled.measure_responses(
        "phantom ttt", algorithm, settings, 0, 500, 1.0, 1000
    )
    assert row["nodes"] >= (0 if algorithm == "uniform" else 500)
    assert row["simulations"] > 1000 and 0 < row["half_width"] < 0.2
    first, second = row["values"]
    assert -1 <= second <= 1 and -1 <= first <= 1
    # Second to move wins no more than first to move, against anybody this weak.
    assert second < first + row["half_width"]


@pytest.mark.slow
def test_speed():
    row = uncompiled.measure_speed("liar's dice 2x5", "outcome")
    assert row["nodes"] > 80_000 and row["cpu_seconds"] > 0
    text = uncompiled.markdown(
        [{"part": "speed", "name": "dice", "preset": "outcome", **row}]
    )
    assert "| dice | outcome |" in text
