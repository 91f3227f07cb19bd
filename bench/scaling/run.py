"""bench-scaling: does the time of an answer grow with the events, or with the results?

Meridian alone, at sizes that grow by the square root of ten. Questions come in two kinds. The results of fixed ones
grow with the events. The others shrink as the events grow, so that the number of results stays the same. An exponent is
fitted to each by least squares on logarithms (0 is no growth, 1 is growth with the events), and drawn in
bench/results/scaling.svg.

    make bench-scaling                                                              at the default sizes
    make bench-scaling ARGS="--rows 1000000 3162278 10000000 31622777 100000000"    the full sizes
"""

import argparse
import math
import pathlib
import random
import sys
import tempfile
import time

import numpy

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import data
from common import DRIVER, MERIDIAN, RESULTS, cpu_seconds, drive, median, need, resident_mb, save, say, settle, steal_and_load
from peers import http, meridian, start_meridian

ITEMS = "/collections/events/items?f=arrow&"
SMALLEST_KM = 3.0
WARM_S = 60


def questions(rng, rows, smallest, count=200):
    """By name: (does it grow with the events?, targets)."""
    sources = list(data.originals())
    points = []
    for _ in range(count):
        _, _, _, lons, lats, _ = rng.choice(sources)
        at = rng.randrange(len(lons))
        points.append((lons[at], lats[at]))
    share = smallest / rows
    def around(lon, lat, degrees, days):
        start, end = data.window(rng.uniform(0, data.DAYS - days), days)
        return f"{ITEMS}bbox={max(lon - degrees, -180)},{max(lat - degrees, -90)},{min(lon + degrees, 180)},{min(lat + degrees, 90)}&datetime={start}/{end}"
    near = lambda lon, lat, km: f"{ITEMS}near={lon},{lat}&radius={km * 1000:.0f}"
    months = "/collections/events/aggregate?function=count,avg(value)&window=P1M"
    return {
        "near, fixed circle": (True, [near(*p, SMALLEST_KM) for p in points]),
        "near, as many hits": (False, [near(*p, SMALLEST_KM * math.sqrt(share)) for p in points]),
        "nearest 25": (False, [f"{ITEMS}near={lon},{lat}&nearest=25" for lon, lat in points]),
        "space-time, fixed box": (True, [around(*p, 0.5, 10) for p in points]),
        "space-time, as many hits": (False, [around(*p, 0.5, 10 * share) for p in points]),
        "months, all": (False, [months]),
        "months, box": (False, [f"{months}&bbox=-125,30,-110,42"]),
        "one number, box": (False, ["/collections/events/aggregate?function=count,avg(value)&bbox=-125,30,-110,42"])}


def asked(server, targets):
    """Every question once, for a minute at most, so that what is timed is warm at every size."""
    until = time.time() + WARM_S
    for target in targets:
        http(server, "GET", target)
        if time.time() > until:
            break


def one_size(options, rows, smallest):
    """Loads, then asks every question for some seconds, round after round."""
    files, found = data.events(rows, options.seed), {}
    with tempfile.TemporaryDirectory(prefix="bench-scaling-") as name:
        folder = pathlib.Path(name)
        with start_meridian(folder) as server:
            meridian(server, "create", "events", "--schema", data.SCHEMA.replace(";meridian.id='given'", ""))
            began, cpu = time.time(), cpu_seconds(server.pid)
            meridian(server, "load", "events", *files, "--quiet", "--ignore-unknown")
            load_s = time.time() - began
            settle(server.pid, most=600)
            load_cpu_s, loaded_mb = cpu_seconds(server.pid) - cpu, resident_mb(server.pid)
            for what, (grows, targets) in questions(random.Random(options.seed), rows, smallest).items():
                file = folder / "questions.txt"
                file.write_text("".join(target + "\n" for target in targets))
                asked(server, targets)
                runs = [drive(server, "http", "{1}", file, options.seconds, 1) for _ in range(options.rounds)]
                found[what] = {"grows": grows, "p50_ms": median([r["p50_ms"] for r in runs]), "runs": runs,
                               "bytes_mean": median([r["bytes_mean"] for r in runs])}
            queried_mb = resident_mb(server.pid)
        began = time.perf_counter()
        with start_meridian(folder) as server:
            http(server, "GET", ITEMS + "bbox=139.6,35.6,139.8,35.8&datetime=2024-03-01T00:00:00Z/2024-03-02T00:00:00Z")
            open_ms = (time.perf_counter() - began) * 1000
    say(f"{rows:,} events: {rows / load_s:,.0f}/s, " + ", ".join(f"{w} {f['p50_ms']:.2f} ms" for w, f in found.items()))
    return {"rows": rows, "load_s": load_s, "load_cpu_s": load_cpu_s, "open_ms": open_ms, "loaded_mb": loaded_mb, "queried_mb": queried_mb, "questions": found}


def exponent(sizes, values):
    """The slope of logarithms, by least squares."""
    return float(numpy.polyfit(numpy.log(sizes), numpy.log(values), 1)[0])


def draw(result, path):
    """Times and rates over sizes, both logarithmic, the fitted exponent in the legend."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "meridian"
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(12, 5))
    rows = [s["rows"] for s in result["sizes"]]
    for what, fitted in result["exponents"].items():
        values = [s["questions"][what]["p50_ms"] for s in result["sizes"]]
        left.loglog(rows, values, "o-" if fitted["grows"] else "s--", label=f"{what}: n^{fitted['exponent']:.2f}")
    left.set(xlabel="events", ylabel="median of an answer, ms", title="Answers (dashed: results do not grow)")
    for label, values in (("load, events/s", [s["rows"] / s["load_s"] for s in result["sizes"]]), ("open to first answer, ms", [s["open_ms"] for s in result["sizes"]]),
                          ("resident after the questions, MB", [s["queried_mb"] for s in result["sizes"]])):
        right.loglog(rows, values, "o-", label=f"{label}: n^{exponent(rows, values):.2f}")
    right.set(xlabel="events", title="Load, open, memory")
    for axes in (left, right):
        axes.grid(True, which="both", alpha=0.2)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 316_228, 1_000_000, 3_162_278],
                        help="sizes (the full ones: 1000000 3162278 10000000 31622777 100000000)")
    parser.add_argument("--seconds", type=float, default=2.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    need(MERIDIAN, DRIVER, "zstd")
    quiet, sizes = [steal_and_load()], []
    for rows in options.rows:
        sizes.append(one_size(options, rows, options.rows[0]))
        quiet.append(steal_and_load())
    exponents = {what: {"grows": q["grows"], "exponent": exponent(options.rows, [s["questions"][what]["p50_ms"] for s in sizes]),
                        "bytes_exponent": exponent(options.rows, [s["questions"][what]["bytes_mean"] for s in sizes])}
                 for what, q in sizes[0]["questions"].items()}
    result = {"rows": options.rows, "rows_text": " ".join(map(str, options.rows)), "seconds": options.seconds, "rounds": options.rounds, "seed": options.seed,
              "quiet": quiet, "sizes": sizes, "exponents": exponents}
    save("scaling", result)
    draw(result, RESULTS / "scaling.svg")


if __name__ == "__main__":
    main()
