"""How long an acknowledgement takes at half of the cluster's load, beside bare NATS at the same rate with the same bytes and replicas.

Large bodies also with the bucket, and with everything, in memory: log and bucket share one disk here, and wait for each other's syncs."""

import contextlib
import datetime
import pathlib
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
from common import TARGET, median, say
from flood import acknowledged, flood, percentile
from ingest import BATCHES, PRODUCERS, SCHEMA
from peers import meridian
from up import Bare, Cluster, nats_cli

SIZES = ("1 KB", "100 KB")
# At half of the load few are needed at a time; none must wait for another.
CONNECTIONS = 32
FIRST = 10_000_000
# Where a cluster keeps its files, and whether the bucket alone or everything is in memory.
MEMORY = "/dev/shm"
ON_DISK, BUCKET_IN_MEMORY, IN_MEMORY = "one disk", "bucket in memory", "all in memory"
PLACES = {"1 KB": (ON_DISK,), "100 KB": (ON_DISK, BUCKET_IN_MEMORY, IN_MEMORY)}


def arrow(events):
    """A body of so many events."""
    start = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
    columns = {
        "symbol": pa.array([f"S{n % 500:03}" for n in range(events)]),
        "type": pa.array([n % 7 for n in range(events)], pa.int64()),
        "price": pa.array([100 + (n * 37 % 1000) / 8 for n in range(events)]),
        "time": pa.array([start + datetime.timedelta(seconds=n) for n in range(events)], pa.timestamp("us", "UTC")),
    }
    batch, sink = pa.record_batch(columns), pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue().to_pybytes()


def times(ended):
    """Milliseconds of the acknowledgements, and how many batches had none."""
    taken = [1000 * (took + late) for _, status, took, late in ended if status in (200, 201)]
    return {"p50_ms": percentile(taken, 50), "p99_ms": percentile(taken, 99), "answers": len(taken), "others": len(ended) - len(taken)}


@contextlib.contextmanager
def folder_in(place):
    """A folder for the files of a cluster or of servers."""
    with contextlib.ExitStack() as stack:
        made = lambda where: pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-cluster-", dir=where)))
        folder = made(MEMORY if place == IN_MEMORY else None)
        if place == BUCKET_IN_MEMORY:
            (folder / "bucket").symlink_to(made(MEMORY))
        yield folder


def of_cluster(replicas, body, rate, place, options):
    """At a rate; without one, half of what the producers reach."""
    with folder_in(place) as folder, Cluster(folder, replicas, "nats") as cluster:
        meridian(cluster, "create", "events", "--schema", SCHEMA)
        given = (cluster.port, folder, "/collections/events/items", "application/vnd.apache.arrow.stream", body)
        full = flood(*given, FIRST, options.seconds, PRODUCERS)
        rate = rate or len(acknowledged(full)) / options.seconds / 2
        return {"system": f"cluster R{replicas}", "rate": rate, **times(flood(*given, FIRST + len(full), 2 * options.seconds, CONNECTIONS, rate))}


def of_nats(replicas, body, rate, place, options):
    """The same bytes at the same rate."""
    with folder_in(place) as folder, Bare(folder, replicas) as bare:
        argv = [nats_cli(TARGET), "--server", bare.url, "bench", "js", "pub", "sync", "bench.events", "--create", "--purge", "--stream", "bench", "--storage", "file", "--maxbytes", "6GB",
                "--replicas", replicas, "--clients", 1, "--msgs", 50, "--size", f"{len(body)}B", "--no-progress"]
        for _ in range(5):
            run = subprocess.run([str(a) for a in argv], capture_output=True, text=True)
            if run.returncode == 0:
                break
            time.sleep(2)
        else:
            sys.exit(f"bench: nats bench: {run.stderr[-400:]}")
        port = int(bare.url.split(",")[0].rsplit(":", 1)[1])
        return {"system": f"NATS R{replicas}", "rate": rate, **times(flood(port, folder, "bench.events", None, body, FIRST, 2 * options.seconds, CONNECTIONS, rate))}


def latency(options):
    """Both in turns, for each size and number of replicas. The rate of the first round is that of all."""
    rounds, rates = [], {}
    for number in range(options.rounds):
        for size in SIZES:
            body = arrow(BATCHES[size])
            for replicas, place in ((replicas, place) for replicas in (1, 3) for place in PLACES[size]):
                ours = of_cluster(replicas, body, rates.get((size, replicas)), place, options)
                rates[size, replicas] = ours["rate"]
                theirs = of_nats(replicas, body, ours["rate"], place, options)
                for one in (ours, theirs):
                    say(f"{size}, {one['system']}, {place}: {one['rate']:.0f}/s, p50 {one['p50_ms']:.1f} ms, p99 {one['p99_ms']:.1f} ms, {one['others']} not acknowledged")
                    rounds.append({"size": size, "place": place, "round": number, "body_bytes": len(body), **one})
    middle = {}
    for one in rounds:
        middle.setdefault((one["size"], one["place"], one["system"]), []).append(one)
    def of(ones, key):
        return median([one[key] for one in ones])

    return {"rounds": rounds, "median": [{"size": size, "place": place, "system": system, **{key: of(ones, key) for key in ("rate", "p50_ms", "p99_ms")}} for (size, place, system), ones in middle.items()]}
