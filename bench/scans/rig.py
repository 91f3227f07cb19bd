"""The processes of a row: owners, gateways and scan servers, as they are started by hand, each with time of its own."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request

from common import MERIDIAN, free_port
from rows import SCENARIO

# Clients of one gateway: each has a thread there while it waits, of 512.
CLIENTS_MAX = 400
START_S, SEEN_S = 120, 120
# Waits in line and started scans are bounded by the study's clients alone. A server that is slow gets no second one beside it, as in the study.
SETTINGS = """
[requests]
timeout = "1h"
timeout_max = "1h"
[cluster]
staleness_max = "1s"
groups = {groups}
[cluster.scan]
profiles = "{profiles}"
places = {places}
started = 4096
waiting = 4096
absent = "fail"
hedge_share = 0.0
{listen}
"""
DILATE = """
scenario = {scenario}
set = {sets}
times = {times}
storage = {storage}
slots = {slots}
"""


def profile(initial, servers, busy_ms, times):
    """The study's selector in dilated time: first `initial` servers, then all, each for so long (`maxDepth` 2)."""
    plans = [{"servers": str(n), "busyTimeout": f"{busy_ms * times}ms"} for n in (min(initial, servers), servers)]
    return [{"isDefault": True, "maxBusyTimeout": f"{5 * times}m", "busyTimeoutMultiplier": 8, "timeToWaitForScanServers": "60s", "attemptPlans": plans}]


class Process:
    """One process of the cluster."""

    def __init__(self, rig, role, name, dilated):
        self.role, self.name, self.port = role, name, free_port()
        folder = rig.folder / name
        self.log = rig.folder / f"{name}.log"
        # A scan server's door is found by its pin, and may have any port.
        listen = 'listen = "127.0.0.1:0"' if role == "scan" else ""
        settings = rig.folder / f"{name}.toml"
        settings.write_text(SETTINGS.format(groups=rig.groups, profiles=rig.profiles, places=rig.places, listen=listen))
        door = ["--flight" if role == "owner" else "--listen", f"127.0.0.1:{self.port}"]
        words = [MERIDIAN, "serve", "--role", role, "--log", "bucket", "--bucket", f"file://{rig.folder / 'bucket'}", "--data", folder, "--config", settings, *door]
        env = {key: value for key, value in os.environ.items() if key != "MERIDIAN_DILATE"} | ({"MERIDIAN_DILATE": str(rig.dilate)} if dilated else {})
        with open(self.log, "a") as log:
            self.process = subprocess.Popen([str(word) for word in words], stdout=log, stderr=log, env=env)

    def get(self, target, timeout=10):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{target}", timeout=timeout) as answer:
            return answer.read()

    def metrics(self):
        """Its figures that have no labels."""
        lines = self.get("/metrics", 60).decode().splitlines()
        return {name: float(value) for name, value in (line.split(" ", 1) for line in lines if line[0] != "#" and "{" not in line)}

    def wait_ready(self):
        """Waits until it serves."""
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                sys.exit(f"bench: {self.name} ended with code {self.process.returncode}: {self.log.read_text()[-800:]}")
            try:
                self.get("/readyz")
                return
            except (OSError, urllib.error.URLError):
                time.sleep(0.1)
        sys.exit(f"bench: {self.name} is not ready after {START_S} s: {self.log.read_text()[-800:]}")

    def end(self, how=signal.SIGTERM):
        """Ends it, and waits for that."""
        if self.process.poll() is None:
            self.process.send_signal(how)
            try:
                self.process.wait(60)
            except subprocess.TimeoutExpired:
                self.process.kill()
        self.process.wait()


class Rig:
    """A cluster in a folder of its own; ends with the `with` block.

    Who answers the row's scans is dilated: the owners of an immediate row, the scan servers of all others. So the owner of these answers at once what
    the scans are held against.
    """

    def __init__(self, folder, row, scenario):
        self.folder, self.row, self.scans, self.left = pathlib.Path(folder), row, [], 0
        # Tablets lie on as many owners as the study had tablet servers; one tablet has one.
        self.groups = 1 if row.eventual else min(row.of("tablets"), scenario["tablet_servers"])
        self.places = scenario["machine"]["executor_threads"]
        threads = row.of("threads")
        self.profiles, self.dilate, storage = self.folder / "profiles.json", self.folder / "dilate.toml", self.folder / "storage"
        storage.mkdir()
        self.profiles.write_text(json.dumps(profile(row.of("initial"), row.of("servers"), row.of("busy_ms"), row.times)))
        text = {"scenario": SCENARIO, "sets": row.sets(), "times": row.times, "storage": storage, "slots": max(threads, 16)}
        self.dilate.write_text(DILATE.format(**{key: json.dumps(value if isinstance(value, (int, list)) else str(value)) for key, value in text.items()}))
        self.owners = [Process(self, "owner", f"owner-{n}", not row.eventual) for n in range(self.groups)]
        self.gateways = [Process(self, "gateway", f"gateway-{n}", True) for n in range(-(-threads // CLIENTS_MAX))]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in [*self.gateways, *self.scans, *self.owners]:
            process.process.terminate()
        for process in [*self.gateways, *self.scans, *self.owners]:
            process.end()

    @property
    def ports(self):
        return [gateway.port for gateway in self.gateways]

    def command(self, *words):
        run = subprocess.run([str(word) for word in (MERIDIAN, *words, "--url", f"http://127.0.0.1:{self.ports[0]}")], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"bench: meridian {words[0]}: {run.stderr.strip()}")

    def load(self, scans, schema):
        """Writes the events of each tablet, and waits until the bucket has them."""
        for gateway in self.gateways:
            gateway.wait_ready()
        # A group that changes hands ends the answers under way, after a time that is not dilated.
        wait_for("each owner has its group", self.is_divided)
        for tablet, events in enumerate(scans.events):
            name = f"tablet-{tablet}"
            file = self.folder / f"{name}.ndjson"
            file.write_text("\n".join(events) + "\n")
            self.command("create", name, "--schema", schema)
            if events:
                self.command("load", name, file)

    def is_divided(self):
        """Whether each owner process has a group of partitions."""
        if self.groups == 1:
            return True
        run = subprocess.run([str(MERIDIAN), "cluster", "status", "--bucket", f"file://{self.folder / 'bucket'}", "--json"], capture_output=True, text=True)
        owners = json.loads(run.stdout).get("owners", []) if run.returncode == 0 else []
        return len({one["owner"]["node"] for one in owners if one["owner"]["state"] == "held"}) == self.groups

    def add(self):
        """Starts a scan server."""
        self.left += 1
        self.scans.append(Process(self, "scan", f"scan-{self.left}", True))
        return self.scans[-1]

    def start_scans(self, scans):
        """Starts the row's scan servers, and waits until gateways know them and they have all events."""
        for _ in range(self.row.of("servers")):
            self.add()
        for server in self.scans:
            server.wait_ready()
            for tablet, events in enumerate(scans.events):
                wait_for(f"{server.name} has tablet {tablet}", lambda: self.count(server, tablet) == len(events))
        for gateway in self.gateways:
            wait_for(f"{gateway.name} knows all scan servers", lambda: gateway.metrics().get("meridian_scan_servers") == len(self.scans))

    @staticmethod
    def count(server, tablet):
        try:
            said = json.loads(server.get(f"/collections/tablet-{tablet}/aggregate?function=count"))
        except (OSError, ValueError):
            return None
        return said["groups"][0]["count"] if "groups" in said else said.get("count", said.get("value"))

    def counters(self):
        """Sums over gateways and scan servers so far."""
        gateways = [gateway.metrics() for gateway in self.gateways]
        scans = [server.metrics() for server in self.scans if server.process.poll() is None]
        of = lambda metrics, name: sum(one.get(name, 0) for one in metrics)
        named = lambda metrics, **names: {key: of(metrics, name) for key, name in names.items()}
        return named(gateways, questions="meridian_scans_total", attempts="meridian_scan_attempts_total", busy="meridian_scan_busy_total", failed="meridian_scan_failures_total",
                     fallbacks="meridian_scan_fallbacks_total") | named(
            scans, cache_hits="meridian_cache_hits_total", cache_misses="meridian_cache_misses_total", bucket_bytes="meridian_bucket_read_bytes_total")


def wait_for(what, holds):
    """Waits until something holds."""
    until = time.monotonic() + SEEN_S
    while not holds():
        if time.monotonic() > until:
            sys.exit(f"bench: not seen within {SEEN_S} s: {what}")
        time.sleep(0.2)
    return True


