"""Writes through a gateway, beside the same bytes published to bare NATS with the same replicas and window, and beside one process."""

import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time

from common import DRIVER, TARGET, cpu_seconds, median, say
from peers import meridian
from up import Bare, Cluster, embedded, nats_cli, size_of

SCHEMA = "symbol:String,type:Long,price:Double,time:Date"
# Events of a batch, and about what an Arrow body of them takes. A message of NATS has at most 1 MiB by default.
BATCHES = {"1 KB": 10, "10 KB": 400, "100 KB": 4_000, "1 MB": 31_000}
PRODUCERS = 2
TRIES = 5


def drive(port, batch, seconds, events):
    """Arrow batches, one in flight for each producer."""
    argv = [DRIVER, "ingest", "--encoding", "arrow", "--address", f"127.0.0.1:{port}", "--batch", batch, "--events", events, "--seconds", seconds, "--connections", PRODUCERS,
            "--target", "/collections/events/items"]
    run = subprocess.run([str(a) for a in argv], input="go\n", capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: {run.stderr.strip()} {run.stdout[-300:]}")
    return json.loads(run.stdout.splitlines()[-1])


def to_server(name, open_one, batch, options):
    """One load into an empty collection."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, open_one(pathlib.Path(folder)) as server:
        meridian(server, "create", "events", "--schema", SCHEMA)
        drive(server.port, batch, 1, batch * 50)
        before = server.cpu() if hasattr(server, "cpu") else {"all": cpu_seconds(server.pid)}
        found = drive(server.port, batch, options.seconds, min(batch * 20_000, 8_000_000))
        after = server.cpu() if hasattr(server, "cpu") else {"all": cpu_seconds(server.pid)}
        body = found["bytes_sent"] / max(found["answers"], 1)
        return {"system": name, "batch": batch, "body_bytes": body, "mb_per_second": found["events"] / batch * body / found["seconds"] / 1e6,
                "cpu_s": {role: after[role] - before[role] for role in after}, **{key: found[key] for key in ("events_per_second", "per_second", "p50_ms", "p99_ms", "errors")}}


def to_nats(servers, replicas, size, options):
    """`nats bench`: messages of this size, one in flight for each client."""
    cli = nats_cli(TARGET)
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, Bare(pathlib.Path(folder), servers) as bare:
        # As many as the stream takes in the time of a run: found by a short one first.
        rate, said = 0, ""
        for messages in (200, None):
            messages = messages or max(200, int(rate * options.seconds))
            argv = [cli, "--server", bare.url, "bench", "js", "pub", "sync", "bench.events", "--create", "--purge", "--stream", "bench", "--storage", "file", "--maxbytes", "6GB", "--replicas", replicas, "--clients", PRODUCERS,
                    "--msgs", messages, "--size", f"{int(size)}B", "--no-progress"]
            before = bare.cpu()
            for _ in range(TRIES):
                run = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
                said = run.stdout + run.stderr
                # Servers that have just met may not have chosen a leader yet.
                if "could not create the stream" not in said:
                    break
                time.sleep(2)
            # The line of all clients, or of the only one.
            rates = re.findall(r"([\d,]+) msgs/sec", said)
            if run.returncode != 0 or not rates:
                sys.exit(f"bench: nats bench: {said[-600:]}")
            rate = int(rates[-1].replace(",", "")) if PRODUCERS == 1 else max(int(found.replace(",", "")) for found in rates)
        percentiles = re.findall(r"P(\d+(?:\.\d+)?)[^\d]*([\d.]+)(ns|us|µs|ms|s)", said)
        return {"system": f"nats bench R{replicas}", "body_bytes": size, "per_second": rate, "mb_per_second": rate * size / 1e6, "cpu_s": {"log": bare.cpu() - before}, "percentiles": percentiles}


def systems(options):
    """What is measured: its name, how it is opened, and the replicas of its log."""
    return {
        "embedded": (embedded, None),
        "cluster, bucket": (lambda folder: Cluster(folder, 1, "bucket"), None),
        "cluster, NATS R1": (lambda folder: Cluster(folder, 1, "nats"), 1),
        "cluster, NATS R3": (lambda folder: Cluster(folder, 3, "nats"), 3),
    }


def ingest(options):
    """All systems in turns, for each size of a batch."""
    rounds = []
    for number in range(options.rounds):
        for size in options.sizes:
            for name, (open_one, replicas) in systems(options).items():
                found = to_server(name, open_one, BATCHES[size], options)
                say(f"{size}, {name}: {found['events_per_second']:,.0f} events/s, {found['mb_per_second']:.1f} MB/s, p99 {found['p99_ms']:.1f} ms")
                rounds.append({"size": size, "round": number, **found})
                if replicas:
                    bare = to_nats(replicas, replicas, found["body_bytes"], options)
                    say(f"{size}, {bare['system']}: {bare['mb_per_second']:.1f} MB/s")
                    rounds.append({"size": size, "round": number, **bare})
    middle = {}
    for one in rounds:
        middle.setdefault(one["size"], {}).setdefault(one["system"], []).append(one["mb_per_second"])
    return {"rounds": rounds, "producers": PRODUCERS, "median_mb": {size: {name: median(values) for name, values in of.items()} for size, of in middle.items()}}


def log_bytes(options):
    """Bytes of the log for an event, in writes of 1, 10 and 100 events. For one process, in a bucket, and in NATS with the server's own framing."""
    found = {}
    for batch in (1, 10, 100):
        for name, open_one, part in (("embedded", embedded, "/log"), ("bucket", lambda folder: Cluster(folder, 1, "bucket"), "/wal/"), ("NATS R1", lambda folder: Cluster(folder, 1, "nats"), "jetstream")):
            with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, open_one(pathlib.Path(folder)) as server:
                meridian(server, "create", "events", "--schema", SCHEMA)
                before = size_of(folder, part)
                events = drive(server.port, batch, 60, batch * 400)["events"]
                found.setdefault(str(batch), {})[name] = (size_of(folder, part) - before) / events
        say(f"writes of {batch}: " + ", ".join(f"{name} {taken:.0f} bytes an event" for name, taken in found[str(batch)].items()))
    return found
