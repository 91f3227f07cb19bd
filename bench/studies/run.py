"""The studies, one after the other, each against a Meridian of its own, and their reports: `make studies`.

A study is a scenario of the lab with what it needs set up before. Its report and summary go into a folder of its name
beside the scenarios. Places and inserts also get a table.md of runs of each radius or batch by itself, in the form of
the published study. The first paragraph of a run that is void (others used the machine) says so.
`--set phases.measured_s=2` and the like make a run short, for a look.
"""

import argparse
import contextlib
import datetime
import json
import pathlib
import random
import shutil
import urllib.request

from foretell import forecast
from study import HERE, Study
from common import MERIDIAN, ROOT, commit, machine, need, read_zst, say  # study.py says where it is
from tables import table

PART_S = 15  # of a run of one radius or batch
HITS = 300  # places asked to tell how many answers are empty
INSERTS = "object:String,value:Double,time:Date,*geometry:Point;meridian.id='given'"


def postal_places():
    """Name, longitude and latitude of the postal places that ship with Meridian."""
    lines = read_zst(ROOT / "data" / "geonames-postal-places" / "postal_places.tsv.zst")
    at = {name: i for i, name in enumerate(next(lines).split("\t"))}
    for row in (line.split("\t") for line in lines):
        yield row[at["name"]], float(row[at["lon"]]), float(row[at["lat"]])


def moment(rng, year):
    """A moment of a year, as RFC 3339."""
    at = datetime.datetime(year, 1, 1) + datetime.timedelta(seconds=rng.randrange(365 * 86_400))
    return f"{at.isoformat()}Z"


def places(study):
    """The postal places of the query's box and all around it, where the profile serves them."""
    study.serve("--data", study.folder / "data")
    first = json.dumps({"name": "first", "latitude": 0.0, "longitude": 0.0}).encode()
    request = urllib.request.Request(f"{study.url}/api/v0/places", first, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request):
        pass  # the profile makes its collection on first use
    path = study.folder / "places.ndjson"
    with path.open("w") as out:
        for n, (name, lon, lat) in enumerate(postal_places()):
            out.write(json.dumps({"id": f"p{n}", "name": name, "latitude": lat, "longitude": lon}) + "\n")
    study.meridian("load", "places", path, "--url", study.url, "--quiet")


def events(study, count=300_000):
    """Points where people live, over the year 2016."""
    study.serve("--data", study.folder / "data")
    rng, found = random.Random(1), list(postal_places())
    features = ({"type": "Feature", "geometry": {"type": "Point", "coordinates": [round(min(max(lon + rng.gauss(0, 0.05), -180), 180), 6),
                                                                                 round(min(max(lat + rng.gauss(0, 0.05), -85), 85), 6)]},
                 "properties": {"name": name, "time": moment(rng, 2016)}} for name, lon, lat in rng.choices(found, k=count))
    study.load("events", features)


def tracks(study, count=30_000):
    """Lines that wander about the places of the continental USA, over the year 2015."""
    study.serve("--data", study.folder / "data")
    rng = random.Random(1)
    found = [(lon, lat) for _, lon, lat in postal_places() if -124.98 < lon < -65.92 and 24.21 < lat < 49.84]

    def track(lon, lat):
        line, step = [], rng.choice((0.0005, 0.002, 0.01))
        for _ in range(rng.randrange(10, 60)):
            line.append([round(lon, 6), round(lat, 6)])
            lon, lat = lon + rng.gauss(0, step), lat + rng.gauss(0, step)
        return {"type": "Feature", "geometry": {"type": "LineString", "coordinates": line}, "properties": {"time": moment(rng, 2015)}}

    study.load("tracks", (track(*at) for at in rng.choices(found, k=count)))


def inserts(study):
    """Two collections of nothing."""
    study.serve("--data", study.folder / "data")
    for durability in ("local", "ephemeral"):
        study.meridian("create", f"inserts-{durability}", "--schema", INSERTS, "--durability", durability, "--url", study.url)


def searches(study):
    """Mock sources, and 25 providers; 14 ask the sources."""
    mock = study.mock(HERE / "search" / "sources.toml")
    declared = (HERE / "search" / "provider.toml").read_text()
    providers = {}
    for kind, count in (("fast", 11), ("late", 2), ("slow", 1), ("declines", 11)):
        for n in range(1, count + 1):
            own = declared.replace("fast-1", f"{kind}-{n}").replace("127.0.0.1:7118/fast/1", f"{mock}/{kind}/{n}")
            if kind == "declines":
                own = own.replace('needs = ["keywords"]', 'needs = ["keywords", "place"]')
            providers[f"{kind}-{n}"] = own
    study.serve_searches(providers)


# Requests a second and mean milliseconds by kilometres (studies.md, section 3), and median events a second by buffer (section 4.2).
PLACES = {"0.5": (34_852.74, 3.16), "2": (33_656.10, 4.77), "5": (32_535.78, 5.79), "10": (30_111.74, 11.21), "25": (21_690.92, 19.87), "50": (13_474.38, 21.58)}
CHRONICLE = {"three nodes, no buffer": 95, "1 KB": 4_545, "10 KB": 48_309, "100 KB": 82_692, "1 MB": 100_000, "one node, embedded": 294_118}
BATCHES = (1, 100, 10_000)


def part(study, scenario, sets, request, number):
    """A run of one request of the scenario's mix: its measured group, and whether it is void."""
    out = study.folder / "part"
    # A seed of its own: events of another run are there already.
    study.lab_run(scenario, out, [f"target.url={study.url}", f"phases.measured_s={PART_S}", f'population.requests=["{request}"]', *sets], seed=100 + 10 * number)
    group = next(group for group in json.loads((out / "summary.json").read_text()) if group["phase"] == "measured")
    void = json.loads((out / "run.json").read_text())["void"]
    say(f"{request}: {group['sound_per_s']:,.0f} a second" + (f"; void: {void[0]}" if void else ""))
    return group, " (void)" if void else ""


def hits(study, radius):
    """How many places lie within a radius of the scenario's points in the mean, and the share of points with none."""
    rng, found = random.Random(2), []
    for _ in range(HITS):
        lon, lat = rng.uniform(-123.99, -118.0), rng.uniform(37.0, 42.99)
        with urllib.request.urlopen(f"{study.url}/api/v0/places/near/{lat:.6f}/{lon:.6f}/{radius}", timeout=60) as answer:
            found.append(json.load(answer)["totalPlaces"])
    return sum(found) / HITS, found.count(0) / HITS


def by_radius(study, scenario, sets):
    """The places study radius by radius, as it was published."""
    rows = []
    for number, (radius, (rate, mean)) in enumerate(PLACES.items()):
        group, void = part(study, scenario, sets, f"{radius} km", number)
        places, empty = hits(study, radius)
        latency = group["latency_ms"]
        rows.append([radius, f"{group['sound_per_s']:,.0f}{void}", f"{latency['mean']:.2f}", f"{latency['p99']:.2f}", f"{places:,.1f}", f"{empty:.0%}", f"{rate:,.0f}", f"{mean:.2f}"])
    head = ["radius km", "requests a second", "mean ms", "p99 ms", "places found", "none found", "published: requests a second", "mean ms"]
    return [f"Each radius by itself, 50 connections without a pause, {{}}. Of {HITS} of the study's points each: how many places were found in the mean, and for what share "
            "none, without which the rates say little. Published: wrk, 30 s, 50 connections, on a machine that is not stated, with other places.", "", *table(head, rows)]


def by_batch(study, scenario, sets):
    """The insert study batch by batch and by durability: events a second."""
    rows = []
    for number, (batch, durability) in enumerate((batch, durability) for batch in BATCHES for durability in ("local", "ephemeral")):
        group, void = part(study, scenario, sets, f"{batch}, {durability}", number)
        latency = group["latency_ms"]
        rows.append([f"{batch:,}", durability, f"{batch * group['sound_per_s']:,.0f}{void}", f"{batch * 1_000 / latency['mean']:,.0f}", f"{latency['p50']:.2f}", f"{latency['p99']:.2f}"])
    published = [[name, f"{events:,}"] for name, events in CHRONICLE.items()]
    return ["One writer, each batch acknowledged before the next, each kind by itself, {}. `local` is on the disk before the answer, `ephemeral` is not. The second "
            "rate leaves out the time in which the lab made the next batch.", "",
            *table(["events a batch", "durability", "events a second", "while it waited", "p50 ms a batch", "p99 ms"], rows), "",
            "Published of ChronicleDB, by buffer (events of 21 bytes, counted when they were taken and not when they were safe, batches and trials mixed):", "",
            *table(["buffer", "median events a second"], published)]


TABLES = {"places": by_radius, "inserts": by_batch}
STUDIES = {
    "places": ("places.toml", places, []),
    "city-buffers": ("city-buffers.toml", events, []),
    "track-grid-16": ("track-grid.toml", tracks, []),
    "track-grid-32": ("track-grid.toml", tracks, ["population.arrival.users=32"]),
    "inserts": ("inserts.toml", inserts, []),
    "search-single-burst": ("search/single-burst.toml", searches, []),
    "search-on-off": ("search/on-off.toml", searches, []),
}
FORECAST = "forecast"  # not a load with a report, but a prediction with what came of it: foretell.py


def run(name, options):
    """One study: set up, run, reported."""
    scenario, set_up, sets = STUDIES[name]
    with contextlib.ExitStack() as stack:
        study = Study(stack, options.meridian)
        say(f"{name}: setting up")
        set_up(study)
        out = study.folder / "results"
        sets = [f"target.url={study.url}", *sets, *options.set]
        say(f"{name}: running")
        study.lab_run(HERE / scenario, out, sets)
        words = study.meridian("lab", "report", out).splitlines()[0]
        say(f"{name}: {words}")
        kept = options.out / name
        shutil.rmtree(kept, ignore_errors=True)
        kept.mkdir(parents=True)
        for file in ("summary.json", "report.html"):
            shutil.copy(out / file, kept)
        if name in TABLES:
            how = [f"set {given}" for given in options.set]
            lines = TABLES[name](study, HERE / scenario, options.set)
            lines[0] = lines[0].replace("{}", ", ".join([f"{PART_S} s", machine(), commit(), *how]))
            (kept / "table.md").write_text("\n".join([f"# {name}", "", *lines, ""]))


def main():
    names = [*STUDIES, FORECAST]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(names)}; all where left out")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="change a value of each scenario")
    parser.add_argument("--out", type=pathlib.Path, default=HERE, help="where the folders of reports go")
    parser.add_argument("--meridian", type=pathlib.Path, default=MERIDIAN, help="the program")
    options = parser.parse_args()
    unknown = [name for name in options.names if name not in names]
    if unknown:
        parser.error(f"no study is named {unknown[0]}: expected some of {', '.join(names)}")
    need(options.meridian, "zstd", "taskset")
    for name in options.names or names:
        if name == FORECAST:
            forecast(options)
        else:
            run(name, options)


if __name__ == "__main__":
    main()
