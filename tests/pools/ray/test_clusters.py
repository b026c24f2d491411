"""Clusters that lose a node, and drivers that are killed."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray")

CLUSTER = """
import json, os, signal, subprocess, sys, time
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
import numpy as np, ray, shoal
from ray.cluster_utils import Cluster
from tests.pools.ray.pools import actors, wait_until

fast_health_checks = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300,
                      "health_check_failure_threshold": 2, "health_check_timeout_ms": 500}
small = {"object_store_memory": 100_000_000}
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 2, "_system_config": fast_health_checks, **small},
)
second = cluster.add_node(num_cpus=1, **small)
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
cluster.wait_for_nodes()
report = {}

# A driver is killed.
script = DRIVER.format(address=cluster.address)
driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
driver.stdout.readline()
report["driver's actors"] = len(actors(ray))
os.kill(driver.pid, signal.SIGKILL)
driver.wait()
wait_until(lambda: not actors(ray), 20.0)
wait_until(lambda: ray.available_resources().get("CPU") == 3.0, 20.0)

# A node is lost during a run.
envs = shoal.make("CartPole-v1", 6, backend="ray", workers=2, on_crash="restart")
clients = envs.pool._clients
lost = next(client for client in clients if client.node.node_id == second.node_id)
report["lost"] = list(lost.slots)
envs.reset(seed=1)
actions = np.zeros(6, int)
truncated = []
for step in range(100_000):
    if step == 20:
        cluster.remove_node(second, allow_graceful=False)
    *_, newly_truncated, infos = envs.step(actions)
    truncated += np.flatnonzero(newly_truncated).tolist()
    if newly_truncated.any():
        report["crashed"] = infos["crashed"].tolist()
        break
for _ in range(50):
    *_, newly_truncated, _ = envs.step(actions)
    truncated += np.flatnonzero(newly_truncated).tolist()
report["truncated"] = truncated
report["nodes"] = len({client.node.node_id for client in clients})
envs.close()
wait_until(lambda: not actors(ray), 20.0)
ray.shutdown()
cluster.shutdown()
print(json.dumps(report))
"""

DRIVER = """
import json, time, shoal
envs = shoal.make("CartPole-v1", 6, backend="ray", workers=3, address="{address}")
envs.reset()
print(json.dumps(envs.pool.actors), flush=True)
while True:
    envs.step(envs.action_space.sample())
"""


@pytest.mark.timeout(120)
def test_killed_driver_leaves_no_actor_and_lost_node_truncates_only_its_slots():
    done = subprocess.run(
        [sys.executable, "-c", f"DRIVER = {DRIVER!r}\n{CLUSTER}"],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["driver's actors"] == 3
    assert len(report["lost"]) == 3
    assert report["truncated"] == report["lost"]
    assert [slot for slot, crashed in enumerate(report["crashed"]) if crashed] == report["lost"]
    assert report["nodes"] == 1
