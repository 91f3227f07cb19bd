"""How the figures of bench-capacity are drawn."""

from tables import quiet, table

TITLE = "Capacity: many events in little memory"
COMMAND = "python3 bench/capacity/run.py --events {events} --memory {memory}"


def render(result):
    """Opening after kill -9, and what loading took."""
    out = [f"{result['events']:,} events of object, value, time and place; the server in a memory cgroup (version {result['cgroup']}) of "
           f"{result['memory']:,} MiB, and killed with `kill -9` before it is opened. First answers of a new process; then the median of those after.", ""]
    rows = []
    for opened in result["opens"]:
        cells = [f"{q['first_ms']:,.0f} / {q['p50_ms']:,.1f}" for q in opened["questions"].values()]
        rows.append(["cold" if opened["cold"] else "warm", f"{opened['ready_ms']:,.0f}", *cells, f"{opened['ready_mb']:,.0f} MB", f"{opened['peak_mb']:,.0f} MB"])
    questions = [f"{what}, ms" for what in result["opens"][0]["questions"]]
    out += table(["page cache", "ready after, ms", *questions, "anonymous when ready", "anonymous at most"], rows)
    if "load_s" in result:
        out += ["", f"Loaded at {(result['events'] - result['tail']) / result['load_s']:,.0f} events/s, merges done {result['settle_s']:,.0f} s later; "
                f"at most {result['load_peak_mb']:,.0f} MB of anonymous memory. {result['segments']:,.0f} segments, {result['segment_bytes'] / result['events']:.1f} "
                f"bytes an event on disk ({result['rest_bytes'] / result['events']:.1f} archived); depth {result['depth']:.0f} (bound {result['depth_bound']:.0f}), "
                f"{result['write_amplification']:.1f} bytes written for one taken; {result['log_tail_bytes'] / 1e6:,.1f} MB of log to replay."]
    return [*out, "", quiet(result)]
