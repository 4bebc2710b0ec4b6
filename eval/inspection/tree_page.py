"""A strategy as a page to walk through: the game's tree, and its subgames.

The page holds the tree as JSON and builds what is opened. It opens from disk.
"""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from spiel_cr.compilation.tree import CHANCE, CompiledGame
from spiel_cr.players import bots
from spiel_cr.policies import conversions
from spiel_cr.policies.best_responses import reach_of

from ..reporting.html_page import page, text
from .infoset_view import InfosetView, Strategy, action_names
from .tree_subgames import short, subgames_of

# A page of this many histories has about ten megabytes.
MOST_HISTORIES = 100_000


def check_size(tree: CompiledGame) -> None:
    """Raises ValueError where a game is too large for a page."""
    count = len(tree.histories)
    if count > MOST_HISTORIES:
        raise ValueError(
            f"html: {tree.game} has {count:,} histories, a page has room for "
            f"{MOST_HISTORIES:,}; leave out --html, or choose smaller game parameters"
        )


def tree_page(
    tree: CompiledGame,
    strategy: Strategy,
    views: tuple[list[InfosetView], list[InfosetView]],
    *,
    title: str,
    lead: str,
    players: Sequence[bots.ResolvingBot] = (),
    playing: str = "",
) -> str:
    """The page.

    Args:
      tree: the compiled game.
      strategy: for each player float64 [S], action probabilities by logical sequence.
      views: from `view_infosets`.
      title: of the page.
      lead: a sentence under it.
      players: of both seats, whose gadgets are shown; empty: none. They are asked at
        every infoset.
      playing: what these are called.

    Raises:
      ValueError: the game is too large for a page.
    """
    check_size(tree)
    data = {
        "nodes": _nodes(tree, strategy),
        "infosets": [[_infoset(view) for view in own] for own in views],
        "roles": [
            subgames_of(tree, strategy, seat, players[seat] if players else None)
            for seat in range(2)
        ],
        "playing": playing,
    }
    # "</script>" in a string would end the script.
    content = json.dumps(data, separators=(",", ":")).replace("</", "<\\/")
    body = (
        f"<header><h1>{text(title)}</h1><p class=lead>{text(lead)}</p></header>"
        f"{_BODY}<script id=data type=application/json>{content}</script>"
    )
    style = f"<style>{_STYLE}</style>"
    return page(title, style + body, _SCRIPT)


def _nodes(tree: CompiledGame, strategy: Strategy) -> list[list[Any]]:
    """[parent, action's name, its probability, player, infoset, reach, value] each.

    The value is player 0's expected utility from there on; the reach is of all.
    """
    histories = tree.histories
    reach = reach_of(tree.form, strategy)
    values = conversions.history_values(tree, strategy)
    total = histories.chance.copy()
    for player in range(2):
        total *= reach[player][histories.sequence[player]]
    names = [action_names(tree, player) for player in range(2)]
    chance = _chance_names(tree)
    nodes = []
    for history, parent in enumerate(histories.parent.tolist()):
        label, probability = "", 1.0
        mover = int(histories.player[parent]) if parent >= 0 else None
        if mover == CHANCE:
            label = chance[history]
            probability = histories.chance[history] / histories.chance[parent]
        elif mover is not None:
            sequence = int(histories.sequence[mover][history])
            label = names[mover][sequence - 1]
            probability = strategy[mover][sequence]
        player, infoset = histories.player[history], histories.infoset[history]
        nodes.append(
            [
                parent,
                label,
                short(probability),
                int(player),
                int(infoset),
                short(total[history]),
                short(values[history]),
            ]
        )
    return nodes


def _chance_names(tree: CompiledGame) -> dict[int, str]:
    """Words for what chance does, by the history that it leads to."""
    histories, names = tree.histories, {}
    parents = np.flatnonzero(histories.player == CHANCE)
    # Children of one history stand together, in the order of their parents.
    first, last = (
        np.searchsorted(histories.parent, parents, side) for side in ("left", "right")
    )
    for parent, begin, end in zip(parents, first, last, strict=True):
        state = tree.state_at(int(parent))
        for child in range(begin, end):
            action = int(histories.action[child])
            names[child] = state.action_to_string(state.current_player(), action)
    return names


def _infoset(view: InfosetView) -> list[Any]:
    actions = [
        [action.name, short(action.probability), short(action.value)]
        for action in view.actions
    ]
    numbers = (view.own_reach, view.others_reach, view.value, view.gain)
    return [view.key, *map(short, numbers), actions]


_BODY = """<main><p class=tools><input id=find type=search
placeholder="search information states" aria-label="search information states">
<select id=who aria-label="player"><option value="">both players</option>
<option value=0>player 0</option><option value=1>player 1</option></select></p>
<p id=count class=lead></p><ul id=found></ul>
<div class=panes><section><h2>Tree</h2><ul id=tree class=tree></ul></section>
<section><h2>Selected</h2><div id=side><p class=lead>Click a node or a search
result.</p></div><h2>Subgames of a resolving player</h2><p class=lead>Where continual
resolving cuts the game, layer by layer. Augmented infosets are what the opponent may
know when the player comes to a subgame. Resolving puts a gadget in front: at each of
them the opponent terminates, for a fixed value, or follows into the subgame. Values are
the opponent's, weighted by the reach of the resolving player and chance.
<span id=playing></span></p>
<p class=tools><select id=role aria-label="resolving player"><option
value=0>player 0 resolves</option><option value=1>player 1 resolves</option></select>
<button id=back type=button>previous</button><button id=next type=button>next</button>
</p><div id=step></div></section></div></main>
<noscript><p>This page needs JavaScript.</p></noscript>"""

_STYLE = """
.panes{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:28px}
.panes h2{margin-top:1em}
.tree,.tree ul{list-style:none;margin:0;padding:0;max-width:none}
.tree ul{padding-left:14px;border-left:1px solid var(--rule);margin-left:7px}
.tree li{margin:1px 0}.row{display:flex;align-items:baseline;gap:7px;border-radius:5px;
padding:1px 4px;cursor:pointer;font-size:.88rem;flex-wrap:wrap}
.row:hover,.row.now{background:var(--panel)}.row.now{outline:1px solid var(--accent)}
.row:focus-visible{outline:2px solid var(--accent)}
.turn{width:1em;flex:none;color:var(--soft)}.p0{color:var(--c0)}.p1{color:var(--c1)}
.soft{color:var(--soft)}.never{opacity:.5}
input[type=search],select{font:inherit;font-size:.9rem;padding:5px 9px;color:var(--ink);
background:var(--panel);border:1px solid var(--rule);border-radius:6px;max-width:100%}
input[type=search]{flex:1 1 240px;min-width:0}
#found{list-style:none;padding:0;max-width:none;max-height:300px;overflow:auto}
#found button,#step button{display:block;width:100%;text-align:left;margin:2px 0;
white-space:pre-wrap;overflow-wrap:anywhere;font-size:.82rem}
.state{white-space:pre-wrap;overflow-wrap:anywhere}
.bar{display:inline-block;height:.6em;background:var(--accent);border-radius:2px}
#side tbody th{min-width:0}
@media (max-width:700px){.panes{grid-template-columns:minmax(0,1fr);gap:0}}
"""

_SCRIPT = r"""
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const {nodes, infosets, roles} = data;
const children = nodes.map(() => []);
nodes.forEach((n, i) => { if (n[0] >= 0) children[n[0]].push(i); });
const firsts = infosets.map(own => own.map(() => -1));
nodes.forEach((n, i) => {
  if (n[3] >= 0 && firsts[n[3]][n[4]] < 0) firsts[n[3]][n[4]] = i;
});
const $ = id => document.getElementById(id);
const make = (tag, name, content) => {
  const made = document.createElement(tag);
  if (name) made.className = name;
  if (content !== undefined) made.textContent = content;
  return made;
};
const short = x => x === 0 ? "0" : Math.abs(x) < 1e-3 ? x.toExponential(2)
  : String(+x.toFixed(4));
const percent = x => x > 0 && x < 5e-5 ? "under 0.01 %"
  : +(100 * x).toFixed(2) + " %";
const places = new Map();
const who = n => n[3] >= 0 ? "player " + n[3] : n[3] === -1 ? "chance" : "end";
let now = null;
function build(i) {
  const n = nodes[i], item = make("li"), row = make("div", "row");
  const leaf = !children[i].length;
  const turn = make("span", "turn", leaf ? "·" : "▸");
  row.append(turn);
  if (n[0] >= 0) {
    const mover = nodes[n[0]][3];
    row.append(make("strong", mover >= 0 ? "p" + mover : "soft", n[1]));
    row.append(make("span", "soft", percent(n[2])));
  }
  row.append(make("span", n[3] >= 0 ? "p" + n[3] : "soft", who(n)));
  row.append(make("span", "soft", (leaf ? "pays " : "value ") + short(n[6])));
  if (n[5] < 1e-6) row.classList.add("never");
  row.tabIndex = 0;
  row.setAttribute("role", "treeitem");
  const below = make("ul");
  below.hidden = true;
  const open = on => {
    if (leaf) return;
    if (on && !below.childNodes.length)
      for (const child of children[i]) below.append(build(child));
    below.hidden = !on;
    turn.textContent = on ? "▾" : "▸";
    row.setAttribute("aria-expanded", String(on));
  };
  const act = () => { open(below.hidden); select(i); };
  row.addEventListener("click", act);
  row.addEventListener("keydown", e => {
    if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(); }
  });
  item.append(row, below);
  places.set(i, {row, open});
  return item;
}
function reveal(i) {
  const path = [];
  for (let above = i; above >= 0; above = nodes[above][0]) path.unshift(above);
  for (const node of path) places.get(node).open(true);
  places.get(i).row.scrollIntoView({block: "nearest"});
  select(i);
}
function select(i) {
  if (now) now.classList.remove("now");
  now = places.get(i).row;
  now.classList.add("now");
  const n = nodes[i], side = $("side");
  side.replaceChildren();
  side.append(make("p", "soft", who(n) + ", reached with probability " + short(n[5])
    + ", worth " + short(n[6]) + " to player 0"));
  if (n[3] < 0) return;
  const [key, own, others, value, gain, actions] = infosets[n[3]][n[4]];
  side.append(make("pre", "state", key || "(empty)"));
  side.append(make("p", "", "own reach " + short(own)
    + ", reach of opponent and chance " + short(others)));
  side.append(make("p", "", "counterfactual value " + short(value)
    + ", a best response from here on gains " + short(gain)
    + "; values are weighted by the reach of opponent and chance"));
  const table = make("table"), head = make("tr");
  for (const name of ["action", "probability", "", "its value"])
    head.append(make("th", "", name));
  const top = make("thead");
  top.append(head);
  const body = make("tbody");
  for (const [name, share, worth] of actions) {
    const line = make("tr"), cell = make("td"), bar = make("span", "bar");
    bar.style.width = (80 * share).toFixed(1) + "px";
    cell.style.textAlign = "left";
    cell.append(bar);
    line.append(make("th", "", name), make("td", "", short(share)), cell,
      make("td", "", short(worth)));
    body.append(line);
  }
  table.append(top, body);
  const frame = make("div", "scroll");
  frame.append(table);
  side.append(frame);
}
function search() {
  const text = $("find").value.toLowerCase(), player = $("who").value;
  const list = $("found"), hits = [];
  list.replaceChildren();
  $("count").textContent = "";
  if (!text && player === "") return;
  infosets.forEach((own, p) => own.forEach((view, number) => {
    if (player !== "" && +player !== p) return;
    if (view[0].toLowerCase().includes(text)) hits.push([p, number]);
  }));
  $("count").textContent = hits.length + " information states"
    + (hits.length > 100 ? ", the first 100 are shown" : "");
  for (const [p, number] of hits.slice(0, 100)) list.append(link(p, number));
}
function link(p, number) {
  const item = make("li"), button = make("button", "", infosets[p][number][0]
    || "(empty)");
  button.type = "button";
  button.addEventListener("click", () => reveal(firsts[p][number]));
  item.append(button);
  return item;
}
let step = 0;
function steps() {
  const role = roles[+$("role").value];
  const all = [];
  (role.layers || []).forEach((layer, l) =>
    layer.forEach((subgame, s) => all.push([l, s, layer.length, subgame])));
  return [role, all];
}
function showStep() {
  const [role, all] = steps(), box = $("step"), player = +$("role").value;
  box.replaceChildren();
  if (role.refused) { box.append(make("p", "warn", role.refused)); return; }
  if (!all.length) return;
  step = Math.min(Math.max(step, 0), all.length - 1);
  const [l, s, many, subgame] = all[step];
  box.append(make("p", "", "layer " + (l + 1) + ", subgame " + (s + 1) + " of "
    + many));
  if (l === 0)
    box.append(make("p", "soft", "The first solve is of the whole game, no gadget."));
  const list = make("ul");
  list.style.padding = 0;
  list.style.listStyle = "none";
  for (const number of subgame.infosets.slice(0, 50)) list.append(link(player, number));
  box.append(make("h3", "", counted(subgame.infosets, "own infosets", 50)), list);
  const others = make("ul"), augmented = subgame.augmented;
  for (const [size, value, best, fixed, knows, example] of augmented.slice(0, 200)) {
    const item = make("li"), go = make("button", "", knows);
    const lines = ["this policy gives it " + short(value)
      + ", a best response to this policy " + short(best)];
    if (fixed !== null) lines.push("the gadget's value, for terminating: "
      + short(fixed));
    lines.push(size + (size === 1 ? " history" : " histories"));
    go.append(make("span", "soft", "\n" + lines.join("\n")));
    go.type = "button";
    go.addEventListener("click", () => reveal(example));
    item.append(go);
    others.append(item);
  }
  others.style.padding = 0;
  others.style.listStyle = "none";
  box.append(make("h3", "", counted(augmented, "augmented infosets", 200)), others);
}
function counted(all, what, most) {
  return all.length + " " + what
    + (all.length > most ? ", the first " + most + " are shown" : "");
}
$("playing").textContent = data.playing
  ? "The gadgets' values are those that " + data.playing + " had when it was asked "
    + "everywhere; its strategy, by whose reach they are weighted, may differ from the "
    + "policy shown."
  : "A player carries its own values from solve to solve; --gadgets shows them.";
$("tree").setAttribute("role", "tree");
$("tree").append(build(0));
places.get(0).open(true);
$("find").addEventListener("input", search);
$("who").addEventListener("change", search);
$("role").addEventListener("change", () => { step = 0; showStep(); });
$("back").addEventListener("click", () => { step--; showStep(); });
$("next").addEventListener("click", () => { step++; showStep(); });
showStep();
"""
