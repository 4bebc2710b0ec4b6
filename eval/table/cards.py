"""Games of cards, drawn: poker, goofspiel, rock-paper-scissors."""

import re

from .drawing import Drawing, Look, Part, back, card, facts, hand, note

_HIGH = {1: "A", 11: "J", 12: "Q", 13: "K", 14: "A"}
_SUITS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
_FOLD, _CALL, _RAISE = 0, 1, 2


def _rank(number: int, count: int) -> str:
    """The name of a rank, 0 the lowest of some that end with the king."""
    value = 13 - count + 1 + number
    return _HIGH.get(value, str(value)) if count <= 13 else str(number)


def kuhn(look: Look, other: Look | None) -> Drawing:
    """Kuhn poker: information states are the card and the actions, such as "2pb"."""
    count = look.parameters["players"] + 1
    number, bets = re.fullmatch(r"(\d+)([pb]*)", look.text).groups()  # type: ignore[union-attr]
    mine = _rank(int(number), count)
    theirs = back()
    if other is not None:
        theirs = card(_rank(int(other.text.rstrip("pb")), count), "♠")
    faced = "b" in bets
    return Drawing(
        [
            hand("Bot", [theirs]),
            facts(
                ("Pot", 2 + bets.count("b")),
                ("Actions", ", ".join(_kuhn_words(bets)) or "–"),
            ),
            hand("You", [card(mine, "♠")]),
        ],
        dict(
            zip(
                look.legal,
                ("Fold", "Call") if faced else ("Check", "Bet"),
                strict=False,
            )
        ),
        mine,
    )


def _kuhn_words(bets: str) -> list[str]:
    """What passes and bets are called, before a bet and after it."""
    return [
        ("fold" if letter == "p" else "call")
        if "b" in bets[:place]
        else ("check" if letter == "p" else "bet")
        for place, letter in enumerate(bets)
    ]


def leduc(look: Look, other: Look | None) -> Drawing:
    """OpenSpiel's Leduc poker: fields in square brackets."""
    fields = dict(re.findall(r"\[(\w+): ?([^\]]*)\]", look.text))
    alike = look.parameters["suit_isomorphism"]

    def name(number: str) -> Part:
        count = look.parameters["players"] + 1
        value = int(number)
        if alike:
            return card(_rank(value, count))
        return card(_rank(value // 2, count), "♠♥"[value % 2])

    mine = name(fields["Private"])
    theirs = back()
    if other is not None:
        theirs = name(re.search(r"\[Private: (\d+)\]", other.text)[1])  # type: ignore[index]
    board = [name(fields["Public"])] if "Public" in fields else []
    names = {"0": "fold", "1": "call", "2": "raise"}
    bets = [
        ", ".join(names[letter] for letter in fields.get(f"Round{i}", "").split())
        for i in (1, 2)
    ]
    money = fields["Money"].split()
    return Drawing(
        [
            hand("Bot", [theirs]),
            hand("Board", board or [{"empty": True}]),
            facts(
                # At the end it has been paid out.
                *([] if other is not None else [("Pot", fields["Pot"])]),
                ("You have", money[look.player]),
                ("Bot has", money[1 - look.player]),
                ("Round 1", bets[0] or "–"),
                ("Round 2", bets[1] or "–"),
            ),
            hand("You", [mine]),
        ],
        {_CALL: "Check"} if _FOLD not in look.legal and look.legal else {},
        mine["text"] + mine["suit"],
    )


def chips_poker(look: Look, other: Look | None) -> Drawing:
    """The project's poker games: "p0 card Js flop - turn - bets ddr"."""

    def name(text: str) -> Part:
        if text.isdigit():
            return card(_rank(int(text), look.parameters["num_ranks"]))
        rank = "10" if text[:-1] == "T" else text[:-1]
        return card(rank, _SUITS[text[-1]])

    words = look.text.split()
    shown = dict(zip(words[1::2], words[2::2], strict=False))
    mine = name(shown["card"])
    theirs = back()
    if other is not None:
        theirs = name(other.text.split()[2])
    board = [
        {"empty": True} if shown[street] == "-" else name(shown[street])
        for street in ("public", "flop", "turn")
        if street in shown
    ]
    names = {"f": "fold", "c": "call", "r": "raise"}
    rounds = [
        ", ".join(names[letter] for letter in part)
        for part in re.split("d+", shown["bets"].lstrip("d"))
    ]
    labels = {}
    if look.legal and look.chips[0] == look.chips[1]:
        labels = {_CALL: "Check"}
    return Drawing(
        [
            hand("Bot", [theirs]),
            hand("Board", board),
            facts(
                ("Pot", sum(look.chips)),
                ("You put in", look.chips[look.player]),
                ("Bot put in", look.chips[1 - look.player]),
                *(
                    (f"Round {number}", bets or "–")
                    for number, bets in enumerate(rounds, 1)
                ),
            ),
            hand("You", [mine]),
        ],
        labels,
        mine["text"] + mine["suit"],
    )


def goofspiel(look: Look, other: Look | None) -> Drawing:
    """The project's goofspiel: "p0 bids 3,4 turn 3 won =" ."""
    count = look.parameters["num_cards"]
    words = look.text.split()
    mine = [] if words[2] == "-" else words[2].split(",")
    won = "" if words[6] == "-" else words[6]
    # Player 0 bids first in each turn, so this is how often the other one did.
    turns = int(words[4])
    bids = (turns + 1) // 2 if look.player == 1 else turns // 2
    theirs = [back()] * bids
    if other is not None:
        theirs = [card(text) for text in other.text.split()[2].split(",")]
    order = list(range(1, count + 1))
    if look.parameters["points_order"] == "descending":
        order.reverse()
    points = {"0": 0, "1": 0}
    for prize, winner in zip(order, won, strict=False):
        if winner in points:
            points[winner] += prize
    who = {str(look.player): "you", str(1 - look.player): "bot", "=": "nobody"}
    rounds = ", ".join(
        f"{prize} to {who[sign]}" for prize, sign in zip(order, won, strict=False)
    )
    # The last bid of all is forced, and the round is over after it.
    now = order[len(won)] if len(won) < count else "–"
    kept = [n for n in range(1, count + 1) if str(n) not in mine]
    return Drawing(
        [
            facts(
                ("On offer", now),
                ("Your points", points[str(look.player)]),
                ("Bot's points", points[str(1 - look.player)]),
                ("Rounds", rounds or "–"),
            ),
            hand("Bot's bids", theirs or [{"empty": True}]),
            hand("Your bids", [card(text) for text in mine] or [{"empty": True}]),
            hand(
                "Your cards",
                [card(str(n), "", n - 1 if n - 1 in look.legal else None) for n in kept]
                or [{"empty": True}],
            ),
        ],
        holds="bids " + ", ".join(mine) if mine else "no bid yet",
    )


def rock_paper_scissors(look: Look, other: Look | None) -> Drawing:
    """Signs by number; with three of them they have their names."""
    count = look.parameters["num_actions"]
    # 1 beats 2, 2 beats 3, 3 beats 1.
    signs = {"1": "Rock", "2": "Scissors", "3": "Paper"} if count == 3 else {}

    def name(text: str) -> str:
        return signs.get(text, text)

    chosen = look.text.split()[2]
    mine = [{"empty": True}] if chosen == "-" else [card(name(chosen))]
    # Player 0 chooses first; what the other one chose is hidden until the end.
    moved = "moves 1" in look.text and look.player == 1
    theirs: Part = back() if moved else {"empty": True}
    if other is not None:
        theirs = card(name(other.text.split()[2]))
    half = (count - 1) // 2
    rule = "equal signs draw"
    if count > 3:
        rule = f"of numbers more than {half} apart the higher one wins, else the lower"
    return Drawing(
        [hand("Bot", [theirs]), hand("You", mine), note(f"Rule: {rule}.")],
        {action: name(str(action + 1)) for action in look.legal},
        name(chosen),
    )
