"""A Ray cluster of several nodes on this machine, for tests; run as a program that obeys its stdin.

Each line on stdin is a command, answered by one line: `add` starts a node, `kill` kills the last node that was added with
everything on it, as a power failure does, and `freeze` stops the process of the head, which still accepts connections.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CPUS = 2
"""Of each node."""


class RayCluster:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.address = self._answer()
        """Of the head."""

    def add_node(self) -> None:
        self._obey("add")

    def kill_node(self) -> None:
        """The one that was added last."""
        self._obey("kill")

    def freeze_head(self) -> None:
        self._obey("freeze")

    def _obey(self, command: str) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(f"{command}\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, "the cluster has ended"
        return line


@contextmanager
def ray_cluster(nodes: int = 1, *, client_port: int = 0) -> Iterator[RayCluster]:
    """Of 0 nodes only the head is there, which runs no task. `client_port` serves addresses `ray://`."""
    with tempfile.TemporaryDirectory(prefix="ray", dir="/tmp") as folder:  # a longer path does not fit its sockets
        (Path(folder) / "ray").mkdir()
        environment = {
            **os.environ,
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_TMPDIR": folder,
            "RAY_health_check_period_ms": "300",
            "RAY_health_check_failure_threshold": "2",
        }
        command = [sys.executable, str(Path(__file__)), str(nodes), str(client_port)]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment
        ) as process:
            try:
                yield RayCluster(process)
            finally:
                assert process.stdin is not None
                process.stdin.close()


def main(nodes: int, client_port: int) -> None:
    from ray.cluster_utils import Cluster

    said = os.dup(1)
    os.dup2(2, 1)  # Ray prints
    size = {"num_cpus": CPUS, "object_store_memory": 80_000_000}
    head = {**size, "num_cpus": CPUS if nodes else 0, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True, head_node_args=head | ({"ray_client_server_port": client_port} if client_port else {})
    )
    gcs = cluster.head_node.all_processes["gcs_server"][0].process
    added = [cluster.add_node(**size) for _ in range(nodes - 1)]
    cluster.wait_for_nodes()
    os.write(said, f"{cluster.address}\n".encode())
    try:
        for line in sys.stdin:
            if line.strip() == "add":
                added.append(cluster.add_node(**size))
                cluster.wait_for_nodes()
            elif line.strip() == "freeze":
                gcs.send_signal(signal.SIGSTOP)
            else:
                cluster.remove_node(added.pop(), allow_graceful=False)
            os.write(said, b"done\n")
    finally:
        gcs.send_signal(signal.SIGCONT)
        cluster.shutdown()


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
