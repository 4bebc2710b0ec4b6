"""Last stage: subgames and gadgets of continual resolving, for pages to show."""

from typing import Any

import numpy as np

from spiel_cr.compilation.tree import CompiledGame
from spiel_cr.players import bots
from spiel_cr.policies import conversions as policy_lib
from spiel_cr.policies.best_responses import best_response, reach_of
from spiel_cr.resolving import decomposition

from . import infoset_view

# For each player float64 [S], action probabilities by logical sequence.
Strategy = tuple[np.ndarray, np.ndarray]


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
      `gates` into it: [number of histories; the opponent's counterfactual value under
      the strategy; by a best response to it; what terminating is worth in the bot's
      gadget, None without bot and in the first layer, which has no gadget; what the
      opponent knows; an example history]. Values are the opponent's, in the game's
      units, weighted by the reach of i and chance. Or `refused`: why the game cannot
      be resolved.

    Raises:
      ValueError: as `gadget_values`.
    """
    if bot is not None:
        cut, fixed = bot.resolver.decomposition, gadget_values(bot)
    else:
        try:
            cut, fixed = decomposition.decompose(tree, player), None
        except ValueError as error:
            return {"refused": str(error)}
    values = _gate_values(cut, strategy)
    other = 1 - player
    reply = best_response(tree.form, other, reach_of(tree.form, strategy)[player])
    best = _gate_values(cut, _with(strategy, other, reply))
    sizes = np.bincount(cut.root_augmented, minlength=len(cut.augmented_layer))
    example = np.zeros(len(cut.augmented_layer), np.int64)
    example[cut.root_augmented[::-1]] = cut.roots[::-1]
    names = infoset_view.action_names(tree, other)
    layers: list[list[dict[str, Any]]] = []
    for layer in range(1, cut.num_layers + 1):
        found: dict[int, dict[str, Any]] = {}
        for infoset in np.flatnonzero((cut.own_layer == layer) & cut.opens):
            piece = found.setdefault(int(cut.own_subgame[infoset]), _piece())
            piece["infosets"].append(int(infoset))
        for gate in np.flatnonzero(cut.augmented_layer == layer):
            piece = found.setdefault(int(cut.augmented_subgame[gate]), _piece())
            at = int(example[gate])
            piece["gates"].append(
                [
                    int(sizes[gate]),
                    _short(values[gate]),
                    _short(best[gate]),
                    None if fixed is None or layer == 1 else _short(fixed[gate]),
                    _known(tree, other, at, names),
                    at,
                ]
            )
        layers.append([found[number] for number in sorted(found)])
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
            "next gates; leave it out to show gadgets"
        )


def gadget_values(bot: bots.ResolvingBot) -> np.ndarray:
    """What terminating is worth to the opponent, gate by gate.

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
    mind = bot.resolver
    match, cut = mind.match(), mind.decomposition
    opening = np.flatnonzero(cut.opens)
    for infoset in opening[np.argsort(cut.own_layer[opening], kind="stable")]:
        mind.strategy(match, int(infoset))
    return match.opponent_values


def _piece() -> dict[str, Any]:
    return {"infosets": [], "gates": []}


def _with(strategy: Strategy, player: int, behaviour: np.ndarray) -> Strategy:
    return (behaviour, strategy[1]) if player == 0 else (strategy[0], behaviour)


def _gate_values(cut: decomposition.Decomposition, strategy: Strategy) -> np.ndarray:
    """float64 [G], the opponent's counterfactual value behind each gate."""
    tree, player = cut.tree, cut.player
    histories, roots = tree.histories, cut.roots
    reach = reach_of(tree.form, strategy)[player]
    worth = policy_lib.history_values(tree, strategy)[roots]
    weight = histories.chance[roots] * reach[histories.sequence[player][roots]]
    sign = 1.0 if player == 1 else -1.0
    return np.bincount(
        cut.root_augmented, sign * weight * worth, minlength=len(cut.augmented_layer)
    )


def _known(tree: CompiledGame, other: int, history: int, names: list[str]) -> str:
    """What the opponent knows at a root: what it is told, else what it did last."""
    histories = tree.histories
    if histories.observations is not None:
        state = tree.state_at(history)
        return state.information_state_string(other) or "(empty)"
    sequence = int(histories.sequence[other][history])
    if not sequence:
        return "has not acted yet"
    infosets = tree.infosets[other]
    owner = int(infosets.decisions.owner[sequence])
    return f"{infosets.keys[owner]}: {names[sequence - 1]}"


def _short(value: float) -> float:
    """Six digits are what people read."""
    return float(f"{float(value):.6g}")
