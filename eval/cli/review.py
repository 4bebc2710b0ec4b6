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
from collections.abc import Sequence

from spiel_cr.common import atomic
from spiel_cr.common.memory import Limit
from spiel_cr.common.messages import one_line
from spiel_cr.evaluation.recorded_matches import (
    REFERENCE,
    read_matches,
    review_matches,
)
from spiel_cr.players.player_specs import MEMORY_LIMIT

from ..reporting import html_page
from .command import Arguments, split_bots

# Number of habits that are shown.
_MOST = 20


@dataclasses.dataclass(kw_only=True)
class ReviewOptions:
    """Options of the command.

    Attributes:
      open (FILE): Recorded matches, a line of JSON each.
      reference (POLICY): Policy of both players whose values are used.
      policies (A;B): Policies of players 0 and 1, whose own luck is then removed.
      html (FILE): Write a page to share.
    """

    game: str
    open: atomic.Path
    reference: str = REFERENCE
    policies: str | None = None
    memory_limit: Limit = MEMORY_LIMIT
    html: atomic.Path | None = None


def run(arguments: Arguments) -> dict[str, object]:
    """Review recorded matches."""
    policies = None
    if arguments.policies is not None:
        policies = dict(enumerate(split_bots(arguments.policies)))
        if len(policies) != 2:
            raise ValueError(f"policies={arguments.policies!r}: give two, as 'A;B'")
    result = review_matches(
        arguments.game,
        read_matches(arguments.open),
        arguments.reference,
        policies=policies,
        memory_limit=arguments.memory_limit,
    )
    half, plain = result.half_width or 0.0, result.plain_half_width or 0.0
    lines = [
        f"player 0 won {result.returns.mean():+.4f} ± {plain:.4f} per match in "
        f"{len(result.returns):,} matches",
        f"without luck {result.mean:+.4f} ± {half:.4f} (95%, by AIVAT with the values "
        f"of {result.reference})",
    ]
    habits = result.habits[:_MOST]
    rows = [(*h[:3], h.best, h.times, h.loss, h.times * h.loss) for h in habits]
    print(one_line(f"{arguments.game}: {arguments.open}"))
    for line in lines:
        print(f"  {line}")
    for player, state, action, best, count, loss, total in rows:
        print(
            one_line(
                f"  player {player} {state}: {action} instead of {best}, {count} "
                f"times, loses {loss:.4f} each, {total:.4f} in all"
            )
        )
    if arguments.html:
        with arguments.writing("  page       ", arguments.html):
            atomic.write_text(arguments.html, _page(arguments.game, lines, rows))
    return {
        "matches": len(result.returns),
        "mean": result.mean,
        "half_width": result.half_width,
        "plain_mean": float(result.returns.mean()),
        "plain_half_width": result.plain_half_width,
        "reference": result.reference,
        "habits": [habit._asdict() for habit in result.habits],
    }


def _page(game: str, lines: Sequence[str], rows: Sequence[tuple[object, ...]]) -> str:
    """Return the page of a review."""
    titles = "player", "information state", "action", "best action", "decisions"
    head = "".join(f"<th>{t}</th>" for t in (*titles, "loss of each", "loss in all"))
    body = "".join(
        "<tr>"
        + "".join(
            f"<td>{html_page.number(c) if isinstance(c, float) else html_page.text(c)}"
            "</td>"
            for c in row
        )
        + "</tr>"
        for row in rows
    )
    paragraphs = "".join(f"<p>{html_page.text(line)}</p>" for line in lines)
    title = html_page.text(f"Review of matches of {game}")
    return html_page.page(
        f"Review of {game}",
        f"<h1>{title}</h1>{paragraphs}<h2>Most expensive habits</h2>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>",
    )
