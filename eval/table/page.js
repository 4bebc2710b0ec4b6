const SVG = "http://www.w3.org/2000/svg";
const draw = (tag, given, content) => {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(given)) made.setAttribute(name, value);
  if (content !== undefined) made.textContent = content;
  return made;
};
const signed = x => {
  const size = +Math.abs(x).toFixed(3);
  return size === 0 ? "0" : (x > 0 ? "+" : "−") + size;
};
// Insert positions where a line of parameters may be broken.
const breakable = text => text.replace(/([(,])/g, "$1\u200b");
let view = null, shown = null, typed = false, waiting = 0, reviews = new Map();
// ------------------------------------------------------------------ parts
function clickable(place, action, label, name, act) {
  const can = act && action !== null && action !== undefined;
  const made = make(can ? "button" : "span", place);
  if (can) {
    made.type = "button";
    made.dataset.action = action;
    made.addEventListener("click", () => act(action));
  }
  if (name) made.setAttribute("aria-label", name);
  if (name) made.title = name;
  made.append(label);
  return made;
}
function card(c, act) {
  if (c.back) { const b = make("span", "card back"); b.title = "face down"; return b; }
  if (c.empty) return make("span", "card empty");
  const red = c.suit === "♥" || c.suit === "♦";
  const wide = c.text.length > 3;
  const face = document.createDocumentFragment();
  face.append(make("span", "", c.text));
  if (c.suit) face.append(make("span", "", c.suit));
  return clickable("card" + (red ? " red" : "") + (wide ? " wide" : ""), c.action, face,
    "", act);
}
const PIPS = {1: [4], 2: [0, 8], 3: [0, 4, 8], 4: [0, 2, 6, 8], 5: [0, 2, 4, 6, 8],
  6: [0, 2, 3, 5, 6, 8]};
function die(value) {
  if (value === null) return make("span", "die back");
  if (!PIPS[value]) return make("span", "die many", value);
  const made = make("span", "die");
  made.setAttribute("role", "img");
  made.setAttribute("aria-label", value);
  for (let i = 0; i < 9; i++) made.append(make("i", PIPS[value].includes(i) ? "on" : ""));
  return made;
}
function grid(part, act) {
  const columns = part.rows[0].length, count = part.rows.length;
  const box = make("div", part.hexagons ? "hex" : "grid");
  const wide = part.hexagons ? columns + (count - 1) / 2 + .3 : columns;
  box.style.setProperty("--columns", columns);
  box.style.setProperty("--wide", wide);
  part.rows.forEach((row, r) => {
    const line = part.hexagons ? make("div", "line") : box;
    if (part.hexagons) {
      line.style.marginLeft = "calc(var(--size)*" + r / 2 + ")";
      box.append(line);
    }
    for (const c of row) {
      const name = c.name + (c.mark ? ": " + c.mark : "");
      line.append(clickable("cell " + c.style, c.action,
        make(part.hexagons ? "i" : "span", "", c.mark), name, act));
    }
  });
  if (part.hexagons) box.style.paddingBottom = "calc(var(--size)*.29 + 6px)";
  return box;
}
function map(part, act) {
  const x = n => 42 + 336 * n.x, y = n => 36 + 336 * n.y;
  const high = Math.max(...part.nodes.map(y)) + 30;
  const made = draw("svg", {viewBox: "0 0 420 " + high, class: "map", role: "group"});
  part.edges.forEach(([a, b, kind]) => {
    const from = part.nodes[a], to = part.nodes[b];
    // Edges of several kinds are bent, so that they do not cover each other or nodes.
    const bend = {taxi: 0, bus: 16, underground: 30}[kind];
    const dx = x(to) - x(from), dy = y(to) - y(from), far = Math.hypot(dx, dy) || 1;
    const mx = (x(from) + x(to)) / 2 - bend * dy / far;
    const my = (y(from) + y(to)) / 2 + bend * dx / far;
    made.append(draw("path", {class: kind, fill: "none",
      d: `M${x(from)} ${y(from)}Q${mx} ${my} ${x(to)} ${y(to)}`}));
  });
  for (const n of part.nodes) {
    const can = n.action !== null && act;
    const group = draw("g", {class: n.marks.join(" ") + (can ? " can go" : "")});
    group.append(draw("circle", {cx: x(n), cy: y(n), r: 15}),
      draw("text", {x: x(n), y: y(n) + 4}, n.name));
    if (n.marks.length) group.append(draw("text", {class: "marks", x: x(n),
      y: y(n) - 18, style: "fill:var(--ink)"},
      n.marks.map(m => m === "F" ? "fugitive" : "detective").join(", ")));
    if (can) {
      group.setAttribute("role", "button");
      group.setAttribute("tabindex", 0);
      group.setAttribute("aria-label", "go to " + n.name);
      group.addEventListener("click", () => act(n.action));
      group.addEventListener("keydown", e => {
        if (e.key === "Enter" || e.key === " ") { e.preventDefault(); act(n.action); }
      });
    }
    made.append(group);
  }
  const box = make("div");
  box.append(made, make("p", "legend-of-map",
    "Solid lines: taxi; dashed lines: bus; dotted lines: underground."));
  return box;
}
function poker(part) {
  const box = make("div", "poker"), seat = (name, side) => {
    const made = make("div", "side"), row = make("div", "row");
    row.append(...side.cards.map(c => card(c, null)));
    const who = make("div", "who", name);
    if (side.chips) who.append(make("small", "", side.chips));
    made.append(...name === "You" ? [row, who] : [who, row]);
    return made;
  };
  box.append(seat("Bot", part.sides[1]));
  if (part.board.length) {
    const row = make("div", "row");
    row.append(...part.board.map(c => card(c, null)));
    box.append(row);
  }
  if (part.pot !== null) {
    const pot = make("div", "pot");
    pot.append(make("i", "chip"), "pot " + part.pot);
    box.append(pot);
  }
  part.actions.forEach((actions, n) => box.append(make("p", "said",
    (part.actions.length > 1 ? "Round " + (n + 1) + ": " : "") + (actions.join(" · ") || "–"))));
  box.append(seat("You", part.sides[0]));
  return box;
}
function build(part, act) {
  if (part.type === "poker") return poker(part);
  const box = make("div", "part");
  if (part.label) box.append(make("h4", "", part.label));
  if (part.type === "hand" || part.type === "dice") {
    const row = make("div", "row");
    for (const one of part.cards || part.values)
      row.append(part.cards ? card(one, act) : die(one));
    box.append(row);
  } else if (part.type === "facts") {
    const list = make("dl", "facts");
    for (const [name, value] of part.items)
      list.append(make("dt", "", name), make("dd", "", value));
    box.append(list);
  } else if (part.type === "grid") box.append(grid(part, act));
  else if (part.type === "graph") box.append(map(part, act));
  else if (part.type === "text") box.append(make("pre", "", part.text));
  else box.append(make("p", "note", part.text));
  return box;
}
const onTable = part => part.type === "grid" ? part.rows.flat().map(c => c.action)
  : part.type === "hand" ? part.cards.map(c => c.action) : [];
// ------------------------------------------------------------------ talking
async function ask(path, given) {
  const options = given === undefined ? {} : {method: "POST",
    headers: {"Content-Type": "application/json"}, body: JSON.stringify(given)};
  const answer = await fetch(path, {...options, cache: "no-store"});
  if (!answer.ok && answer.status !== 409 && answer.status !== 404)
    throw new Error(answer.statusText);
  return answer.json();
}
async function refresh(path = "state", given) {
  clearTimeout(waiting);
  try {
    show(await ask(path, given));
  } catch (error) {
    if (view && view.phase !== "closed") show({...view, phase: "gone", actions: [],
      more: false});
    return;
  }
  if (["closed", "failed", "lobby"].includes(view.phase)) return;
  const soon = view.phase === "preparing" || view.phase === "thinking";
  const later = view.phase === "over" && view.reviewed <= view.match;
  waiting = setTimeout(refresh, soon ? 150 : later ? 400 : 2500);
}
const move = action => refresh("move", {version: view.version, action});
// ------------------------------------------------------------------ the match
function words() {
  const bot = view.seen && view.seen.length ? " The bot played: " + view.seen.join(", ") + "." : "";
  if (view.phase === "preparing")
    return "Preparing the bot: building the game and compiling functions"
      + (view.doing ? " (" + view.doing + ")." : ".");
  if (view.phase === "thinking") return "The bot is thinking …";
  if (view.phase === "your turn") return "Your turn." + bot;
  if (view.phase === "closed") return "You left the table. You can close this page.";
  if (view.phase === "gone") return "The table is closed: the server has stopped.";
  if (view.phase === "failed") return "The match ended with an error: " + view.message;
  return (view.result > 0 ? "You win " + signed(view.result).slice(1)
    : view.result < 0 ? "You lose " + signed(view.result).slice(1) : "A draw") + "." + bot;
}
function show(news) {
  if (view && news.version < view.version && news.phase !== "gone") return;
  const before = view;
  view = news;
  const same = before && before.version === view.version && before.phase === view.phase;
  if (view.phase === "preparing" && $("status").textContent !== words())
    $("status").textContent = words();
  if (same) return;
  $("lobby").hidden = view.phase !== "lobby";
  $("playing").hidden = view.phase === "lobby";
  if (view.phase === "lobby" || !view.game) return showLobby();
  $("title").textContent = document.title = view.title;
  $("against").textContent = "You are player " + view.seat + ". The bot: "
    + (view.named.toLowerCase() || view.bot.replace(/\(.*/, "").replaceAll("_", " ")) + ".";
  $("strings").textContent = breakable(view.game) + " against " + breakable(view.bot);
  const s = view.score;
  $("score").textContent = "Score after " + s.matches
    + (s.matches === 1 ? " match: " : " matches: ") + signed(s.total) + " (" + s.wins
    + " won, " + s.losses + " lost)";
  $("status").textContent = words();
  $("status").classList.toggle("wait", !["your turn", "over"].includes(view.phase));
  showTable(before);
  $("next").hidden = !view.more;
  $("leave").hidden = ["closed", "gone", "failed"].includes(view.phase);
  if (view.phase === "over" && !(before && before.phase === "over")) {
    if (typed && view.more) $("next").focus({preventScroll: true});
    offer(view.match);
  }
  if (view.phase === "over") load(view.match);
}
const chosen = {games: 0, strengths: 1};
function showLobby() {
  reviews = new Map();
  shown = null;
  $("which").replaceChildren();
  $("after").hidden = true;
  if (view.phase !== "lobby") return;
  $("title").textContent = document.title = "Play against a bot";
  $("against").textContent = "You play against a bot on this machine. After each match, a "
    + "review shows the bot's range and the value of each of your moves.";
  for (const kind of ["games", "strengths"]) {
    $(kind).replaceChildren(...view[kind].map(([title, words], n) => {
      const offer = make("button");
      offer.type = "button";
      offer.setAttribute("role", "radio");
      offer.setAttribute("aria-checked", n === chosen[kind]);
      offer.append(make("b", "", title), make("span", "", words));
      offer.addEventListener("click", () => {
        chosen[kind] = n;
        [...$(kind).children].forEach((o, i) => o.setAttribute("aria-checked", i === n));
      });
      return offer;
    }));
  }
}
function showTable(before) {
  const felt = $("table"), bar = $("actions");
  const act = view.phase === "your turn" ? move : null;
  const fresh = !before || before.match !== view.match;
  if (fresh) felt.style.minHeight = bar.style.minHeight = "";
  if (!fresh) for (const box of [felt, bar])
    box.style.minHeight = box.offsetHeight + "px";
  felt.replaceChildren(...view.parts.map(part => build(part, act)));
  bar.replaceChildren();
  const there = new Set(view.parts.flatMap(onTable));
  let number = 0;
  for (const {action, label} of view.actions) {
    if (there.has(action)) continue;
    const button = make("button");
    button.type = "button";
    button.dataset.action = action;
    if (++number <= 9) button.append(make("kbd", "", number));
    button.append(label);
    button.addEventListener("click", () => move(action));
    bar.append(button);
  }
  if (act && typed) (bar.querySelector("button") || felt.querySelector("button"))
    ?.focus({preventScroll: true});
}
addEventListener("pointerdown", () => { typed = false; });
addEventListener("keydown", e => {
  typed = true;
  if (e.ctrlKey || e.altKey || e.metaKey || /INPUT|SELECT/.test(e.target.tagName)) return;
  if (/^Arrow(Left|Right)$/.test(e.key) && !$("looked").hidden)
    $(e.key === "ArrowLeft" ? "back" : "forth").click();
  if (/^[1-9]$/.test(e.key)) $("actions").querySelectorAll("button")[e.key - 1]?.click();
});
$("next").addEventListener("click", () => refresh("next", {match: view.match}));
$("sit").addEventListener("click", () => refresh("sit",
  {game: chosen.games, strength: chosen.strengths}));
$("leave").addEventListener("click", () => refresh("leave", {}));
// ------------------------------------------------------------------ afterwards
function offer(number) {
  $("after").hidden = false;
  if (![...$("which").options].some(o => +o.value === number)) {
    const option = make("option", "", number + 1);
    option.value = number;
    $("which").append(option);
    reviews.set(number, {story: view.story, review: null});
  }
  $("choose").hidden = $("which").options.length < 2;
  $("which").value = number;
  shown = number;
  look();
}
async function load(number) {
  const kept = reviews.get(number);
  if (!kept || kept.review || view.reviewed <= number) return;
  const found = await ask("review/" + number).catch(() => null);
  if (found) { kept.review = found; if (shown === number) look(); }
}
function look() {
  const {story, review} = reviews.get(shown);
  $("story").replaceChildren(...story.map(([who, what]) =>
    make("li", "", who + ": " + what)));
  const gone = shown !== view.match || view.phase !== "over";
  $("working").textContent = review ? "" : gone ? "No review: you started the next match before it was ready."
    : "Ranges and values are being computed …";
  const count = review ? review.decisions.length : 0;
  $("looked").hidden = !count;
  $("worst").hidden = true;
  if (!count) {
    if (review) $("working").textContent = review.notes.join(" ");
    return;
  }
  $("slider").max = count - 1;
  const costs = review.decisions.map(one => costOf(one.moves));
  const worst = costs.reduce((w, c, n) => c.cost > costs[w].cost ? n : w, 0);
  $("slider").value = worst;
  const {cost, best, kind} = costs[worst];
  $("worst").hidden = cost === null;
  if (cost !== null) $("worst").textContent = signed(cost) === "0"
    ? "None of your decisions lost value " + kind + "."
    : "Your costliest decision is turn " + (worst + 1) + ": " + best + " has a value "
      + signed(cost).slice(1) + " higher " + kind + ".";
  $("notes").replaceChildren(...review.notes.map(n => make("p", "", n)));
  step();
}
// Values of moves, by their names in the table; the notes explain them.
const KINDS = [["bot", "against this opponent"], ["solution", "at equilibrium"]];
// The loss of value of the chosen move compared with the best one.
function costOf(moves) {
  for (const [key, kind] of [...KINDS].reverse()) {
    const known = moves.filter(m => typeof m[key] === "number");
    const own = known.find(m => m.chosen);
    if (!own) continue;
    const best = known.reduce((a, b) => b[key] > a[key] ? b : a);
    return {cost: best[key] - own[key], best: best.name, kind};
  }
  return {cost: null};
}
function step() {
  const {review} = reviews.get(shown), at = +$("slider").value;
  const one = review.decisions[at], count = review.decisions.length;
  $("place").textContent = "turn " + (at + 1) + " of " + count;
  $("back").disabled = at === 0;
  $("forth").disabled = at === count - 1;
  $("then").replaceChildren(...one.parts.map(part => build(part, null)));
  showMoves(one.moves);
  showRange($("range"), one.range);
  $("believed").hidden = !one.beliefs;
  if (one.beliefs) {
    showRange($("beliefs"), one.beliefs);
    $("beliefs").append(...one.beliefs.notes.map(n => make("p", "lead", n)));
  }
}
function showMoves(moves) {
  const kinds = KINDS.filter(([kind]) => moves.some(m => kind in m));
  const head = make("tr");
  head.append(make("th", "", "move"));
  for (const [, name] of kinds) head.append(make("th", "", name));
  const top = make("thead"), body = make("tbody");
  top.append(head);
  const best = Object.fromEntries(kinds.map(([kind]) =>
    [kind, Math.max(...moves.map(m => m[kind] ?? -Infinity))]));
  for (const m of moves) {
    const line = make("tr", m.chosen ? "chosen" : "");
    line.append(make("th", "", m.name + (m.chosen ? " (yours)" : "")));
    for (const [kind] of kinds) {
      // Values that are displayed alike count as equal.
      const value = m[kind];
      const top = value !== null && signed(value) === signed(best[kind]);
      line.append(make("td", top ? "best" : "",
        value === null ? "not reached" : signed(value)));
    }
    body.append(line);
  }
  $("moves").replaceChildren(top, body);
}
function showRange(box, range) {
  if (!range) {
    box.replaceChildren(make("p", "lead", "No range: the bot's strategy never leads "
      + "here, or the game tree was not built."));
    return;
  }
  const list = make("div", "held");
  const rows = range.lines.map(l => [l.holds, l.probability, l.true]);
  if (range.others > 5e-5) rows.push(["all others", range.others, false]);
  for (const [held, share, real] of rows) {
    const cell = make("span"), bar = make("div", "bar");
    bar.style.width = (100 * share).toFixed(1) + "%";
    cell.append(bar);
    list.append(make(real ? "b" : "span", "", held + (real ? " (actual hand)" : "")), cell,
      make("span", "share", (100 * share).toFixed(1) + "%"));
  }
  box.replaceChildren(list);
}
$("which").addEventListener("change", () => { shown = +$("which").value; look();
  load(shown); });
$("slider").addEventListener("input", step);
$("back").addEventListener("click", () => { $("slider").stepDown(); step(); });
$("forth").addEventListener("click", () => { $("slider").stepUp(); step(); });
refresh();
