// An agent in JavaScript: it raises with a king or a pair, and calls otherwise.
const readline = require("readline");

function choose(message) {
  const state = message.information_state;
  const card = /Private: (\d)/.exec(state);
  const board = /Public: (\d)/.exec(state);
  const rank = (match) => (match ? Math.floor(match[1] / 2) : -1);
  const strong = rank(card) === 2 || (board && rank(board) === rank(card));
  const named = new Map(message.legal_actions.map((one) => [one.name, one.action]));
  return (strong ? named.get("Raise") : undefined) ?? named.get("Call") ?? 0;
}

readline.createInterface({ input: process.stdin }).on("line", (line) => {
  const message = JSON.parse(line);
  if (message.type === "hello") {
    console.log(JSON.stringify({ name: "javascript", version: "1" }));
  } else if (message.type === "act") {
    console.log(JSON.stringify({ action: choose(message) }));
  }
});
