"""The published study of replication (ChronicleDB in the cloud) on clusters of this machine. Recorded: events a second by
size of a batch and number of nodes, and which servers keep and lead the log of each partition. For `replication.ipynb`."""

import collections
import json
import pathlib
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
from ingest import SCHEMA, drive
from peers import meridian
from up import Cluster, embedded

# Events of a batch. The study's buffers are of bytes: its events have some 21, these about 25 in Arrow.
BATCHES = {"none": 1, "1 KB": 10, "10 KB": 400, "100 KB": 4_000, "1 MB": 31_000}
# Median events a second as published: three nodes by buffer, the largest buffer by nodes, and one process.
PUBLISHED = {"none": 95, "1 KB": 4_545, "10 KB": 48_309, "100 KB": 82_692, "1 MB": 100_000}
PUBLISHED_NODES = {3: 99_880, 4: 95_013, 6: 29_076}
PUBLISHED_EMBEDDED = 294_118
REPLICAS_MAX = 3


def rates(server, seconds, sizes):
    """Acknowledged events a second by size of the batch, two producers with one batch in flight each; every acknowledgement is durable."""
    found = {}
    for size in sizes:
        batch = BATCHES[size]
        drive(server.port, batch, 1, batch * 50)
        result = drive(server.port, batch, seconds, min(batch * 20_000, 8_000_000))
        found[size] = result["events_per_second"]
        print(f"  {size}: {found[size]:,.0f} events/s, p99 of an acknowledgement {result['p99_ms']:.0f} ms", flush=True)
    return found


def on_one_process(seconds, sizes):
    """The same writes into a server of its own, without a network log."""
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, embedded(pathlib.Path(folder)) as server:
        meridian(server, "create", "events", "--schema", SCHEMA)
        return rates(server, seconds, sizes)


def on_nodes(nodes, seconds, sizes):
    """A cluster with a partition and a group of owners for each node, and the log in up to three replicas. Recorded:
    its rates, and where its partitions are."""
    settings = f"[cluster]\ngroups = {nodes}\n[cluster.nats]\nreplicas = {min(nodes, REPLICAS_MAX)}\n"
    with tempfile.TemporaryDirectory(prefix="bench-cluster-") as folder, Cluster(pathlib.Path(folder), nodes, "nats", settings) as cluster:
        meridian(cluster, "create", "events", "--schema", SCHEMA, "--partitions", nodes)
        ready(cluster)
        found = rates(cluster, seconds, sizes)
        return found, placement(cluster)


def ready(cluster, deadline_s=60):
    """Waits until all partitions take writes: their streams elect leaders, and owners open them."""
    until = time.monotonic() + deadline_s
    while True:
        try:
            # More events than partitions, so that each gets some.
            return drive(cluster.port, 1, 2, 200)
        except SystemExit as why:
            if time.monotonic() > until:
                raise RuntimeError(str(why)) from why
            time.sleep(1)


def placement(cluster, deadline_s=30):
    """A row for each partition: the process that owns it, and the servers that lead and keep its stream."""
    streams = {}
    for node in cluster.nodes("log"):
        # Each server tells of the streams that it keeps, and of their other replicas.
        with urllib.request.urlopen(f"http://{node['monitor']}/jsz?streams=true&config=true", timeout=deadline_s) as answer:
            for account in json.load(answer).get("account_details", []):
                for stream in account.get("stream_detail", []):
                    of = stream.get("cluster") or {}
                    known = streams.setdefault(stream["name"], {"leader": None, "keep": set()})
                    known["leader"] = of.get("leader") or known["leader"] or node["name"]
                    known["keep"] |= {node["name"]} | {one["name"] for one in of.get("replicas") or []}
    return streams


def spread(streams, of):
    """How many streams each server has: `leader`, or `keep`."""
    count = collections.Counter()
    for stream in streams.values():
        count.update([stream["leader"]] if of == "leader" else stream["keep"])
    return dict(sorted(count.items(), key=lambda item: str(item[0])))
