"""Drawings of board games: tic-tac-toe, hex, princess and monster, Scotland Yard."""

import json
import re
from collections.abc import Callable

from game_defs.princess_and_monster import DIRECTIONS
from game_defs.scotland_yard import MAPS

from .drawing import Drawing, Look, Part, cell, facts, graph, grid, note

_LETTERS = "xo"
# The letters of hex also encode the edges that a stone is connected to, and wins.
_STONES = {**dict.fromkeys("xyzX", "x"), **dict.fromkeys("opqO", "o"), ".": ""}


def latent_tic_tac_toe(look: Look, other: Look | None) -> Drawing:
    """Draw the project's latent tic-tac-toe, from strings such as "p0:x4o?x0"."""
    moves = look.text.partition(":")[2]
    if other is not None and "?" in moves:
        moves = other.text.partition(":")[2]
    owners: list[str] = [""] * 9
    keep = look.parameters["conflict"] == "keep"
    for letter, number in re.findall(r"([xo])(\d)", moves):
        owners_of_cell = owners[int(number)]
        if not owners_of_cell or (keep and letter not in owners_of_cell):
            owners[int(number)] = owners_of_cell + letter
    mark = _LETTERS[look.player]
    rows = _rows(owners, 3, look, _square_name)
    hidden = "?" in moves
    parts: list[Part] = [
        facts(
            ("You are", mark),
            ("Bot's last mark", "hidden" if hidden else "shown" if moves else "–"),
        ),
        grid(_title(other), rows),
        note("Each mark of the bot is shown one move later."),
    ]
    holds = ", ".join(re.findall(r"[xo][\d?]", moves)) or "nothing yet"
    return Drawing(parts, holds=holds)


def _title(other: Look | None) -> str:
    return "Board as you know it" if other is None else "Board"


def phantom_rules(look: Look, other: Look | None) -> Drawing:
    """Draw OpenSpiel's phantom tic-tac-toe and dark hex.

    Their information states are the board that the player has seen, then the moves.
    """
    parameters = look.parameters
    hexagons = "num_rows" in parameters
    columns = parameters.get("num_cols", 3)
    marks = _seen(look, other, parameters.get("num_rows", 3))
    mark = _LETTERS[look.player]

    def name(number: int) -> str:
        if not hexagons:
            return _square_name(number)
        return f"{chr(ord('a') + number % columns)}{number // columns + 1}"

    goal = "top and bottom" if look.player == 0 else "left and right"
    about = ("You join", goal) if hexagons else ("Your marks", marks.count(mark))
    abrupt = parameters["gameversion"] in ("adh", "abrupt")
    then = "; your turn is over." if abrupt else ", and you try again."
    cells = (
        name(n) if hexagons else str(n + 1) for n, m in enumerate(marks) if mark in m
    )
    return Drawing(
        [
            facts(("You are", mark), about),
            grid(_title(other), _rows(marks, columns, look, name), hexagons=hexagons),
            note(f"If you click a cell that the bot has taken, it is shown{then}"),
        ],
        holds=f"{mark} at {', '.join(cells) or '–'}",
    )


def _seen(look: Look, other: Look | None, rows: int) -> list[str]:
    """Return the known mark of each cell; at the end, the knowledge of both players."""
    marks: list[str] = []
    for view in filter(None, (look, other)):
        lines = view.text.splitlines()[:rows]
        signs = [_STONES[sign] for line in lines for sign in line]
        marks = [a or b for a, b in zip(marks or signs, signs, strict=True)]
    return marks


def _square_name(number: int) -> str:
    return _place(number, 3)


def _rows(
    marks: list[str], columns: int, look: Look, name: Callable[[int], str]
) -> list[list[Part]]:
    """Return cells in rows; the action of each cell has the same number."""
    cells = []
    for number, mark in enumerate(marks):
        style = "other" if mark else ""
        if _LETTERS[look.player] in mark:
            style = "own"
        action = number if number in look.legal else None
        cells.append(cell(mark, action, name(number), style))
    return _in_rows(cells, columns)


def _in_rows(cells: list[Part], columns: int) -> list[list[Part]]:
    return [cells[start : start + columns] for start in range(0, len(cells), columns)]


def princess_and_monster(look: Look, other: Look | None) -> Drawing:
    """Draw the project's princess and monster, from "p0 at 0>3 moves 2"."""
    rows, columns = look.parameters["rows"], look.parameters["columns"]
    path = _path(look.text)
    position = divmod(path[-1], columns)
    targets = {
        (position[0] + down) * columns + position[1] + right: action
        for action, (_, down, right) in enumerate(DIRECTIONS)
        if action in look.legal
    }
    roles = ("princess", "monster")
    role, bot_role = roles[look.player], roles[1 - look.player]
    bot_path = _path(other.text) if other is not None else []
    cells = []
    for number in range(rows * columns):
        mark, style = "", ""
        if number in path[:-1] + bot_path[:-1]:
            mark, style = "·", "soft"
        if bot_path and number == bot_path[-1]:
            mark, style = bot_role[0].upper(), "other"
        if number == path[-1]:
            caught = bool(bot_path) and number == bot_path[-1]
            mark = "P M" if caught else role[0].upper()
            style = "own"
        place = _place(number, columns)
        cells.append(cell(mark, targets.get(number), place, style))
    board = _in_rows(cells, columns)
    moves = int(look.text.split()[4])
    horizon = look.parameters["horizon"]
    return Drawing(
        [
            facts(
                ("You are", f"the {role}"),
                ("You want to", "hide" if look.player == 0 else "catch the princess"),
                ("Moves left", horizon - (moves + 1 - look.player) // 2),
            ),
            grid("Your path" if other is None else "Both paths", board),
        ],
        holds="at " + _place(path[-1], columns) + _way(path, columns),
    )


def _path(text: str) -> list[int]:
    return [int(number) for number in text.split()[2].split(">")]


def _place(square: int, columns: int) -> str:
    return f"row {square // columns + 1}, column {square % columns + 1}"


def _way(path: list[int], columns: int) -> str:
    """Return the steps of a path as arrows."""
    arrows = {-columns: "↑", columns: "↓", 1: "→", -1: "←"}
    steps = (arrows[b - a] for a, b in zip(path, path[1:], strict=False))
    arrows_of_path = "".join(steps)
    return f" ({arrows_of_path})" if arrows_of_path else ""


def scotland_yard(look: Look, other: Look | None) -> Drawing:
    """Draw Scotland Yard, from "p0 path 6, 7 steps 3 ... seen 6 trips Bus to 4"."""
    name = look.parameters["map"]
    data = json.loads((MAPS / f"{name}.json").read_text(encoding="utf-8"))
    path, _, _, seen, trips = _fields(look.text)
    detectives = data["detectives"][: look.parameters["detectives"]]
    for number, trip in enumerate([] if trips == "-" else trips.split(", ")):
        target = re.search(r"to (\d+)$", trip)
        if target:
            detectives[number % len(detectives)] = int(target[1])
    fugitive = None
    if look.player == 0 and path != "-":
        fugitive = int(path.split(", ")[-1])
    if other is not None and look.player == 1:
        fugitive = int(_fields(other.text)[0].split(", ")[-1])
    return Drawing(
        [
            facts(
                ("You are", "the fugitive" if look.player == 0 else "the detectives"),
                ("Rounds", look.parameters["rounds"]),
                ("Fugitive last seen at", seen if seen != "-" else "–"),
                ("Detectives' trips", trips if trips != "-" else "–"),
            ),
            _map(data, detectives, fugitive, look),
        ],
        holds=f"path of the fugitive: {path}" if look.player == 0 else "nothing hidden",
    )


def _fields(text: str) -> list[str]:
    """Return path, steps, caught, seen and trips; a dash for missing ones."""
    names = ("path", "steps", "caught", "seen", "trips")
    end = rf"(?= (?:{'|'.join(names)}) |$)"
    matches = (re.search(rf" {name} (.*?){end}", text) for name in names)
    return [match[1] if match else "-" for match in matches]


def _map(data: dict, detectives: list[int], fugitive: int | None, look: Look) -> Part:
    """Return the map with the detectives, and the fugitive if known."""
    kinds = ("taxi", "bus", "underground")
    edges = [[a - 1, b - 1, kind] for kind in kinds for a, b in data[kind]]
    targets: dict[int, list[int]] = {}
    for action, name in look.legal.items():
        if target := re.search(r"to (\d+)$", name):
            targets.setdefault(int(target[1]), []).append(action)
    nodes = []
    for number, (x, y) in enumerate(data["places"], 1):
        marks = ["D"] * detectives.count(number) + ["F"] * (fugitive == number)
        actions = targets.get(number, [])
        nodes.append(
            {
                "name": str(number),
                "x": x,
                "y": y,
                "marks": marks,
                # Clickable only if exactly one kind of ticket leads there.
                "action": actions[0] if len(actions) == 1 else None,
            }
        )
    return graph(nodes, edges)
