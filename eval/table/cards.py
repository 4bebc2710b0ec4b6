"""Drawings of card games, liar's dice and rock-paper-scissors."""

import re
from collections.abc import Sequence

from .drawing import Drawing, Look, Part, back, card, dice, facts, hand, note, poker

_HIGH = {1: "A", 11: "J", 12: "Q", 13: "K", 14: "A"}
_SUITS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_FOLD, _CALL, _RAISE = 0, 1, 2
_LEDUC = str.maketrans("012", "fcr")
_DIE_FACES = " ⚀⚁⚂⚃⚄⚅"
_FACED = {"f": "fold", "c": "call", "r": "raise"}
_UNFACED = {"f": "fold", "c": "check", "r": "bet"}


def _rank(number: int, count: int) -> str:
    """Return the name of a rank from 0, the lowest, to the king."""
    value = 13 - count + 1 + number
    return _HIGH.get(value, str(value)) if count <= 13 else str(number)


def kuhn(look: Look, other: Look | None) -> Drawing:
    """Draw Kuhn poker, from the card and the actions, such as "2pb"."""
    count = look.parameters["players"] + 1
    bets = look.text.lstrip("0123456789")
    player_card, bot_card = (
        card(_rank(int(one.text.rstrip("pb")), count), "♠") if one else back()
        for one in (look, other)
    )
    # A pass after a bet folds, a bet after a bet calls.
    before, bet, after = bets.partition("b")
    letters = before.replace("p", "c") + bet.replace("b", "r")
    letters += after.replace("p", "f").replace("b", "c")
    paid = [1 + bets[player::2].count("b") for player in (look.player, 1 - look.player)]
    words = ("Fold", "Call") if bet else ("Check", "Bet")
    labels = dict(zip(look.legal, words, strict=False))
    actions = [_action_words(letters, look.player)]
    table = poker(([player_card], [bot_card]), [], _put_in(paid), sum(paid), actions)
    return Drawing([table], labels, player_card["text"])


def _put_in(paid: Sequence[int]) -> tuple[str, str]:
    return f"put in {paid[0]}", f"put in {paid[1]}"


def _action_words(letters: str, player: int) -> list[str]:
    """Describe a betting round in words.

    Args:
      letters: Actions in order: (f)old, (c)all and (r)aise; player 0 acts first.
      player: Player who sees the words.
    """
    actions = []
    for place, letter in enumerate(letters):
        names = _FACED if "r" in letters[:place] else _UNFACED
        word = names[letter]
        actions.append(f"you {word}" if place % 2 == player else f"bot {word}s")
    return actions


def _unfaced(look: Look) -> dict[int, str]:
    """Return the names of calls and raises if the player does not face a bet."""
    faced = _FOLD in look.legal and len(set(look.chips)) != 1
    names = {_CALL: "Check", _RAISE: "Bet"}
    return {} if faced else {a: name for a, name in names.items() if a in look.legal}


def leduc(look: Look, other: Look | None) -> Drawing:
    """Draw OpenSpiel's Leduc poker, from fields in square brackets."""
    fields, bot_fields = (
        dict(re.findall(r"\[(\w+): ?([^\]]*)\]", one.text if one else ""))
        for one in (look, other)
    )
    alike = look.parameters["suit_isomorphism"]

    def name(number: str) -> Part:
        count = look.parameters["players"] + 1
        value = int(number)
        if alike:
            return card(_rank(value, count))
        return card(_rank(value // 2, count), "♠♥"[value % 2])

    player_card = name(fields["Private"])
    bot_card = name(bot_fields["Private"]) if bot_fields else back()
    board = name(fields["Public"]) if "Public" in fields else {"empty": True}
    rounds = [fields.get(f"Round{i}", "").replace(" ", "") for i in (1, 2)]
    actions = [
        _action_words(bets.translate(_LEDUC), look.player) for bets in rounds if bets
    ]
    money = fields["Money"].split()
    chips = f"{money[look.player]} chips", f"{money[1 - look.player]} chips"
    # At the end the pot has been paid out.
    pot = None if look.over else int(fields["Pot"])
    table = poker(([player_card], [bot_card]), [board], chips, pot, actions)
    return Drawing([table], _unfaced(look), player_card["text"] + player_card["suit"])


def chips_poker(look: Look, other: Look | None) -> Drawing:
    """Draw the project's poker games, from "p0 card Js flop - turn - bets ddr"."""

    def name(text: str) -> Part:
        if text.isdigit():
            return card(_rank(int(text), look.parameters["num_ranks"]))
        return _suited(text)

    words = look.text.split()
    shown = dict(zip(words[1::2], words[2::2], strict=False))
    player_card = name(shown["card"])
    bot_card = back() if other is None else name(other.text.split()[2])
    board = [
        {"empty": True} if shown[street] == "-" else name(shown[street])
        for street in ("public", "flop", "turn")
        if street in shown
    ]
    rounds = re.split("d+", shown["bets"].lstrip("d"))
    paid = look.chips[look.player], look.chips[1 - look.player]
    actions = [_action_words(letters, look.player) for letters in rounds if letters]
    table = poker(([player_card], [bot_card]), board, _put_in(paid), sum(paid), actions)
    return Drawing([table], _unfaced(look), player_card["text"] + player_card["suit"])


def _suited(text: str) -> Part:
    """Return a card from a text such as "Js"."""
    rank = "10" if text[0] == "T" else text[:-1]
    return card(rank, _SUITS[text[-1]])


def spot(look: Look, other: Look | None) -> Drawing:
    """Draw a spot, from "p0 hand 6d5s board 5c9dJs2h3c deals 2 bets check"."""

    def cards(text: str) -> list[Part]:
        return [_suited(text[start : start + 2]) for start in range(0, len(text), 2)]

    head, _, bets = look.text.partition(" bets ")
    words = head.split()
    player_cards = cards(words[2])
    bot_cards = [back()] * 2 if other is None else cards(other.text.split()[2])
    actions = [bets.replace("-", " ").replace(" ", ", ") or "–"]
    table = poker((player_cards, bot_cards), cards(words[4]), ("", ""), None, [actions])
    pot, stack = look.parameters["pot"], look.parameters["stack"]
    setup = facts(("Initial pot", pot), ("Initial stack", stack))
    holds = " ".join(one["text"] + one["suit"] for one in player_cards)
    return Drawing([table, setup], holds=holds)


def goofspiel(look: Look, other: Look | None) -> Drawing:
    """Draw the project's goofspiel, from "p0 bids 3,4 turn 3 won ="."""
    count = look.parameters["num_cards"]
    words = look.text.split()
    player_bids = [] if words[2] == "-" else words[2].split(",")
    winners = "" if words[6] == "-" else words[6]
    # Player 0 bids first in each turn, so these are the bids of the other player.
    turns = int(words[4])
    bids = (turns + 1) // 2 if look.player == 1 else turns // 2
    bot_bids = [back()] * bids
    if other is not None:
        bot_bids = [card(text) for text in other.text.split()[2].split(",")]
    order = list(range(1, count + 1))
    if look.parameters["points_order"] == "descending":
        order.reverse()
    points = {"0": 0, "1": 0}
    for prize, winner in zip(order, winners, strict=False):
        if winner in points:
            points[winner] += prize
    names = {str(look.player): "you", str(1 - look.player): "bot", "=": "no one"}
    rounds = ", ".join(
        f"{prize} to {names[sign]}" for prize, sign in zip(order, winners, strict=False)
    )
    # The last bid is forced, and the round is over after it.
    now = order[len(winners)] if len(winners) < count else "–"
    kept = [
        card(str(n), "", n - 1 if n - 1 in look.legal else None)
        for n in range(1, count + 1)
        if str(n) not in player_bids
    ]
    return Drawing(
        [
            facts(
                ("On offer", now),
                ("Your points", points[str(look.player)]),
                ("Bot's points", points[str(1 - look.player)]),
                ("Rounds", rounds or "–"),
            ),
            hand("Bot's bids", bot_bids),
            hand("Your bids", list(map(card, player_bids))),
            hand("Your cards", kept),
        ],
        holds="bids " + ", ".join(player_bids) if player_bids else "no bid yet",
    )


def rock_paper_scissors(look: Look, other: Look | None) -> Drawing:
    """Draw rock-paper-scissors; the signs have names if there are three."""
    count = look.parameters["num_actions"]
    # 1 beats 2, 2 beats 3, 3 beats 1.
    signs = {"1": "Rock", "2": "Scissors", "3": "Paper"} if count == 3 else {}

    def name(text: str) -> str:
        return signs.get(text, text)

    chosen = look.text.split()[2]
    player_sign = [] if chosen == "-" else [card(name(chosen))]
    # Player 0 chooses first; the choice of the opponent is hidden until the end.
    moved = "moves 1" in look.text and look.player == 1
    bot_sign = [back()] if moved else []
    if other is not None:
        bot_sign = [card(name(other.text.split()[2]))]
    half = (count - 1) // 2
    rule = "equal signs draw"
    if count > 3:
        rule = f"the lower number wins, but the higher if they differ by over {half}"
    return Drawing(
        [hand("Bot", bot_sign), hand("You", player_sign), note(f"Rule: {rule}.")],
        {action: name(str(action + 1)) for action in look.legal},
        name(chosen),
    )


def liars_dice(look: Look, other: Look | None) -> Drawing:
    """Draw liar's dice, from the player's dice and the bids, such as "35 4-5 4-6"."""
    player_dice, *bids = look.text.split()
    bot_dice: list[int | None] = [None] * len(player_dice)
    if other is not None:
        bot_dice = [int(digit) for digit in other.text.split()[0]]
    actions = []
    for number, bid in enumerate(bids):
        bidder = "you" if number % 2 == look.player else "bot"
        actions.append(f"{bidder} {_bid_name(bid)}")
    return Drawing(
        [
            dice("Bot's dice", bot_dice),
            facts(
                ("Last bid", actions[-1] if actions else "–"),
                ("Bids", ", ".join(actions) or "–"),
            ),
            dice("Your dice", [int(digit) for digit in player_dice]),
        ],
        {action: _bid_name(name) for action, name in look.legal.items()},
        " ".join(player_dice),
    )


def _bid_name(bid: str) -> str:
    """Return a bid in words: "2-6" is a bid of two sixes; "Liar" ends the match."""
    count, dash, face = bid.partition("-")
    if not dash:
        return bid
    return f"{count} × {_DIE_FACES[int(face)] if int(face) < len(_DIE_FACES) else face}"
