const {nodes, infosets} = data;
const KEY = 0, NAME = 1, HOLDS = 2, PUBLIC = 3, BOARD = 4, OWN = 5, OTHERS = 6, VALUE = 7, GAIN = 8, ACTIONS = 9;
const children = nodes.map(() => []);
nodes.forEach((n, i) => { if (n[0] >= 0) children[n[0]].push(i); });
const firsts = infosets.map(own => own.map(() => -1));
nodes.forEach((n, i) => {
  if (n[4] >= 0 && firsts[n[3]][n[4]] < 0) firsts[n[3]][n[4]] = i;
});
const short = x => x === null ? "–" : Math.abs(x) < 1e-9 ? "0"
  : (Math.abs(x) < 1e-3 ? x.toExponential(2) : String(+x.toFixed(4))).replace("-", "−");
const percent = x => x > 0 && x < 5e-5 ? "<0.01%"
  : +(100 * x).toFixed(2) + "%";
const places = new Map();
const who = n => n[3] >= 0 ? "player " + n[3] : n[3] === -1 ? "chance" : "end";
// Moves of both players that lead to each node, by their names.
const moves = [];
for (const n of nodes) {
  const above = n[0];
  moves.push(above < 0 ? [] : nodes[above][3] < 0 ? moves[above] : [...moves[above], n[1]]);
}
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
  if (n[6] !== null) row.append(make("span", "soft", (leaf ? "payoff " : "value ") + short(n[6])));
  else if (leaf) row.append(make("span", "soft", "not on this page"));
  if (n[5] < 1e-6) row.classList.add("never");
  row.tabIndex = 0;
  row.setAttribute("role", "treeitem");
  const below = make("ul");
  below.hidden = true;
  below.setAttribute("role", "group");
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
  item.setAttribute("role", "none");
  item.append(row, below);
  places.set(i, {row, open});
  return item;
}
function reveal(i) {
  const path = [];
  for (let above = i; above >= 0; above = nodes[above][0]) path.unshift(above);
  for (const node of path) places.get(node).open(true);
  select(i);
}
// The next decision from a node on, with the most likely chance outcomes.
function decision(i) {
  while (nodes[i][3] === -1 && children[i].length)
    i = children[i].reduce((a, b) => nodes[b][2] > nodes[a][2] ? b : a);
  return nodes[i][4] >= 0 ? i : -1;
}
function crumbs(i) {
  const line = [], add = (name, at) => {
    const button = make("button", "", name);
    button.addEventListener("click", () => reveal(at));
    line.unshift(button);
  };
  for (let at = i; nodes[at][0] >= 0; at = nodes[at][0])
    if (nodes[nodes[at][0]][3] >= 0) add(nodes[at][1], i === at ? at : decision(at));
  add("start", decision(0) < 0 ? 0 : decision(0));
  $("path").replaceChildren(...line);
}
function told(n) {
  const view = infosets[n[3]][n[4]], line = [make("strong", "p" + n[3], "player " + n[3])];
  line.push(" acts");
  if (view[HOLDS] && !view[BOARD])
    line.push(rank(view[HOLDS]) < 0 ? ": " : " with ", cardsOr(view[HOLDS]));
  if (view[PUBLIC]) line.push(" on ", cardsOr(view[PUBLIC]));
  $("told").replaceChildren(...line);
}
function cardsOr(text) {
  const box = cardsIn(text, make("span"), "playing");
  if (!box.childNodes.length) box.append(make("strong", "", text));
  return box;
}
function select(i) {
  if (now) now.classList.remove("now");
  now = places.get(i).row;
  now.classList.add("now");
  const n = nodes[i];
  for (const name of ["told", "actions", "worth", "board", "hands", "state"]) $(name).replaceChildren();
  crumbs(i);
  if (!(n[4] >= 0)) {
    $("told").append(who(n) + ", reached with probability " + short(n[5])
      + (n[6] === null ? "" : ", value of this history for player 0: " + short(n[6])));
    return;
  }
  told(n);
  const view = infosets[n[3]][n[4]], names = view[ACTIONS].map(action => action[0]);
  const tints = colours(names);
  // One unit for all values: the player's utility in matches in which the others reach this.
  const given = x => view[OTHERS] > 0 ? short(x / view[OTHERS]) : "–";
  $("worth").append("Reach of the player's own actions: " + percent(view[OWN]));
  if (view[VALUE] !== null) $("worth").append(", of the opponent and chance: " + percent(view[OTHERS])
    + ". Value of the information state for player " + n[3] + ": " + given(view[VALUE])
    + "; gain of a best response from here on: " + given(Math.max(view[GAIN], 0))
    + " (expected utility, given that the opponent and chance lead here).");
  else $("worth").append(".");
  if (view[BOARD]) board(i, view);
  else view[ACTIONS].forEach(([name, share, worth], a) => {
    const card = make("button"), next = child(i, a);
    card.append(make("strong", "", name), make("span", "", percent(share)));
    if (worth !== null) card.append(make("span", "soft", "value " + given(worth)));
    card.style.borderBottomColor = tints[a];
    card.disabled = next < 0;
    card.addEventListener("click", () => reveal(next));
    $("actions").append(card);
  });
  $("state").append(view[KEY] || "(empty)");
  showHands(n[3], n[4]);
}
function child(i, a) {
  const next = children[i][a];
  return next === undefined ? -1 : decision(next);
}
function board(i, view) {
  const {rows, hexagons} = view[BOARD], cells = make("div", hexagons ? "cells hexagons" : "cells");
  const most = Math.max(...view[ACTIONS].map(action => action[1]));
  cells.style.setProperty("--columns", rows[0].length + (hexagons ? (rows.length - 1) / 2 : 0));
  rows.forEach((row, r) => {
    const line = make("div");
    line.style.setProperty("--row", r);
    for (const {mark, action, name} of row) {
      const a = action === null ? -1 : view[ACTIONS].findIndex(one => one[3] === action);
      const cell = make(a < 0 ? "div" : "button", "cell", mark);
      if (a >= 0) {
        const [word, share, worth] = view[ACTIONS][a], next = child(i, a);
        cell.append(make("strong", "", share < 5e-4 ? "0" : (100 * share).toFixed(share < .1 ? 1 : 0)));
        cell.style.background = `color-mix(in srgb, var(--accent) ${Math.round(45 * share / most)}%, var(--back))`;
        cell.title = name + ", " + word + ": " + percent(share) + (worth === null || !view[OTHERS] ? ""
          : ", value " + short(worth / view[OTHERS]));
        cell.disabled = next < 0;
        cell.addEventListener("click", () => reveal(next));
      }
      line.append(cell);
    }
    cells.append(line);
  });
  $("board").append(make("p", "soft", "Probability of choosing each cell, in percent."), cells);
}
// If all moves are public and chance deals, information states after the same moves are
// hands.
const handsOf = [new Map(), new Map()], movesOf = infosets.map(() => []);
let dealt = nodes.some(n => n[3] === -1);
nodes.forEach((n, i) => {
  if (!(n[4] >= 0)) return;
  const line = moves[i].join("\n"), known = movesOf[n[3]][n[4]];
  if (known === undefined) {
    movesOf[n[3]][n[4]] = line;
    if (!handsOf[n[3]].has(line)) handsOf[n[3]].set(line, []);
    handsOf[n[3]].get(line).push(n[4]);
  } else if (known !== line) dealt = false;
});
const words = key => key.match(/[A-Z]?[a-z]+|\d+|[A-Z]+|\S/g) || [];
// Private information in games without drawings: the words that differ.
function held(views) {
  if (views.every(view => view[HOLDS])) return views.map(view => view[HOLDS]);
  const split = views.map(view => words(view[KEY])), first = split[0];
  if (split.some(parts => parts.length !== first.length)) return views.map(view => view[KEY]);
  return split.map(parts => parts.filter((part, k) =>
    split.some(other => other[k] !== first[k])).join(" "));
}
function showHands(player, number) {
  const group = handsOf[player].get(movesOf[player][number]);
  if (!dealt || group.length < 2) return;
  const chosen = infosets[player][number], box = $("hands");
  const boards = [...new Set(group.map(one => infosets[player][one][PUBLIC]))];
  const row = make("div", "boards");
  if (boards.length > 1) for (const cards of boards) {
    const button = make("button", cards === chosen[PUBLIC] ? "now" : "");
    const there = group.filter(one => infosets[player][one][PUBLIC] === cards);
    const same = there.find(one => infosets[player][one][HOLDS] === chosen[HOLDS]);
    button.append(cardsOr(cards));
    button.addEventListener("click", () => reveal(firsts[player][same ?? there[0]]));
    row.append(button);
  }
  const shown = group.filter(one => infosets[player][one][PUBLIC] === chosen[PUBLIC]);
  const views = shown.map(one => infosets[player][one]), names = held(views);
  const order = shown.map((_, k) => k).sort((a, b) => rank(names[b]) - rank(names[a])
    || names[a].localeCompare(names[b], undefined, {numeric: true}));
  const tiles = make("div", "tiles"), key = make("p", "key-line");
  const tints = colours(chosen[ACTIONS].map(action => action[0]));
  chosen[ACTIONS].forEach(([name], a) => {
    const dot = make("span", "dot");
    dot.style.background = tints[a];
    key.append(dot, make("span", "", name + " "));
  });
  for (const k of order) tiles.append(tile(player, shown[k], names[k], shown[k] === number, tints));
  box.append(make("h2", "", "All hands at this node"), row, key, tiles);
  if (views.some(view => view[OWN] < 1e-6))
    box.append(make("p", "soft", "Pale: hands that player " + player + " never holds here."));
}
// High cards first.
const rank = name => "0123456789TJQKA".indexOf(name.replace("10", "T")[0]);
function tile(player, number, name, chosen, tints) {
  const view = infosets[player][number], button = make("button", chosen ? "tile now" : "tile");
  const title = make("span"), bar = make("i");
  button.type = "button";
  button.title = name + ": " + view[ACTIONS].map(([word, share]) => word + " "
    + percent(share)).join(", ");
  if (view[OWN] < 1e-6) button.classList.add("never");
  cardsIn(name, title);
  if (!title.childNodes.length) title.append(name);
  view[ACTIONS].forEach(([, share], a) => {
    const part = make("b", "", share > .3 && view[OWN] >= 1e-6 ? String(Math.round(100 * share)) : "");
    part.style.width = 100 * share + "%";
    part.style.background = tints[a];
    part.style.color = inkOn(tints[a]);
    bar.append(part);
  });
  button.append(title, bar);
  button.addEventListener("click", () => reveal(firsts[player][number]));
  return button;
}
const loss = view => view[OWN] * view[GAIN];
const orders = {gain: loss, reach: view => view[OWN] * (view[OTHERS] ?? 1), game: () => 0};
function sorted(pairs) {
  const size = orders[$("sort").value];
  return pairs.map(pair => [size(infosets[pair[0]][pair[1]]), pair])
    .sort((a, b) => b[0] - a[0]).map(found => found[1]);
}
function search() {
  const text = $("find").value.toLowerCase(), player = $("player").value;
  const list = $("found");
  let hits = [];
  list.replaceChildren();
  infosets.forEach((own, p) => own.forEach((view, number) => {
    if (player !== "" && +player !== p) return;
    if ((view[NAME] + "\n" + view[KEY]).toLowerCase().includes(text)) hits.push([p, number]);
  }));
  hits = sorted(hits);
  $("count").textContent = hits.length + " decisions"
    + (hits.length > most ? `, the first ${most} are shown` : "");
  for (const [p, number] of hits.slice(0, most)) list.append(link(p, number));
}
function link(p, number) {
  const view = infosets[p][number];
  const item = make("li"), button = make("button", "", view[NAME] || "(empty)");
  button.append(make("span", "soft", "\nplayer " + p
    + (view[GAIN] === null ? ", " : " could gain " + short(Math.max(loss(view), 0))
    + " per match by a best response from here on; ") + "reach of its own actions " + percent(view[OWN])));
  button.type = "button";
  button.addEventListener("click", () => { reveal(firsts[p][number]); scrollTo(0, 0); });
  item.append(button);
  return item;
}
$("tree").setAttribute("role", "tree");
$("tree").append(build(0));
places.get(0).open(true);
$("find").addEventListener("input", search);
$("player").addEventListener("change", search);
$("sort").addEventListener("change", search);
const most = data.start.limit ?? 100;
for (const id of ["find", "player", "sort"]) $(id).value = data.start[id] ?? $(id).value;
if (infosets.flat().every(view => view[GAIN] === null)) {
  if ($("sort").value === "gain") $("sort").value = "reach";
  $("sort").firstChild.remove();
}
search();
// The game's first decision, with the highest card if there are hands.
let begin = decision(0);
reveal(begin < 0 ? 0 : begin);
if ($("hands").querySelector(".tile")) $("hands").querySelector(".tile").click();
