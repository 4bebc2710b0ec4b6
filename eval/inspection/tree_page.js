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
