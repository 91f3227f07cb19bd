"""The studies, one after the other, each against a Meridian of its own, and their reports: `make studies`.

A study is a scenario of the lab with what it needs set up before. Its report goes into a folder of its name beside the
scenarios: the page where it is small, else what it says and two of its pictures, and the summary either way. The first paragraph of a run that is void (others
used the machine) says so; `--set phases.measured_s=2` and the like make a run short, for a look.
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
from common import MERIDIAN, ROOT, need, read_zst, say  # study.py says where it is

PAGE_MOST = 300_000
PICTURES = ("percentiles.png", "outcomes.png")
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
    """Mock sources, and 25 providers of which 14 ask them."""
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
        shutil.copy(out / "summary.json", kept)
        if (out / "report.html").stat().st_size <= PAGE_MOST:
            shutil.copy(out / "report.html", kept)
        else:
            for picture in PICTURES:
                shutil.copy(out / "pictures" / picture, kept)
            (kept / "report.txt").write_text(words + "\n")


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
