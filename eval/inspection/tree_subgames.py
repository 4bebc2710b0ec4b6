"""Subgames of continual resolving, for pages to show."""

from typing import Any

import numpy as np

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import best_response, reach_of
from spiel_cr.resolving.decomposition import Decomposition, decompose

from .infoset_view import Strategy, action_names


def subgames_of(
    tree: CompiledGame,
    strategy: Strategy,
    player: int,
) -> dict[str, Any]:
    """The subgames that a continually resolving player meets.

    Args:
      tree: the compiled game.
      strategy: of both players.
      player: i, who resolves.

    Returns:
      `layers`: for each layer its subgames, each with `infosets` of i that open it, and
      `augmented` infosets of the opponent at its root: [number of histories; the
      opponent's counterfactual value under the strategy; by a best response to it;
      what the opponent knows; an example history]. Values are the opponent's, in the
      game's units, weighted by the reach of i and chance. Or `refused`: why the game
      cannot be resolved.
    """
    try:
        cut = decompose(tree, player)
    except HiddenTurnsError as error:
        return {"refused": str(error)}
    other = 1 - player
    reply = best_response(tree.form, other, reach_of(tree.form, strategy)[player])
    both = (strategy[0], reply) if other else (reply, strategy[1])
    values, best = _opponent_values(cut, strategy), _opponent_values(cut, both)
    sizes = np.bincount(cut.root_augmented, minlength=len(cut.augmented_layer))
    example = np.zeros(len(cut.augmented_layer), np.int64)
    example[cut.root_augmented[::-1]] = cut.roots[::-1]
    names = action_names(tree, other)
    # By layer and number of the subgame.
    found: dict[tuple[int, int], dict[str, Any]] = {}

    def subgame(layer: np.ndarray, number: np.ndarray) -> dict[str, Any]:
        empty: dict[str, Any] = {"infosets": [], "augmented": []}
        return found.setdefault((int(layer), int(number)), empty)

    for infoset in np.flatnonzero(cut.opens):
        place = cut.own_layer[infoset], cut.own_subgame[infoset]
        subgame(*place)["infosets"].append(int(infoset))
    for number, layer in enumerate(cut.augmented_layer):
        history = int(example[number])
        subgame(layer, cut.augmented_subgame[number])["augmented"].append(
            [
                int(sizes[number]),
                short(values[number]),
                short(best[number]),
                _known(tree, other, history, names),
                history,
            ]
        )
    layers: list[list[dict[str, Any]]] = [[] for _ in range(cut.num_layers)]
    for layer, number in sorted(found):
        layers[layer - 1].append(found[layer, number])
    return {"layers": layers}


def _opponent_values(cut: Decomposition, strategy: Strategy) -> np.ndarray:
    """float64 [G], the opponent's counterfactual value at each augmented infoset."""
    tree, player = cut.tree, cut.player
    histories, roots = tree.histories, cut.roots
    reach = reach_of(tree.form, strategy)[player]
    worth = conversions.history_values(tree, strategy)[roots]
    weight = histories.chance[roots] * reach[histories.sequence[player][roots]]
    sign = 1.0 if player == 1 else -1.0
    return np.bincount(
        cut.root_augmented, sign * weight * worth, minlength=len(cut.augmented_layer)
    )


def _known(tree: CompiledGame, other: int, history: int, names: list[str]) -> str:
    """What the opponent knows at a root: what it observes, else what it did last."""
    histories = tree.histories
    if histories.observations is not None:
        return tree.state_at(history).information_state_string(other) or "(empty)"
    sequence = int(histories.sequence[other][history])
    if not sequence:
        return "has not acted yet"
    infosets = tree.infosets[other]
    owner = int(infosets.decisions.owner[sequence])
    return f"{infosets.keys[owner]}: {names[sequence - 1]}"


def short(value: float) -> float:
    """Six digits are what people read."""
    return float(f"{float(value):.6g}")
