"""An agent that plays a solution of its game, and answers with its probabilities."""

import json
import sys

import spiel_cr

iterations = int(sys.argv[1]) if len(sys.argv) > 1 else 100
for line in sys.stdin:
    message = json.loads(line)
    if message["type"] == "hello":
        policy = spiel_cr.solve(message["game"], "cfr+", iterations).average_policy()
        description = {"name": "solution", "version": "1", "probabilities": True}
        print(json.dumps(description), flush=True)
    elif message["type"] == "act":
        row = policy.state_lookup[message["information_state"]]
        shares = policy.action_probability_array[row]
        legal = [each["action"] for each in message["legal_actions"]]
        answer = {str(action): float(shares[action]) for action in legal}
        print(json.dumps({"probabilities": answer}), flush=True)
