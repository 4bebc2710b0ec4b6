"""Games with one fault at one history, derived from the rules of real games.

`mutants` makes them. Each function of `checks` uses a mutant by its states or by its
batched rules, and must reject it. `rejection_problem` describes an invalid rejection,
such as one without a history or a remedy. `python -m tests.fuzz malformed_games FIRST
LAST` runs many trials of one mutant each.
"""

import contextlib
import math
import random
import re
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import pyspiel

import game_defs  # noqa: F401  (registers the games)
import spiel_cr
from spiel_cr.common.errors import ImperfectRecallError, InvalidGameError
from tests.support import lookahead_trees
from tests.support.made_games import (
    CHANCE,
    TERMINAL,
    MadeGame,
    MadeState,
    Node,
    Path,
    Table,
    table_of,
)
from tests.support.tabled import Tabled

GAMES = (
    "kuhn_poker",
    "python_leduc_poker",
    "python_rock_paper_scissors",
    "python_ii_goofspiel(num_cards=3)",
    "liars_dice(numdice=1,dice_sides=2)",
    "leduc_poker",
)
REFUSALS = (InvalidGameError, ImperfectRecallError)


class Mutant(NamedTuple):
    """A game with one fault.

    Attributes:
      base: Game string of the original game.
      kind: Kind of the fault.
      path: Actions from the root to the fault; None if the whole game is faulty.
      table: All histories. Utilities are the values that `returns` gives.
      settings: Settings of the game, for `MadeGame`.
      arrays: Whether batched rules have the fault, too.
    """

    base: str
    kind: str
    path: Path | None
    table: Table
    settings: dict[str, Any]
    arrays: bool

    def __str__(self) -> str:
        return f"{self.base} {self.kind} at {self.path}"

    def game(self, *, batched_rules: bool) -> pyspiel.Game:
        """Make the game with or without batched rules."""
        kind = _OnArrays if batched_rules else _OnStates
        return kind(self.table, self.kind, **self.settings)


class _State(MadeState):
    """A state of a mutant."""

    def returns(self) -> list[float]:
        given = _both(self._rules(self._path).utility)
        if self.get_game().kind == "payoffs are drawn":
            noise = random.random() + 1
            return [noise, -noise]
        return given

    def is_terminal(self) -> bool:
        over = super().is_terminal()
        return over and self.get_game().kind != "never over"

    def information_state_string(self, player: int | None = None) -> str:
        if self.get_game().kind == "no observer":
            raise AttributeError("no attribute 'make_py_observer'")
        return super().information_state_string(player)


class _OnStates(MadeGame):
    """A mutant that is simulated by states."""

    def __init__(self, table: Table, kind: str, **settings: Any) -> None:
        super().__init__(lambda path: table[path], "mutant", **settings)
        self.table, self.kind = table, kind

    def new_initial_state(self) -> _State:
        return _State(self, self._rules)


class _OnArrays(_OnStates):
    """A mutant with batched rules."""

    def batched_rules(self) -> "_Rules":
        return _Rules(self.table)


class _Rules(Tabled):
    """Batched rules of a table, with its faults."""

    def __init__(self, table: Table) -> None:
        number = {path: k for k, path in enumerate(table)}
        nodes = [
            types.SimpleNamespace(
                player=node.player,
                children={a: number.get((*path, a), -1) for a in node.actions},
                probabilities=dict(zip(node.actions, node.chance, strict=False)),
                utility=_both(node.utility)[0],
                observations=node.infos,
            )
            for path, node in table.items()
        ]
        super().__init__(types.SimpleNamespace(nodes=nodes))  # type: ignore[arg-type]


def _both(utility: float | tuple[float, ...]) -> list[float]:
    """Return the returns of both players, or the faulty list of them."""
    if isinstance(utility, tuple):
        return list(utility)
    return [utility, -utility]


def healthy(base: str) -> Mutant:
    """Make a game without a fault by the same code."""
    return Mutant(base, "healthy", None, table_of(base), {}, True)


# Function from a node to its changed version; None if the change is not possible there.
_Change = Callable[[Node], Node | None]


def _returns(*values: float) -> _Change:
    return lambda node: node._replace(utility=values) if node.player < CHANCE else None


def _odds(change: Callable[[list[float]], list[float]]) -> _Change:
    def made(node: Node) -> Node | None:
        enough = node.player == CHANCE and len(node.actions) > 1
        return node._replace(chance=tuple(change([*node.chance]))) if enough else None

    return made


def _player(number: int) -> _Change:
    return lambda node: node._replace(player=number) if node.player >= 0 else None


def _decision(**fields: Any) -> _Change:
    return lambda node: node._replace(**fields) if node.player >= 0 else None


def _twice(node: Node) -> Node | None:
    again = (*node.actions, *node.actions[:1])
    return node._replace(actions=again) if node.player >= 0 else None


# Faults of a single history.
CHANGES: dict[str, _Change] = {
    "NaN for a payoff": _returns(math.nan, math.nan),
    "an infinite payoff": _returns(math.inf, -math.inf),
    "a payoff of minus infinity": _returns(-math.inf, math.inf),
    "chance sums to less": _odds(lambda p: [p[0] * 0.9, *p[1:]]),
    "chance sums to more": _odds(lambda p: [p[0] * 1.1, *p[1:]]),
    "a negative probability": _odds(lambda p: [-p[0], p[1] + 2 * p[0], *p[2:]]),
    "NaN for a probability": _odds(lambda p: [*p[:-1], math.nan]),
    "an infinite probability": _odds(lambda p: [math.inf, *p[1:]]),
    "chance without odds": _odds(lambda p: [0.0] * len(p)),
    "a third player": _player(2),
    "all players at once": _player(-2),
    "a player that is no byte": _player(256),
    "nobody can move": _decision(actions=()),
}
# Faults that batched rules cannot express.
ON_STATES: dict[str, _Change] = {
    "returns that do not sum to zero": _returns(1.0, -0.5),
    "returns that nearly sum to zero": _returns(1.0, -1.0 + 1e-7),
    "one return": _returns(1.0),
    "three returns": _returns(1.0, -1.0, 0.0),
    "an action twice": _twice,
}


def mutants(base: str, seed: int = 0) -> Iterator[Mutant]:
    """Yield mutants with every kind of fault, each at a random history.

    Args:
      base: OpenSpiel's string of the original game.
      seed: Seed for the choice of histories.
    """
    table = table_of(base)
    for arrays, changes in ((True, CHANGES), (False, ON_STATES)):
        for kind, change in changes.items():
            draw = random.Random(repr((base, kind, seed)))
            places = [path for path in table if change(table[path]) is not None]
            if places:
                path = draw.choice(places)
                changed = {**table, path: change(table[path])}
                yield Mutant(base, kind, path, changed, {}, arrays)  # type: ignore
    yield from _of_infosets(base, table, seed)
    greedy = {
        path: node._replace(utility=(1.0, 1.0)) if node.player == TERMINAL else node
        for path, node in table.items()
    }
    yield Mutant(base, "both players win", None, greedy, {}, True)  # type: ignore
    for kind in ("payoffs are drawn", "never over", "no observer"):
        yield Mutant(base, kind, None, table, {}, True)
    yield Mutant(base, "a declared sum of 1", None, table, {"utility_sum": 1.0}, True)


def _of_infosets(base: str, table: Table, seed: int) -> Iterator[Mutant]:
    """Faults of an infoset of several histories."""
    members: dict[tuple[int, str], list[Path]] = {}
    for path, node in table.items():
        if node.player >= 0:
            members.setdefault((node.player, node.infos[node.player]), []).append(path)
    draw = random.Random(repr((base, seed)))
    wide = [m for m in members.values() if len(m) > 1 and len(table[m[0]].actions) > 1]
    if wide:
        path = draw.choice(draw.choice(wide))
        fewer = table[path]._replace(actions=table[path].actions[:-1])
        yield Mutant(
            base, "fewer actions there", path, {**table, path: fewer}, {}, True
        )
    # A later decision gets the information of the player's first one.
    for (player, _), paths in draw.sample(sorted(members.items()), len(members)):
        path, node = paths[0], table[paths[0]]
        for end in range(len(path)):
            above = table[path[:end]]
            if above.player == player and above.actions == node.actions:
                changed = {**table, path: node._replace(infos=above.infos)}
                yield Mutant(base, "a player forgets", path, changed, {}, True)
                return


# Faults of the game as a whole, for which an error need not name a history.
_NOWHERE = {"payoffs are drawn", "never over", "no observer", "a declared sum of 1"}


def rejection_problem(mutant: Mutant, answer: Callable[[], Any]) -> str:
    """Describe an invalid rejection of a mutant; return "" if it is valid.

    Args:
      mutant: The mutant.
      answer: Function that uses the mutant.
    """
    try:
        answer()
    except REFUSALS as error:
        said = str(error)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    else:
        return "it is not refused"
    if "; " not in said:
        return f"no remedy: {said}"
    named = re.findall(r"\(actions (\[[\d, ]*\])\)|(at the root)", said)
    if not named:
        return "" if mutant.kind in _NOWHERE else f"no history: {said}"
    places = [numbers or "[]" for numbers, _ in named]
    if mutant.path is None or str([*mutant.path]) in places:
        return ""
    return f"another history: {said}"


def checks(mutant: Mutant) -> dict[str, Callable[[], Any]]:
    """Return the functions that must reject a mutant, by name."""
    game, arrays = (mutant.game(batched_rules=v) for v in (False, True))
    found: dict[str, Callable[[], Any]] = {
        "states": lambda: spiel_cr.build_tree(game),
        "solve": lambda: spiel_cr.solve(game, "cfr+", 1),
        "resolve": lambda: spiel_cr.resolve(game, iterations=1),
    }
    if mutant.arrays:
        found["arrays"] = lambda: spiel_cr.build_tree(arrays)
    # A lookahead tree visits faults of single nodes.
    if mutant.kind in {*CHANGES, "both players win"}:
        found["partial tree"] = lambda: lookahead_trees.compiled(game, 10**5)
    if mutant.kind in CHANGES:
        found["partial tree on arrays"] = lambda: lookahead_trees.compiled(
            arrays, 10**5
        )
    return found


@contextlib.contextmanager
def trials(only: Sequence[str]) -> Iterator[Callable[[int], dict[str, Any]]]:
    """Prepare trials of all games in turn, or of the games in `only`."""
    bases = only or GAMES

    def trial(number: int) -> dict[str, Any]:
        base, seed = bases[number % len(bases)], number // len(bases)
        mutant = random.Random(number).choice(list(mutants(base, seed)))
        asked = checks(mutant)
        said = {name: rejection_problem(mutant, ask) for name, ask in asked.items()}
        wrong = [f"{mutant}, {name}: {text}" for name, text in said.items() if text]
        return {"outcome": mutant.kind, "asked": len(asked), "faults": wrong}

    yield trial
