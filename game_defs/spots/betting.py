"""Public tree of a spot, built in advance because bets do not depend on cards."""

import collections
import math
from typing import NamedTuple

from game_defs.base import TERMINAL
from game_defs.bundled.holdem.betting import MAX_NODES, HoldemTree, Row
from game_defs.spots.bets import (
    BETS,
    DONKS,
    PLAYERS,
    RAISES,
    STREETS,
    BetSize,
    BetSizes,
)

FOLD, CALL, FIRST_BET = 0, 1, 2


class SpotBetting(NamedTuple):
    """Chips, bet sizes and number of streets of a spot.

    Attributes:
      pot: Chips in the middle before the first bet; half of them count as each
        player's.
      stack: Chips behind, of each player.
      bets: Allowed bet sizes.
      deal: Number of public cards to come, one per street: from 0 to 2.
      first: Player that acts first, 0 or 1; 1: player 0 has checked.
    """

    pot: int
    stack: int
    bets: BetSizes
    deal: int
    first: int


class _Place(NamedTuple):
    """State of the betting at a public node.

    Attributes:
      player: Player that acts.
      chips: Chips that each player has bet since the start.
      before: Chips that each player had bet when the street began.
      step: Size of the last bet or raise of the street; raises must not be smaller.
      raises: Number of bets and raises on the street.
      checked: Whether the next check ends the street.
      caller: Player that called on the street before; -1 if neither did.
      round: Index of the street, from 0.
    """

    player: int
    chips: tuple[int, int]
    before: int
    step: int
    raises: int
    checked: bool
    caller: int
    round: int


class SpotTree(NamedTuple):
    """The public tree of a spot.

    Attributes:
      tree: Public tree in the format of `universal_poker`.
      names: Name of the action that leads to each node; empty at the root.
      children: Child of each node, by action.
    """

    tree: HoldemTree
    names: tuple[str, ...]
    children: tuple[dict[int, int], ...]

    def path(self, node: int) -> list[int]:
        """Return the nodes from the root, which is excluded, to this one."""
        nodes = []
        while node:
            nodes.append(node)
            node = int(self.tree.parent[node])
        return nodes[::-1]


def lay_out(stakes: SpotBetting) -> SpotTree:
    """Build the public tree, breadth first, actions in ascending order.

    Raises:
      ValueError: If there are too many nodes.
    """
    start = _Place(stakes.first, (0, 0), 0, 1, 0, bool(stakes.first), -1, 0)
    waiting = collections.deque([(-1, -1, "", start)])
    rows: list[Row] = []
    names: list[str] = []
    children: list[dict[int, int]] = []
    while waiting:
        if len(rows) + len(waiting) > MAX_NODES:
            raise ValueError(
                f"bets: more than {MAX_NODES} public nodes; use fewer or larger sizes,"
                f" or fewer raises, such as '; cap 3'"
            )
        above, action, name, place = waiting.popleft()
        number, folded = len(rows), action == FOLD
        names.append(name)
        children.append({})
        if above >= 0:
            children[above][action] = number
        if folded:
            lost = place.chips[place.player] + stakes.pot / 2
            stake = lost if place.player else -lost
            row = TERMINAL, above, action, place.round, place.round, stake, False
        elif place.round > stakes.deal:
            last = rows[above][3]  # the round of the last bet
            stake = place.chips[0] + stakes.pot / 2
            row = TERMINAL, above, action, last, stakes.deal, stake, True
        else:
            row = place.player, above, action, place.round, place.round, 0.0, False
            waiting.extend(
                (number, choice, *after)
                for choice, after in _after(place, stakes).items()
            )
        rows.append(row)
    return SpotTree(HoldemTree.of_rows(rows), tuple(names), tuple(children))


def _after(place: _Place, stakes: SpotBetting) -> dict[int, tuple[str, _Place]]:
    """Return names and successors of the actions, in ascending order.

    After a fold, the player of the successor is the one that folded. After the last
    street or an all-in call, its round is one more than that of the last street.
    """
    player = place.player
    player_chips, other = place.chips[player], place.chips[1 - player]
    nodes = {}
    if other > player_chips:
        nodes[FOLD] = "Fold", place
    if other > player_chips or place.checked:
        over = other == stakes.stack
        nodes[CALL] = (
            "Call" if other > player_chips else "Check",
            place._replace(
                player=0,
                chips=(other, other),
                before=other,
                step=1,
                raises=0,
                checked=False,
                caller=player if other > player_chips else -1,
                round=stakes.deal + 1 if over else place.round + 1,
            ),
        )
    else:
        nodes[CALL] = "Check", place._replace(player=1 - player, checked=True)
    word = "Raise" if other > player_chips else "Bet"
    for number, to in enumerate(_amounts(place, stakes), FIRST_BET):
        name = f"{'Allin' if to == stakes.stack else word} {to - place.before}"
        bet = place._replace(
            player=1 - player,
            chips=(other, to) if player else (to, other),
            step=to - other,
            raises=place.raises + 1,
        )
        nodes[number] = name, bet
    return nodes


def _amounts(place: _Place, stakes: SpotBetting) -> list[int]:
    """Return the possible total bets of the player since the start, ascending."""
    player_chips, other = place.chips[place.player], place.chips[1 - place.player]
    if other == stakes.stack or place.raises >= stakes.bets.cap:
        return []
    kind = RAISES if other > player_chips else BETS
    if kind == BETS and place.caller == place.player == 0:
        kind = DONKS
    street = STREETS[place.round - stakes.deal - 1]
    amounts = set()
    for size in stakes.bets.sizes[street, PLAYERS[place.player], kind]:
        by = _raise_by(size, place, stakes, other)
        if by is None:
            continue
        to = min(other + max(by, place.step), stakes.stack)
        behind, pot = stakes.stack - to, stakes.pot + 2 * to
        amounts.add(stakes.stack if behind <= stakes.bets.force * pot else to)
    return sorted(amounts)


def _raise_by(
    size: BetSize, place: _Place, stakes: SpotBetting, other: int
) -> int | None:
    """Return a bet size in chips above a call; None if it is not allowed."""
    pot = stakes.pot + 2 * other  # after a call
    if size.unit == "allin":
        left = stakes.stack - other
        return left if left <= size.amount / 100 * pot else None
    if size.unit == "x":
        chips = (size.amount - 1) * (other - place.before)
    else:
        chips = size.amount * (pot / 100 if size.unit == "%" else 1)
    return math.floor(chips + 0.5)
