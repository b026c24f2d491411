"""Clusters of more than one node, which lose some, and drivers that end without a word."""

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

noticing_soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 300,
                 "health_check_failure_threshold": 2, "health_check_timeout_ms": 500}
small = {"object_store_memory": 100_000_000}
cluster = Cluster(
    initialize_head=True,
    head_node_args={"num_cpus": 2, "_system_config": noticing_soon, **small},
)
second = cluster.add_node(num_cpus=1, **small)
ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
cluster.wait_for_nodes()
said = {}

# A driver that is killed.
script = DRIVER.format(address=cluster.address)
driver = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
hosts = json.loads(driver.stdout.readline())
said["driver's actors"] = len(actors(ray))
os.kill(driver.pid, signal.SIGKILL)
driver.wait()
wait_until(lambda: not actors(ray), 20.0)
wait_until(lambda: ray.available_resources().get("CPU") == 3.0, 20.0)

# A node that is lost in the middle of a run.
envs = shoal.make("CartPole-v1", 6, backend="ray", workers=2, on_crash="restart")
said["hosts"] = envs.pool.hosts
own = envs.pool._hosts
lost = next(host for host in own if host.node.number == second.node_id)
said["lost"] = list(lost.slots)
envs.reset(seed=1)
actions = np.zeros(6, int)
truncated, ended = [], 0
for step in range(100_000):
    if step == 20:
        cluster.remove_node(second, allow_graceful=False)
    *_, terminated, now, infos = envs.step(actions)
    ended += terminated.sum()
    truncated += np.flatnonzero(now).tolist()
    if now.any():
        said["crashed"] = infos["crashed"].tolist()
        break
for _ in range(50):
    *_, now, _ = envs.step(actions)
    truncated += np.flatnonzero(now).tolist()
said["truncated"] = truncated
said["on"] = len({host.node.number for host in own})
envs.close()
wait_until(lambda: not actors(ray), 20.0)
ray.shutdown()
cluster.shutdown()
print(json.dumps(said))
"""

DRIVER = """
import json, time, shoal
envs = shoal.make("CartPole-v1", 6, backend="ray", workers=3, address="{address}")
envs.reset()
print(json.dumps(envs.pool.hosts), flush=True)
while True:
    envs.step(envs.action_space.sample())
"""


@pytest.mark.timeout(120)
def test_a_killed_driver_leaves_no_actor_and_a_lost_node_costs_only_its_slots():
    done = subprocess.run(
        [sys.executable, "-c", f"DRIVER = {DRIVER!r}\n{CLUSTER}"],
        capture_output=True,
        text=True,
        timeout=110,
        cwd=Path(__file__).parents[3],
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["driver's actors"] == 3
    assert len(said["lost"]) == 3
    assert said["truncated"] == said["lost"]
    assert [slot for slot, crashed in enumerate(said["crashed"]) if crashed] == said["lost"]
    assert said["on"] == 1
