"""The table without a browser: contents, matches, and rejected requests."""

import contextlib
import http.client
import json
import os
import signal
import socket
import threading
import time

import pyspiel
import pytest

from spiel_cr.common import messages
from spiel_cr.eval.cli import interrupt_signals, play
from spiel_cr.eval.table import families, server, table
from spiel_cr.eval.table.series import MatchSeries
from spiel_cr.players.player_strings import read_string
from tests.support import tables
from tests.support.states import after

KUHN = "kuhn_poker"


class Guest:
    """Talks to a table's server as a browser would."""

    def __init__(self, serving):
        self.serving = serving

    def ask(self, path, given=None, *, token=None, **headers):
        """Send a request; return the status, the content and the response."""
        link = http.client.HTTPConnection("127.0.0.1", self.serving.server_port)
        body = None if given is None else json.dumps(given).encode()
        headers = {"Content-Type": "application/json"} | headers
        place = f"/{self.serving.token if token is None else token}/{path}"
        link.request("GET" if body is None else "POST", place, body, headers)
        answer = link.getresponse()
        content = answer.read().decode()
        link.close()
        is_json = answer.headers["Content-Type"] == "application/json"
        return answer.status, json.loads(content) if is_json else content, answer

    def wait_for(self, *phases):
        for _ in range(3000):
            _, view, _ = self.ask("state")
            if view["phase"] in phases:
                return view
            threading.Event().wait(0.005)
        raise AssertionError(view)


@pytest.fixture
def guest_of():
    """Return a function that starts a table; close all tables after the test."""
    with tables.laying(10) as lay:

        def sit(game, bots, seed=1, **options):
            serving, series = lay(game, bots, seed, **options)
            return Guest(serving), series

        yield sit


@pytest.fixture(autouse=True)
def empty_reviews(monkeypatch):
    """Replace reviews, which compile functions; `test_review.py` tests them."""
    found = {"decisions": [], "notes": ["none"]}
    monkeypatch.setattr(table.review.Reviewer, "review", lambda *_: found)


def test_guest_plays_two_matches_with_scores(guest_of):
    guest, series = guest_of(KUHN, ["human", "uniform"])
    for number in range(2):
        while (view := guest.wait_for("your turn", "over"))["phase"] != "over":
            assert (view["match"], view["seat"]) == (number, number)
            assert [a["label"] for a in view["actions"]] in (
                ["Check", "Bet"],
                ["Fold", "Call"],
            )
            move = {"version": view["version"], "action": 1}
            status, after, _ = guest.ask("move", move)
            assert status == 200 and after["version"] > view["version"]
            # Sending the same move again is rejected, because it is too late.
            assert guest.ask("move", move)[0] == 409
        seat = series.played[number].bots.index("human")
        assert view["result"] == series.played[number].match.returns[seat]
        assert view["score"]["matches"] == number + 1
        assert len(view["story"]) == len(series.played[number].match.actions)
        assert guest.ask("next", {"match": number + 7})[0] == 409
        if not number:
            assert guest.ask("next", {"match": number})[0] == 200
    assert view["score"]["total"] == series.totals()[0]
    assert series.report()["totals"] == list(series.totals())


def test_hidden_information_is_not_sent_before_the_end(guest_of):
    """Deals that the person cannot distinguish lead to equal responses."""
    sent, cards = {}, set()
    for seed in range(8):
        guest, series = guest_of(KUHN, ["human", "uniform"], seed=seed)
        view = guest.wait_for("your turn")
        told = json.dumps([guest.ask("state")[1], guest.ask("")[1]])
        move = {"version": view["version"], "action": 1}
        guest.ask("move", move)
        guest.wait_for("over")
        mine, theirs = series.played[0].match.actions[:2]
        sent.setdefault(mine, set()).add(told)
        cards.add((mine, theirs))
    assert len(cards) > len(sent) == 3
    assert all(len(views) == 1 for views in sent.values())


def test_rejects_requests_without_token_or_from_other_hosts(guest_of):
    guest, _ = guest_of(KUHN, ["human", "uniform"])
    view = guest.wait_for("your turn")
    move = {"version": view["version"], "action": 1}
    own = f"127.0.0.1:{guest.serving.server_port}"
    assert guest.serving.server_address[0] == "127.0.0.1"
    for given in (None, move):
        path = "state" if given is None else "move"
        assert guest.ask(path, given, token="x" * 22)[0] == 404
        assert guest.ask(path, given, token="")[0] == 404
        assert guest.ask(path, given, Host="evil.example")[0] == 403
        assert guest.ask(path, given, Host=own, Origin="http://evil.example")[0] == 403
    for path in ("../../etc/passwd", "page.js", "review/9", "review/x", "move"):
        assert guest.ask(path)[0] == 404
    assert guest.ask("move", move, **{"Content-Type": "text/plain"})[0] == 415
    assert guest.ask("move", [1])[0] == 400
    assert guest.ask("move", {"version": "1", "action": True})[0] == 409
    assert guest.ask("move", {"fill": "x" * 2000})[0] == 413
    assert guest.ask("anything", {})[0] == 404
    # None of these requests was a move.
    assert guest.ask("state")[1] == view
    assert guest.ask("move", {"version": view["version"], "action": 5})[0] == 409
    assert guest.ask("move", move, Host=own, Origin=f"http://{own}")[0] == 200


def test_page_has_a_strict_content_security_policy(guest_of):
    guest, _ = guest_of(KUHN, ["human", "uniform"])
    status, page, answer = guest.ask("")
    assert status == 200 and page.startswith("<!DOCTYPE html>")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe-inline'" in policy
    assert "script-src 'sha256-" in policy and "frame-ancestors 'none'" in policy
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert answer.headers["Cache-Control"] == "no-store"


def test_leaving_closes_the_table(guest_of):
    guest, series = guest_of(KUHN, ["uniform", "human"])
    guest.wait_for("your turn")
    status, view, _ = guest.ask("leave", {})
    assert status == 200 and view["phase"] == "closed"
    assert series.played == []


def test_number_of_matches_is_limited(guest_of):
    guest, series = guest_of(KUHN, ["human", "uniform"], matches=1)
    while (view := guest.wait_for("your turn", "over"))["phase"] != "over":
        guest.ask("move", {"version": view["version"], "action": 0})
    assert not view["more"] and guest.ask("next", {"match": 0})[0] == 409


def test_rejects_a_port_in_use(guest_of):
    guest, series = guest_of(KUHN, ["human", "uniform"])
    port = guest.serving.server_port
    with pytest.raises(ValueError, match=f"port={port}: .*choose another"):
        server.Server(table.MatchTable(series), port=port)


def test_silent_connections_use_a_bounded_number_of_threads(guest_of, monkeypatch):
    monkeypatch.setattr(server, "_MOST_THREADS", 3)
    guest, _ = guest_of(KUHN, ["human", "uniform"])
    address = ("127.0.0.1", guest.serving.server_port)
    silent = [socket.create_connection(address) for _ in range(3)]
    try:
        with socket.create_connection(address, timeout=10) as fourth:
            assert fourth.recv(1) == b""
    finally:
        for link in silent:
            link.close()
    # Threads of closed connections end after a moment.
    for _ in range(1000):
        with contextlib.suppress(ConnectionError):
            assert guest.wait_for("your turn")
            return
        time.sleep(0.01)
    raise AssertionError("the server does not respond any more")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_only_sigint_ends_the_server_without_an_error(monkeypatch, number):
    series = MatchSeries(KUHN, ["uniform", "human"], seed=0, memory_limit="1GB")
    serve = server.Server.serve_forever

    def interrupted(self, poll):
        with interrupt_signals.interrupting():
            threading.Timer(0.2, os.kill, [os.getpid(), number]).start()
            serve(self, poll)

    monkeypatch.setattr(server.Server, "serve_forever", interrupted)
    # The process that runs the tests may ignore the signal.
    before = signal.signal(number, signal.SIG_DFL)
    raised = pytest.raises(interrupt_signals.Interrupted)
    try:
        with contextlib.nullcontext() if number == signal.SIGINT else raised:
            play.serve(series, opens=False)
    finally:
        signal.signal(number, before)


def test_opponents_moves_are_listed_only_if_public():
    """Moves of poker are public; hidden moves are listed at the end of the game."""
    known = families.opponents_moves
    game = pyspiel.load_game(KUHN)
    assert known(after(game, 0, 1, 1), 1) == ["Bet"]
    assert known(after(game, 0, 1, 0, 1), 0) == ["Bet"]
    assert known(after(game, 0, 1), 0) == []
    hidden = pyspiel.load_game("python_ii_goofspiel(num_cards=2)")
    assert known(after(hidden, 1), 1) == []
    assert known(after(hidden, 1, 0, 0, 1), 0) == ["Bid 2"]


def test_waiting_page_shows_the_current_phase(monkeypatch):
    """Creating a bot may take long, and the page shows nothing else meanwhile."""
    told, made = threading.Event(), MatchSeries.bot

    def slow(*given):
        messages.announce("warming up layer 1 of 4")
        assert told.wait(10)
        return made(*given)

    monkeypatch.setattr(MatchSeries, "bot", slow)
    with tables.laying(10) as lay:
        guest = Guest(lay(KUHN, ["human", "uniform"], 1)[0])
        while guest.wait_for("preparing")["doing"] != "warming up layer 1 of 4":
            time.sleep(0.01)
        told.set()
        guest.wait_for("your turn")


def test_error_of_a_bot_is_raised_by_the_server(monkeypatch, capsys):
    """The error is raised in the thread of the bot."""
    monkeypatch.setattr(play, "_LAST_WORDS", 0.05)
    series = MatchSeries(KUHN, ["uniform", "human"], seed=0, memory_limit="1GB")

    def fail(*_):
        raise ValueError("bot: it fell asleep")

    monkeypatch.setattr(series, "bot", fail)
    with pytest.raises(ValueError, match="it fell asleep"):
        play.serve(series, opens=False)
    assert "page: http://127.0.0.1:" in capsys.readouterr().out


def test_lobby_offers_games_and_strengths(monkeypatch):
    """Leaving a match returns to the lobby, and leaving the lobby closes the table."""
    with tables.laying(10) as lay:
        serving, _ = lay(None, None, 1)
        guest = Guest(serving)
        view = guest.wait_for("lobby")
        assert [len(view[kind]) for kind in ("games", "strengths")] == [
            len(table.GAMES),
            len(table.STRENGTHS),
        ]
        for wrong in ({}, {"game": 99, "strength": 0}, {"game": 0, "strength": -1}):
            assert guest.ask("sit", wrong)[0] == 409
        for number in (0, 1):
            chosen = {"game": number, "strength": 0}
            assert guest.ask("sit", chosen)[0] == 200
            view = guest.wait_for("your turn")
            assert view["game"] == f"{table.GAMES[number].string}()"
            assert (view["match"], view["score"]["matches"]) == (0, 0)
            assert view["named"] == table.STRENGTHS[0].title
            assert guest.ask("sit", chosen)[0] == 409
            assert guest.ask("leave", {})[0] == 200
            guest.wait_for("lobby")
        assert guest.ask("leave", {})[1]["phase"] == "closed"


@pytest.mark.parametrize("offer", table.GAMES, ids=lambda offer: offer.string)
def test_lobby_games_have_drawings_and_valid_bots(offer):
    game = pyspiel.load_game(offer.string)
    assert families.is_drawn(game)
    for strength in table.STRENGTHS:
        assert read_string(strength.string)
