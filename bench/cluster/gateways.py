"""The load of the space-time study (GeoWave and GeoMesa compared, by Azavea) over a cluster of 1, 2 and 4 gateways. The first measurement
is repeated at the end.

The processor time of a request with one gateway, by role, goes into the simulator. Its forecasts for this machine are laid beside what was measured; those for
machines of their own are what this machine cannot show.
"""

import json
import pathlib
import resource
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "studies"))
import run as studies
from common import MERIDIAN, say
from up import Cluster

GATEWAYS = (1, 2, 4)
# Gateways with a machine of two processors each, as the owner.
FORECAST = (1, 4, 6)
SCENARIO = studies.HERE / "gateways.toml"
STATIONS = ("lab", "gateway", "owner")
# Name, scenario, what is set of it.
LOADS = [("cities and countries, 16", "city-buffers.toml", []), ("track grid, 16", "track-grid.toml", []), ("track grid, 32", "track-grid.toml", ["population.arrival.users=32"]),
         ("cities and countries, 16, again", "city-buffers.toml", [])]
# Users of the loads that are forecast.
USERS = {"cities and countries, 16": 16, "track grid, 16": 16, "track grid, 32": 32}
# Seconds of the scenarios before what is measured.
WARM_UP_S = 5


class Loaded:
    """What the studies' set-up takes for its server: a cluster that runs."""

    def __init__(self, folder, cluster):
        self.folder, self.url = folder, f"http://127.0.0.1:{cluster.port}"

    def serve(self, *_):
        """It is served already."""

    def load(self, collection, features, *options):
        path = self.folder / f"{collection}.geojsonl"
        with path.open("w") as out:
            out.writelines(json.dumps(feature) + "\n" for feature in features)
        run = subprocess.run([str(MERIDIAN), "load", collection, str(path), "--url", self.url, "--quiet", *options], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"bench: load: {run.stderr.strip()}")


def one(load, urls, folder, seconds):
    """One load of the lab over all gateways: what its users saw."""
    name, scenario, sets = load
    words = [str(MERIDIAN), "lab", "run", str(studies.HERE / scenario), "--out", str(folder / "out"), "--json"]
    for value in ['target.url=""', f"target.urls={json.dumps(urls)}", f"phases.measured_s={seconds:g}", *sets]:
        words += ["--set", value]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode not in (0, 1):
        sys.exit(f"bench: lab run: {run.stderr.strip()}")
    groups = [group for group in json.loads((folder / "out" / "summary.json").read_text()) if group["phase"] == "measured"]
    subprocess.run(["rm", "-rf", str(folder / "out")], check=True)
    return {group["request"]: {"per_second": group["sound_per_s"], "p50_ms": group["latency_ms"]["p50"], "p95_ms": group["latency_ms"]["p95"], "p99_ms": group["latency_ms"]["p99"],
                               "outcomes": group["outcomes"]} for group in groups}


def lab_seconds():
    """Processor seconds of the programs that were run and have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def forecast(cpu_s, users, processes, alone):
    """What the simulator says of so many gateways, each on a machine of its own or all on this one."""
    times = {"lab": cpu_s["lab"], "gateway": cpu_s["gateway"] / 2, "owner": cpu_s["owner"]}
    sets = [f"population.users.users={users}", f"station.gateway.processes={processes}"]
    sets += [f"population.users.visits.{place}.service.mean_s={times[station]}" for place, station in enumerate(("lab", "gateway", "owner", "gateway"))]
    sets += [] if alone else [f"station.{station}.machine=box" for station in STATIONS]
    words = [str(MERIDIAN), "lab", "simulate", str(SCENARIO), "--json", *(word for value in sets for word in ("--set", value))]
    run = subprocess.run(words, capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: lab simulate: {run.stderr.strip()}")
    said = json.loads(run.stdout)
    return {"gateways": processes, "per_second": said["per_second"], "p95_ms": said["populations"][0]["p95_ms"]}


def gateways(options):
    """All loads over clusters of so many nodes."""
    found, forecasts = [], []
    for count in GATEWAYS:
        with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name, Cluster(pathlib.Path(name), count, "bucket") as cluster:
            folder = pathlib.Path(name)
            loaded = Loaded(folder, cluster)
            studies.events(loaded)
            studies.tracks(loaded)
            urls = [f"http://{node['address']}" for node in cluster.nodes("gateway")]
            for load in LOADS:
                before, lab = cluster.cpu(), lab_seconds()
                seen = one(load, urls, folder, options.study_seconds)
                say(f"{count} gateways, {load[0]}: " + "; ".join(f"{request} {of['per_second']:.1f}/s, p95 {of['p95_ms']:.0f} ms, {of['outcomes']}" for request, of in seen.items()))
                after = cluster.cpu()
                # Of the warm-up too, whose requests are not counted: as many a second as those that are.
                answers = sum(of["per_second"] for of in seen.values()) * (options.study_seconds + WARM_UP_S)
                cpu_s = {"lab": (lab_seconds() - lab) / answers, **{role: (after[role] - before[role]) / answers for role in ("gateway", "owner")}}
                found.append({"gateways": count, "load": load[0], "seen": seen, "cpu_s": cpu_s})
                if count == 1 and load[0] in USERS:
                    here = [forecast(cpu_s, USERS[load[0]], processes, False) for processes in GATEWAYS]
                    alone = [forecast(cpu_s, USERS[load[0]], processes, True) for processes in FORECAST]
                    forecasts.append({"load": load[0], "cpu_s": cpu_s, "here": here, "alone": alone})
    return {"rounds": found, "seconds": options.study_seconds, "forecasts": forecasts}
