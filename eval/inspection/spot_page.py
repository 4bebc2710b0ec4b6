"""HTML page of a solved spot of hold'em: actions, a grid of hands, and EV."""

from typing import Any

import numpy as np

from spiel_cr.games.sequence_form.layout import SequenceForm
from spiel_cr.poker.answers import HandAnswers, NodeValues
from spiel_cr.policies.form_policy import FormPolicy

from .strategy_page import strategy_page

# Maximum number of entries of a page, which then has about 30 MB.
MOST_NUMBERS = 5_000_000
# Maximum number of private states, summed over the decisions of all streets.
MOST_STATES = 5_000_000


def last_round(policy: FormPolicy) -> int:
    """Return the last round whose decisions have room on a page.

    Raises:
      ValueError: If the first round has too many hands and actions.
    """
    betting, fits = policy.form.betting, -1
    numbers = states = 0
    for round in range(policy.form.num_rounds):
        for player in range(2):
            nodes = (betting.player == player) & (betting.round == round)
            hands = policy.form.num_private_states(player)
            numbers += int((4 + 2 * betting.num_actions[nodes]).sum()) * hands[0]
            states += int(nodes.sum()) * hands[round]
        if numbers > MOST_NUMBERS or (round and states > MOST_STATES):
            break
        fits = round
    if fits < 0:
        raise ValueError(
            f"html: {numbers:,} numbers of hands and actions; a page has room for "
            f"{MOST_NUMBERS:,}; omit --html, or use fewer bet sizes"
        )
    return fits


def spot_page(policy: FormPolicy, form: SequenceForm, lead: str) -> str:
    """Return the page with all decisions of the first street, and of later ones.

    On later streets, the numbers of a hand are means over the cards that have been
    dealt. Streets with too many decisions or hands are left out, except the first one.

    Args:
      policy: Policy of a hold'em game in public-tree form.
      form: Sequence form of the game.
      lead: Sentence under the title.

    Raises:
      ValueError: If there are too many numbers, or `answers` raises it.
    """
    rounds = last_round(policy)
    betting = policy.form.betting
    shown = (betting.player >= 0) & (betting.round <= rounds)
    node_ids = np.flatnonzero(shown).tolist()
    place = {node: number for number, node in enumerate(node_ids)}
    values = NodeValues(policy, form)
    reader: Any = policy.form.reader
    names = [
        tuple(reader.name(p, 0, s) for s in range(policy.form.num_private_states(p)[0]))
        for p in range(2)
    ]
    hands = [[name.partition(" | ")[0] for name in part] for part in names]
    board = names[0][0].partition(" | ")[2]
    combos = [reader.combos(p, 0) for p in range(2)]
    nodes = {}
    # The same operators serve a player at several nodes, and are made once this way.
    for node in sorted(node_ids, key=lambda x: (betting.player[x], betting.round[x])):
        node_answers = values.at(" ".join(map(str, betting.path(node))))
        player, round = node_answers.player, node_answers.round
        if round:
            hand = policy.form.ancestors(player, round, 0)
            orbits = reader.orbits(player, round)
            first = names[player], combos[player]
            node_answers = node_answers.by_hand(hand, orbits, *first)
        nodes[node] = {
            "player": player,
            "path": node_answers.path,
            "street": round,
            "actions": node_answers.actions,
            "next": [place.get(c, -1) for c in betting.children(node).tolist()],
            "combos": node_answers.combos.tolist(),
            "numbers": _numbers(node_answers),
        }
    data = {
        "board": board,
        "hands": dict(enumerate(hands)),
        "nodes": [nodes[node] for node in node_ids],
    }
    title = f"Spot on {board}" if board else str(policy.game.get_type().long_name)
    return strategy_page(__file__, title, lead, data)


def _numbers(hands: HandAnswers) -> list[list[float | None]]:
    """Return weight, share of the range, equity, EV, frequencies, EV of actions.

    There is a row for each hand. Numbers have four digits; unknown ones are null.
    """
    share = hands.likelihood / (hands.likelihood.sum() or 1.0)
    columns = hands.weight, share, hands.equity, hands.ev, hands.played
    numbers = np.column_stack([*columns, hands.action_ev])
    return [
        [None if np.isnan(x) else float(f"{x:.4g}") for x in row]
        for row in numbers.tolist()
    ]
