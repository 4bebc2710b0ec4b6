"""An agent for Leduc poker that follows simple rules: a pair raises, jacks fold."""

import json
import sys

for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        print(json.dumps({"name": "rules", "version": "1"}), flush=True)
    elif message["type"] == "act":
        names = {each["name"]: each["action"] for each in message["legal_actions"]}
        state = message["information_state"]
        cards = [part.split("]")[0] for part in state.split("Private: ")[1:]]
        public = [part.split("]")[0] for part in state.split("Public: ")[1:]]
        rank = int(cards[0]) // 2
        has_pair = bool(public) and int(public[0]) // 2 == rank
        if has_pair or rank == 2:
            choice = names.get("Raise", names["Call"])
        elif rank == 0 and not has_pair:
            choice = names.get("Fold", names["Call"])
        else:
            choice = names["Call"]
        print(json.dumps({"action": choice}), flush=True)
