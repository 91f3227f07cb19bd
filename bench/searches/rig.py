"""Mock sources, a Meridian that asks them, the lab that asks Meridian, and what each says of a run.

The mock's log of calls is the truth. A search is compared with the delays of its own calls, and with the items that
they returned.
"""

import collections
import json
import pathlib
import subprocess
import sys
import tempfile
import urllib.parse
import urllib.request

import numpy
import pyarrow.parquet

from common import MERIDIAN, Server, cpu_seconds, free_port
from sources import declarations, mock_file

OUTCOMES = ["sound", "unsound", "partial", "absent", "refused", "timed out", "failed", "not sent"]
# On a core of its own the server alone is what gives way; client and sources share the other.
SERVER_CORE, OTHER_CORE = "0", "1"

Call = collections.namedtuple("Call", "provider word page at_ms delay_ms status fault items path")

SCENARIO = """
name = "{tag}"
[target]
url = "{url}"
timeout_s = {patience}
[limits]
other_load = 1.0
late_ms = {late_ms}
[phases]
measured_s = {seconds}
[generate.word]
kind = "id"
prefix = "{tag}"
to = 1000000000
sequence = true
[[population]]
name = "users"
arrival = {{ {arrival} }}
patience_s = {patience}
connections = 10000
{retry}
{objectives}
{requests}
"""

SEARCH = """
[[request]]
name = "{name}"
method = "POST"
path = "/searches"
headers = {{ content-type = "application/json", authorization = "Bearer {{word}}" }}
body = '{body}'
follow = "/packets"
result = "packet"
check = {{ {check} }}
"""


def search_request(name="search", check="", **members):
    """A search for a word that nobody has asked for before, by a user of its own."""
    body = json.dumps({"keywords": "{word}", **members})
    return SEARCH.format(name=name, body=body, check=check)


def exactly(results):
    """The check that `results` results came."""
    return f"results_at_least = {results}, results_at_most = {results}"


class Run:
    """A run of the lab: a row a request, and what was used."""

    def __init__(self, folder, used):
        table = pyarrow.parquet.read_table(folder / "requests.parquet")
        column = lambda name: table[name].to_numpy()
        self.outcome = column("outcome")
        self.n, self.attempt, self.request, self.status = column("n"), column("attempt"), column("request"), column("status")
        self.packets, self.in_flight, self.bytes = column("packets"), column("in_flight"), column("bytes")
        self.detail = table["detail"].to_numpy(zero_copy_only=False)
        self.due = column("intended_us") / 1e6
        wait = lambda name: table[name].to_numpy(zero_copy_only=False).astype(float) / 1e6 - self.due
        self.first, self.last, self.done = wait("first_result_us"), wait("last_result_us"), wait("done_us")
        about = json.loads((folder / "run.json").read_text())
        self.requests, self.void, self.lab = about["requests"], about["void"], about["lab"]
        self.used = used
        samples = pyarrow.parquet.read_table(folder / "samples.parquet").to_pydict()
        self.samples = collections.defaultdict(list)
        for source, metric, value in zip(samples["source"], samples["metric"], samples["value"]):
            self.samples[source, metric].append(value)

    def most(self, source, metric):
        """The max sample."""
        return max(self.samples[source, metric], default=0)

    def outcomes(self, where=None):
        """How many ended how."""
        chosen = self.outcome if where is None else self.outcome[where]
        return {OUTCOMES[code]: int(count) for code, count in zip(*numpy.unique(chosen, return_counts=True))}

    def failures(self):
        """The lab's reasons for failures, the most frequent first."""
        failed = self.outcome == OUTCOMES.index("failed")
        return dict(collections.Counter(self.detail[failed].tolist()).most_common(5))

    @property
    def sound(self):
        return self.outcome == 0


class Rig:
    """The processes of one measurement; they end with the stack."""

    def __init__(self, stack, kinds, declines=0, limits="", pinned=False, **settings):
        self.stack, self.kinds, self.pinned = stack, kinds, pinned
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-searches-")))
        self.log, self.read, self.runs, self.truth = self.folder / "calls.ndjson", 0, 0, None
        self.mock = self.mocking("mock", mock_file(kinds), "--log", self.log)
        folder = self.folder / "providers"
        folder.mkdir()
        for name, text in declarations(kinds, f"127.0.0.1:{self.mock.port}", declines, limits).items():
            (folder / f"{name}.toml").write_text(text)
        settings = {"search.providers": str(folder), "search.join": "0s", "search.deadline": "40s", **settings}
        config = self.folder / "meridian.toml"
        config.write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
        port = free_port()
        argv = [MERIDIAN, "serve", "--ephemeral", "--listen", f"127.0.0.1:{port}", "--config", config]
        self.server = stack.enter_context(Server("meridian", self.on(SERVER_CORE, argv), port))
        self.url = f"http://127.0.0.1:{port}"

    def on(self, core, argv):
        """A command on a core of its own, where this rig is pinned."""
        return ["taskset", "-c", core, *argv] if self.pinned else argv

    def mocking(self, name, text, *options):
        """A mock of these sources."""
        path, port = self.folder / f"{name}.toml", free_port()
        path.write_text(text)
        argv = [MERIDIAN, "lab", "mock", path, "--listen", f"127.0.0.1:{port}", *options]
        return self.stack.enter_context(Server(name, self.on(OTHER_CORE, argv), port))

    def get(self, path):
        """An answer of the server, as JSON."""
        with urllib.request.urlopen(self.url + path, timeout=30) as answer:
            return json.load(answer)

    def calls(self):
        """The calls that the mock was asked since the last call of this."""
        with self.log.open() as file:
            file.seek(self.read)
            lines = file.readlines()
            self.read = file.tell()
        return [call_of(json.loads(line)) for line in lines]

    def ids(self, calls):
        """The ids that whole answers to these calls hold, by provider: asked of a mock that answers the same at once."""
        if self.truth is None:
            self.truth = self.mocking("truth", mock_file(self.kinds, truth=True))
        found = collections.defaultdict(set)
        for call in calls:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.truth.port}{call.path}", timeout=30) as answer:
                found[call.provider] |= {item["id"] for item in json.load(answer)["items"]}
        return found

    def scenario(self, tag, arrival, seconds=10, patience=60, retry="", requests=None, objectives="", late_ms=10, url=None):
        """Writes a scenario; its words begin with the tag, so that none is asked twice."""
        self.runs += 1
        path = self.folder / f"{self.runs}-{tag}.toml"
        retry = f"retry = {{ {retry} }}" if retry else ""
        path.write_text(SCENARIO.format(tag=tag, url=url or self.url, patience=patience, late_ms=late_ms, seconds=seconds, arrival=arrival, retry=retry,
                                        objectives=objectives, requests=requests or search_request()))
        return path

    def lab(self, tag, arrival, server=None, **more):
        """Runs a load to its end."""
        scenario = self.scenario(tag, arrival, **more)
        out = scenario.with_suffix("")
        server = server or self.server
        before = cpu_seconds(server.pid), cpu_seconds(self.mock.pid)
        said = self.program("lab", "run", scenario, "--out", out, codes=(0, 1))
        after = cpu_seconds(server.pid), cpu_seconds(self.mock.pid)
        run = Run(out, {"server_cpu_s": after[0] - before[0], "mock_cpu_s": after[1] - before[1]})
        if not len(run.due):
            sys.exit(f"bench: the lab asked nothing: {said}")
        return run

    def breakpoint(self, tag, arrival, *options, **more):
        """The max load that keeps the objectives, as `breakpoint.json` says."""
        scenario = self.scenario(tag, arrival, **more)
        out = scenario.with_suffix("")
        self.program("lab", "breakpoint", scenario, "--out", out, *options, codes=(0, 1))
        return json.loads((out / "breakpoint.json").read_text())

    def program(self, *words, codes=(0,)):
        """Runs the program to its end; what it said."""
        run = subprocess.run([str(word) for word in self.on(OTHER_CORE, [MERIDIAN, *words])], capture_output=True, text=True)
        if run.returncode not in codes:
            sys.exit(f"bench: meridian {words[0]} {words[1]}: {run.stderr.strip()}")
        return run.stdout + run.stderr


def call_of(line):
    """A line of the mock's log."""
    parts = urllib.parse.urlsplit(line["path"])
    asked = urllib.parse.parse_qs(parts.query)
    provider = "-".join(parts.path.strip("/").split("/"))
    page = int(asked.get("page", ["1"])[0])
    return Call(provider, asked.get("q", [""])[0], page, line["at_ms"], line["delay_ms"], line["status"], line["fault"], line["items"], line["path"])


def by_word(calls):
    """Calls of each search."""
    found = collections.defaultdict(list)
    for call in calls:
        found[call.word].append(call)
    return found


def chains(calls):
    """Of one search: the seconds that each provider took over all its pages, one after the other."""
    found = collections.defaultdict(float)
    for call in calls:
        found[call.provider] += call.delay_ms / 1e3
    return found


def slope(x, y):
    """Least squares: slope of y over x and half of its 95 % interval."""
    good = ~numpy.isnan(y)
    x, y = x[good].astype(float), y[good]
    if len(x) < 3:
        return {"slope": 0.0, "half": float("inf"), "count": len(x)}
    spread = x - x.mean()
    tilt = float((spread * y).sum() / (spread**2).sum())
    rest = y - y.mean() - tilt * spread
    error = float(numpy.sqrt((rest**2).sum() / (len(x) - 2) / (spread**2).sum()))
    return {"slope": tilt, "half": 1.96 * error, "count": len(x)}


def quantiles(values):
    """Percentiles of seconds, as milliseconds."""
    values = numpy.asarray(values, dtype=float)
    values = values[~numpy.isnan(values)]
    if not len(values):
        return None
    return {"count": len(values), "p50": float(numpy.percentile(values, 50) * 1e3), "p95": float(numpy.percentile(values, 95) * 1e3),
            "p99": float(numpy.percentile(values, 99) * 1e3), "max": float(values.max() * 1e3)}


def peak_mb(pid):
    """The most memory that a process ever held."""
    return next(int(line.split()[1]) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM")) / 1024
