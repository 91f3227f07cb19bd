"""The load of the space-time study (studies.md, section 1) over a cluster of 1, 2 and 4 gateways, and its first measurement again after all of it."""

import json
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "studies"))
import run as studies
from common import MERIDIAN, say
from up import Cluster

GATEWAYS = (1, 2, 4)
# Name, scenario, what is set of it.
LOADS = [("cities and countries, 16", "city-buffers.toml", []), ("track grid, 16", "track-grid.toml", []), ("track grid, 32", "track-grid.toml", ["population.arrival.users=32"]),
         ("cities and countries, 16, again", "city-buffers.toml", [])]


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


def gateways(options):
    """All loads over clusters of so many nodes."""
    found = []
    for count in GATEWAYS:
        with tempfile.TemporaryDirectory(prefix="bench-cluster-") as name, Cluster(pathlib.Path(name), count, "bucket") as cluster:
            folder = pathlib.Path(name)
            loaded = Loaded(folder, cluster)
            studies.events(loaded)
            studies.tracks(loaded)
            urls = [f"http://{node['address']}" for node in cluster.nodes("gateway")]
            for load in LOADS:
                seen = one(load, urls, folder, options.study_seconds)
                say(f"{count} gateways, {load[0]}: " + "; ".join(f"{request} {of['per_second']:.1f}/s, p95 {of['p95_ms']:.0f} ms, {of['outcomes']}" for request, of in seen.items()))
                found.append({"gateways": count, "load": load[0], "seen": seen})
    return {"rounds": found, "seconds": options.study_seconds}
