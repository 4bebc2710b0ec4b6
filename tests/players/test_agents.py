"""Tests of agents in other programs: messages, invalid answers, and security."""

import http.server
import json
import pathlib
import subprocess
import sys
import threading
import time

import numpy as np
import pyspiel
import pytest

import spiel_cr
from spiel_cr.players import agent_bot
from spiel_cr.players.agent_bot import AgentBot, AgentConfig
from tests.support import agents

KUHN = pyspiel.load_game("kuhn_poker")


def kuhn_state(*actions: int) -> pyspiel.State:
    state = KUHN.new_initial_state()
    for action in actions:
        state.apply_action(action)
    return state


def make_bot(mode: str, **settings) -> AgentBot:
    command = agents.words(mode).strip('"')
    return AgentBot(KUHN, 0, config=AgentConfig(command=command, **settings))


def reply_to(agent: AgentBot, state: pyspiel.State) -> agent_bot.Reply:
    agent.get_policy(state)
    return agent.reply


@pytest.mark.parametrize("mode", [*agents.BAD, *agents.OTHER])
def test_invalid_answers_are_counted_and_replaced(mode):
    state, settings = kuhn_state(0, 1), {"timeout": 2.0, "retries": 0}
    bad = make_bot(mode, **settings, on_invalid="first")
    assert bad.get_policy(state) == [(0, 1.0), (1, 0.0)]
    assert bad.reply.is_replaced and len(bad.reply.invalid) == 1
    bad.close()


def test_surplus_output_does_not_answer_the_next_query():
    talkative = make_bot("one answer too many", retries=0)
    assert reply_to(talkative, kuhn_state(0, 1)).invalid == ()
    time.sleep(0.2)
    assert reply_to(talkative, kuhn_state(0, 1)).invalid == (
        "output without a question",
    )


def test_invalid_answers_become_uniform_play_or_an_error():
    state = kuhn_state(0, 1)
    uniform = make_bot("illegal", retries=1)
    assert uniform.get_policy(state) == [(0, 0.5), (1, 0.5)]
    assert uniform.reply.invalid == ("illegal action",) * 2
    with pytest.raises(
        ValueError, match="3 invalid answers to act after .* illegal action: {'7': 1.0}"
    ):
        make_bot("illegal", on_invalid="error").get_policy(state)


@pytest.mark.parametrize("mode", ["exit", "list", "silent"])
def test_raises_without_a_valid_reply_to_hello(mode):
    with pytest.raises(ValueError, match="2 invalid answers to hello"):
        make_bot(f"hello-{mode}", timeout=1.0, retries=1).provides_policy()


def test_timeout_ends_child_processes_of_the_agent(tmp_path):
    """The agent is a shell that waits for a child, which keeps the pipe open."""
    script = tmp_path / "agent.sh"
    mark = tmp_path / "survivor"
    script.write_text(f"(sleep 3; touch {mark}) & wait\n")
    config = AgentConfig(command=f"sh {script}", timeout=0.5, retries=0)
    waiting = AgentBot(KUHN, 0, config=config)
    start = time.perf_counter()
    assert reply_to(waiting, kuhn_state(0, 1)).invalid == ("timeout",)
    assert time.perf_counter() - start < 2
    time.sleep(3)
    assert not mark.exists()


def test_command_is_not_run_by_a_shell(tmp_path):
    mark = tmp_path / "mark"
    command = f"{sys.executable} -c pass ; touch {mark} $(touch {mark})"
    config = AgentConfig(command=command, retries=0)
    harmless = AgentBot(KUHN, 0, config=config)
    assert reply_to(harmless, kuhn_state(0, 1)).invalid == ("ended",)
    assert not mark.exists()


def test_messages_reveal_only_the_information_of_the_player(tmp_path):
    """No message contains the opponent's card or the deal."""
    script, log = tmp_path / "agent.py", tmp_path / "log"
    script.write_text(
        "import json, sys\n"
        "for line in sys.stdin:\n"
        f"    open({str(log)!r}, 'a').write(line)\n"
        "    kind = json.loads(line)['type']\n"
        "    if kind == 'hello': print('{\"name\": \"x\"}', flush=True)\n"
        "    if kind == 'act': print('{\"action\": 0}', flush=True)\n"
    )
    agent = f'process(command="{sys.executable} {script}")'
    spiel_cr.play_matches("kuhn_poker", (agent, "uniform"), 20, seed=1)
    messages = [json.loads(line) for line in log.read_text().splitlines()]
    acts = [message for message in messages if message["type"] == "act"]
    assert {message["type"] for message in messages} == {
        *("hello", "restart", "act", "end")
    }
    assert {message["player"] for message in messages} == {0, 1}
    known = {"type", "session", "player", "information_state", "observation"}
    for act in acts:
        assert set(act) == known | {"legal_actions", "history"}
        assert [one["name"] for one in act["legal_actions"]] == ["Pass", "Bet"]
        # A player's information state of Kuhn poker has one card.
        assert act["information_state"][0] in "012"
        assert len(act["history"]) == (len(act["information_state"]) == 3)
        for earlier in act["history"]:
            assert act["information_state"].startswith(earlier["information_state"])
    ends = [message["returns"] for message in messages if message["type"] == "end"]
    assert len(ends) == 20 and all(sum(returns) == 0 for returns in ends)
    assert max(len(act["history"]) for act in acts) == 1


def test_observation_is_none_if_the_game_does_not_provide_one():
    state = pyspiel.load_game("tic_tac_toe").new_initial_state()
    fields = agent_bot.decision_fields(state)
    assert fields["observation"]["board"] == ["."] * 9
    assert agent_bot.decision_fields(kuhn_state(0, 1))["observation"] is None


@pytest.mark.parametrize("seat", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_agents_with_probabilities_are_evaluated_exactly(seat):
    """The agent solves the game with the same algorithm."""
    command = f"{sys.executable} {agents.FOLDER / 'solution.py'} 20"
    agent = f'process(command="{command}",timeout=120)'
    # An agent in the other seat would be a second process that solves the game.
    expected, found = (
        spiel_cr.nash_conv(
            "kuhn_poker", [policy, "uniform"] if seat == 0 else ["uniform", policy]
        )
        for policy in ("cfr+(iterations=20)", agent)
    )
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    "url",
    [
        *("http://example.com", "http://10.0.0.1", "http://0.0.0.0:80"),
        *("http://127.0.0.1.example.com", "http://localhost.example.com"),
        *("http://user@example.com", "http://127.0.0.1@example.com", "http://[::2]"),
    ],
)
def test_rejects_remote_addresses_by_default(url):
    with pytest.raises(ValueError, match="not on this machine"):
        AgentConfig(url=url)
    assert AgentConfig(url=url, allow_remote=True).url == url


@pytest.mark.parametrize(
    "url", ["ftp://127.0.0.1", "file:///etc/passwd", "http://", "x", "http://[::1"]
)
def test_rejects_invalid_addresses(url):
    with pytest.raises(ValueError, match="url="):
        AgentConfig(url=url, allow_remote=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("process", "an agent is missing"),
        ('process(command=" ")', "an agent is missing"),
        ('process(command="python \'x")', "No closing quotation"),
        ('process(command="x,y)', "quotation mark is not closed"),
        ('process(command="x",timeout=0)', "timeout"),
        ('process(command="x",on_invalid=guess)', "on_invalid"),
        ('process(command="x",url=http://127.0.0.1)', "unknown parameter 'url'"),
        ("http(url=http://127.0.0.1,command=x)", "unknown parameter 'command'"),
    ],
)
def test_rejects_invalid_bot_strings(text, problem):
    with pytest.raises(ValueError, match=problem):
        spiel_cr.load_bot("kuhn_poker", text, 0)


def test_raises_if_the_command_does_not_exist():
    agent = AgentBot(KUHN, 0, config=AgentConfig(command="nothing-there"))
    with pytest.raises(ValueError, match="nothing-there.*cannot be started"):
        reply_to(agent, kuhn_state(0, 1))


class _FaultyAgent(http.server.BaseHTTPRequestHandler):
    """HTTP agent whose errors depend on the path of the request."""

    posts: list[str] = []

    def do_POST(self):
        self.posts.append(self.path)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if json.loads(body)["type"] == "hello":
            self._send(200, b"{}")
        elif self.path == "/error":
            self._send(500, b'{"action": 0}')
        elif self.path == "/elsewhere":
            self.send_response(307)
            self.send_header("Location", "/good")
            self.end_headers()
        elif self.path == "/drip":
            self.wfile.write(b"HTTP/1.0 200 OK\r\n")
            for _ in range(100):
                self.wfile.write(b"X-Wait: 1\r\n")
                time.sleep(0.1)
        elif self.path == "/long":
            self._send(200, b" " * 1_100_000)
        elif self.path == "/good":
            self._send(200, b'{"action": 0}')

    def _send(self, status, body):
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def address():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _FaultyAgent)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    ("path", "kinds"),
    [
        ("/good", ()),
        ("/error", ("HTTP status",)),
        ("/elsewhere", ("HTTP status",)),
        ("/drip", ("timeout",)),
        ("/long", ("too long",)),
        ("/closed", ("no connection",)),
    ],
)
def test_http_agents_reply_or_report_the_error(address, path, kinds, monkeypatch):
    """The proxy that the environment names is ignored: it would not answer."""
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    _FaultyAgent.posts.clear()
    config = AgentConfig(url=address + path, timeout=1.0, retries=0)
    start = time.perf_counter()
    agent = AgentBot(KUHN, 0, config=config)
    assert reply_to(agent, kuhn_state(0, 1)).invalid == kinds
    assert time.perf_counter() - start < 3
    assert set(_FaultyAgent.posts) == {path}


def test_plays_matches_against_the_example_server(tmp_path):
    program = [sys.executable, agents.FOLDER / "server.py", "0"]
    with subprocess.Popen(program, stdout=subprocess.PIPE, text=True) as server:
        port = int(server.stdout.readline())
        agent = f"http(url=http://127.0.0.1:{port})"
        mean = spiel_cr.play_matches("leduc_poker", (agent, "uniform"), 20).mean
        server.terminate()
    assert np.isfinite(mean)


def test_examples_exist():
    names = {path.name for path in pathlib.Path(agents.FOLDER).iterdir()}
    assert {"rule_based.py", "noisy.py", "crashing.py", "agent.js"} <= names
