"""Liar's dice, drawn."""

from .drawing import Drawing, Look, dice, facts

_FACES = " ⚀⚁⚂⚃⚄⚅"


def liars_dice(look: Look, other: Look | None) -> Drawing:
    """OpenSpiel's liar's dice: own dice, then the bids, such as "35 4-5 4-6"."""
    mine, *bids = look.text.split()
    theirs: list[int | None] = [None] * len(mine)
    if other is not None:
        theirs = [int(digit) for digit in other.text.split()[0]]
    said = []
    for number, bid in enumerate(bids):
        who = "you" if number % 2 == look.player else "bot"
        said.append(f"{who} {_words(bid)}")
    return Drawing(
        [
            dice("Bot's dice", theirs),
            facts(
                ("Last bid", said[-1] if said else "–"),
                ("Bids", ", ".join(said) or "–"),
            ),
            dice("Your dice", [int(digit) for digit in mine]),
        ],
        {action: _words(name) for action, name in look.legal.items()},
        " ".join(mine),
    )


def _words(bid: str) -> str:
    """ "2-6" is a bid of two sixes; "Liar" ends the match."""
    count, dash, face = bid.partition("-")
    if not dash:
        return bid
    return f"{count} × {_FACES[int(face)] if int(face) < len(_FACES) else face}"
