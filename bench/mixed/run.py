"""bench-mixed: reads during saturated writes and the reverse, one writer and 250, and memory over time, beside PostgreSQL and QuestDB.

Each system holds events {symbol, type, price, time}, and is read and written, first apart and then at once. A read asks
for every event of a random 200 ms, over eight connections. Writes are batches of 1,000 over one connection, and single
events over one and over 250. Its resident memory is read four times a second from the first phase to the last.

    make bench-mixed                           at the default sizes
    make bench-mixed ARGS="--rows 10000000"    the full size
"""

import argparse
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import DRIVER, MERIDIAN, cpu_seconds, need, resident_mb, save, say, settle, steal_and_load
from peers import Postgres, meridian, questdb, questdb_applied, start_meridian, start_questdb, meridian_metrics

START = 1_767_225_600  # 2026-01-01, where the driver's events begin; about 1,000 of them come in a second
ITEMS = "/collections/events/items?f=arrow&datetime={1}/{2}"
QUESTDB_TABLE = "(symbol SYMBOL, type LONG, price DOUBLE, timestamp TIMESTAMP) TIMESTAMP(timestamp) PARTITION BY DAY WAL"
QUESTDB_SELECT = "SELECT * FROM events WHERE timestamp BETWEEN '"


def meridian_system(folder):
    """A collection of events without a place."""
    server = start_meridian(folder)
    meridian(server, "create", "events", "--schema", "symbol:String,type:Long,price:Double,time:Date")
    return server, ["--protocol", "http", "--template", ITEMS], ["--encoding", "arrow", "--target", "/collections/events/items"], None


def postgres_system(folder):
    """A table with a B-tree on the time."""
    server = Postgres(folder)
    server.psql("CREATE TABLE events (symbol text, type int8, price float8, time timestamptz); CREATE INDEX ON events (time)")
    sql = "SELECT * FROM events WHERE time BETWEEN $1::timestamptz AND $2::timestamptz"
    return server, ["--protocol", "pg", "--template", sql], ["--encoding", "copy"], None


def questdb_system(folder):
    """A write-ahead-log table that syncs each commit."""
    server = start_questdb(folder, sync=True)
    questdb(server, f"CREATE TABLE events {QUESTDB_TABLE}")
    target = "/exp?query=" + urllib.parse.quote(QUESTDB_SELECT, safe="") + "{1}'%20AND%20'{2}'"
    return server, ["--protocol", "http", "--template", target], ["--encoding", "ilp", "--target", "/write?precision=u"], lambda rows: questdb_applied(server, "events", rows)


SYSTEMS = {"meridian": meridian_system, "postgres": postgres_system, "questdb sync": questdb_system}


class Memory(threading.Thread):
    """Reads a server's memory until stopped: (seconds, MB, phase)."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid, self.phase, self.samples, self.running = pid, "", [], True

    def run(self):
        began = time.time()
        while self.running:
            self.samples.append((round(time.time() - began, 2), round(resident_mb(self.pid), 1), self.phase))
            time.sleep(0.25)


def driver(*words):
    """A driver that is at work."""
    return subprocess.Popen([str(w) for w in (DRIVER, *words)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


class Bench:
    """One system in one round."""

    def __init__(self, server, read, write, options, questions):
        self.server, self.read, self.write, self.options, self.questions = server, read, write, options, questions
        self.later = 0
        self.memory = Memory(server.pid)

    def reader(self):
        """Starts to read."""
        return driver("ask", *self.read, "--address", f"127.0.0.1:{self.server.port}", "--questions", self.questions,
                      "--seconds", self.options.seconds, "--connections", 8)

    def writer(self, batch, connections, events, seconds):
        """Makes a writer ready; its events come after all before."""
        process = driver("ingest", *self.write, "--address", f"127.0.0.1:{self.server.port}", "--batch", batch, "--connections", connections,
                         "--events", events, "--seconds", seconds, "--later", self.later)
        self.later += events // 900 + 1
        if process.stdout.readline() != "ready\n":
            sys.exit("bench: the driver did not start")
        return process

    def finish(self, process, begin=False):
        """The figures of a driver."""
        if begin:
            process.stdin.write("go\n")
            process.stdin.flush()
            return None
        result = json.loads(process.stdout.readline())
        process.wait()
        if result["errors"]:
            sys.exit(f"bench: {self.server.name}: {result['errors']} errors, the first: {result['first_error']}")
        return result

    def phase(self, name, *drivers):
        """Runs drivers at once and waits until the server is idle."""
        self.memory.phase = name
        cpu = cpu_seconds(self.server.pid)
        started = [start() for start in drivers]
        for process in started:
            if "ingest" in process.args:
                self.finish(process, begin=True)
        results = [self.finish(process) for process in started]
        self.memory.phase = "rest after " + name
        settle(self.server.pid, most=20)
        results[0]["server_cpu_s"] = cpu_seconds(self.server.pid) - cpu
        return results

    def run(self, applied):
        """All phases."""
        options, found = self.options, {}
        self.memory.start()
        bulk = lambda seconds: self.writer(1_000, 1, int(1_000_000 * seconds), seconds)
        [load] = self.phase("load", lambda: self.writer(1_000, 1, options.rows, 3600))
        if applied:
            applied(load["events"])
        [found["reads alone"]] = self.phase("reads alone", self.reader)
        [found["writes alone"]] = self.phase("writes alone", lambda: bulk(options.seconds))
        both = self.phase("both", lambda: bulk(options.seconds * 1.4), self.reader)
        found["writes during reads"], found["reads during writes"] = both
        for connections in (1, 250):
            [found[f"single events, {connections}"]] = self.phase(
                f"single events, {connections}", lambda: self.writer(1, connections, int(20_000 * options.seconds), options.seconds))
        [found["reads at the end"]] = self.phase("reads at the end", self.reader)
        self.memory.running = False
        self.memory.join()
        return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=500_000, help="events loaded beforehand (the full size: 10000000)")
    parser.add_argument("--seconds", type=float, default=5.0, help="seconds of a phase")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "psql", "java")
    runs, memory, installs, quiet, rng = {}, {}, [], [steal_and_load()], random.Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="bench-mixed-") as name:
        questions = pathlib.Path(name) / "questions.txt"
        moment = lambda at: time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(at)) + f".{int(at % 1 * 1000):03}Z"
        starts = [START + rng.uniform(0, options.rows / 1_000) for _ in range(2_000)]
        questions.write_text("".join(f"{moment(s)}\t{moment(s + 0.2)}\n" for s in starts))
        for round_number in range(options.rounds):
            for system, start in SYSTEMS.items():
                with tempfile.TemporaryDirectory(prefix="bench-mixed-") as folder:
                    server, read, write, applied = start(pathlib.Path(folder))
                    with server:
                        bench = Bench(server, read, write, options, questions)
                        for phase, result in bench.run(applied).items():
                            runs.setdefault((system, phase), []).append(result)
                        memory.setdefault(system, []).append(bench.memory.samples)
                        if system == "meridian":
                            # For how long writes may have waited for what flushes and merges put in place.
                            now = meridian_metrics(server)
                            installs.append({k: now[f"meridian_install_seconds_{k}"] for k in ("total", "max")})
                say(f"round {round_number + 1}/{options.rounds} {system}: " + ", ".join(
                    f"{p} {runs[s, p][-1].get('events_per_second', runs[s, p][-1]['per_second']):,.0f}/s" for s, p in runs if s == system))
            quiet.append(steal_and_load())
    save("mixed", {"rows": options.rows, "seconds": options.seconds, "rounds": options.rounds, "seed": options.seed, "quiet": quiet,
                   "runs": [{"system": s, "phase": p, "runs": r} for (s, p), r in runs.items()], "memory": memory, "installs": installs})


if __name__ == "__main__":
    main()
