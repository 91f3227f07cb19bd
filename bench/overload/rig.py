"""The server on one core, the lab on the other."""

import collections
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import numpy
import pyarrow.parquet

import questions as q
from common import MERIDIAN, cpu_seconds, settle

OUTCOMES = ["sound", "unsound", "partial", "absent", "refused", "timed out", "failed", "not sent"]
# Two cores: what gives way is the server, and not the lab.
SERVER_CORE, OTHER_CORE = "0", "1"
# Until when an answer is of use to a client, which the server is told, and for how long it listens.
DEADLINE_S, PATIENCE_S = 2.0, 2.5

HEAD = """
name = "{name}"
seed = {seed}
[limits]
other_load = 1.0
late_ms = 1000
[phases]
measured_s = {seconds:g}
"""
TARGET = """
[[target]]
name = "{name}"
url = "{url}"
timeout_s = 120
{token}
"""
POPULATION = """
[[population]]
name = "{name}"
arrival = {{ {arrival} }}
requests = {requests}
patience_s = {patience:g}
connections = {connections}
{target}
{retry}
"""


def on(core, argv):
    """A command on a core of its own."""
    return ["taskset", "-c", core, *map(str, argv)]


def users(name, arrival, requests, patience=PATIENCE_S, retry="", target="", connections=8_000):
    """A population."""
    return POPULATION.format(name=name, arrival=arrival, requests=json.dumps(requests), patience=patience, connections=connections,
                             target=f'target = "{target}"' if target else "", retry=f"retry = {{ {retry} }}" if retry else "")


class Run:
    """A run of the lab: a row a try, and the processor seconds that the server took."""

    def __init__(self, folder, cpu_s):
        table = pyarrow.parquet.read_table(folder / "requests.parquet")
        column = lambda name: table[name].to_numpy(zero_copy_only=False)
        self.outcome, self.population, self.request, self.attempt, self.status = (column(name) for name in ("outcome", "population", "request", "attempt", "status"))
        self.detail = column("detail")
        self.due = column("intended_us") / 1e6
        self.wait = column("done_us").astype(float) / 1e6 - self.due
        # How late the lab sent it, which is no fault of the server; NaN if it never did.
        self.late = column("sent_us").astype(float) / 1e6 - self.due
        first = column("first_intended_us").astype(float) / 1e6
        self.wanted = numpy.where(numpy.isnan(first), self.due, first)
        about = json.loads((folder / "run.json").read_text())
        self.requests, self.populations, self.void, self.lab = about["requests"], about["populations"], about["void"], about["lab"]
        self.cpu_s = cpu_s
        sampled = pyarrow.parquet.read_table(folder / "samples.parquet").to_pydict()
        self.samples = collections.defaultdict(list)
        for at, source, metric, value in zip(sampled["at_us"], sampled["source"], sampled["metric"], sampled["value"]):
            self.samples[source, metric].append((at / 1e6, value))

    @property
    def sound(self):
        return self.outcome == 0

    @property
    def refused(self):
        return self.outcome == OUTCOMES.index("refused")

    @property
    def good(self):
        """Correct, whole, and while the client still had a use for it."""
        return self.sound & (self.wait <= DEADLINE_S)

    def of(self, *names):
        """The rows of some populations."""
        return numpy.isin(self.population, [self.populations.index(name) for name in names])

    def asking(self, *beginnings):
        """The rows of requests whose names begin so."""
        return numpy.isin(self.request, [n for n, name in enumerate(self.requests) if name.startswith(beginnings)])

    def outcomes(self, where):
        return {OUTCOMES[code]: int(count) for code, count in zip(*numpy.unique(self.outcome[where], return_counts=True))}

    def reasons(self, where):
        """The lab's reasons for responses that are neither sound nor refused, the most frequent first."""
        bad = where & ~self.sound & ~self.refused
        return dict(collections.Counter(str(text) for text in self.detail[bad]).most_common(5))


def quantiles(seconds):
    """Milliseconds, or None where there is nothing."""
    return {f"p{p:g}": float(numpy.percentile(seconds, p) * 1e3) for p in (50, 95, 99)} | {"n": len(seconds)} if len(seconds) else None


class System:
    """A system under load: its processes, what it is asked, and the lab that asks it."""

    def __init__(self, stack, name):
        self.name, self.seed, self.servers, self.url, self.tokens = name, 0, [], "", {}
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-overload-")))

    def cpu_s(self):
        """Processor seconds of its processes so far."""
        return sum(cpu_seconds(server.pid) for server in self.servers)

    def settle(self, rest=1.0, most=60):
        """Waits until it has nothing left to do."""
        for server in self.servers:
            settle(server.pid, rest=rest, most=most)

    def kinds(self, mix):
        """The kinds of questions of a mix that it is asked: the ones with questions that were found."""
        return [kind for kind in q.MIXES[mix] if kind == "ingest" or any(one.kind == kind for one in self.questions[mix])]

    def mix(self, name, only=None):
        """The requests of a mix, and their names; `only` leaves one kind."""
        raise NotImplementedError

    def probe(self):
        """Light questions, for a client that watches: requests and their names."""
        raise NotImplementedError

    def command(self, *words, token=None, codes=(0,)):
        """A command of the program under test's own build, on the lab's core."""
        env = os.environ | {f"TOKEN_{name}".upper(): text for name, text in self.tokens.items()} | ({"MERIDIAN_TOKEN": token} if token else {})
        run = subprocess.run(on(OTHER_CORE, [MERIDIAN, *words]), capture_output=True, text=True, env=env)
        if run.returncode not in codes:
            sys.exit(f"bench: {self.name}: meridian {words[0]} {words[1]}: {run.stderr.strip()}\n{run.stdout.strip()}")
        return run.stdout

    def target(self, name="side", token=None):
        return TARGET.format(name=name, url=self.url, token=f'token_env = "TOKEN_{token.upper()}"' if token else "")

    def scenario(self, name, populations, requests, seconds, targets=""):
        """Writes a scenario. Each has a seed of its own, so that no event is written twice."""
        self.seed += 1
        path = self.folder / f"{self.seed}.toml"
        path.write_text(HEAD.format(name=name, seed=self.seed * 1_000, seconds=seconds) + q.GENERATORS + (targets or self.target()) + "".join(populations) + requests)
        return path

    def lab(self, *scenario, rest=0.0, **more):
        """Runs a load to its end; `rest` waits until the server has nothing left to do."""
        path = self.scenario(*scenario, **more)
        out, before = path.with_suffix(""), self.cpu_s()
        self.command("lab", "run", path, "--out", out, codes=(0, 1))
        if rest:
            self.settle(rest=rest, most=30)
        return Run(out, self.cpu_s() - before)

    def breakpoint(self, *scenario, options=(), **more):
        """The max load that keeps the objectives, as `breakpoint.json` says."""
        path = self.scenario(*scenario, **more)
        out = path.with_suffix("")
        self.command("lab", "breakpoint", path, "--out", out, *options, codes=(0, 1))
        return json.loads((out / "breakpoint.json").read_text())
