"""Tests of evaluating agents in other programs: intervals, budgets, resuming."""

import contextlib
import json
import os
import runpy
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from flax import linen

import spiel_cr
from spiel_cr.evaluation.agents import evaluate_agent
from spiel_cr.evaluation.agents import evaluation as evaluation_module
from tests.support import agents
from tests.support.games import compiled as game_tree


def example(name: str, *arguments: object, **settings: object) -> str:
    words = " ".join(map(str, (sys.executable, agents.FOLDER / name, *arguments)))
    rest = "".join(f",{key}={value}" for key, value in settings.items())
    return f'process(command="{words}"{rest})'


def noisy_policy(game, noise):
    """Return the policy of the example noisy.py as a function of a state."""

    def probabilities(state):
        legal = state.legal_actions()
        shares = dict.fromkeys(legal, noise / len(legal))
        shares[legal[0]] += 1 - noise
        return shares

    return probabilities


def test_interval_covers_nash_conv_of_a_noisy_agent():
    """Kuhn poker has 12 infosets; each gets answers in addition to the memory test."""
    result = evaluate_agent("kuhn_poker", example("noisy.py", 0.4), queries=1000)
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0.4))
    low, high = result.interval
    assert low <= exact <= high and high - low < 0.6
    assert result.answers == 66 and result.queries <= 1000
    assert [seat.queried for seat in result.seats] == [6, 6]
    assert result.memory.p_value > 0.01 and not result.invalid
    assert result.descriptions == (
        {"name": "noisy", "version": "1", "settings": {"noise": 0.4}},
    )
    assert result.seats[0].game_value == pytest.approx(-1 / 18)
    json.dumps(result.report(), allow_nan=False)


def test_interval_of_a_deterministic_agent_is_exact():
    """Compare with the NashConv of the policy that noisy.py implements."""
    agent = example("noisy.py", 0)
    result = evaluate_agent("kuhn_poker", agent, queries=300, workers=2)
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0))
    assert result.interval == pytest.approx((exact, exact), abs=1e-9)


def test_agents_with_probabilities_are_queried_once_per_infoset():
    agent = example("solution.py", 10, timeout=120)
    result = evaluate_agent("kuhn_poker", agent, queries=15)
    exact = spiel_cr.nash_conv("kuhn_poker", "cfr+(iterations=10)")
    assert result.interval == pytest.approx((exact, exact), abs=1e-9)
    assert (result.answers, result.queries) == (1, 12)


def test_evaluates_an_agent_in_javascript():
    agent = f'process(command="node {agents.FOLDER / "agent.js"}")'
    low, high = evaluate_agent("kuhn_poker", agent, queries=150).interval
    # The agent always plays its first legal action, which is to pass.
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0))
    assert (low, high) == pytest.approx((exact, exact), abs=1e-9)


def test_interval_covers_nash_conv_of_a_replayed_transcript():
    """The transcript has ten answers of noisy.py at each infoset of Kuhn poker."""
    agent = example("replay.py", agents.FOLDER / "transcript.jsonl")
    low, high = evaluate_agent("kuhn_poker", agent, queries=300).interval
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0.4))
    assert low <= exact <= high and high - low < 1


def test_rule_based_example_follows_its_rules():
    """Check its moves in Leduc poker against the rules in its first line."""
    bot = spiel_cr.load_bot("leduc_poker", example("rule_based.py"), 0)
    # The card of player 0, and the move: fold is 0, call 1, raise 2.
    for card, moves in ((0, (1, 0)), (2, (1, 1)), (4, (2, 2))):
        state = spiel_cr.load_game("leduc_poker").new_initial_state()
        for action in (card, 3):
            state.apply_action(action)
        assert bot.step(state) == moves[0]
        for action in (1, 2):  # a call, and a raise of player 1
            state.apply_action(action)
        assert bot.step(state) == moves[1]


def test_language_model_example_equals_flax_and_describes_cards():
    """Compare its LSTM layer with flax, and check its sentence about the cards."""
    names = runpy.run_path(str(agents.FOLDER / "language_model.py"))
    random = np.random.default_rng(0)
    inputs = random.normal(size=(5, 3)).astype(np.float32)
    kernel, recurrent = random.normal(size=(3, 8)), random.normal(size=(2, 8))
    bias = random.normal(size=8)
    cell = linen.OptimizedLSTMCell(2)
    gates = dict.fromkeys("ifgo")
    parameters = {
        **{f"i{k}": {"kernel": v} for k, v in zip(gates, _split(kernel), strict=True)},
        **{
            f"h{k}": {"kernel": v, "bias": b}
            for k, v, b in zip(gates, _split(recurrent), _split(bias), strict=True)
        },
    }
    carry = cell.initialize_carry(jax.random.key(0), (3,))
    for given, found in zip(
        inputs, names["_lstm"](inputs, kernel, recurrent, bias), strict=True
    ):
        carry, expected = cell.apply({"params": parameters}, carry, given)
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    state = spiel_cr.load_game("leduc_poker").new_initial_state()
    for action in (0, 3, 1, 1, 4):
        state.apply_action(action)
    text = names["prompt"](state.information_state_string(0))
    assert text == "I have a jack and see a king, so I "


def _split(array):
    return np.split(array.astype(np.float32), 4, axis=-1)


def test_crashes_are_counted():
    agent = example("crashing.py", retries=1)
    result = evaluate_agent("kuhn_poker", agent, queries=240)
    assert result.invalid["ended"] >= 10
    assert result.report()["invalid"] == result.invalid
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0))
    # Two crashes in a row, one in 100 answers, are replaced by uniform play.
    assert result.replaced <= 12
    assert result.interval[0] - 0.1 <= exact <= result.interval[1]


def test_on_invalid_error_stops_the_run_and_keeps_the_answers(tmp_path):
    agent = example("crashing.py", retries=0, on_invalid="error")
    with pytest.raises(ValueError, match="1 invalid answers"):
        evaluate_agent("kuhn_poker", agent, queries=240, out=tmp_path)
    lines = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert len(lines) >= 1


def test_small_budgets_leave_infosets_out():
    """Only the infosets of the largest stakes, the first ones, get ten answers each."""
    agent = example("noisy.py", 0.4)
    result = evaluate_agent("kuhn_poker", agent, queries=75)
    assert (result.answers, result.queries) == (10, 60)
    assert sum(seat.queried for seat in result.seats) == 6
    assert result.memory.p_value is None
    complete = evaluate_agent("kuhn_poker", agent, queries=150)
    exact = spiel_cr.nash_conv("kuhn_poker", noisy_policy("kuhn_poker", 0.4))
    assert result.interval[0] <= complete.interval[0] <= exact
    assert exact <= complete.interval[1] <= result.interval[1]


def test_queries_stop_at_the_cost_limit(tmp_path):
    script = tmp_path / "agent.py"
    text = (agents.FOLDER / "noisy.py").read_text()
    script.write_text(
        text.replace('{"action": action}', '{"action": action, "cost": 2}')
    )
    agent = f'process(command="{sys.executable} {script} 0.4")'
    result = evaluate_agent("kuhn_poker", agent, queries=500, cost_limit=100)
    assert (result.cost, result.queries) == (100, 50)
    low, high = result.interval
    assert np.isfinite(high) and low <= high


def test_queries_and_costs_of_all_hands_are_counted(tmp_path):
    """The agent counts its answers, and reports a cost of two units for each."""
    script, log = tmp_path / "agent.py", tmp_path / "log"
    text = (agents.FOLDER / "noisy.py").read_text()
    script.write_text(
        text.replace(
            '{"action": action}',
            f'{{"action": action, "cost": 2 * open({str(log)!r}, "a").write("x")}}',
        )
    )
    agent = f'process(command="{sys.executable} {script} 0.4")'
    result = evaluate_agent("kuhn_poker", agent, queries=500)
    assert result.queries == log.stat().st_size > 400
    assert result.cost == 2 * result.queries


@pytest.mark.parametrize("workers", [1, 3])
def test_truncated_log_is_resumed_with_the_same_result(tmp_path, workers):
    agent = example("noisy.py", 0.4)
    first = evaluate_agent("kuhn_poker", agent, queries=300, out=tmp_path / "a")
    log = tmp_path / "a" / "answers.jsonl"
    content = log.read_bytes()
    # The last line is lost, and the one before it is incomplete.
    lines = content.splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-2]) + lines[-2][:-20])
    second = evaluate_agent(
        "kuhn_poker", agent, queries=300, out=tmp_path / "a", workers=workers
    )
    assert log.read_bytes() == content
    assert {**first.report(), "seconds": 0} == {**second.report(), "seconds": 0}


def test_rejects_a_folder_with_answers_of_another_agent(tmp_path):
    """The command is the same, but the program reports another version."""
    program = tmp_path / "agent.py"
    text = (agents.FOLDER / "noisy.py").read_text("utf-8")
    program.write_text(text, "utf-8")
    out, agent = tmp_path / "a", f'process(command="{sys.executable} {program}")'
    evaluate_agent("kuhn_poker", agent, queries=300, out=out)
    program.write_text(text.replace('"version": "1"', '"version": "2"'), "utf-8")
    with pytest.raises(ValueError, match="another folder"):
        evaluate_agent("kuhn_poker", agent, queries=300, out=out)


@pytest.mark.slow
def test_killed_evaluation_is_resumed_with_the_same_result(tmp_path):
    """The process is killed 20 times, each time after a few more answers."""
    agent = example("noisy.py", 0.4)
    expected = evaluate_agent("kuhn_poker", agent, queries=600, seed=3)
    out = tmp_path / "out"
    code = (
        "from spiel_cr.evaluation.agents import evaluate_agent; import sys;"
        "evaluate_agent('kuhn_poker', sys.argv[1], queries=600, seed=3, workers=2,"
        f" out={str(out)!r})"
    )
    counts = []
    for moment in range(20):
        before = _count(out)
        process = subprocess.Popen(
            [sys.executable, "-c", code, agent], start_new_session=True
        )
        deadline = time.monotonic() + 60
        while _count(out) < before + 5 + moment and time.monotonic() < deadline:
            if process.poll() is not None:
                break
            time.sleep(0.002)
        with contextlib.suppress(ProcessLookupError):  # It may have finished.
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        counts.append(_count(out))
    assert counts == sorted(counts) and counts[0] > 0
    result = evaluate_agent("kuhn_poker", agent, queries=600, seed=3, out=out)
    assert {**result.report(), "seconds": 0} == {**expected.report(), "seconds": 0}


def _count(out):
    log = out / "answers.jsonl"
    return log.read_bytes().count(b"\n") if log.exists() else 0


@pytest.mark.slow
def test_parallel_queries_are_faster(tmp_path):
    script = tmp_path / "agent.py"
    text = (agents.FOLDER / "noisy.py").read_text()
    script.write_text(
        text.replace("import json", "import json\nimport time").replace(
            "        legal =", "        time.sleep(0.2)\n        legal ="
        )
    )
    agent = f'process(command="{sys.executable} {script} 0.4")'
    tree, seconds = game_tree("kuhn"), {}
    evaluation_module.solve(tree, "lp")
    for workers in (1, 2, 8):
        seconds[workers] = evaluate_agent(
            tree, agent, queries=160, workers=workers
        ).seconds
    assert seconds[1] / seconds[2] >= 1.8
    assert seconds[1] / seconds[8] >= 6


def memory_agent(tmp_path) -> str:
    """Return an agent that passes in a session's first hand and bets in later ones."""
    script = tmp_path / "agent.py"
    script.write_text(
        "import json, sys\n"
        "hands = 0\n"
        "for line in sys.stdin:\n"
        "    message = json.loads(line)\n"
        "    if message['type'] == 'hello':\n"
        "        hands = 0\n"
        '        print(\'{"name": "learner"}\', flush=True)\n'
        "    elif message['type'] == 'end':\n"
        "        hands += 1\n"
        "    elif message['type'] == 'act':\n"
        "        print(json.dumps({'action': int(hands > 0)}), flush=True)\n"
    )
    return f'process(command="{sys.executable} {script}")'


def test_agents_with_memory_get_a_lower_bound_from_matches(tmp_path):
    """The response bluffs an agent that passes, and loses to an agent that bets."""
    result = evaluate_agent("kuhn_poker", memory_agent(tmp_path), queries=2000)
    assert result.memory.has_memory
    low, high = result.interval
    assert high == np.inf and low >= 0
    assert all(seat.matches[2] >= 20 for seat in result.seats)
    assert result.report()["at_most"] is None


def test_rejects_invalid_arguments():
    with pytest.raises(ValueError, match="not an agent in another program"):
        evaluate_agent("kuhn_poker", "uniform")
    for name in ("queries", "workers", "cost_limit"):
        with pytest.raises(ValueError, match=name):
            evaluate_agent("kuhn_poker", example("noisy.py"), **{name: 0})


def test_evaluates_games_of_constant_sum(tmp_path):
    """The payoffs are those of matching pennies, plus one for both players."""
    path = tmp_path / "pennies.efg"
    path.write_text(
        'EFG 2 R "Pennies" { "A" "B" } ""\n'
        'p "" 1 1 "" { "h" "t" } 0\n'
        'p "" 2 1 "" { "h" "t" } 0\n'
        't "" 1 "" { 2 0 }\n'
        't "" 2 "" { 0 2 }\n'
        'p "" 2 1 "" { "h" "t" } 0\n'
        't "" 3 "" { 0 2 }\n'
        't "" 4 "" { 2 0 }\n'
    )
    result = evaluate_agent(str(path), example("noisy.py", 0), queries=30)
    assert result.interval == pytest.approx((2, 2))
    assert [seat.game_value for seat in result.seats] == pytest.approx([0, 0])
