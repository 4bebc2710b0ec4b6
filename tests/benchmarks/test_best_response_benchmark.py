"""The benchmark of best responses measures what it says; on small games here."""

import pytest

import spiel_cr
from benchmarks import best_response
from tests.support.benchmark_pages import run_on_page


@pytest.fixture
def tiny(monkeypatch):
    """The first part on one small case, in place of all parts."""
    case = best_response._Case("kuhn_poker", "cfr+(iterations=2)", 400)
    part = best_response._shares_part("Title:", (case,))
    monkeypatch.setattr(best_response, "_PARTS", {"tiny": part})
    return case


def test_shares_and_tables(tiny, tmp_path):
    (row,), text = run_on_page(best_response.BENCHMARK, tmp_path, ["--seeds", "2"])
    assert row["policy"] == "cfr+(iterations=2)" and row["simulations"] == 400
    assert len(row["shares"]) == 2 and 0.5 < min(row["shares"]) <= 1 + 1e-9
    search = best_response._search("kuhn_poker", "cfr+(iterations=2)")
    exact = search.run("exact", best_response.SearchConfig())
    assert row["exact"] == pytest.approx(exact["exact_value"])
    assert "`kuhn_poker`" in text and "Title:" in text
    assert f"{min(row['shares']):.2%}" in text


def test_rates_are_rates():
    game = spiel_cr.load_game("kuhn_poker")
    states = best_response._decisions(spiel_cr.compile_game(game), 3)
    assert all(state.current_player() == 0 for state in states)
    for bot, count in (
        (best_response._cpp_bot(20, 0), 20),
        (best_response._python_bot(game, 5, 0), 5),
    ):
        assert 10 < best_response._rate(bot, states, count) < 1e8
