"""How the figures of bench-scans are drawn: published, measured in dilated time, and forecast by the simulator."""

import statistics

from tables import table

TITLE = "Scan servers: a published study, in dilated time"
COMMAND = "make bench-scans"
FIGURES = {"busy_events": "busy", "mean_ms": "mean", "sd_ms": "deviation", "min_ms": "min", "max_ms": "max"}
# Bounds of issue 21, of the means of rows that nothing was fitted to.
MEDIAN_MAX, ERROR_MAX, RANK_MIN = 0.20, 0.50, 0.80
# Stands in the results whether or not there are figures.
DEFINITIONS = [
    "Accumulo's test of scan servers (2022) with real owners, gateways, scan servers and selector. Processor time and storage are slept, by costs that are fitted to D806, D816 and D824 alone "
    "(`bench/studies/scan-forecast.toml`); each server has eight such cores, all servers share three storage nodes. All waits, busy timeouts too, take 20 times as long as the study's, those of small scans by servers "
    "200 times; figures are in the study's own time. Decision 063 says what is real.",
    "",
    "- **busy**: busy answers that a probe of as many scans as the study's sees. All clients are counted, not one probe.",
    "- **cache**: share of blocks that scan servers found in memory, for real. What is missing costs no modelled time: the study had no cache of data.",
    "- **used**: the machine's processors, by the study and the host. Above 60 % a row is void, and it is not kept.",
    "- **waited**: what all threads of the study waited for a processor, over the time of all scans. So the mean is at most that much too long. Above 5 % a row is void.",
    ""]


def render(result):
    """The rows, how well they agree, and the servers that come and go."""
    out = list(DEFINITIONS)
    rows = result["rows"]
    published = {name: row for name, row in rows.items() if row["published"]}
    if published:
        out += ["Published / **measured** / forecast, in ms.", "", *table(["row", *FIGURES.values(), "error", "cache", "scans", "held against", "used", "waited", ""], [cells(name, row) for name, row in published.items()]), "", *agreement(published)]
    bound = {name: row for name, row in rows.items() if not row["published"]}
    if bound:
        out += ["### A tier that storage bounds", "", "Small scans, and storage nodes of one core: more servers do not help.", "",
                *table(["row", "servers", "mean ms: measured", "forecast", "cache", "used"],
                       [[name, row["set"]["servers"], number(mean(row, "figures")), number(mean(row, "forecast")), share(row["cache_hits"]), share(row["used"])] for name, row in bound.items()]), ""]
    if "changes" in result:
        one = result["changes"]
        acts = ", ".join(f"{act} {count}" for act, count in one["done"].items())
        out += ["### Servers that come and go", "",
                f"{one['scans']:,} large scans by {one['clients']} clients in {one['seconds']:.0f} s (x{one['times']}): {acts}. **{one['failed']} failed, {one['differ']} differ from the owner's answer.** "
                f"{one['attempts_failed']:.0f} of {one['attempts']:,.0f} attempts failed on the way and went elsewhere, {one['busy']:,.0f} were answered busy.", ""]
    return out[:-1]


def number(value):
    if value is None:
        return "-"
    return f"{value:,.1f}" if 0 < value < 10 else f"{value:,.0f}"


def share(value):
    return "-" if value is None else f"{value:.0%}"


def mean(row, which):
    """The mean that is said, measured or forecast."""
    return (row[which] or {}).get("mean_ms")


def error(row, which):
    """A mean over the published one, less one."""
    return None if mean(row, which) is None else mean(row, which) / row["published"]["mean_ms"] - 1


def cells(name, row):
    """A row of the table."""
    of = lambda figure: f"{number(row['published'].get(figure))} / **{number((row['figures'] or {}).get(figure))}** / {number((row['forecast'] or {}).get(figure))}"
    errors = " / ".join("-" if one is None else f"{one:+.0%}" for one in (error(row, "figures"), error(row, "forecast")))
    said = ["fitted to"] * row["fitted"] + ["**void**"] * bool(row["void"]) + [f"x{row['times']}"] * (row["times"] != 20)
    return [name, *map(of, FIGURES), errors, share(row["cache_hits"]), f"{row['scans']:,}", f"{row['held_against']:,}", share(row["used"]), f"{row['waited']:.1%}", ", ".join(said)]


def ranks(values):
    """The rank of each value; equal values have the mean of their ranks."""
    order = sorted(values)
    return [order.index(value) + (order.count(value) - 1) / 2 for value in values]


def spearman(pairs):
    """The rank correlation; None for fewer than three pairs, or where one side does not vary."""
    if len(pairs) < 3:
        return None
    try:
        return statistics.correlation(*map(ranks, zip(*pairs)))
    except statistics.StatisticsError:
        return None


def agree(rows, which):
    """For rows that are not void and were not fitted to: how far the means are off, and whether their order is the published one."""
    held = {name: row for name, row in rows.items() if not row["fitted"] and not row["void"] and error(row, which) is not None}
    if not held:
        return None
    errors = {name: abs(error(row, which)) for name, row in held.items()}
    worst = max(errors, key=errors.get)
    return {"rows": len(held), "median": statistics.median(errors.values()), "max": errors[worst], "worst": worst,
            "rank": spearman([(row["published"]["mean_ms"], mean(row, which)) for row in held.values()])}


def agreement(rows):
    """The bounds of the issue, for what was measured and for what was forecast of the same rows."""
    found = {"measured": agree(rows, "figures"), "forecast": agree(rows, "forecast")}
    lines = []
    for which, one in found.items():
        if one:
            holds = one["median"] <= MEDIAN_MAX and one["max"] <= ERROR_MAX and one["rank"] is not None and one["rank"] >= RANK_MIN
            rank = "-" if one["rank"] is None else f"{one['rank']:.2f}"
            lines.append([which, one["rows"], f"{one['median']:.0%}", f"{one['max']:.0%} ({one['worst']})", rank, "holds" if holds else "does not hold"])
    bounds = ["bound", "", f"{MEDIAN_MAX:.0%}", f"{ERROR_MAX:.0%}", f"{RANK_MIN:.2f}", ""]
    return table(["means", "rows not fitted to", "median error", "max error", "rank correlation", ""], [*lines, bounds]) + [""] if lines else []
