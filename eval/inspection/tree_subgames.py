"""Subgames and gadgets of continual resolving, for pages to show."""

from typing import Any

import numpy as np

from spiel_cr.common.errors import HiddenTurnsError
from spiel_cr.games.tree.tree import CompiledGame
from spiel_cr.players import bots
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import best_response, reach_of
from spiel_cr.resolving.compiled_subgames import CompiledMemory
from spiel_cr.resolving.decomposition import Decomposition, decompose

from .infoset_view import Strategy, action_names


def subgames_of(
    tree: CompiledGame,
    strategy: Strategy,
    player: int,
    bot: bots.ResolvingBot | None = None,
) -> dict[str, Any]:
    """The subgames that a continually resolving player meets.

    Args:
      tree: the compiled game.
      strategy: of both players.
      player: i, who resolves.
      bot: in i's seat, whose gadgets are looked at; None: none.

    Returns:
      `layers`: for each layer its subgames, each with `infosets` of i that open it, and
      `augmented` infosets of the opponent at its root: [number of histories; the
      opponent's counterfactual value under the strategy; by a best response to it; what
      terminating is worth in the bot's gadget, None without bot and in the first layer,
      which has no gadget; what the opponent knows; an example history]. Values are the
      opponent's, in the game's units, weighted by the reach of i and chance. Or
      `refused`: why the game cannot be resolved.

    Raises:
      ValueError: as `gadget_values`.
    """
    if bot is not None:
        cut, fixed = bot.resolver.decomposition, gadget_values(bot)
    else:
        try:
            cut, fixed = decompose(tree, player), None
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
                None if fixed is None or layer == 1 else short(fixed[number]),
                _known(tree, other, history, names),
                history,
            ]
        )
    layers: list[list[dict[str, Any]]] = [[] for _ in range(cut.num_layers)]
    for layer, number in sorted(found):
        layers[layer - 1].append(found[layer, number])
    return {"layers": layers}


def check_gadgets(bot: bots.ResolvingBot) -> None:
    """Raises ValueError where a bot's gadgets have no values to show."""
    config = bot.resolver.config
    if config.gadget != "cfrd":
        raise ValueError(
            f"gadget={config.gadget!r}: what terminating is worth is shown, and "
            f"in this gadget nobody terminates; use gadget=cfrd"
        )
    if config.target:
        raise ValueError(
            "target=true: each infoset's solve of a subgame leaves other values at the "
            "roots of the next ones; leave it out to show gadgets"
        )


def gadget_values(bot: bots.ResolvingBot) -> np.ndarray:
    """What terminating is worth to the opponent, for each of its augmented infosets.

    The bot resolves every subgame once, in the order of the game.

    Args:
      bot: with the gadget cfrd, the only one in which the opponent can terminate, and
        without `target`, by which it would resolve anew for each infoset.

    Raises:
      ValueError: another bot.

    Returns:
      float64 [G], the opponent's perspective, weighted by the reach of the bot's own
      strategy and chance; zeros in the first layer, which has no gadget.
    """
    check_gadgets(bot)
    resolver = bot.resolver
    match, cut = resolver.match(), resolver.decomposition
    opening = np.flatnonzero(cut.opens)
    for infoset in opening[np.argsort(cut.own_layer[opening], kind="stable")]:
        resolver.strategy(match, int(infoset))
    memory = match.memory
    assert isinstance(memory, CompiledMemory)  # as the bot's decomposition is
    return memory.opponent_values


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
