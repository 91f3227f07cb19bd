"""bench-lab: what the load generator itself costs and can do, beside wrk and k6, and whether it measures what oha measures.

k6 and oha are left out where the target folder's bench-peers has none. Client and server are pinned to a core each.
Closed: 50 connections to a null server, one request in flight on each; the lab keeps its histograms and raw records.
Open: 20,000 requests a second, and how many left within a millisecond of their time. Agreement: a mock source whose
answers take a log-normal time (median 5 ms). The lab and oha, with its latency correction, each send 1,000 requests a
second. Stall: the null server is stopped for 2 s in the middle of a run of 20 s. The load is open, then closed. The
99th percentile of theory is compared with the measured one. Streams: 10,000 WebSockets that bring a packet a second
each, and the most memory that client and server had. Report: a million requests, recorded one by one, and the seconds
until the page and pictures of them are there. Simulation: ten million jobs of the search study's pipeline, twice with
one seed. Rounds interleave. A run of any client in which others used more than 5 % of the machine, or the host took as
much, is repeated. It is marked where it stays so. What the server takes of its core is recorded beside: a null server
that had none left would be what is measured.

    make bench-lab                       at the default sizes
    make bench-lab ARGS="--streams 0"    without the streams
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import MERIDIAN, TARGET, cpu_seconds, free_port, need, save, say, steal_and_load, wait_port

CONNECTIONS = 50
OPEN_RATE = 20_000
AGREED_RATE = 1_000
TRIES = 3
DISTURBED = 0.05
HERTZ = os.sysconf("SC_CLK_TCK")
# A server that stands still for 2 s of 20: one user in a hundred on schedule waits 1.8 s or more. Four who
# ask again when they are answered meet it four times in some 3,600 questions.
STALL_S, STALL_RUN_S, STALL_RATE, STALL_USERS, STALL_THINK_S = 2.0, 20.0, 200, 4, 0.02
PIPELINE = pathlib.Path(__file__).resolve().parent.parent / "studies" / "search-pipeline.toml"
# A search makes one job in each of the first two stages. It also makes one for each of 25 sources, of 17 calls that bring something, and of 93 packets.
PACKETS = 93
JOBS = 2 + 25 + 17 + PACKETS
K6 = TARGET / "bench-peers" / "k6"
OHA = TARGET / "bench-peers" / "oha" / "bin" / "oha"
MOCK = """
seed = 1
[[source]]
name = "slow"
delay = { kind = "lognormal", median_ms = 5, sigma = 0.5 }
items = 1
item_bytes = 50
"""
STREAM = """
[[source]]
name = "stream"
items = 5
item_bytes = 100
stream = { packets = %d, every_ms = 1000 }
"""
STREAMS = """
[target]
url = "%s"
timeout_s = %d
[[population]]
name = "listeners"
connections = %d
arrival = { kind = "burst", count = %d, interval_s = 0.001 }
[request]
path = "/stream"
result = "packet"
"""
K6_SCRIPT = """
import http from 'k6/http';
export const options = { vus: %d, duration: '%gs', discardResponseBodies: true };
export default function () { http.get('%s'); }
"""


def ticks():
    """Processor ticks of the machine so far: worked, taken by the host, all."""
    user, nice, system, idle, wait, irq, soft, steal = map(int, open("/proc/stat").readline().split()[1:9])
    worked = user + nice + system + irq + soft
    return worked, steal, worked + idle + wait + steal


def client_cpu(command, server=None, seconds=1.0):
    """Runs a client on core 0: its output, its processor seconds, and the load of the machine meanwhile. That is the share of its core that the server
    took in so many seconds of load, and what the host and others took."""
    before, served, machine = resource.getrusage(resource.RUSAGE_CHILDREN), cpu_seconds(server.pid) if server else 0.0, ticks()
    done = subprocess.run(["taskset", "-c", "0", *map(str, command)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"bench: {command[0]} ended with code {done.returncode}: {done.stderr.strip()}")
    worked, taken, whole = (b - a for a, b in zip(machine, ticks()))
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    theirs = cpu_seconds(server.pid) - served if server else 0.0
    steal, other = taken / max(whole, 1), max(0.0, worked - (own + theirs) * HERTZ) / max(whole, 1)
    return done.stdout, own, {"server_cpu": theirs / seconds, "steal": steal, "other_load": other, "disturbed": max(steal, other)}


def quiet(run):
    """One run, repeated while others disturb it."""
    for _ in range(TRIES):
        found = run()
        if found["disturbed"] <= DISTURBED:
            break
    return found


def wrk(server, url, seconds):
    said, cpu, beside = client_cpu(["wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds:g}s", url], server, seconds)
    requests = int(re.search(r"(\d+) requests in", said).group(1))
    return {"per_second": float(re.search(r"Requests/sec:\s+([\d.]+)", said).group(1)), "cpu_us": cpu * 1e6 / requests, **beside}


def k6(server, url, seconds):
    """One process, on the one core that it has."""
    with tempfile.TemporaryDirectory(prefix="bench-lab-") as folder:
        script, out = pathlib.Path(folder) / "get.js", pathlib.Path(folder) / "out.json"
        script.write_text(K6_SCRIPT % (CONNECTIONS, seconds, url))
        _, cpu, beside = client_cpu(["env", "GOMAXPROCS=1", K6, "run", "--no-usage-report", "--quiet", "--address", f"127.0.0.1:{free_port()}", "--summary-export", out, script], server, seconds)
        requests = json.loads(out.read_text())["metrics"]["http_reqs"]
    return {"per_second": requests["rate"], "cpu_us": cpu * 1e6 / requests["count"], **beside}


def oha(server, url, seconds):
    """An open loop, waits counted from when a request was due."""
    said, _, beside = client_cpu([OHA, "--no-tui", "--latency-correction", "-q", AGREED_RATE, "-c", CONNECTIONS, "-z", f"{seconds:g}s", "--output-format", "json", url], server, seconds)
    found = json.loads(said)
    return {"per_second": found["summary"]["requestsPerSec"], **{p: found["latencyPercentiles"][p] * 1e3 for p in ("p50", "p99")}, **beside}


def lab(server, url, seconds, arrival, warm_up=0):
    with tempfile.TemporaryDirectory(prefix="bench-lab-") as folder:
        scenario = pathlib.Path(folder) / "null.toml"
        base, path = url.rsplit("/", 1)
        scenario.write_text(f'[target]\nurl = "{base}"\n[arrival]\n{arrival}\n[request]\npath = "/{path}"\n[phases]\nwarm_up_s = {warm_up}\nmeasured_s = {seconds}\n')
        said, cpu, beside = client_cpu([MERIDIAN, "lab", "run", scenario, "--out", f"{folder}/out", "--json"], server, seconds)
    result = json.loads(said)
    seen, group = result["run"]["lab"], next(g for g in result["groups"] if g["phase"] == "measured")
    sound, latency = group["outcomes"].get("sound", 0), group["latency_ms"]
    # What the lab saw itself is of the time of the load alone.
    own = {"steal": seen["steal"], "other_load": seen["other_load"] or 0.0, "disturbed": max(seen["steal"], seen["other_load"] or 0.0, seen["driver_starved"])}
    return {"p50": latency["p50"], "p99": latency["p99"], "max": latency["max"], "per_second": group["sound_per_s"],
            "cpu_us": cpu * 1e6 / max(sound, 1), **beside, **own, "within_1ms": 1 - seen["late_over_1ms_share"], "late_p99_ms": seen["late_p99_ms"],
            "late_max_ms": seen["late_max_ms"], "sound": sound, "not_sound": sum(group["outcomes"].values()) - sound}


def stalled(server, url, arrival):
    """A run in whose middle the server is stopped, and for how long it was."""
    held = []

    def stop():
        time.sleep((STALL_RUN_S - STALL_S) / 2)
        with contextlib.suppress(ProcessLookupError):
            os.kill(server.pid, signal.SIGSTOP)
            began = time.monotonic()
            try:
                time.sleep(STALL_S)
            finally:
                os.kill(server.pid, signal.SIGCONT)
                held.append(time.monotonic() - began)

    stopper = threading.Thread(target=stop)
    stopper.start()
    try:
        found = lab(server, url, STALL_RUN_S, arrival)
    finally:
        stopper.join()
    return {**found, "stall_s": held[0]}


def stalls(server, url, rounds):
    """The same stall under an open load, under users who wait for their answers, and those users without it."""
    closed = f'kind = "closed"\nusers = {STALL_USERS}\nthink_s = {STALL_THINK_S}'
    found = []
    for number in range(rounds):
        found.append({"open": quiet(lambda: stalled(server, url, f'kind = "constant"\nrate = {STALL_RATE}')),
                      "closed": quiet(lambda: stalled(server, url, closed)),
                      "calm": quiet(lambda: lab(server, url, STALL_RUN_S / 4, closed))})
        say(f"stall {number + 1}: p99 {found[-1]['open']['p99']:,.0f} ms on schedule, {found[-1]['closed']['p99']:.1f} ms asked one after the other")
    return {"seconds": STALL_RUN_S, "rate": STALL_RATE, "users": STALL_USERS, "think_s": STALL_THINK_S, "runs": found}


def streams(stack, folder, count, packets):
    """`count` WebSockets, opened a thousand a second, each with a packet a second: what came, and the most memory of client and server."""
    need_descriptors(count + 200)
    mock, scenario = folder / "stream.toml", folder / "streams.toml"
    mock.write_text(STREAM % packets)
    server, url = server_of(stack, mock)
    scenario.write_text(STREAMS % (url.rstrip("/").replace("http:", "ws:"), packets + count // 1000 + 60, count, count))
    client = subprocess.Popen(["taskset", "-c", "0", MERIDIAN, "lab", "run", scenario, "--out", folder / "streams", "--json"], stdout=subprocess.PIPE)
    said = client.stdout.read()
    _, status, used = os.wait4(client.pid, 0)
    client.returncode = os.waitstatus_to_exitcode(status)
    if client.returncode != 0:
        sys.exit(f"bench: the lab ended with code {client.returncode}")
    result = json.loads(said)
    group = result["groups"][0]
    peak = next(int(line.split()[1]) for line in open(f"/proc/{server.pid}/status") if line.startswith("VmHWM"))
    return {"count": count, "packets_each": packets, "sound": group["outcomes"].get("sound", 0), "packets": group["packets"],
            "at_once": group["in_flight_most"] + 1, "client_mib": used.ru_maxrss / 1024, "server_mib": peak / 1024,
            "client_cpu": result["run"]["lab"]["cpu"], "void": result["run"]["void"]}


def reported(folder, url, count):
    """`count` requests to the null server, and the seconds that their report takes."""
    scenario, out = folder / "many.toml", folder / "many"
    scenario.write_text(f'[target]\nurl = "{url.rstrip("/")}"\n[arrival]\nkind = "closed"\nusers = {CONNECTIONS}\n[request]\npath = "/"\n'
                        f'[phases]\nmeasured_s = 3600\n[limits]\nrequests = {count}\n')
    client_cpu([MERIDIAN, "lab", "run", scenario, "--out", out])
    began = time.monotonic()
    _, cpu, _ = client_cpu([MERIDIAN, "lab", "report", out])
    seconds = time.monotonic() - began
    return {"count": count, "seconds": seconds, "cpu": cpu, "parquet_mib": (out / "requests.parquet").stat().st_size / 2**20}


def simulated(requests):
    """`requests` searches of bench/studies/search-pipeline.toml, none of which may be lost, twice: seconds, and whether both runs are the same."""
    command = ["taskset", "-c", "0", MERIDIAN, "lab", "simulate", PIPELINE, "--set", f"arrival.count={requests}", "--set", "workers=64", "--json"]
    seconds, said = [], []
    for _ in range(2):
        began = time.monotonic()
        said.append(subprocess.run(list(map(str, command)), capture_output=True, check=True).stdout)
        seconds.append(time.monotonic() - began)
    whole = sum(request["packets"] == PACKETS for request in json.loads(said[0])["requests"])
    if whole != requests:
        sys.exit(f"bench: {whole} of {requests} simulated searches are whole, so their jobs cannot be told")
    return {"jobs": requests * JOBS, "requests": requests, "seconds": seconds, "same": said[0] == said[1]}


def need_descriptors(count):
    """Raises the limit of open files as far as it goes; children have it too."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < count:
        sys.exit(f"bench: {count} descriptors are needed and {hard} are allowed: raise it with ulimit -Hn")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10, help="length of each run")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--stalls", type=int, default=3, help="rounds with a server that stands still; 0 leaves the part out")
    parser.add_argument("--streams", type=int, default=10_000, help="WebSockets at once; 0 leaves the part out")
    parser.add_argument("--packets", type=int, default=60, help="packets of each, one a second")
    parser.add_argument("--requests", type=int, default=1_000_000, help="requests of the report; 0 leaves the part out")
    parser.add_argument("--searches", type=int, default=-(-10_000_000 // JOBS), help="simulated searches; 0 leaves the part out")
    options = parser.parse_args()
    need("wrk", "taskset", MERIDIAN)
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-lab-")))
        (folder / "mock.toml").write_text(MOCK)
        null, slow = server_of(stack, "--null"), server_of(stack, folder / "mock.toml")
        slow = (slow[0], slow[1] + "slow")
        others = {name: run for name, run, program in (("k6", k6, K6), ("oha", oha, OHA)) if program.exists()}
        idle, rounds = [steal_and_load()], []
        for number in range(options.rounds):
            found = {"wrk": quiet(lambda: wrk(*null, options.seconds)),
                     "lab": quiet(lambda: lab(*null, options.seconds, f'kind = "closed"\nusers = {CONNECTIONS}')),
                     "open": quiet(lambda: lab(*null, options.seconds, f'kind = "constant"\nrate = {OPEN_RATE}', warm_up=1)),
                     "agreed": quiet(lambda: lab(*slow, options.seconds, f'kind = "constant"\nrate = {AGREED_RATE}'))}
            for name, run in others.items():
                found[name] = quiet(lambda: run(*(slow if name == "oha" else null), options.seconds))
            rounds.append(found)
            idle.append(steal_and_load())
            say(f"round {number + 1}: " + ", ".join(f"{name} {of['cpu_us']:.1f} us a request" for name, of in found.items() if "cpu_us" in of)
                + f"; open: {found['open']['within_1ms']:.2%} within 1 ms; null server at most {max(found[name]['server_cpu'] for name in ('wrk', 'lab')):.0%} of its core")
        stood = stalls(*null, options.stalls) if options.stalls else None
        held = streams(stack, folder, options.streams, options.packets) if options.streams else None
        many = reported(folder, null[1], options.requests) if options.requests else None
    jobs = simulated(options.searches) if options.searches else None
    save("lab", {"stalls": stood, "streams": held, "report": many, "simulated": jobs, "seconds": options.seconds, "rounds": options.rounds, "connections": CONNECTIONS, "open_rate": OPEN_RATE,
                 "agreed_rate": AGREED_RATE, "runs": rounds, "quiet": idle})


def server_of(stack, kind):
    """A server of the lab on a core of its own: its process and its address."""
    port = free_port()
    server = subprocess.Popen(["taskset", "-c", "1", MERIDIAN, "lab", "mock", kind, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL)
    stack.callback(lambda: (server.terminate(), server.wait()))
    wait_port(port, server)
    return server, f"http://127.0.0.1:{port}/"


if __name__ == "__main__":
    main()
