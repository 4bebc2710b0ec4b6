const {board, hands, nodes} = data;
const RANKS = "AKQJT98765432";
const WEIGHT = 0, SHARE = 1, EQUITY = 2, EV = 3, FIRST = 4;
const percent = x => x === null ? "–" : (100 * x).toFixed(1) + "%";
const chips = x => x === null ? "–"
  : (x < 0 ? "−" : "+") + Math.abs(x).toFixed(Math.abs(x) < 100 ? 2 : 1);
// Means over hands by their share of the range; null if the node is never reached.
function means(node, chosen) {
  const width = FIRST + 2 * node.actions.length, sums = Array(width).fill(0);
  let share = 0, weight = 0, combos = 0;
  for (const h of chosen) {
    const row = node.numbers[h];
    share += row[SHARE];
    weight += row[WEIGHT] * node.combos[h];
    combos += node.combos[h];
    row.forEach((x, i) => { sums[i] += row[SHARE] * (x === null ? 0 : x); });
  }
  const found = sums.map(x => share > 0 ? x / share : null);
  return {share, weight, combos, row: found};
}
const classOf = hand => {
  const [a, s, b, t] = hand;
  const [high, low] = RANKS.indexOf(a) <= RANKS.indexOf(b) ? [a, b] : [b, a];
  return high === low ? high + low : high + low + (s === t ? "s" : "o");
};
const groups = {};
for (const player in hands) {
  groups[player] = new Map();
  hands[player].forEach((hand, h) => {
    const name = classOf(hand);
    if (!groups[player].has(name)) groups[player].set(name, []);
    groups[player].get(name).push(h);
  });
}
const everyone = nodes.map(node => means(node, node.numbers.keys()));
// Probability of reaching each node if both players follow the solution.
const reach = nodes.map(() => 0);
reach[0] = 1;
nodes.forEach((node, i) => node.next.forEach((child, a) => {
  if (child >= 0) reach[child] = reach[i] * (everyone[i].row[FIRST + a] ?? 0);
}));
const rows = [];
function branch(i) {
  const node = nodes[i], list = make("ul"), tints = colours(node.actions);
  node.actions.forEach((action, a) => {
    const item = make("li"), child = node.next[a];
    const line = make(child >= 0 ? "button" : "div", child >= 0 ? "" : "end");
    const dot = make("span", "dot");
    dot.style.background = tints[a];
    line.append(dot, " ", make("span", "p" + node.player, action), " ",
      make("span", "soft", percent(everyone[i].row[FIRST + a])));
    if (child >= 0) {
      line.addEventListener("click", () => select(child));
      rows[child] = line;
    }
    if (!(reach[i] * everyone[i].row[FIRST + a] > 1e-6)) line.classList.add("never");
    item.append(line);
    // Deeper lines are opened when they are selected.
    if (child >= 0) item.append(make("div"));
    list.append(item);
  });
  return list;
}
function open(i) {
  const parent = nodes.findIndex(node => node.next.includes(i));
  if (parent >= 0) open(parent);
  const place = i ? rows[i].nextSibling : $("tree").lastChild;
  if (!place.childNodes.length) place.append(branch(i));
}
let now = 0, show = "played", chosen = null;
function select(i) {
  now = i;
  open(i);
  document.querySelectorAll(".tree .now").forEach(e => e.classList.remove("now"));
  (rows[i] || $("tree").firstChild).classList.add("now");
  const node = nodes[i], all = everyone[i], tints = colours(node.actions);
  const street = ["flop", "turn", "river"][board.length / 2 - 3 + node.street];
  $("path").textContent = (node.path.length ? "after " + node.path.join(", ") : "at the start")
    + (node.street ? ` (${street}: means over the cards dealt)` : "");
  $("told").replaceChildren(make("strong", "p" + node.player, "player " + node.player),
    ` acts, ${node.player ? "in" : "out of"} position: `, all.share > 0
      ? `${all.weight.toFixed(1)} combos, EV ${chips(all.row[EV])}, equity ${percent(all.row[EQUITY])}`
      : "never reaches this node");
  $("actions").replaceChildren(...node.actions.map((action, a) => {
    const card = make("button");
    card.append(make("strong", "", action), make("span", "", percent(all.row[FIRST + a])),
      make("span", "soft", "EV " + chips(actionMean(node, node.numbers.keys(), a))));
    card.style.borderBottomColor = tints[a];
    card.disabled = node.next[a] < 0;
    card.addEventListener("click", () => select(node.next[a]));
    return card;
  }));
  grid();
}
// EV of an action over the hands that take it.
function actionMean(node, some, a) {
  let total = 0, sum = 0;
  for (const h of some) {
    const row = node.numbers[h], value = row[FIRST + node.actions.length + a];
    if (value === null) continue;
    total += row[SHARE] * row[FIRST + a];
    sum += row[SHARE] * row[FIRST + a] * value;
  }
  return total > 0 ? sum / total : null;
}
function grid() {
  const node = nodes[now], tints = colours(node.actions), made = [];
  const every = [...groups[node.player].values()].map(some => means(node, some));
  const evs = every.filter(m => m.row[EV] !== null).map(m => m.row[EV]);
  const low = Math.min(...evs), high = Math.max(...evs);
  for (const [r, row] of [...RANKS].entries()) for (const [c, column] of [...RANKS].entries()) {
    const name = r === c ? row + row : r < c ? row + column + "s" : column + row + "o";
    const some = groups[node.player].get(name), cell = make("button", "cell");
    cell.append(make("span", "", name));
    const mean = some ? means(node, some) : null;
    if (!mean || mean.share <= 0) cell.disabled = !some;
    if (mean && mean.share > 0) {
      const bar = make("i"), part = Math.min(1, mean.weight / mean.combos);
      const tint = (colour, width) => {
        const piece = make("b");
        piece.style.background = colour;
        piece.style.width = 100 * width + "%";
        bar.append(piece);
      };
      bar.style.height = Math.max(6, 100 * part) + "%";
      let note = "";
      if (show === "played") node.actions.forEach((_, a) => tint(tints[a], mean.row[FIRST + a]));
      else if (show === "weight") { tint("var(--accent)", 1); note = Math.round(100 * part) + "%"; }
      else {
        const x = show === "ev" ? (mean.row[EV] - low) / (high - low || 1) : mean.row[EQUITY];
        bar.style.height = "100%";
        tint(`hsl(${Math.round(120 * x)} 50% 50%)`, 1);
        note = show === "ev" ? String(+mean.row[EV].toPrecision(3)).replace("-", "−")
          : Math.round(100 * x) + "%";
      }
      cell.append(bar, make("small", "", note));
      cell.append(cell.firstChild);
      cell.title = name + ": " + node.actions.map(
        (action, a) => action + " " + percent(mean.row[FIRST + a])).join(", ")
        + ", EV " + chips(mean.row[EV]) + ", equity " + percent(mean.row[EQUITY]);
    }
    cell.setAttribute("aria-label", cell.title || name);
    if (name === chosen) cell.classList.add("now");
    cell.addEventListener("click", () => { chosen = name; grid(); });
    made.push(cell);
  }
  $("grid").replaceChildren(...made);
  combos();
}
function combos() {
  const node = nodes[now], some = groups[node.player].get(chosen);
  $("chosen").textContent = some ? chosen : "Click a cell of the grid to see its hands";
  const head = make("tr"), body = make("tbody"), caption = [
    "hand", "in range", "equity", "EV", ...node.actions];
  caption.forEach(name => head.append(make("th", "", name)));
  for (const h of some || []) {
    const row = node.numbers[h], line = make("tr");
    const hand = cardsIn(hands[node.player][h], make("th"));
    if (node.combos[h] > 1) hand.append(make("span", "soft", " ×" + node.combos[h]));
    line.append(hand);
    const add = (name, content, soft) => {
      const cell = make("td", "", content);
      cell.dataset.head = name;
      if (soft) cell.append(" ", make("span", "soft", soft));
      line.append(cell);
    };
    add("in range", percent(row[WEIGHT]));
    add("equity", percent(row[EQUITY]));
    add("EV", chips(row[EV]));
    node.actions.forEach((action, a) => add(action, percent(row[FIRST + a]),
      chips(row[FIRST + node.actions.length + a])));
    body.append(line);
  }
  const top = make("thead");
  top.append(head);
  $("combos").replaceChildren(...(some ? [top, body] : []));
}
document.querySelectorAll("[name=show]").forEach(input =>
  input.addEventListener("change", () => { show = input.value; grid(); }));
cardsIn(board, $("board"), "playing");
const start = make("button", "", "start");
start.addEventListener("click", () => select(0));
$("tree").append(start, make("div"));
select(0);
