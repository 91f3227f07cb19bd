"""How the figures of bench-footprint are drawn."""

from tables import quiet, spread, table

TITLE = "Footprint: bytes an event, time to open, an idle server"
COMMAND = "python3 bench/footprint/run.py {options}"


def render(result):
    """A table a set, below that of the events the starts."""
    out = ["Meridian is weighed with its log and all that it keeps to serve, \"its Parquet\" are the files that `meridian files` lists; the others with their indexes, without their logs. "
           "QuestDB has summed numbers where the others have read all; DuckDB's memory is that of a Python process that has read its file.", ""]
    for name, one in result["sets"].items():
        out += [f"### {name.capitalize()}", "", *weights(one), ""]
        if "open" in one["systems"]["meridian"]:
            out += starts(one, result["empty"], result["binary_bytes"])
    return [*out, quiet(result)]


def weights(one):
    """Bytes that each row takes, and Meridian's by ending."""
    count, ours = one["count"], one["systems"]["meridian"]
    each = lambda n: f"{n / count:,.1f}"
    compared = lambda name, disk, resident="": [name, each(disk), f"{ours['disk'] / disk:.2f}", f"{ours['at_rest'] / disk:.2f}", resident]
    lines = []
    for name, s in one["systems"].items():
        mb = s.get("resident_queried_mb")
        lines.append(compared(name, s["disk"], f"{mb:,.0f} MB, {each(mb * 2**20)} bytes each" if mb else ""))
        if "at_rest" in s:
            lines.append(compared(f"{name}, its Parquet", s["at_rest"]))
        if "table_alone" in s:
            lines.append(compared(f"{name}, table alone", s["table_alone"]))
    endings = ", ".join(f"`{ending}` {each(taken)}" for ending, taken in sorted(ours["endings"].items(), key=lambda e: -e[1]))
    return [f"{count:,} {one['what']}.", "",
            *table(["system", "bytes on disk each", "Meridian / this", "its Parquet / this", "resident after reading all"], lines), "",
            f"Meridian's files by ending, bytes each: {endings}."]


def starts(one, empty, binary_bytes):
    """What Meridian takes to open the events, to rest and to load them."""
    ours, count = one["systems"]["meridian"], one["count"]
    opened = ours["open"]
    cold = f"{spread(opened['cold_ms'])} ms with a cold page cache, " if opened["cold_ms"] else ""
    without = (f"{spread(empty['cold_ms'])} ms cold, " if empty.get("cold_ms") else "") + f"{spread(empty['start_ms'])} ms warm"
    return [f"- From start to the first answer: {cold}{spread(opened['warm_ms'])} ms with a warm one; without data {without}.",
            f"- Idle: {spread(empty['idle_mb'], 1)} MB without data, {spread(opened['idle_mb'], 1)} MB with {count:,} events after one answer.",
            f"- Loading took {ours['load_s']:,.0f} s and {ours['load_cpu_s'] / count * 1e6:,.2f} s of processor time a million events; {ours['resident_loaded_mb']:,.0f} MB resident at its end.",
            f"- The binary has {binary_bytes / 1e6:,.1f} MB.", ""]
