"""Gambit's game files: `.efg` (game trees) and `.nfg` (payoff tables).

A file, or a game of `pygambit`, is translated into the part of the `.efg` format that
OpenSpiel reads correctly: payoffs at terminal nodes only, no chance outcomes of
probability zero, and every information set with its actions. OpenSpiel then loads the
translation as `efg_game`, from a file that is named after its content. Therefore the
same game has the same game string wherever it came from, and worker processes, saved
results and OpenSpiel's own tools load it by that string.

The formats are described at https://gambitproject.readthedocs.io (Game representation
formats). A normal-form game becomes a tree in which each player moves once, without
seeing the earlier moves.
"""

import contextlib
import dataclasses
import hashlib
import itertools
import math
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyspiel

from spiel_cr.common import atomic
from spiel_cr.common.messages import one_line
from spiel_cr.games.opening.game_checks import CHANCE_TOLERANCE

SUFFIXES = (".efg", ".nfg")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[{}]|[^\s{},"]+|"')
_NUMBER = re.compile(
    r"[+-]?(\d{1,400}(\.\d{0,400})?|\.\d{1,400})(e[+-]?\d{1,3}|/\d{1,400})?", re.I
)


@dataclasses.dataclass
class GambitNode:
    """A node of a game tree, as a file lists it.

    Attributes:
      player: 0 for chance, the number of the acting player from 1, or -1 at the end.
      infoset: Number of the information set among those of its player.
      outcome: Payoffs to the players on reaching the node; empty if there are none.
    """

    player: int
    infoset: int = 0
    outcome: Sequence[Fraction] = ()


@dataclasses.dataclass
class GambitInfoset:
    """The label and the actions of an information set, or of a chance event.

    Attributes:
      name: Label.
      actions: Labels of the actions.
      probabilities: Probability of each action, at chance events only.
    """

    name: str = ""
    actions: Sequence[str] = ()
    probabilities: Sequence[Fraction] = ()


@dataclasses.dataclass
class GambitGame:
    """A game as Gambit's formats describe it.

    Attributes:
      title: Title.
      players: Names of the players.
      nodes: All nodes in preorder.
      infosets: Information sets by player (0 for chance) and number.
    """

    title: str
    players: Sequence[str]
    nodes: list[GambitNode]
    infosets: dict[tuple[int, int], GambitInfoset]


def is_gambit(game: object) -> bool:
    """Return whether a game is the path of a Gambit file, or a game of `pygambit`."""
    if isinstance(game, str | os.PathLike):
        # A game string such as efg_game(filename=a.efg) ends with a bracket.
        return os.fspath(game).lower().endswith(SUFFIXES)
    return any(kind.__module__.startswith("pygambit") for kind in type(game).__mro__)


def shown_name(game: Any) -> str:
    """Return how error messages name a Gambit file or a game of `pygambit`."""
    if isinstance(game, str | os.PathLike):
        return os.fspath(game)
    return one_line(game)


def load(game: Any) -> pyspiel.Game:
    """Load a Gambit file, or a game of `pygambit`, as an OpenSpiel game.

    Args:
      game: Path of an `.efg` or `.nfg` file, or a `pygambit.Game`.

    Returns:
      The game `efg_game`. Its string names a file in the user's cache folder whose name
      contains a hash of the game.

    Raises:
      FileNotFoundError: If there is no such file.
      ValueError: If the file does not follow the format; the message has the line.
    """
    name = shown_name(game)
    if isinstance(game, str | os.PathLike):
        if not os.path.isfile(name):
            raise FileNotFoundError(
                f"game={name!r}: there is no such file; give the path of a Gambit file"
            )
        text = Path(name).read_text("utf-8", "replace")
    else:
        try:
            text = game.to_efg()
        # A game without a tree; each version of pygambit has its own error for this.
        except Exception:
            text = game.to_nfg()
    return load_text(text, name)


def load_text(text: str, name: str) -> pyspiel.Game:
    """Load the text of a Gambit file, as `load`; `name` is for error messages."""
    parsed = parse(text, name)
    path = _store(parsed.title, canonical(parsed))
    return pyspiel.load_game("efg_game", {"filename": str(path)})


def parse(text: str, name: str) -> GambitGame:
    """Parse the text of a Gambit file.

    Args:
      text: Text in the format of an `.efg` or `.nfg` file.
      name: Name of the file, for errors.

    Raises:
      ValueError: If the text does not follow the format.
    """
    reader = _Reader(text, name)
    kind = reader.next()
    if kind not in ("EFG", "NFG"):
        raise reader.error("it does not begin with EFG or NFG")
    reader.next(), reader.next()  # the version of the format, and the type of numbers
    title, players = reader.text(), reader.texts()
    if not players:
        raise reader.error("there are no players")
    return (reader.tree if kind == "EFG" else reader.table)(title, players)


class _Reader:
    """The tokens of a file, and the grammar of both formats."""

    def __init__(self, text: str, name: str) -> None:
        self._text, self._name, self._place = text, name, 0
        self._tokens = list(_TOKEN.finditer(text))

    def error(self, problem: str) -> ValueError:
        """Return the error to raise at the last token that was read."""
        place = min(self._place, len(self._tokens)) - 1
        end = self._tokens[place].start() if place >= 0 else 0
        line = self._text.count("\n", 0, end) + 1
        return ValueError(
            f"game={self._name!r}: line {line}: {problem}; correct the file"
        )

    def peek(self) -> str:
        """Return the next token; "" at the end of the file."""
        if self._place < len(self._tokens):
            return self._tokens[self._place].group()
        return ""

    def next(self) -> str:
        """Return the next token, and advance to the one after it."""
        token = self.peek()
        self._place += 1
        if not token:
            raise self.error("the file ends too early")
        return token

    def expect(self, token: str) -> None:
        """Read a token that the format requires."""
        if (actual := self.next()) != token:
            raise self.error(f"{actual!r} is where {token!r} must be")

    def text(self) -> str:
        """Read a text in quotes."""
        token = self.next()
        if len(token) < 2 or token[0] != '"':
            raise self.error(f"{token!r} must be a text in quotes")
        return re.sub(r"\\(.)", r"\1", token[1:-1], flags=re.S)

    def number(self) -> Fraction:
        """Read a number."""
        token = self.next()
        if not _NUMBER.fullmatch(token):
            raise self.error(f"{token!r} must be a number")
        try:
            return Fraction(token)
        except ZeroDivisionError:
            raise self.error(f"{token!r} divides by zero") from None

    def integer(self) -> int:
        """Read a whole number that is not negative."""
        number = self.number()
        if number.denominator != 1 or number < 0:
            raise self.error(f"{number} must be a whole number of at least 0")
        return int(number)

    def texts(self) -> list[str]:
        """Read texts in braces."""
        return list(self.braced(self.text))

    def braced(self, read: Any) -> Iterator[Any]:
        """Read a list in braces, calling a function to read each item."""
        self.expect("{")
        while self.peek() != "}":
            yield read()
        self.next()

    def comment(self) -> None:
        """Skip the comment after the header."""
        if self.peek().startswith('"'):
            self.text()

    def tree(self, title: str, players: Sequence[str]) -> GambitGame:
        """Read what follows the header of an `.efg` file."""
        self.comment()
        game = GambitGame(title, players, [], {})
        # Outcomes may be used at nodes before the node that defines them.
        numbers: list[int] = []
        outcomes: dict[int, list[Fraction]] = {}
        while self.peek():
            kind = self.next()
            if kind not in ("c", "p", "t"):
                raise self.error(f"{kind!r} must be c, p or t")
            self.text()
            node = GambitNode(-1)
            if kind != "t":
                node.player = self.integer() if kind == "p" else 0
                if kind == "p" and not 1 <= node.player <= len(players):
                    raise self.error(f"there is no player {node.player}")
                node.infoset = self.integer()
                self._infoset(game, node)
            game.nodes.append(node)
            numbers.append(self.integer())
            if self.peek().startswith('"'):
                self.text()
            if self.peek() == "{":
                payoffs = list(self.braced(self.number))
                if len(payoffs) != len(players):
                    raise self.error(f"there must be {len(players)} payoffs")
                if outcomes.setdefault(numbers[-1], payoffs) != payoffs:
                    raise self.error(f"outcome {numbers[-1]} has other payoffs before")
        for node, number in zip(game.nodes, numbers, strict=True):
            if number and number not in outcomes:
                raise self.error(f"outcome {number} is never defined")
            node.outcome = outcomes.get(number, ())
        for (player, number), infoset in game.infosets.items():
            if not infoset.actions:
                actor = f"player {player}" if player else "chance"
                raise self.error(f"infoset {number} of {actor} has no actions")
        return game

    def _infoset(self, game: GambitGame, node: GambitNode) -> None:
        """Read the label and the actions of a node's infoset, if they are there."""
        infoset = game.infosets.setdefault((node.player, node.infoset), GambitInfoset())
        if self.peek().startswith('"'):
            infoset.name = self.text() or infoset.name
        if self.peek() != "{":
            return
        chance = node.player == 0
        items = list(
            self.braced(lambda: (self.text(), self.number() if chance else Fraction(1)))
        )
        actions, probabilities = zip(*items, strict=True) if items else ((), ())
        if infoset.actions not in ((), actions):
            raise self.error(f"infoset {node.infoset} has other actions before")
        infoset.actions = actions
        if chance:
            if (
                min(probabilities, default=0) < 0
                or abs(sum(probabilities) - 1) > CHANCE_TOLERANCE
            ):
                raise self.error("the probabilities of chance must sum to 1")
            infoset.probabilities = probabilities

    def table(self, title: str, players: Sequence[str]) -> GambitGame:
        """Read what follows the header of an `.nfg` file."""
        self.expect("{")
        if self.peek() == "{":
            strategies = [self.texts() for _ in players]
        else:
            strategies = [[str(k + 1) for k in range(self.integer())] for _ in players]
        self.expect("}")
        self.comment()
        if not all(strategies):
            raise self.error("a player has no strategies")
        size = math.prod(map(len, strategies))
        if self.peek() == "{":
            outcomes = [[Fraction(0)] * len(players), *self.braced(self._outcome)]
            numbers = [self.integer() for _ in range(size)]
            if max(numbers) >= len(outcomes):
                raise self.error(f"there is no outcome {max(numbers)}")
            payoffs = [outcomes[number] for number in numbers]
        else:
            payoffs = [[self.number() for _ in players] for _ in range(size)]
        if self.peek():
            self.next()
            raise self.error("text follows the last payoff")
        infosets = {
            (player, 1): GambitInfoset("", names)
            for player, names in enumerate(strategies, 1)
        }
        nodes = [GambitNode(1, 1)]
        # The first player's strategy is the fastest index of the table.
        strides = [math.prod(map(len, strategies[:k])) for k in range(len(players))]
        for choice in itertools.product(*(range(len(names)) for names in strategies)):
            # A player's node precedes the first of the histories that pass through it.
            last = max((k for k, chosen in enumerate(choice) if chosen), default=0)
            nodes += (
                GambitNode(player + 1, 1) for player in range(last + 1, len(players))
            )
            place = sum(a * b for a, b in zip(choice, strides, strict=True))
            nodes.append(GambitNode(-1, outcome=payoffs[place]))
        return GambitGame(title, players, nodes, infosets)

    def _outcome(self) -> list[Fraction]:
        """Read an outcome of a table: its name and the payoffs."""
        self.expect("{")
        self.text()
        payoffs = []
        while self.peek() != "}":
            payoffs.append(self.number())
        self.next()
        return payoffs


def canonical(game: GambitGame) -> str:
    """Return a game in the part of the `.efg` format that OpenSpiel reads.

    Raises:
      ValueError: If the nodes are not those of one tree.
    """
    players = " ".join(map(quoted, game.players))
    lines = [f"EFG 2 R {quoted(game.title)} {{ {players} }}", '""']
    total: Sequence[Fraction] = [Fraction(0)] * len(game.players)
    # For each child that is yet to come: payoffs on the way, and whether it is kept.
    stack = [(total, True)]
    # OpenSpiel requires that each player's infosets are numbered without gaps.
    numbers: list[dict[int, int]] = [{} for _ in range(len(game.players) + 1)]
    outcomes = 0
    for node in game.nodes:
        if not stack:
            raise ValueError(
                f"{game.title!r}: nodes follow after the end of the tree; an earlier "
                f"node may lack actions"
            )
        total, keeps = stack.pop()
        if node.outcome:
            total = [a + b for a, b in zip(total, node.outcome, strict=True)]
        if node.player < 0:
            outcomes += keeps
            if keeps:
                lines.append(f't "" {outcomes} "" {{ {_payoffs(total)} }}')
            continue
        infoset = game.infosets[node.player, node.infoset]
        names = (name or str(k) for k, name in enumerate(infoset.actions, 1))
        labels = distinct_labels(list(map(quoted, names)))
        kept = [keeps] * len(labels)
        if node.player == 0:
            kept = [keeps and p > 0 for p in infoset.probabilities]
            pairs = zip(labels, infoset.probabilities, strict=True)
            labels = [f"{label} {float(p)!r}" for label, p in pairs if p > 0]
        if keeps:
            numbers_of_player = numbers[node.player]
            number = len(numbers_of_player) + 1
            number = numbers_of_player.setdefault(node.infoset, number)
            name = infoset.name or (f"{node.infoset}" if node.infoset != number else "")
            start = f'p "" {node.player}' if node.player else 'c ""'
            actions = f"{{ {' '.join(labels)} }}"
            lines.append(f"{start} {number} {quoted(name)} {actions} 0")
        stack += ((total, each) for each in reversed(kept))
    if stack:
        raise ValueError(
            f"{game.title!r}: the tree has more branches than nodes; the file may be "
            f"truncated"
        )
    return "\n".join(lines) + "\n"


def _payoffs(payoffs: Sequence[Fraction]) -> str:
    """Return payoffs as text; those that sum to zero do so in float64, too."""
    numbers = [float(payoff) for payoff in payoffs]
    if len(numbers) == 2 and sum(payoffs) == 0:
        numbers[1] = -numbers[0]
    return " ".join(map(repr, numbers))


def distinct_labels(labels: Sequence[str]) -> list[str]:
    """Return labels in quotes of which no two are equal, by adding numbers."""
    if len(set(labels)) == len(labels):
        return list(labels)
    distinct: dict[str, None] = {}
    for number, label in enumerate(labels, 1):
        while label in distinct:
            label = f'{label[:-1]} ({number})"'
        distinct[label] = None
    return list(distinct)


def quoted(text: str) -> str:
    """Return a label in quotes that both OpenSpiel and Gambit read.

    OpenSpiel misreads quotes and backslashes in labels, and Gambit rejects control
    characters and repeated spaces.
    """
    plain = one_line(" ".join(text.replace('"', "'").split())).replace("\\", "/")
    return f'"{plain}"'


def _store(title: str, content: str) -> Path:
    """Write a game to a file that is named after its content, and return the path.

    The file is in the user's cache folder, or in the folder of temporary files if that
    cannot be written.
    """
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    words = re.sub(r"[^a-z0-9]+", "-", title.lower())[:24].strip("-")
    for folder in (atomic.cache_folder("games"), Path(tempfile.gettempdir(), "games")):
        path = folder / f"{words or 'game'}-{digest}.efg"
        with contextlib.suppress(OSError, ValueError):
            if path.is_file() and path.read_text("utf-8") == content:
                return path
        with contextlib.suppress(OSError):
            atomic.write_text(path, content)
            return path
    raise OSError(
        f"{path}: spiel_cr stores Gambit's games there, but cannot write the file; "
        f"make the folder writable, or set XDG_CACHE_HOME"
    )
