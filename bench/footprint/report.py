"""How the figures of bench-footprint are drawn."""

from tables import quiet, spread, table

TITLE = "Footprint: bytes an event, time to open, an idle server"
COMMAND = "python3 bench/footprint/run.py --rows {rows} --rounds {rounds}"


def render(result):
    """Bytes an event, then the starts."""
    rows, systems = result["rows"], result["systems"]
    ours = systems["meridian"]
    each = lambda n: f"{n / rows:,.1f}"
    lines = [[name, each(s["disk"]), f"{ours['disk'] / s['disk']:.2f}", f"{s['resident_queried_mb']:,.0f} MB" if "resident_queried_mb" in s else ""]
             for name, s in systems.items()]
    out = [f"{rows:,} events {{id, kind, value, time, place}}; the id is text everywhere, PostGIS has a key on it, an index on the place and one on the time.", "",
           *table(["system", "bytes on disk an event", "Meridian / this", "resident after reading all"], lines), ""]
    endings = ", ".join(f"`{ending}` {each(taken)}" for ending, taken in sorted(ours["endings"].items(), key=lambda e: -e[1]))
    out.append(f"Meridian's files by ending, bytes an event: {endings}."
               + (f" The Parquet files that `meridian files` lists: {each(ours['at_rest'])} bytes an event, {ours['at_rest'] / systems['parquet, zstd']['disk']:.2f} of plain Parquet, "
                  f"{ours['at_rest'] / systems['geoparquet and boxes, zstd']['disk']:.2f} of GeoParquet with boxes, "
                  f"{ours['at_rest'] / systems['postgis']['disk']:.2f} of PostGIS." if ours["at_rest"] else ""))
    opened, empty = ours["open"], result["empty"]
    cold = f"{spread(opened['cold_ms'])} ms with a cold page cache, " if opened["cold_ms"] else ""
    without = (f"{spread(empty['cold_ms'])} ms cold, " if empty.get("cold_ms") else "") + f"{spread(empty['start_ms'])} ms warm"
    out += ["", f"- From start to the first answer: {cold}{spread(opened['warm_ms'])} ms with a warm one; without data {without}.",
            f"- Idle: {spread(empty['idle_mb'], 1)} MB without data, {spread(opened['idle_mb'], 1)} MB with {rows:,} events after one answer.",
            f"- Loading took {ours['load_s']:,.0f} s and {ours['load_cpu_s'] / rows * 1e6:,.2f} s of processor time a million events; {ours['resident_loaded_mb']:,.0f} MB resident at its end.",
            f"- The binary has {result['binary_bytes'] / 1e6:,.1f} MB.", "", quiet(result)]
    return out
