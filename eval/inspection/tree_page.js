"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const {nodes, infosets} = data;
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
const percent = x => x > 0 && x < 5e-5 ? "under 0.01\u00a0%"
  : +(100 * x).toFixed(2) + "\u00a0%";
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
function reveal(i, quiet) {
  const path = [];
  for (let above = i; above >= 0; above = nodes[above][0]) path.unshift(above);
  for (const node of path) places.get(node).open(true);
  if (!quiet) places.get(i).row.scrollIntoView({block: "nearest"});
  select(i);
}
function select(i) {
  if (now) now.classList.remove("now");
  now = places.get(i).row;
  now.classList.add("now");
  const n = nodes[i], side = $("side");
  side.replaceChildren();
  $("hands").replaceChildren();
  if (n[3] < 0) {
    side.append(make("p", "soft", who(n) + ", reached with probability "
      + short(n[5]) + ", worth " + short(n[6]) + " to player 0"));
    return;
  }
  const [key, own, others, value, gain, actions] = infosets[n[3]][n[4]];
  side.append(make("pre", "state", key || "(empty)"));
  side.append(make("p", "", "player " + n[3] + "; own reach " + percent(own)
    + ", of opponent and chance " + percent(others)));
  // One unit: what the player gets in matches in which the others come here.
  const given = x => others > 0 ? short(x / others) : "–";
  side.append(make("p", "", "worth " + given(value) + " to player " + n[3]
    + "; a best response from here on gains " + given(gain)));
  side.append(make("p", "soft", "In the game's units, on the average of matches in "
    + "which opponent and chance come here."));
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
    bar.style.background = colour(actions, name);
    line.append(make("th", "", name), make("td", "", percent(share)), cell,
      make("td", "", given(worth)));
    body.append(line);
  }
  table.append(top, body);
  const frame = make("div", "scroll");
  frame.append(table);
  side.append(frame);
  showHands(n[3], n[4]);
}
const colour = (actions, name) =>
  "var(--c" + actions.findIndex(action => action[0] === name) % 10 + ")";
// Where all moves are seen by both, and chance deals: information states after the same
// moves are hands. Moves that lead to each node, by their names:
const moves = [], handsOf = [new Map(), new Map()], movesOf = infosets.map(() => []);
let cards = nodes.some(n => n[3] === -1);
nodes.forEach((n, i) => {
  const above = n[0];
  moves.push(above < 0 ? "" : nodes[above][3] < 0 ? moves[above]
    : moves[above] + (moves[above] && ", ") + n[1]);
  if (n[3] < 0) return;
  const known = movesOf[n[3]][n[4]];
  if (known === undefined) {
    movesOf[n[3]][n[4]] = moves[i];
    const groups = handsOf[n[3]];
    if (!groups.has(moves[i])) groups.set(moves[i], []);
    groups.get(moves[i]).push(n[4]);
  } else if (known !== moves[i]) cards = false;
});
const words = key => key.match(/[A-Z]?[a-z]+|\d+|[A-Z]+|\S/g) || [];
function showHands(player, number) {
  const group = handsOf[player].get(movesOf[player][number]);
  if (!cards || group.length < 2 || group.length > 2000) return;
  const split = group.map(other => words(infosets[player][other][0]));
  const size = split[0].length, first = split[0];
  if (split.some(own => own.length !== size)) return;
  const places = first.map((word, k) => k)
    .filter(k => split.some(own => own[k] !== first[k]));
  const square = places.length === 2;
  const row = own => square ? own[places[0]] : "";
  const column = own => places.slice(square ? 1 : 0).map(k => own[k]).join(" ");
  const named = k => first.slice(0, k).reverse().find(word => /[A-Za-z]{2}/.test(word));
  const order = (a, b) => a.localeCompare(b, undefined, {numeric: true});
  const rows = [...new Set(split.map(row))].sort(order);
  const columns = [...new Set(split.map(column))].sort(order);
  const at = new Map(split.map((own, k) => [row(own) + "|" + column(own), group[k]]));
  const box = $("hands"), table = make("table", "hands");
  box.append(make("h2", "", "All hands here"));
  box.append(make("p", "soft", (movesOf[player][number]
    ? "After " + movesOf[player][number] : "Before any move") + ". Bars are what is "
    + "played with each hand; pale ones are hands that player " + player
    + " never has here."));
  const key = make("p", "key-line"), actions = infosets[player][number][5];
  for (const [name] of actions) {
    const dot = make("span", "dot");
    dot.style.background = colour(actions, name);
    key.append(dot, make("span", "", name + " "));
  }
  const top = make("tr");
  const title = k => named(k) || "hand";
  top.append(make("th", "soft", square ? title(places[0]) + " ↓ " + title(places[1])
    + " →" : ""));
  for (const name of columns) top.append(make("th", "", name));
  table.append(top);
  for (const name of rows) {
    const line = make("tr");
    line.append(make("th", "", square ? name : title(places[0])));
    for (const other of columns) {
      const cell = make("td"), found = at.get(name + "|" + other);
      if (found !== undefined) cell.append(hand(player, found, found === number));
      line.append(cell);
    }
    table.append(line);
  }
  const frame = make("div", "scroll");
  frame.append(table);
  box.append(key, frame);
}
function hand(player, number, chosen) {
  const [key, own, , , , actions] = infosets[player][number];
  const button = make("button", chosen ? "hand now" : "hand");
  button.type = "button";
  button.title = key + "\n" + actions.map(([name, share]) => name + " "
    + percent(share)).join(", ");
  button.setAttribute("aria-label", button.title);
  if (own < 1e-6) button.classList.add("never");
  for (const [name, share] of actions) {
    const part = make("span");
    part.style.width = 100 * share + "%";
    part.style.background = colour(actions, name);
    button.append(part);
  }
  button.addEventListener("click", () => reveal(firsts[player][number]));
  return button;
}
const loss = view => view[1] * view[4];
const orders = {loss, reach: view => view[1] * view[2], game: () => 0};
function sorted(pairs) {
  const size = orders[$("order").value];
  return pairs.map(pair => [size(infosets[pair[0]][pair[1]]), pair])
    .sort((a, b) => b[0] - a[0]).map(found => found[1]);
}
function search() {
  const text = $("find").value.toLowerCase(), player = $("who").value;
  const list = $("found");
  let hits = [];
  list.replaceChildren();
  infosets.forEach((own, p) => own.forEach((view, number) => {
    if (player !== "" && +player !== p) return;
    if (view[0].toLowerCase().includes(text)) hits.push([p, number]);
  }));
  hits = sorted(hits);
  $("count").textContent = hits.length + " information states"
    + (hits.length > 100 ? ", the first 100 are shown" : "");
  for (const [p, number] of hits.slice(0, 100)) list.append(link(p, number));
  return hits;
}
function link(p, number) {
  const view = infosets[p][number];
  const item = make("li"), button = make("button", "", view[0] || "(empty)");
  button.append(make("span", "soft", "\nplayer " + p + " could gain "
    + short(Math.max(loss(view), 0)) + " per match from here on; own reach "
    + percent(view[1])));
  button.type = "button";
  button.addEventListener("click", () => reveal(firsts[p][number]));
  item.append(button);
  return item;
}
$("tree").setAttribute("role", "tree");
$("tree").append(build(0));
places.get(0).open(true);
$("find").addEventListener("input", search);
$("who").addEventListener("change", search);
$("order").addEventListener("change", search);
// What is worth seeing first: where most is lost; where nothing is, a mixed decision.
const begin = search();
if (begin.length) {
  const view = ([p, number]) => infosets[p][number];
  const mixed = pair => view(pair)[1] * view(pair)[2]
    * (1 - Math.max(...view(pair)[5].map(action => action[1])));
  const lossy = loss(view(begin[0])) > 1e-9;
  const [p, number] = lossy ? begin[0]
    : begin.reduce((a, b) => mixed(b) > mixed(a) ? b : a);
  reveal(firsts[p][number], true);
}
