"""A Ray cluster of two nodes of one core each, as a process.

    python -m tests.support.two_nodes

prints the cluster's address and the process ids of its raylets, the head's first. For
each line of stdin, it replaces the second node and prints the line again. It ends when
stdin is closed.
"""

import os
import sys

# A small object store makes starting quick.
SETTINGS = {"num_cpus": 1, "object_store_memory": 80 * 2**20}


def main() -> None:
    """Replace the second node for each line of stdin."""
    from ray import cluster_utils

    # Messages of Ray go to stderr.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    head = {**SETTINGS, "include_dashboard": False}
    nodes = cluster_utils.Cluster(True, False, head)
    second = nodes.add_node(**SETTINGS)
    while True:
        raylets = [
            node.all_processes["raylet"][0].process.pid
            for node in (nodes.head_node, second)
        ]
        print(nodes.address, *raylets, file=out, flush=True)
        if not sys.stdin.readline():
            break
        nodes.remove_node(second, allow_graceful=False)
        second = nodes.add_node(**SETTINGS)
    nodes.shutdown()


if __name__ == "__main__":
    main()
