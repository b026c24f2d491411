"""Step a vector on a server, here a separate process, with two groups of slots in flight.

While the policy acts for one group, the server steps the other. The last lines print the number of
steps and the duration of a round trip.
"""

import subprocess
import sys

import numpy as np

import shoal

NUM_ENVS = 64
STEPS = 200

SERVER = """
import shoal

with shoal.serve({"CartPole-v1": "CartPole-v1"}, "tcp://127.0.0.1:0", token="secret") as server:
    print(server.url, flush=True)
    server.wait()
"""

# On another machine, start the server with: shoal serve CartPole-v1 --bind ... --token-file ...
with subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE, text=True) as server:
    url = server.stdout.readline().strip()
    # After a lost connection the session resumes, and no step is executed twice.
    with shoal.connect(
        f"{url}/CartPole-v1", num_envs=NUM_ENVS, token="secret", on_lost="resume"
    ) as envs:
        envs.reset(seed=42)
        groups = np.split(np.arange(NUM_ENVS), 2)
        rng = np.random.default_rng(0)
        for group in groups:
            envs.send(rng.integers(0, 2, len(group)), group)
        for _ in range(STEPS):
            for group in groups:
                # A policy would use the batch here while the server steps the other group.
                batch = envs.recv(slots=group)
                envs.send(rng.integers(0, 2, len(group)), group)
        envs.recv()
        stats = envs.stats()
    server.terminate()

print(f"{NUM_ENVS * (STEPS + 1)} steps over {stats.requests} requests")
print(
    f"round trip {stats.round_trip * 1e6:.0f} us, of which server {stats.server_time * 1e6:.0f} us"
)
