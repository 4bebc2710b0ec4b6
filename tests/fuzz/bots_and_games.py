"""Bots and games of the fuzzer `moves`."""

import contextlib
import functools
import pathlib
import tempfile
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pyspiel
from open_spiel.python.policy import UniformRandomPolicy

import game_defs  # noqa: F401  registers the project's games
from spiel_cr import load_bot
from spiel_cr.evaluation.response_config import SearchConfig
from spiel_cr.evaluation.responses.ismcts_bot import ISMCTSBRBot
from spiel_cr.evaluation.responses.local_best_response import LBRBot
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.games.tree.tree_builder import as_tree
from spiel_cr.players.bots import PolicyBot
from spiel_cr.policies.best_responses import best_response
from spiel_cr.policies.conversions import (
    reach_from_behaviour,
    tabular_policy,
    uniform_behaviour,
)
from spiel_cr.solvers.representation import GameOptions
from spiel_cr.solvers.solve import solve

MOVE_MS = 50.0


class Table:
    """A game with the objects that its bots share.

    Attributes:
      string: OpenSpiel's string of the game.
      game: OpenSpiel's game, with turns instead of simultaneous moves.
    """

    def __init__(self, string: str, folder: pathlib.Path) -> None:
        """Load the game; its tree is built on demand.

        Args:
          string: OpenSpiel's string of the game.
          folder: Folder for files.
        """
        self.string, self._folder = string, folder
        game = pyspiel.load_game(string)
        if game.get_type().dynamics == pyspiel.GameType.Dynamics.SIMULTANEOUS:
            game = pyspiel.convert_to_turn_based(game)
        self.game = game

    @functools.cached_property
    def tree(self) -> GameTree:
        return as_tree(self.game, observations=True)

    @functools.cached_property
    def policy(self) -> str:
        """Return the path of a policy file."""
        path = self._folder / "policy.npz"
        solve(self.tree, "lcfr", 2).save(path)
        return str(path)

    @functools.cached_property
    def networks(self) -> str:
        """Return the path of a file of networks."""
        path = self._folder / "networks.npz"
        solve(self.string, _NETWORKS, 2, options=GameOptions("simulator")).save(path)
        return str(path)


@contextlib.contextmanager
def table(string: str) -> Iterator[Table]:
    """Load a game with a temporary folder for its files."""
    with tempfile.TemporaryDirectory() as folder:
        yield Table(string, pathlib.Path(folder))


class Kind(NamedTuple):
    """A kind of bot.

    Attributes:
      name: Name of the kind.
      make: Function from a table, a seat and a seed to a bot.
      moves: Number of moves to play in a game.
      seconds: Time limit for these moves.
      repeats: Whether the policy at an information state never changes.
      move_ms: Time limit per move; None without a limit.
    """

    name: str
    make: Callable[[Table, int, int], pyspiel.Bot]
    moves: int
    seconds: float = 20.0
    repeats: bool = False
    move_ms: float | None = None


def _loaded(text: str, moves: int, seconds: float = 20.0, **more: bool) -> Kind:
    """Make a kind from a bot string with placeholders {policy} and {networks}."""
    steps = "max_histories" in text or text.startswith(("uniform", "deep", "honest"))

    def make(table: Table, seat: int, seed: int) -> pyspiel.Bot:
        filled = text
        for name in ("policy", "networks"):
            if f"{{{name}}}" in text:
                filled = text.replace(f"{{{name}}}", getattr(table, name))
        return load_bot(table.game if steps else table.tree, filled, seat, seed=seed)

    clock = MOVE_MS if "move_ms" in text else None
    return Kind(text, make, moves, seconds, move_ms=clock, **more)


def _ismcts(table: Table, seat: int, seed: int) -> pyspiel.Bot:
    opponent, config = UniformRandomPolicy(table.game), SearchConfig(simulations=3)
    return ISMCTSBRBot(table.game, seat, opponent, config, seed=seed)


def _lbr(table: Table, seat: int, seed: int) -> pyspiel.Bot:
    opponent = UniformRandomPolicy(table.game)
    return LBRBot(table.game, seat, opponent, leaf="uniform", rollouts=2, seed=seed)


def _best_response(table: Table, seat: int, seed: int) -> pyspiel.Bot:
    tree, both = (
        table.tree,
        [uniform_behaviour(x.decisions) for x in table.tree.infosets],
    )
    reach = reach_from_behaviour(tree.infosets[1 - seat].decisions, both[1 - seat])
    both[seat] = best_response(tree.sequence_form, seat, reach)
    return PolicyBot(seat, tabular_policy(tree, (both[0], both[1])), seed=seed)


_NETWORKS = "sd-cfr(hidden=4,layers=1,traversals=4,steps=2)"
_SAMPLED = "os-mccfr(epsilon=0.4,exploration=0.01,batch=16)"
# Bots whose moves cost little play most moves.
_UNIFORM = _loaded("uniform", 20_000, 120, repeats=True)
_PARTIAL = (
    "resolving(iterations=2,max_histories={},warmup_matches=0,blueprint_iterations=2)"
)
_STATES = [
    Kind("ismcts-br", _ismcts, 20_000, 30, repeats=False),
    Kind("lbr", _lbr, 20_000, 30, repeats=True),
]
_WHOLE = [
    _UNIFORM,
    _loaded("solved(iterations=3)", 60_000, 120, repeats=True),
    _loaded("policy(path={policy})", 60_000, 120, repeats=True),
    Kind("best response", _best_response, 120_000, 120, repeats=True),
    _loaded("resolving(iterations=2)", 8000, repeats=True),
    _loaded(f"oos(iterations=1,solver={_SAMPLED})", 3000),
    _loaded(_PARTIAL.format(400), 300),
    *_STATES,
]
# Each variant plays in every fourth game.
_DEEP = "resolving(iterations=2,depth=1"
_VARIANTS = [
    *(
        _loaded(text, 2500, repeats=True)
        for text in (
            "resolving(iterations=2,gadget=maxmargin)",
            "resolving(iterations=2,depth=2)",
            f"{_DEEP},leaf=uniform)",
            "resolving(iterations=2,values=best_response)",
            "resolving(iterations=2,solver=pdcfr+)",
            "solved(solver=dcfr,iterations=2)",
            "solved(solver=es-mccfr,iterations=2)",
        )
    ),
    _loaded(f"{_DEEP},leaf=uniform)", 1500, repeats=True),
    _loaded(f"{_DEEP},gadget=maxmargin,leaf=uniform)", 1500, repeats=True),
    _loaded(f"{_DEEP},depth_unit=rounds,leaf=uniform)", 1500, repeats=True),
    _loaded(f"resolving(iterations=1,solver={_SAMPLED})", 2500),
    _loaded(f"oos(iterations=1,target=subgame,solver={_SAMPLED})", 2500),
    _loaded(f"{_PARTIAL.format(300)[:-1]},rollouts=1)", 300),
    _loaded(
        "resolving(iterations=2,max_histories=400,warmup_matches=0,k=2,rollouts=1,"
        "blueprint={policy})",
        200,
    ),
]


_POKER = (
    "universal_poker(betting=limit,numPlayers=2,numRounds=2,blind=1 1,firstPlayer=1 1,"
    "numSuits=2,numRanks=2,numHoleCards=1,numBoardCards=0 1,raiseSize=2 4,"
    "maxRaises=1 1)"
)
# Games whose tree is small enough to be built.
SMALL = """
kuhn_poker
python_leduc_poker
leduc_poker
python_ii_goofspiel(num_cards=4)
python_princess_and_monster(horizon=4)
python_rock_paper_scissors(num_actions=5)
liars_dice(numdice=1,dice_sides=3)
liars_dice(numdice=1,dice_sides=4)
goofspiel(players=2,imp_info=true,num_cards=4,points_order=ascending)
goofspiel(players=2,imp_info=true,num_cards=4,points_order=descending)
goofspiel(players=2,imp_info=true,num_cards=3,points_order=random)
goofspiel(players=2,num_cards=3,points_order=random,returns_type=point_difference)
dark_hex(board_size=2)
battleship(board_width=2,board_height=2,ship_sizes=[1],ship_values=[1],num_shots=2)
hex(board_size=2)
hex(num_rows=2,num_cols=3,board_size=3)
connect_four(rows=2,columns=3,x_in_row=2)
mnk(m=3,n=2,k=2)
havannah(board_size=2)
go(board_size=2)
clobber(rows=2,columns=3)
nim(pile_sizes=1;2;3)
matrix_rps
blotto(coins=4,fields=3)
oshi_zumo(coins=3,size=1,horizon=3)
POKER
python_liars_poker(players=2,hand_length=1,num_digits=2)
zerosum(game=first_sealed_auction(max_value=4))
zerosum(game=trade_comm(num_items=2))
zerosum(game=sheriff(num_rounds=1,max_bribe=1,max_items=1))
misere(game=kuhn_poker())
restricted_nash_response(game=kuhn_poker(),p=0.5)
""".replace("POKER", _POKER).split("\n")[1:-1]
# Games for bots that need no game tree, or a lookahead tree of a few hundred histories.
LARGE = (
    *("phantom_ttt", "dark_hex(board_size=3)", "tic_tac_toe", "connect_four"),
    *("liars_dice(numdice=2,dice_sides=3)", "python_ii_goofspiel(num_cards=7)"),
    *("python_latent_tic_tac_toe", "python_scotland_yard"),
)
_ON_LARGE = [_UNIFORM, _loaded(_PARTIAL.format(3000), 300), *_STATES]


_HONEST = [_loaded("honest(rollouts=2)", 3000, repeats=True)]
_DEEP_POLICIES = [
    _loaded("deep(path={networks})", 3000, repeats=True),
]
_POKERS = ("kuhn_poker", "leduc_poker", "python_leduc_poker", _POKER)


def _plan() -> dict[str, list[Kind]]:
    plan = {}
    for number, string in enumerate(SMALL):
        own = [kind for k, kind in enumerate(_VARIANTS) if (k - number) % 4 == 0]
        own += _HONEST if string in _POKERS else []
        if pyspiel.load_game(string).get_type().provides_information_state_tensor:
            own += _DEEP_POLICIES
        plan[string] = [*_WHOLE, *own]
    plan |= dict.fromkeys(LARGE, _ON_LARGE)
    # A game with imperfect recall: a policy may depend on what the bot remembers.
    forgets = "dark_hex(board_size=3)"
    plan[forgets] = [kind._replace(repeats=False) for kind in plan[forgets]]
    return plan


BY_ITERATIONS = _plan()

# With only a time limit, a solving bot uses nearly all of it for each move. With a
# small number of iterations in addition, more moves fit in the same time.
_CLOCKED = [
    _loaded("resolving(move_ms=50)", 600),
    _loaded("resolving(move_ms=50,iterations=5)", 4500, 40),
    _loaded(f"oos(move_ms=50,solver={_SAMPLED})", 120),
    _loaded(f"oos(move_ms=50,iterations=1,solver={_SAMPLED})", 1500),
    _loaded("resolving(move_ms=50,max_histories=2000)", 150),
    _loaded("resolving(move_ms=50,iterations=5,max_histories=400)", 500),
]
_CLOCKED_VARIANTS = [
    _loaded("resolving(move_ms=50,gadget=maxmargin)", 300),
    _loaded("resolving(move_ms=50,depth=2)", 300),
    _loaded("resolving(move_ms=50,depth=2,leaf=uniform)", 300),
    _loaded(f"resolving(move_ms=50,solver={_SAMPLED})", 300),
]
_CLOCKED_GAMES = [SMALL[k] for k in (0, 2, 1, 3, 4, 7, 9, 12, 14, 20, 24, 28, 17)]
BY_CLOCK = {
    string: [*_CLOCKED, _CLOCKED_VARIANTS[number % len(_CLOCKED_VARIANTS)]]
    for number, string in enumerate(_CLOCKED_GAMES)
} | {
    string: [_loaded("resolving(move_ms=50,max_histories=20000)", 300)]
    for string in ("phantom_ttt", "python_ii_goofspiel(num_cards=7)")
}
