"""bench-lab: what the load generator itself costs and can do, beside wrk.

Client and null server are pinned to a core each. Closed: 50 connections, one request in flight on each, as wrk does it; the lab keeps
its histograms and raw records. Open: 20,000 requests a second, and how many left within a millisecond of their time. Rounds
interleave; a round in which others used more than 5 % of the machine, or the host took as much, is repeated, and marked where it stays so.
"""

import argparse
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import MERIDIAN, free_port, need, save, say, steal_and_load, wait_port

CONNECTIONS = 50
OPEN_RATE = 20_000
TRIES = 3


def client_cpu(command):
    """Runs a client on core 0: what it said, and its processor seconds."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(["taskset", "-c", "0", *map(str, command)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"bench: {command[0]} ended with code {done.returncode}: {done.stderr.strip()}")
    return done.stdout, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def wrk(url, seconds):
    said, cpu = client_cpu(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", url])
    requests = int(re.search(r"(\d+) requests in", said).group(1))
    return {"per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1)), "cpu_us": cpu * 1e6 / requests}


def lab(url, seconds, arrival):
    """One run of the lab, repeated while others disturb it."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="bench-lab-") as folder:
            scenario = pathlib.Path(folder) / "null.toml"
            scenario.write_text(f'[target]\nurl = "{url}"\n[arrival]\n{arrival}\n[request]\npath = "/"\n[phases]\nmeasured_s = {seconds}\n')
            said, cpu = client_cpu([MERIDIAN, "lab", "run", scenario, "--out", f"{folder}/out", "--json"])
        result = json.loads(said)
        seen, group = result["run"]["lab"], result["groups"][0]
        disturbed = max(seen["steal"], seen["other_load"] or 0.0, seen["driver_starved"])
        if disturbed <= 0.05:
            break
    sound = group["outcomes"]["sound"]
    return {"per_second": group["sound_per_s"], "cpu_us": cpu * 1e6 / sound, "disturbed": disturbed,
            "within_1ms": 1 - seen["late_over_1ms_share"], "late_p99_ms": seen["late_p99_ms"], "late_max_ms": seen["late_max_ms"],
            "not_sound": sum(group["outcomes"].values()) - sound}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10, help="length of each run")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    need("wrk", "taskset", MERIDIAN)
    port = free_port()
    url = f"http://127.0.0.1:{port}/"
    server = subprocess.Popen(["taskset", "-c", "1", MERIDIAN, "lab", "mock", "--null", "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL)
    try:
        wait_port(port, server)
        quiet, rounds = [steal_and_load()], []
        for number in range(options.rounds):
            found = {"wrk": wrk(url, options.seconds),
                     "lab": lab(url, options.seconds, f'kind = "closed"\nusers = {CONNECTIONS}'),
                     "open": lab(url, options.seconds, f'kind = "constant"\nrate = {OPEN_RATE}')}
            rounds.append(found)
            quiet.append(steal_and_load())
            say(f"round {number + 1}: wrk {found['wrk']['cpu_us']:.1f} us a request, lab {found['lab']['cpu_us']:.1f}; "
                f"open: {found['open']['within_1ms']:.2%} within 1 ms")
    finally:
        server.terminate()
        server.wait()
    save("lab", {"seconds": options.seconds, "rounds": options.rounds, "connections": CONNECTIONS, "open_rate": OPEN_RATE,
                 "runs": rounds, "quiet": quiet})


if __name__ == "__main__":
    main()
