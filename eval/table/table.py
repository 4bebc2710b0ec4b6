"""A table at which a person plays against a bot in a browser.

A thread plays match after match. When the person acts, the thread waits for an answer
from the page. Until a match is over, the page receives the person's information only.
"""

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import pyspiel

from spiel_cr.common.messages import latest
from spiel_cr.games.histories import state_after

from . import families, review
from .series import HUMAN, FinishedMatch, MatchSeries


class Offer(NamedTuple):
    """A game or a bot that a person can choose: title, description and string."""

    title: str
    description: str
    string: str


GAMES = [
    Offer("Leduc poker", "two betting rounds, one board card", "leduc_poker"),
    Offer("Kuhn poker", "three cards, one bet", "kuhn_poker"),
    Offer("Leduc with short stacks", "seven chips each", "python_leduc_poker"),
    Offer("Liar's dice", "one hidden die each", "liars_dice(numdice=1)"),
    Offer("Goofspiel", "five hidden bids for five prizes", "python_ii_goofspiel"),
    Offer("Princess and monster", "a chase in the dark", "python_princess_and_monster"),
    Offer(
        "Scotland Yard", "a hidden fugitive on a map", "python_scotland_yard(rounds=2)"
    ),
]
STRENGTHS = [
    Offer("Random", "all moves equally likely", "uniform"),
    Offer("Beginner", "a rough solution", "solved(solver=cfr+,iterations=5)"),
    Offer("Expert", "close to an equilibrium", "solved(iterations=300)"),
    Offer(
        "Re-solving",
        "solves the rest of the game at each move",
        "resolving(move_ms=200)",
    ),
]

Json = dict[str, Any]
_EMPTY: Json = {"parts": [], "actions": [], "seen": [], "result": None, "story": []}


class LeaveError(Exception):
    """Raised in the bot's thread when the person leaves."""


class MatchTable:
    """The state of a table, for one page.

    All methods except `run` may be called from any thread.

    Attributes:
      error: Error that ended the bot's thread, if any.
    """

    def __init__(
        self,
        series: MatchSeries | Callable[[str, str], MatchSeries],
        *,
        matches: int | None = None,
    ) -> None:
        """Prepare the table; `run` plays.

        Args:
          series: Series of matches with one person; or a function from a game string
            and a bot string to a series, for persons who choose both in a lobby.
          matches: Maximum number of matches; None: until the person leaves.
        """
        self._most = matches
        self._sit: Callable[[str, str], MatchSeries] | None = None
        self._choice: tuple[str, str] | None = None
        self._changed = threading.Condition()
        self._closed = self._gone = False
        self._answer: int | None = None
        self._next = False
        self._version = 0
        self._view: Json = {"phase": "preparing"}
        self._legal: list[int] = []
        self.error: Exception | None = None
        if isinstance(series, MatchSeries):
            self._seat(series)
        else:
            self._sit = series
            self._enter()

    def _enter(self) -> None:
        """Show the lobby, and discard the matches of the last series."""
        self._choice = None
        offers = {"games": GAMES, "strengths": STRENGTHS}
        shown = {name: [o[:2] for o in row] for name, row in offers.items()}
        self._set(phase="lobby", match=-1, actions=[], more=False, **shown)

    def _seat(self, series: MatchSeries) -> None:
        """Start a series, before its first match."""
        self._series = series
        self._reviewer = review.Reviewer(series.instance)
        self._reviews: list[Json | None] = []
        bot = next(bot for bot in series.seats(0) if bot != HUMAN)
        self._set(
            phase="preparing",
            game=str(series.game),
            title=families.title_of(series.game),
            bot=bot,
            named={o.string: o.title for o in STRENGTHS}.get(bot, ""),
            match=0,
            seat=series.seats(0).index(HUMAN),
            score=self._score(),
            **_EMPTY,
        )

    # Methods for the page.
    def view(self) -> Json:
        """Return the view, with the "version" that an answer must name."""
        with self._changed:
            return {**self._view, "version": self._version, "doing": latest()}

    def review_of(self, number: int) -> Json | None:
        """Return the review of a match; None if it does not exist (yet)."""
        with self._changed:
            if 0 <= number < len(self._reviews):
                return self._reviews[number]
            return None

    def answer(self, version: int, action: int) -> bool:
        """Accept the person's move; return False if it is outdated or illegal."""
        with self._changed:
            if version != self._version or action not in self._legal:
                return False
            self._legal, self._answer = [], action
            self._put(phase="thinking", actions=[], seen=[])
            return True

    def go_on(self, number: int) -> bool:
        """Start another match after this one; return False if the match is not over."""
        with self._changed:
            if number != self._view["match"] or not self._view.get("more"):
                return False
            self._next = True
            self._put(phase="preparing", more=False)
            return True

    def sit(self, game: int, strength: int) -> bool:
        """Accept the person's choice in the lobby; return False if it is invalid."""
        fits = 0 <= game < len(GAMES) and 0 <= strength < len(STRENGTHS)
        with self._changed:
            if not fits or self._view["phase"] != "lobby":
                return False
            self._choice = GAMES[game].string, STRENGTHS[strength].string
            self._put(phase="preparing", match=-1)
            return True

    def leave(self) -> bool:
        """End the series.

        Returns:
          True if the table is closed; False if the person returns to the lobby.
        """
        with self._changed:
            if self._choice is not None:
                self._gone, self._legal = True, []
                self._put(phase="preparing", actions=[], more=False)
                return False
        self.close()
        return True

    def close(self) -> None:
        """Close the table; the bot's thread ends at its next move."""
        with self._changed:
            self._closed = True
            self._legal = []
            self._put(phase="closed", actions=[], more=False)

    # Methods of the bot's thread.
    def run(self) -> None:
        """Play until the person leaves, or all matches are played."""
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
        """Play until all matches are played, or the person returns to the lobby."""
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
        played = self._series.play(lambda _: _PagePlayer(self, seat), [self._saw(seat)])
        self._show_end(played, seat)
        self._review_match(played, seat, bot)

    def _saw(self, seat: int) -> Any:
        """Return an observer that redraws the table after every move."""

        def observe(state: pyspiel.State, player: int, action: int) -> None:
            if self._left:
                raise LeaveError
            after = state.child(action)
            # Some games have no information states at chance nodes.
            if not after.is_terminal() and not after.is_chance_node():
                self._set(parts=families.draw(after, seat).parts)

        return observe

    def ask(self, state: pyspiel.State, seat: int) -> int:
        """Wait for the person's move.

        Raises:
          LeaveError: If the person leaves.
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

    def _show_end(self, played: FinishedMatch, seat: int) -> None:
        state = state_after(self._series.game, played.match.actions)
        names = ("you", "bot") if seat == 0 else ("bot", "you")
        with self._changed:
            self._reviews.append(None)
        self._set(
            phase="over",
            parts=families.draw(state, seat, reveal=True).parts,
            actions=[],
            seen=families.opponents_moves(state, seat),
            result=played.returns[seat],
            score=self._score(),
            story=review.story(state, names),
            more=not self._is_last(),
            reviewed=len(self._reviews) - 1,
        )

    def _review_match(self, played: FinishedMatch, seat: int, bot: pyspiel.Bot) -> None:
        # The next match does not wait for the review of the last one.
        def stopped() -> bool:
            return self._left or self._next

        review_of_match = self._reviewer.review(played.match, seat, bot, stopped)
        with self._changed:
            if stopped():
                return
            self._reviews[played.number] = review_of_match
            self._put(reviewed=len(self._reviews))

    @property
    def _left(self) -> bool:
        return self._closed or self._gone

    def _score(self) -> Json:
        index = self._series.seats(0).index(HUMAN)
        results = [p.match.returns[p.bots.index(HUMAN)] for p in self._series.played]
        return {
            "matches": len(results),
            "total": self._series.totals()[index],
            "wins": sum(result > 0 for result in results),
            "losses": sum(result < 0 for result in results),
        }

    # The view changes under the lock.
    def _set(self, **news: Any) -> None:
        with self._changed:
            if self._left:
                raise LeaveError
            self._put(**news)

    def _put(self, **news: Any) -> None:
        """Change the view; the version changes only if the view does."""
        if any(self._view.get(name) != value for name, value in news.items()):
            self._view = {**self._view, **news}
            self._version += 1
        self._changed.notify_all()

    def _wait_for(self, ready: Any) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._left or ready())
            if self._left:
                raise LeaveError


class _PagePlayer(pyspiel.Bot):
    """Bot that plays the moves from the page."""

    def __init__(self, table: MatchTable, seat: int) -> None:
        pyspiel.Bot.__init__(self)
        self._table, self._seat = table, seat

    def restart(self) -> None:
        """Do nothing: the page shows a new match."""

    def inform_action(self, state: pyspiel.State, player: int, action: int) -> None:
        """Do nothing: all information is in the next information state."""

    def step(self, state: pyspiel.State) -> int:
        return self._table.ask(state, self._seat)
