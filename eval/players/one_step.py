"""Last stage: one step of resolving, looked at closely.

The *one-step* evaluator. A trunk strategy is found by solving the whole game for a
while; one subgame is then resolved on top of it, and NashConv of the combination (the
trunk, with the resolving player's strategy of that subgame replaced) is followed over
the iterations of the subgame's solve. The opponent's values at the subgame's gates,
which the gadget needs, are the means over the trunk's iterates, or exact ones: those of
a best response to the trunk; and they can be blurred, to see how much that matters.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyspiel
from tqdm import tqdm

from spiel_cr.cfr import cfr
from spiel_cr.cfr import config as algorithm_lib
from spiel_cr.cfr import solver as driver
from spiel_cr.common.checks import check_iterations
from spiel_cr.compilation.tree import CHANCE, CompiledGame
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.result import CurvePoint
from spiel_cr.resolving import decomposition as subgame
from spiel_cr.resolving import subgame_games as layer
from spiel_cr.sequence_form import layout
from spiel_cr.sequence_form.decisions import Decisions, sum_payoffs

GateValues = Literal["iterates", "best_response"]


class Place(NamedTuple):
    """A subgame in a game.

    Attributes:
      decomposition: layers and subgames of the player who acts there.
      history: the history that leads there.
      layer: the subgame's layer, from 2.
      number: of the subgame, in the decomposition.
    """

    decomposition: subgame.Decomposition
    history: int
    layer: int
    number: int


class Trunk(NamedTuple):
    """What the solve of the whole game left for resolving below.

    Attributes:
      behaviours: for each player float64 [S], average strategy's action probabilities.
      form: the whole game; the opponent's last infosets are the gates.
      reach: float64 [S of i], the resolving player's average sequence form.
      gate_values: float64 [G], the opponent's values at all gates.
      gate_reach: float64 [G], its average reach of them.
      iterations: that were done.
      seconds: spent on them.
    """

    behaviours: tuple[np.ndarray, np.ndarray]
    form: layout.SequenceForm
    reach: np.ndarray
    gate_values: np.ndarray
    gate_reach: np.ndarray
    iterations: int
    seconds: float


@dataclasses.dataclass(frozen=True)
class OneStep:
    """A subgame resolved on top of a trunk.

    Attributes:
      player: who resolves.
      layer: the subgame's, from 2.
      infosets: of the resolving player in the subgame; their strategy was replaced.
      gates: of the opponent.
      trunk_nash_conv: before, exact, in the game's units.
      curve: NashConv of the combination, over the iterations of the subgame's solve.
      behaviours: for each player float64 [S], the combination at the end.
    """

    player: int
    layer: int
    infosets: int
    gates: int
    trunk_nash_conv: float
    curve: tuple[CurvePoint, ...]
    behaviours: tuple[np.ndarray, np.ndarray]


def find(tree: CompiledGame, actions: Sequence[int | str]) -> Place:
    """The subgame that begins after some actions.

    Args:
      tree: the game, compiled with `observations=True`.
      actions: OpenSpiel's actions from the root, chance included: numbers, or strings
        as `action_to_string` writes them.

    Raises:
      ValueError: not a sequence of legal actions, or no subgame begins after it.
    """
    text = f"actions={','.join(map(str, actions))!r}"
    state, history = tree.game.new_initial_state(), 0
    for at, given in enumerate(actions):
        action = _read_action(state, given, f"{text}: action {at + 1}, {given!r},")
        state.apply_action(action)
        here = tree.histories.parent == history
        history = int(np.flatnonzero(here & (tree.histories.action == action))[0])
    player = int(tree.histories.player[history])
    if player < 0:
        what = "a chance move" if player == CHANCE else "the end of the game"
        remedy = (
            f"go on with one of {_choices(state)}"
            if player == CHANCE
            else "leave some of them out"
        )
        raise ValueError(
            f"{text} leads to {what}, but a subgame begins where a player acts; "
            f"{remedy}"
        )
    d = subgame.decompose(tree, player)
    infoset = int(tree.histories.infoset[history])
    if not d.opens[infoset] or d.own_layer[infoset] < 2:
        reason = (
            "has not acted before, so that the subgame is the whole game"
            if d.opens[infoset]
            else "is in the middle of its turn"
        )
        raise ValueError(
            f"{text}: player {player} acts there but {reason}; go on to a later "
            f"decision, the next may be one of {_choices(state)}"
        )
    number = int(d.own_subgame[infoset])
    return Place(d, history, int(d.own_layer[infoset]), number)


def _choices(state: pyspiel.State) -> str:
    """Legal actions in words, the first few."""
    legal = state.legal_actions()
    if state.is_terminal():
        return "none: the game is over"
    words = [f"{a} ({state.action_to_string(a)})" for a in legal[:12]]
    return ", ".join(words) + (", ..." if len(legal) > 12 else "")


def _read_action(state: pyspiel.State, given: int | str, where: str) -> int:
    for action in state.legal_actions():
        if str(given).strip() in (str(action), state.action_to_string(action)):
            return action
    raise ValueError(f"{where} is not legal; choose one of {_choices(state)}")


def solve_trunk(
    place: Place,
    iterations: int,
    algorithm: str | algorithm_lib.CFRConfig = "cfr+",
    *,
    progress: bool = False,
) -> Trunk:
    """Solves the whole game, and takes the opponent's values at every gate.

    Args:
      place: where resolving will begin; only its decomposition is used.
      iterations: of the solve.
      algorithm: see `algorithm.parse_algorithm`.
      progress: show a progress bar on stderr.

    Raises:
      ValueError: a bad argument.
    """
    iterations = check_iterations(iterations, name="trunk_iterations")
    d = place.decomposition
    player, other = d.player, 1 - d.player
    form = _with_gates(d)
    solver = cfr.make_solver(
        form,
        config=algorithm_lib.parse_algorithm(algorithm),
        values=True,
        first=player,
        planned=iterations,
    )
    with tqdm(total=iterations, desc="trunk", disable=not progress) as bar:

        def advance(count: int) -> None:
            bar.update(count)

        solver.run(iterations, after_chunk=advance)
    own = solver.average_behaviour(player)
    theirs = solver.average_behaviour(other)
    # Gates come last, so the opponent's own sequences keep their numbers.
    theirs = theirs[: d.tree.infosets[other].decisions.num_sequences]
    gates = len(d.gate_layer)
    return Trunk(
        behaviours=(own, theirs) if player == 0 else (theirs, own),
        form=form,
        reach=solver.average(player),
        gate_values=solver.infoset_values(other)[len(d.other_layer) :],
        gate_reach=solver.average(other)[form.decisions[other].num_sequences - gates :],
        iterations=iterations,
        seconds=solver.seconds,
    )


def _with_gates(d: subgame.Decomposition) -> layout.SequenceForm:
    """The whole game, with every gate as a point of the opponent.

    Gates come after its infosets and have a single action, so that the decomposition's
    extended sequences are this form's sequences.
    """
    histories, other = d.tree.histories, 1 - d.player
    own = d.tree.infosets[d.player].decisions
    theirs = d.tree.infosets[other].decisions
    gated = Decisions(
        np.concatenate([d.other_parent, d.gate_parent]),
        np.concatenate([theirs.num_actions, np.ones(len(d.gate_layer), np.int32)]),
    )
    terminals = d.terminals[histories.utility[d.terminals] != 0]
    sequences = [histories.sequence[d.player][terminals], d.extended[terminals]]
    decisions = [own, gated]
    if d.player == 1:
        sequences.reverse()
        decisions.reverse()
    values = histories.chance[terminals] * histories.utility[terminals]
    payoffs = sum_payoffs(sequences[0], sequences[1], values)
    return layout.build((decisions[0], decisions[1]), payoffs)


def one_step(
    place: Place,
    trunk: Trunk,
    iterations: int,
    algorithm: str | algorithm_lib.CFRConfig = "cfr+",
    *,
    values: GateValues = "iterates",
    noise: float = 0.0,
    seed: int = 0,
    gadget: layer.Gadget = "cfrd",
    progress: bool = False,
) -> OneStep:
    """Resolves one subgame and follows NashConv of the combination.

    Args:
      place: the subgame.
      trunk: from `solve_trunk`, of the same decomposition.
      iterations: of the subgame's solve; looked at after 1, 2, 5, 10, 20, ...
      algorithm: of the subgame's solve.
      values: the opponent's values at the gates: "iterates", the means over the
        trunk's; "best_response", what a best response to the trunk gets there.
      noise: each gate's value is multiplied by one plus a normal variable of this
        standard deviation.
      seed: of the noise.
      gadget: see `layer.py`; "unsafe" uses no values.
      progress: show a progress bar on stderr.

    Raises:
      ValueError: a bad argument.
    """
    iterations = check_iterations(iterations)
    if values not in get_args(GateValues):
        raise ValueError(
            f"values={values!r} must be one of {', '.join(get_args(GateValues))}"
        )
    if not (noise >= 0 and np.isfinite(noise)):
        raise ValueError(
            f"noise={noise!r}, a standard deviation, must be at least 0 and finite"
        )
    d = place.decomposition
    gate_values = _values(d, trunk, values)
    if noise:
        gate_values = _blur(gate_values, noise, np.random.default_rng(seed))
    cut = layer.cut_layer(d, place.layer, gadget)
    piece = cut.pieces[place.number]
    decisions = d.tree.infosets[d.player].decisions
    game = cut.game(
        place.number,
        trunk.reach[decisions.parent[piece.roots]],
        gate_values[piece.gates],
        trunk.gate_reach[piece.gates],
    )
    solver = cfr.make_solver(
        game.form,
        config=algorithm_lib.parse_algorithm(algorithm),
        first=game.first,
        planned=iterations,
    )
    curve = []
    combined = trunk.behaviours
    with tqdm(total=iterations, desc="subgame", disable=not progress) as bar:
        for look in _looks(iterations):
            solver.run(look - solver.iterations)
            combined = _combine(d, trunk, piece, solver)
            curve.append(CurvePoint(look, solver.seconds, _nash_conv(d.tree, combined)))
            bar.update(look - bar.n)
    return OneStep(
        player=d.player,
        layer=place.layer,
        infosets=len(piece.own),
        gates=len(piece.gates),
        trunk_nash_conv=_nash_conv(d.tree, trunk.behaviours),
        curve=tuple(curve),
        behaviours=combined,
    )


def _values(d: subgame.Decomposition, trunk: Trunk, values: GateValues) -> np.ndarray:
    if values == "iterates":
        return trunk.gate_values
    found = best_responses.infoset_values(trunk.form, 1 - d.player, trunk.reach)
    return found[len(d.other_layer) : -1]


def _blur(
    gate_values: np.ndarray, noise: float, random: np.random.Generator
) -> np.ndarray:
    """Values with multiplicative noise of this standard deviation."""
    return gate_values * random.normal(1.0, noise, len(gate_values))


def _looks(iterations: int) -> list[int]:
    """1, 2, 5, 10, 20, 50, ... and the last."""
    looks, power = [], 1
    while power <= iterations:
        looks += [power * k for k in (1, 2, 5) if power * k < iterations]
        power *= 10
    return [*looks, iterations]


def _combine(
    d: subgame.Decomposition, trunk: Trunk, piece: layer.Piece, solver: driver.Solver
) -> tuple[np.ndarray, np.ndarray]:
    """The trunk with the player's strategy in the subgame replaced."""
    resolved = solver.average_behaviour(d.player)
    infosets = d.tree.infosets[d.player].decisions
    inside = np.isin(infosets.owner, piece.own)
    own = trunk.behaviours[d.player].copy()
    own[inside] = resolved[1:]
    theirs = trunk.behaviours[1 - d.player]
    return (own, theirs) if d.player == 0 else (theirs, own)


def _nash_conv(tree: CompiledGame, behaviours: tuple[np.ndarray, np.ndarray]) -> float:
    reach = reach_of(tree.form, behaviours)
    return nash_conv(tree.form, reach)
