const data = JSON.parse(document.getElementById("data").textContent);
const SUITS = {s: "♠", h: "♥", d: "♦", c: "♣"};
// From passive to aggressive: fold blue, check and call green, bets from yellow to red.
function colours(actions) {
  const passive = /^(check|call|pass)/i;
  if (!actions.some(a => /^fold/i.test(a) || passive.test(a)))
    return actions.map((_, k) => `var(--c${k % 10})`);
  const bets = actions.filter(a => !/^fold/i.test(a) && !passive.test(a)).length;
  let bet = 0;
  return actions.map(action => {
    if (/^fold/i.test(action)) return "hsl(212 62% 56%)";
    if (passive.test(action)) return "hsl(145 45% 46%)";
    const place = bets > 1 ? bet++ / (bets - 1) : 0.6;
    return `hsl(${Math.round(44 - 44 * place)} 78% ${Math.round(58 - 18 * place)}%)`;
  });
}
const inkOn = colour => colour.startsWith("var") ? "var(--back)"
  : +colour.match(/(\d+)%\)$/)[1] < 44 ? "#fff" : "#000";
function cardsIn(text, into, name) {
  for (const [, rank, suit] of text.matchAll(/(10|[2-9TJQKA])([shdc♠♥♦♣])/g)) {
    const letter = SUITS[suit] ? suit : Object.keys(SUITS).find(s => SUITS[s] === suit);
    into.append(make("span", `${name || ""} ${letter}`, rank + SUITS[letter]));
  }
  return into;
}
