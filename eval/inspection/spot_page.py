"""HTML page of a solved spot of hold'em: actions, a grid of hands, and EV."""

from collections.abc import Sequence

import numpy as np

from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.poker.answers import HandAnswers, answers
from spiel_cr.policies.form_policy import FormPolicy

from .strategy_page import strategy_page

# Maximum number of entries of a page, which then has about 30 MB.
MOST_NUMBERS = 5_000_000


def check_size(policy: FormPolicy) -> None:
    """Raise ValueError if there are too many hands and actions for a page."""
    betting = policy.form.betting
    count = 0
    for player in range(2):
        nodes = (betting.player == player) & (betting.round == 0)
        numbers = (4 + 2 * betting.num_actions[nodes]).sum()
        count += int(numbers) * policy.form.num_private_states(player)[0]
    if count > MOST_NUMBERS:
        raise ValueError(
            f"html: {count:,} numbers of hands and actions; a page has room for "
            f"{MOST_NUMBERS:,}; omit --html, or use fewer bet sizes"
        )


def spot_page(policy: FormPolicy, form: SequenceForm, lead: str) -> str:
    """Return the page with all decisions of the first street.

    Args:
      policy: Policy of a hold'em game in public-tree form.
      form: Sequence form of the game.
      lead: Sentence under the title.

    Raises:
      ValueError: If there are too many numbers, or `answers` raises it.
    """
    check_size(policy)
    betting, finder = policy.form.betting, policy.form.finder
    node_ids = np.flatnonzero((betting.player >= 0) & (betting.round == 0)).tolist()
    hands: dict[int, Sequence[str]] = {}
    board = ""
    nodes = []
    for node in node_ids:
        path = " ".join(map(str, betting.path(node)))
        node_answers = answers(policy, path, form=form)
        hands[node_answers.player] = [
            name.partition(" | ")[0] for name in node_answers.names
        ]
        board = node_answers.names[0].partition(" | ")[2]
        after = finder.children(node).tolist()
        nodes.append(
            {
                "player": node_answers.player,
                "path": node_answers.path,
                "actions": node_answers.actions,
                "next": [node_ids.index(c) if c in node_ids else -1 for c in after],
                "combos": node_answers.combos.tolist(),
                "numbers": _numbers(node_answers),
            }
        )
    data = {"board": board, "hands": hands, "nodes": nodes}
    title = f"Spot on {board}" if board else str(policy.game.get_type().long_name)
    return strategy_page(__file__, title, lead, data)


def _numbers(node_answers: HandAnswers) -> list[list[float | None]]:
    """Return weight, share of the range, equity, EV, frequencies, EV of actions.

    There is a row for each hand. Numbers have four digits; unknown ones are null.
    """
    share = node_answers.likelihood / (node_answers.likelihood.sum() or 1.0)
    columns = [
        node_answers.weight,
        share,
        node_answers.equity,
        node_answers.ev,
        node_answers.played,
    ]
    numbers = np.column_stack([*columns, node_answers.action_ev])
    return [
        [None if np.isnan(x) else float(f"{x:.4g}") for x in row]
        for row in numbers.tolist()
    ]
