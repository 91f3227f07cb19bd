"""bench-capacity: many small events in a server that is held to little memory, killed, and opened again.

Events of {object, value, time, place}, in order of time, go in through the API as Arrow. The server runs in a memory
cgroup (version 2, or 1 where that is what the machine has), with the settings that it chooses itself. The cgroup counts
its own caches and anonymous memory, and the page cache that it fills, which the kernel takes back. Then `kill -9`, the
page cache dropped, and a start: time to ready, and to the first answer of each kind of question. Every answer's count
is compared with what was sent.

    make bench-capacity                             at the default sizes
    make bench-capacity ARGS="--events 10000000"    fewer events
"""

import argparse
import concurrent.futures
import contextlib
import io
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

import numpy
import pyarrow

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import MERIDIAN, free_port, median, need, save, say, settle, steal_and_load, wait_port
from peers import http, meridian, meridian_metrics

SCHEMA = "object:Long:object=true,value:Double,time:Date,*geom:Point:srid=4326;geomesa.index.dtg='time',meridian.id='made'"
START, SPAN_US = 1_672_531_200_000_000, 3 * 365 * 86_400_000_000
OBJECTS = 100_000
ITEMS = "/collections/events/items?f=arrow&"
MEBIBYTE = 1 << 20


class Cgroup:
    """A memory cgroup of a number of bytes."""

    def __init__(self, limit):
        root = pathlib.Path("/sys/fs/cgroup")
        self.second = "memory" in (root / "cgroup.controllers").read_text().split() if (root / "cgroup.controllers").exists() else False
        self.folder = (root if self.second else root / "memory") / f"meridian-capacity-{os.getpid()}"
        try:
            if self.second:
                (root / "cgroup.subtree_control").write_text("+memory")
            self.folder.mkdir()
            self.file("memory.max", "memory.limit_in_bytes").write_text(str(limit))
            if self.second:
                # What is swapped out would not be counted.
                with contextlib.suppress(OSError):
                    (self.folder / "memory.swap.max").write_text("0")
        except OSError as error:
            sys.exit(f"bench: a memory cgroup cannot be made at {self.folder}: {error}; run it as root")

    def file(self, second, first):
        return self.folder / (second if self.second else first)

    def killed(self):
        """How often the kernel ended a process in it for want of memory."""
        lines = self.file("memory.events", "memory.oom_control").read_text().split("\n")
        return sum(int(line.split()[1]) for line in lines if line.startswith("oom_kill "))

    def remove(self):
        for _ in range(50):
            with contextlib.suppress(OSError):
                self.folder.rmdir()
                return
            time.sleep(0.1)


class Held:
    """A server in a cgroup, its anonymous memory sampled ten times a second."""

    name = "meridian"

    def __init__(self, cgroup, folder):
        self.port, self.began, self.peak_mb = free_port(), time.perf_counter(), 0.0
        enter = f'echo $$ > "{cgroup.folder}/cgroup.procs"; exec "$@"'
        argv = [MERIDIAN, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", folder / "data"]
        self.log = open(folder / "server.log", "ab")
        self.process = subprocess.Popen(["sh", "-c", enter, "sh", *map(str, argv)], stdout=self.log, stderr=self.log)
        self.pid = self.process.pid
        threading.Thread(target=self.watch, daemon=True).start()

    def watch(self):
        with contextlib.suppress(OSError):
            while self.process.poll() is None:
                for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
                    if line.startswith("RssAnon:"):
                        self.peak_mb = max(self.peak_mb, int(line.split()[1]) / 1024)
                time.sleep(0.1)

    def ready_ms(self):
        """Milliseconds from its start until it takes requests."""
        while self.process.poll() is None:
            with contextlib.suppress(OSError, urllib.error.HTTPError):
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=600).read()
                return (time.perf_counter() - self.began) * 1000
            time.sleep(0.002)
        sys.exit(f"bench: the server ended with code {self.process.returncode}: see {self.log.name}")

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


def batch(rng, homes, first, count, events):
    """An Arrow stream of the events from `first` on; one in a thousand comes up to a month late."""
    times = START + numpy.sort(rng.integers(first * SPAN_US // events, (first + count) * SPAN_US // events, count))
    late = rng.random(count) < 0.001
    times = numpy.where(late, numpy.maximum(START, times - rng.integers(0, 30 * 86_400_000_000, count)), times)
    objects = rng.integers(0, OBJECTS, count)
    table = pyarrow.record_batch({
        "object": objects, "value": numpy.round(rng.normal(10, 4, count), 2), "time": pyarrow.array(times, pyarrow.timestamp("us", "UTC")),
        "lon": numpy.round(homes[0][objects] + rng.normal(0, 0.2, count), 5), "lat": numpy.round(homes[1][objects] + rng.normal(0, 0.2, count), 5)})
    out = io.BytesIO()
    with pyarrow.ipc.new_stream(out, table.schema) as writer:
        writer.write_batch(table)
    return out.getvalue()


def post(server, body):
    """Sends a batch, again while the server has no room."""
    while True:
        request = urllib.request.Request(f"http://127.0.0.1:{server.port}/collections/events/items", body,
                                         {"Content-Type": "application/vnd.apache.arrow.stream"}, method="POST")
        try:
            return json.load(urllib.request.urlopen(request, timeout=600))
        except urllib.error.HTTPError as error:
            if error.code not in (429, 503):
                sys.exit(f"bench: {error.code} {error.read()[:400]!r}")
            time.sleep(0.2)


def load(server, options, first, count):
    """Sends `count` events in batches, a few at a time; the seconds that it took."""
    shape = numpy.random.default_rng(options.seed)
    homes = (shape.uniform(-170, 170, OBJECTS), shape.normal(20, 25, OBJECTS).clip(-80, 80))
    began, said = time.perf_counter(), time.time()

    def one(at):
        rng = numpy.random.default_rng([options.seed, at])
        return post(server, batch(rng, homes, at, min(options.batch, first + count - at), options.events))

    with concurrent.futures.ThreadPoolExecutor(options.connections) as pool:
        waiting = set()
        for at in range(first, first + count, options.batch):
            waiting.add(pool.submit(one, at))
            if len(waiting) >= 2 * options.connections:
                done, waiting = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
                [future.result() for future in done]
            if time.time() - said > 30:
                said = time.time()
                say(f"{at:,} events, {(at - first) / (time.perf_counter() - began):,.0f}/s, {server.peak_mb:,.0f} MB at most")
        [future.result() for future in waiting]
    return time.perf_counter() - began


def asked(server, rounds):
    """Milliseconds of the first answer to each kind of question, and the median of those after it."""
    questions = {
        "near, 5 km": ITEMS + "near=2.35,48.86&radius=5000",
        "box and ten days": ITEMS + "bbox=2,48,3,49&datetime=2024-03-01T00:00:00Z/2024-03-11T00:00:00Z",
        "months, all": "/collections/events/aggregate?function=count,avg(value)&window=P1M",
        "months, box": "/collections/events/aggregate?function=count,avg(value)&window=P1M&bbox=-10,35,20,60"}
    found = {}
    for what, target in questions.items():
        times = []
        for _ in range(rounds + 1):
            began = time.perf_counter()
            answer = http(server, "GET", target)
            times.append((time.perf_counter() - began) * 1000)
        found[what] = {"first_ms": times[0], "p50_ms": median(times[1:]), "bytes": len(answer)}
    return found


def count(server):
    return json.loads(http(server, "GET", "/collections/events/aggregate?function=count"))["groups"][0]["count"]


def drop_page_cache():
    """Whether the kernel was told to forget files; only root may."""
    os.sync()
    with contextlib.suppress(OSError):
        pathlib.Path("/proc/sys/vm/drop_caches").write_text("1")
        return True
    return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--events", type=int, default=100_000_000)
    parser.add_argument("--tail", type=int, default=200_000, help="events that are in the log only when the server is killed, at most")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that the server may take")
    parser.add_argument("--batch", type=int, default=50_000)
    parser.add_argument("--connections", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=20, help="answers to each question after the first")
    parser.add_argument("--settle", type=float, default=3600, help="seconds to wait for merges at most")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", type=pathlib.Path, help="where to put the data; kept, and opened without loading where it is there")
    options = parser.parse_args()
    need(MERIDIAN)
    quiet, result = [steal_and_load()], {}
    with contextlib.ExitStack() as stack:
        folder = options.folder or pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-capacity-")))
        folder.mkdir(parents=True, exist_ok=True)
        cgroup = Cgroup(options.memory * MEBIBYTE)
        stack.callback(cgroup.remove)
        if not (folder / "data").exists():
            server = Held(cgroup, folder)
            stack.callback(server.kill)
            server.ready_ms()
            meridian(server, "create", "events", "--schema", SCHEMA)
            seconds = load(server, options, 0, options.events - options.tail)
            say(f"loaded at {options.events / seconds:,.0f}/s; merging")
            settled = settle(server.pid, rest=15, most=options.settle)
            load(server, options, options.events - options.tail, options.tail)
            metrics = meridian_metrics(server)
            result |= {"load_s": seconds, "settle_s": settled, "load_peak_mb": server.peak_mb, "questions_before": asked(server, options.rounds)}
            result |= {name: metrics[f"meridian_{name}"] for name in ("depth", "depth_bound", "write_amplification", "segments", "segment_bytes",
                                                                     "rest_bytes", "log_tail_bytes")}
            server.kill()
        opens = []
        for cold in (True, False):
            if cold and not drop_page_cache():
                continue
            server = Held(cgroup, folder)
            stack.callback(server.kill)
            opened = {"cold": cold, "ready_ms": server.ready_ms(), "ready_mb": server.peak_mb}
            opened |= {"questions": asked(server, options.rounds), "count": count(server), "peak_mb": server.peak_mb}
            if opened["count"] != options.events:
                sys.exit(f"bench: {opened['count']:,} events were found where {options.events:,} were acknowledged")
            opens.append(opened)
            server.kill()
            first = ", ".join(f"{what} {q['first_ms']:.0f} ms" for what, q in opened["questions"].items())
            say(f"{'cold' if cold else 'warm'}: ready after {opened['ready_ms']:.0f} ms; first answers: {first}; {opened['peak_mb']:,.0f} MB at most")
        if cgroup.killed():
            sys.exit(f"bench: the kernel ended a process {cgroup.killed()} times: {options.memory} MiB were too little")
    result |= {"events": options.events, "memory": options.memory, "tail": options.tail, "seed": options.seed, "opens": opens,
               "cgroup": 2 if cgroup.second else 1, "quiet": [*quiet, steal_and_load()]}
    save("capacity", result)


if __name__ == "__main__":
    main()
