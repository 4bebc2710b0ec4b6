"""The command `review`: evaluate recorded matches without luck.

The file has a line of JSON for each match: the matches.jsonl of a tournament, or
pyspiel.Trajectory.to_string(). The luck of chance is removed by the values of
--reference. The luck of a player's own actions is removed if its policy is given.

A habit is an action that a player chose at an information state. Its loss is the value
of the best action minus that of the chosen one, if both players follow the reference.

examples:
  spiel-cr review --game leduc_poker --open out/tournament/matches.jsonl
  spiel-cr review --game kuhn_poker --open matches.jsonl --reference lp \\
    --policies 'uniform;lp' --html review.html
"""

import dataclasses

from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.evaluation.recorded_matches import REFERENCE, read_matches, review_matches
from spiel_cr.players.player_specs import MEMORY_LIMIT

from ..reporting.document import Document, DocumentTable, Section
from .command import Arguments, split_bots

# Number of habits that are shown.
_MOST = 20


@dataclasses.dataclass(kw_only=True)
class ReviewOptions:
    """Options of the command.

    Attributes:
      open (FILE): Recorded matches, a line of JSON each.
      bot (NAME): Bot to review in both seats, by its name in the file (default: player
        0, and habits of both players).
      reference (POLICY): Policy of both players whose values are used.
      policies (A;B): Policies of players 0 and 1, whose own luck is then removed.
      html (FILE): Write a page to share.
    """

    game: str
    open: atomic.Path
    bot: str | None = None
    reference: str = REFERENCE
    policies: str | None = None
    memory_limit: Limit = MEMORY_LIMIT
    html: atomic.Path | None = None


def run(arguments: Arguments) -> dict[str, object]:
    """Review recorded matches."""
    policies = split_bots(arguments.policies) if arguments.policies is not None else []
    if len(policies) not in (0, 2):
        raise ValueError(f"policies={arguments.policies!r}: give two, as 'A;B'")
    matches, seats = read_matches(arguments.open, arguments.bot)
    result = review_matches(
        matches=matches,
        seats=seats,
        policies=dict(enumerate(policies)),
        **arguments.options("game", "reference", "memory_limit"),
    )
    half, plain = result.half_width, result.plain_half_width
    mean, plain_mean = float(result.estimates.mean()), float(result.returns.mean())
    lines = [
        f"{arguments.bot or 'player 0'} won {plain_mean:+.4f} ± {plain or 0:.4f} per "
        f"match in {len(matches):,} matches",
        f"without luck {mean:+.4f} ± {half or 0:.4f} (95%, by AIVAT with the values of "
        f"{arguments.reference})",
    ]
    rows = [
        (h.information_state, f"player {h.player}", h.action, h.best, str(h.times))
        + tuple(f"{loss:.4f}" for loss in (h.loss, h.times * h.loss))
        for h in result.habits[:_MOST]
    ]
    print(one_line(f"{arguments.game}: {arguments.open}"))
    line = "{1} {0}: {2} instead of {3}, {4} times, loses {5} each, {6} in all"
    for text in (*lines, *(line.format(*row) for row in rows)):
        print(f"  {one_line(text)}")
    if arguments.html:
        # Slow to import.
        from ..reporting.report import report_html

        names = ("information state", "player", "action", "best action", "decisions")
        heads = (*names, "loss of each", "loss in all")
        caption = "Losses are in the game's units."
        table = DocumentTable(caption, heads, rows, [False] * len(rows))
        section = Section("Most expensive habits", [table])
        title = f"Review of matches of {arguments.game}"
        page = report_html(Document(title, ". ".join(lines) + ".", [section]))
        arguments.write_text(arguments.html, page, "  page       ")
    return {
        "matches": len(matches),
        "mean": mean,
        "half_width": half,
        "plain_mean": plain_mean,
        "plain_half_width": plain,
        "reference": arguments.reference,
        "habits": [habit._asdict() for habit in result.habits],
    }
