"""NashConv after re-solving a single subgame (the *one-step* evaluator).

A trunk strategy is computed by solving the full game for a number of iterations. One
subgame is then re-solved below it. The result is the NashConv of the combination (the
trunk, with the strategy of the re-solving player replaced in the subgame) as a function
of the iterations in the subgame. The gadget needs the opponent's values at the
subgame's root, one for each augmented infoset (Burch et al. 2014). They are the means
over the trunk's iterates, or exact values of a best response to the trunk. Noise can be
added to them, in order to measure its effect.
"""

import dataclasses
from collections.abc import Sequence
from typing import Literal, NamedTuple, get_args

import numpy as np
import pyspiel

from spiel_cr.common import checks
from spiel_cr.common.arrays import round_numbers
from spiel_cr.common.messages import progress_bar
from spiel_cr.common.pairs import ordered_pair
from spiel_cr.games.sequence_form import layout
from spiel_cr.games.sequence_form.decisions import Decisions, sum_payoffs
from spiel_cr.games.tree.tree import GameTree
from spiel_cr.policies import best_responses
from spiel_cr.policies.best_responses import nash_conv, reach_of
from spiel_cr.policies.result import CurvePoint
from spiel_cr.resolving.decomposition import Decomposition, decompose
from spiel_cr.resolving.gadget_infosets import Gadget
from spiel_cr.resolving.layer_subgames import Layer, Subgame
from spiel_cr.solvers import algorithms
from spiel_cr.solvers.cfr import cfr
from spiel_cr.solvers.cfr.cfr_config import CFRConfig
from spiel_cr.solvers.cfr.solver import Solver

OpponentValues = Literal["iterates", "best_response"]


@dataclasses.dataclass(frozen=True)
class OneStepConfig:
    """Settings of a trunk and of one subgame that is resolved below it.

    Attributes:
      iterations: Number of iterations in the subgame. The curve has points after 1, 2,
        5, 10, 20, ...
      trunk_iterations: Number of iterations in the full game.
      algorithm: Full-width algorithm of both solves, see `algorithms.find`.
      values: Opponent's values at the subgame's root: the means over the trunk's
        iterates, or those of a best response to the trunk.
      noise: Standard deviation of the noise of these values: each one is multiplied by
        a normal variable with mean 1.
      seed: Seed of the noise.
      gadget: Gadget game that keeps the opponent from gaining; see `gadget_infosets`.
    """

    iterations: int = 1000
    trunk_iterations: int = 1000
    algorithm: str | CFRConfig = "cfr+"
    values: OpponentValues = "iterates"
    noise: float = 0.0
    seed: int = 0
    gadget: Gadget = "cfrd"

    def __post_init__(self) -> None:
        checks.check_seed(self.seed)
        checks.check_settings(self, {"trunk_iterations iterations": checks.COUNT})
        algorithms.find(self.algorithm, families=(algorithms.CFR,))
        choices = {"values": get_args(OpponentValues), "gadget": get_args(Gadget)}
        checks.check_settings(self, choices)
        checks.check_number(
            self.noise, "noise", "[0, inf)", remedy="it is a standard deviation"
        )


class Place(NamedTuple):
    """A subgame in a game.

    Attributes:
      decomposition: Layers and subgames of the acting player.
      layer: Layer of the subgame, from 2.
      number: Number of the subgame in the decomposition.
    """

    decomposition: Decomposition
    layer: int
    number: int


class Trunk(NamedTuple):
    """A solution of the full game, for re-solving below it.

    Attributes:
      behaviours: Action probabilities of the average strategies, float64 [S] of each
        player.
      form: The full game; the opponent's last G infosets are the augmented ones.
      reach: The re-solving player's average strategy in sequence form, float64 [S].
      opponent_values: The opponent's values at all augmented infosets, float64 [G].
    """

    behaviours: tuple[np.ndarray, np.ndarray]
    form: layout.SequenceForm
    reach: np.ndarray
    opponent_values: np.ndarray


class OneStep(NamedTuple):
    """A subgame that was re-solved below a trunk.

    Attributes:
      player: The re-solving player.
      layer: Layer of the subgame, from 2.
      infosets: Number of the player's infosets in the subgame, whose strategy was
        replaced.
      augmented_infosets: Number of the opponent's infosets at the subgame's root.
      trunk_nash_conv: Exact NashConv of the trunk, in the game's units.
      curve: NashConv of the combination, over the iterations in the subgame.
      behaviours: The final combination, float64 [S] of each player.
    """

    player: int
    layer: int
    infosets: int
    augmented_infosets: int
    trunk_nash_conv: float
    curve: tuple[CurvePoint, ...]
    behaviours: tuple[np.ndarray, np.ndarray]


def find(tree: GameTree, actions: Sequence[int | str]) -> Place:
    """Find the subgame that begins after some actions.

    Args:
      tree: The game tree, built with `observations=True`.
      actions: OpenSpiel's actions from the root, including chance outcomes: numbers, or
        the strings of `action_to_string`.

    Raises:
      ValueError: If an action is illegal, or no subgame begins after the actions.
    """
    text = f"actions={','.join(map(str, actions))!r}"
    state = tree.game.new_initial_state()
    for number, given in enumerate(actions, 1):
        action = _read_action(state, given, f"{text}: action {number}, {given!r},")
        state.apply_action(action)
    if state.current_player() < 0:
        what, remedy = "the end of the game", "leave some of them out"
        if state.is_chance_node():
            what, remedy = "a chance move", f"continue with one of {_choices(state)}"
        raise ValueError(
            f"{text} leads to {what}, but a subgame begins where a player acts; "
            f"{remedy}"
        )
    player, infoset = tree.infoset_of(state)
    d = decompose(tree, player)
    layer = int(d.player_layer[infoset])
    if not d.opens[infoset] or layer < 2:
        reason = "is in the middle of its turn"
        if d.opens[infoset]:
            reason = "has not acted before, so that the subgame is the whole game"
        raise ValueError(
            f"{text}: player {player} acts there, but {reason}; choose a later "
            f"decision, for example after one of {_choices(state)}"
        )
    return Place(d, layer, int(d.player_subgame[infoset]))


def _choices(state: pyspiel.State) -> str:
    """Return a few legal actions in words."""
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
    place: Place, iterations: int, algorithm: str | CFRConfig = "cfr+"
) -> Trunk:
    """Solve the full game, and compute the opponent's values at augmented infosets.

    Args:
      place: The subgame to re-solve; only its decomposition is used.
      iterations: Number of iterations.
      algorithm: Algorithm of the solve, see `algorithms.find`.

    Raises:
      ValueError: If an argument is invalid.
    """
    d = place.decomposition
    player, other = d.player, 1 - d.player
    form = _augmented_form(d)
    solver = cfr.make_solver(
        form,
        config=algorithms.find(algorithm, families=(algorithms.CFR,)).config,
        values=True,
        first=player,
        compile=cfr.compile_for(form, iterations),
    )
    with progress_bar(total=iterations, desc="trunk") as bar:

        def advance(count: int) -> None:
            # The bar's return value would stop the solver.
            bar.update(count)

        solver.run(iterations, after_chunk=advance)
    # The opponent's own sequences come first, and keep their numbers.
    num_sequences = d.tree.infosets[other].decisions.num_sequences
    return Trunk(
        behaviours=ordered_pair(
            player,
            solver.average_behaviour(player),
            solver.average_behaviour(other)[:num_sequences],
        ),
        form=form,
        reach=solver.average(player),
        opponent_values=solver.infoset_values(other)[len(d.other_layer) :],
    )


def _augmented_form(d: Decomposition) -> layout.SequenceForm:
    """Return the full game, with augmented infosets as decisions of the opponent.

    They follow the opponent's infosets and have a single action, so that the
    decomposition's extended sequences are this form's sequences.
    """
    histories, other = d.tree.histories, 1 - d.player
    own = d.tree.infosets[d.player].decisions
    theirs = d.tree.infosets[other].decisions
    augmented = Decisions(
        np.concatenate([d.other_parent, d.augmented_parent]),
        np.concatenate([theirs.num_actions, np.ones(len(d.augmented_layer), np.int32)]),
    )
    terminals = d.terminals[histories.utility[d.terminals] != 0]
    first, second = ordered_pair(
        d.player, histories.sequence[d.player][terminals], d.extended[terminals]
    )
    values = histories.chance[terminals] * histories.utility[terminals]
    payoffs = sum_payoffs(first, second, values)
    return layout.build(ordered_pair(d.player, own, augmented), payoffs)


def resolve_after(
    tree: GameTree, actions: Sequence[int | str], config: OneStepConfig
) -> OneStep:
    """Solve a game for a trunk, and re-solve one subgame below it.

    Args:
      tree: The game tree, built with `observations=True`.
      actions: Actions that lead to the subgame, see `find`.
      config: Settings of both solves.

    Raises:
      ValueError: If no subgame begins after these actions.
    """
    place = find(tree, actions)
    trunk = solve_trunk(place, config.trunk_iterations, config.algorithm)
    return one_step(place, trunk, config)


def one_step(place: Place, trunk: Trunk, config: OneStepConfig) -> OneStep:
    """Re-solve one subgame, and compute the NashConv curve of the combination.

    Args:
      place: The subgame.
      trunk: Trunk from `solve_trunk`, for the same decomposition.
      config: Settings; `trunk_iterations` is not used.
    """
    d = place.decomposition
    opponent_values = _values(d, trunk, config.values)
    if config.noise:
        random = np.random.default_rng(config.seed)
        opponent_values = _blur(opponent_values, config.noise, random)
    layer = Layer(d, place.layer, config.gadget)
    subgame = layer[place.number]
    decisions = d.tree.infosets[d.player].decisions
    form = layer.form(
        place.number,
        trunk.reach[decisions.parent[subgame.roots]],
        opponent_values[subgame.augmented],
    )
    solver = cfr.make_solver(
        form,
        config=algorithms.find(config.algorithm, families=(algorithms.CFR,)).config,
        first=layer.first,
        compile=cfr.compile_for(form, config.iterations),
    )
    curve = []
    combined = trunk.behaviours
    with progress_bar(total=config.iterations, desc="subgame") as bar:
        for count in round_numbers(config.iterations):
            solver.run(count - solver.iterations)
            combined = _combine(d, trunk, subgame, solver)
            value = _nash_conv(d.tree, combined)
            curve.append(CurvePoint(count, solver.seconds, value))
            bar.update(count - bar.n)
    return OneStep(
        *(d.player, place.layer, len(subgame.infosets), len(subgame.augmented)),
        trunk_nash_conv=_nash_conv(d.tree, trunk.behaviours),
        curve=tuple(curve),
        behaviours=combined,
    )


def _values(d: Decomposition, trunk: Trunk, values: OpponentValues) -> np.ndarray:
    if values == "iterates":
        return trunk.opponent_values
    found = best_responses.infoset_values(trunk.form, 1 - d.player, trunk.reach)
    return found[len(d.other_layer) : -1]


def _blur(values: np.ndarray, noise: float, random: np.random.Generator) -> np.ndarray:
    """Multiply each value by a normal variable with mean 1 and deviation `noise`."""
    return values * random.normal(1.0, noise, len(values))


def _combine(
    d: Decomposition, trunk: Trunk, subgame: Subgame, solver: Solver
) -> tuple[np.ndarray, np.ndarray]:
    """Return the trunk with the player's strategy in the subgame replaced."""
    resolved = solver.average_behaviour(d.player)
    owner = d.tree.infosets[d.player].decisions.owner
    own = trunk.behaviours[d.player].copy()
    own[np.isin(owner, subgame.infosets)] = resolved[1:]
    return ordered_pair(d.player, own, trunk.behaviours[1 - d.player])


def _nash_conv(tree: GameTree, behaviours: tuple[np.ndarray, np.ndarray]) -> float:
    return nash_conv(tree.sequence_form, reach_of(tree.sequence_form, behaviours))
