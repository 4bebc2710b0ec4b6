"""Runout reports: the hands at a public node, for each card of the turn or river."""

from typing import Any

import numpy as np
import pyspiel

from spiel_cr.common.checks import check_choice
from spiel_cr.games.histories import after_deals
from spiel_cr.poker.answers import HandAnswers
from spiel_cr.policies.form_policy import FormPolicy
from spiel_cr.policies.public_node_names import find_actions

# Index of the card of each street among the public cards.
STREETS = {"turn": 3, "river": 4}


def runout_report(
    policy: FormPolicy, hands: HandAnswers, street: str
) -> list[dict[str, Any]]:
    """Summarise the hands at a public node for each card that may have been dealt.

    Args:
      policy: Policy of a spot in public-tree form.
      hands: Hands on all boards at a decision after the card, from `answers`.
      street: Street of the card, "turn" or "river". If the other card has been dealt,
        too, the numbers are means over it.

    Returns:
      For each card, in the order of the deck: "card", its "probability" at the node,
      "equity" and "ev" of the player that acts (as in `HandAnswers`), and the
      probability of each action by its name. Numbers are NaN if the policy never leads
      to the node with the card.

    Raises:
      ValueError: If the card is not dealt between the start and the node.
    """
    check_street(policy.game, " ".join(hands.path), street)
    reader: Any = policy.form.reader
    deals, canonical, board = reader.runouts(hands.player, hands.round)
    card_of_deal = [deal[STREETS[street]] for deal in deals]
    cards, card = np.unique(card_of_deal, return_inverse=True)
    # The deals of a canonical board are equally likely.
    share = 1 / np.bincount(canonical)[canonical]

    def sums(values: np.ndarray) -> np.ndarray:
        weighted = np.where(np.isnan(values), 0, values) * hands.likelihood
        by_board = np.bincount(board, weighted, len(share))
        return np.bincount(card, by_board[canonical] * share)

    reached = sums(np.ones(len(board)))
    columns = {"equity": hands.equity, "ev": hands.ev}
    columns |= zip(hands.actions, hands.played.T, strict=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        means = {name: sums(values) / reached for name, values in columns.items()}
        means = {"probability": reached / reached.sum(), **means}
    order = sorted(range(len(cards)), key=lambda c: _rank(str(cards[c])))
    return [
        {"card": str(cards[c]), **{name: float(m[c]) for name, m in means.items()}}
        for c in order
    ]


def check_street(game: pyspiel.Game, node: str, street: str) -> None:
    """Raise ValueError if no card of a street is dealt before a node of a spot."""
    place = STREETS[check_choice(street, "report", STREETS)]
    _, path = find_actions(game, node)
    num_first, num_cards = public_cards(game, node)
    if not num_first <= place < num_cards:
        raise ValueError(
            f"report={street!r}: no {street} is dealt before the decision after "
            f"{' '.join(path) or 'the deal'}; choose a node after the {street}, such "
            f"as 'check check'"
        )


def public_cards(game: pyspiel.Game, node: str) -> tuple[int, int]:
    """Return the number of public cards at the start of a spot, and at a node."""
    state = after_deals(game.new_initial_state())
    for action in find_actions(game, node)[0]:
        state.apply_action(action)
        after_deals(state)
    chance = pyspiel.PlayerId.CHANCE
    deals = sum(step.player == chance for step in state.full_history())
    num_first = len(game.get_parameters()["board"].replace(" ", "")) // 2
    # The first two deals are the players' hands.
    return num_first, num_first + deals - 2


def _rank(card: str) -> int:
    """Return the place of a card in the order of the deck."""
    return "23456789TJQKA".index(card[0]) * 4 + "cdhs".index(card[1])
