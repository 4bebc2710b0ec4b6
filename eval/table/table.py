"""One table: a bot that moves in a thread of its own, and what the page is told.

The thread plays match after match. Where the person acts, it waits for an answer that
comes from the page. What the page is told is made of the person's own information until
a match is over.
"""

import threading
from collections.abc import Callable
from typing import Any

import pyspiel

from spiel_cr.common.messages import latest
from spiel_cr.games.histories import state_after

from . import families, lobby, review
from .series import HUMAN, Played, Series

Json = dict[str, Any]
_EMPTY: Json = {"parts": [], "actions": [], "seen": [], "result": None, "story": []}


class LeaveError(Exception):
    """The person wants to stop."""


class Table:
    """What happens at the table, for one page.

    All methods but `run` may be called from any thread.

    Attributes:
      error: what ended the bot's thread; None: nothing did.
    """

    def __init__(
        self,
        series: Series | Callable[[str, str], Series],
        *,
        matches: int | None = None,
    ) -> None:
        """Lays the table; `run` plays.

        Args:
          series: one of whose bots is the person; or what makes one of a game and a bot
            that the person chooses in the lobby, as often as wanted.
          matches: how many at most; None: until the person leaves.
        """
        self._most = matches
        self._sit: Callable[[str, str], Series] | None = None
        self._choice: tuple[str, str] | None = None
        self._changed = threading.Condition()
        self._closed = self._gone = False
        self._answer: int | None = None
        self._next = False
        self._version = 0
        self._view: Json = {"phase": "preparing"}
        self._legal: list[int] = []
        self.error: Exception | None = None
        if isinstance(series, Series):
            self._seat(series)
        else:
            self._sit = series
            self._enter()

    def _enter(self) -> None:
        """To the lobby; what was played is gone."""
        self._choice = None
        offers = {"games": lobby.GAMES, "strengths": lobby.STRENGTHS}
        shown = {name: [o[:2] for o in row] for name, row in offers.items()}
        self._set(phase="lobby", match=-1, actions=[], more=False, **shown)

    def _seat(self, series: Series) -> None:
        """The person sits down, before the first match."""
        self._series = series
        self._reviewer = review.Reviewer(series.instance)
        self._reviews: list[Json | None] = []
        bot = next(bot for bot in series.seats(0) if bot != HUMAN)
        self._set(
            phase="preparing",
            game=str(series.game),
            title=series.game.get_type().long_name.removeprefix("Python "),
            bot=bot,
            named={o.string: o.title for o in lobby.STRENGTHS}.get(bot, ""),
            match=0,
            seat=series.seats(0).index(HUMAN),
            score=self._score(),
            **_EMPTY,
        )

    # What the page asks.
    def view(self) -> Json:
        """What the page shows now, with the "version" that an answer must name."""
        with self._changed:
            return {**self._view, "version": self._version, "doing": latest()}

    def review_of(self, number: int) -> Json | None:
        """The review of a match; None where there is none yet."""
        with self._changed:
            if 0 <= number < len(self._reviews):
                return self._reviews[number]
            return None

    def answer(self, version: int, action: int) -> bool:
        """The person's move; False: it came too late, or is not legal."""
        with self._changed:
            if version != self._version or action not in self._legal:
                return False
            self._legal, self._answer = [], action
            self._put(phase="thinking", actions=[], seen=[])
            return True

    def go_on(self, number: int) -> bool:
        """The person wants another match after this one; False: it is not the time."""
        with self._changed:
            if number != self._view["match"] or not self._view.get("more"):
                return False
            self._next = True
            self._put(phase="preparing", more=False)
            return True

    def sit(self, game: int, strength: int) -> bool:
        """The person has chosen, by number; False: there is no such thing now."""
        fits = 0 <= game < len(lobby.GAMES) and 0 <= strength < len(lobby.STRENGTHS)
        with self._changed:
            if not fits or self._view["phase"] != "lobby":
                return False
            self._choice = lobby.GAMES[game].string, lobby.STRENGTHS[strength].string
            self._put(phase="preparing", match=-1)
            return True

    def leave(self) -> bool:
        """Ends the series.

        Returns:
          Whether that is the end; False: the person goes back to the lobby.
        """
        with self._changed:
            if self._choice is not None:
                self._gone, self._legal = True, []
                self._put(phase="preparing", actions=[], more=False)
                return False
        self.close()
        return True

    def close(self) -> None:
        """Ends everything; the bot's thread ends at its next move."""
        with self._changed:
            self._closed = True
            self._legal = []
            self._put(phase="closed", actions=[], more=False)

    # What the bot's thread does.
    def run(self) -> None:
        """Plays until the person leaves, or all matches are played."""
        try:
            while True:
                if self._sit is not None:
                    self._wait_for(lambda: self._choice)
                    assert self._choice is not None
                    self._seat(self._sit(*self._choice))
                self._play_all()
                if self._sit is None:
                    break
                self._enter()
        except LeaveError:
            pass
        except Exception as error:
            self.error = error
            self._set(phase="failed", message=str(error), actions=[], more=False)

    def _play_all(self) -> None:
        """Matches until all are played, or the person goes back to the lobby."""
        try:
            while True:
                self._play()
                if self._is_last() and self._sit is None:
                    break
                self._wait_for(lambda: self._next)
                self._next = False
        except LeaveError:
            if self._closed or self._sit is None:
                raise
        self._gone = self._next = False

    def _is_last(self) -> bool:
        return self._most is not None and len(self._series.played) >= self._most

    def _play(self) -> None:
        number = len(self._series.played)
        seat = self._series.seats(number).index(HUMAN)
        self._set(match=number, seat=seat, phase="preparing", **_EMPTY)
        bot = self._series.bot(number, 1 - seat)
        self._set(phase="thinking")
        played = self._series.play(lambda _: _Person(self, seat), [self._saw(seat)])
        self._show_end(played, seat)
        self._look_at(played, seat, bot)

    def _saw(self, seat: int) -> Any:
        """Draws the table again after every move, as the person may see it."""

        def observe(state: pyspiel.State, player: int, action: int) -> None:
            if self._left:
                raise LeaveError
            after = state.child(action)
            # Not every game says what players know while chance moves.
            if not after.is_terminal() and not after.is_chance_node():
                self._set(parts=families.draw(after, seat).parts)

        return observe

    def ask(self, state: pyspiel.State, seat: int) -> int:
        """Waits for the person's move.

        Raises:
          LeaveError: the person left.
        """
        parts = families.draw(state, seat).parts
        legal, seen = state.legal_actions(), families.opponents_moves(state, seat)
        actions = [{"action": a, "label": families.name_of(state, a)} for a in legal]
        with self._changed:
            self._answer, self._legal = None, legal
            self._put(phase="your turn", parts=parts, actions=actions, seen=seen)
        self._wait_for(lambda: self._answer is not None)
        assert self._answer is not None
        return self._answer

    def _show_end(self, played: Played, seat: int) -> None:
        state = state_after(self._series.game, played.match.actions)
        names = ("you", "bot") if seat == 0 else ("bot", "you")
        with self._changed:
            self._reviews.append(None)
        self._set(
            phase="over",
            parts=families.draw(state, seat, reveal=True).parts,
            actions=[],
            seen=families.opponents_moves(state, seat),
            result=played.match.returns[seat],
            score=self._score(),
            story=review.story(state, names),
            more=not self._is_last(),
            reviewed=len(self._reviews) - 1,
        )

    def _look_at(self, played: Played, seat: int, bot: pyspiel.Bot) -> None:
        # A person who goes on does not want to wait for it.
        def stopped() -> bool:
            return self._left or self._next

        found = self._reviewer.review(played.match, seat, bot, stopped)
        with self._changed:
            if stopped():
                return
            self._reviews[played.number] = found
            self._put(reviewed=len(self._reviews))

    @property
    def _left(self) -> bool:
        return self._closed or self._gone

    def _score(self) -> Json:
        who = self._series.seats(0).index(HUMAN)
        results = [p.match.returns[p.bots.index(HUMAN)] for p in self._series.played]
        return {
            "matches": len(results),
            "total": self._series.totals()[who],
            "won": sum(result > 0 for result in results),
            "lost": sum(result < 0 for result in results),
        }

    # The view changes under the lock.
    def _set(self, **news: Any) -> None:
        with self._changed:
            if self._left:
                raise LeaveError
            self._put(**news)

    def _put(self, **news: Any) -> None:
        """Changes what is shown; the version tells nothing where nothing changes."""
        if any(self._view.get(name) != value for name, value in news.items()):
            self._view = {**self._view, **news}
            self._version += 1
        self._changed.notify_all()

    def _wait_for(self, ready: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._left or ready())
            if self._left:
                raise LeaveError


class _Person(pyspiel.Bot):
    """Asks the page."""

    def __init__(self, table: Table, seat: int) -> None:
        pyspiel.Bot.__init__(self)
        self._table, self._seat = table, seat

    def restart(self) -> None:
        """Nothing to do: the page shows a new match."""

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Nothing to do: all information is in the next information state."""

    def step(self, state: pyspiel.State) -> int:
        return self._table.ask(state, self._seat)
