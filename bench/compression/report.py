"""How the figures of bench-compression are drawn."""

from statistics import median

from tables import quiet, spread, table

TITLE = "Compression: processor time for a byte, and bytes sent"
COMMAND = "python3 bench/compression/run.py --rows {rows} --rounds {rounds}"


def render(result):
    """A row for each format and coding."""
    rows = []
    for name, codings in result["formats"].items():
        plain = median(codings["identity"]["runs"])
        for coding, one in codings.items():
            saved = one["plain_bytes"] - one["sent_bytes"]
            cost = (median(one["runs"]) - plain) * one["plain_bytes"]
            rows.append([name, coding, f"{one['plain_bytes'] / 1e6:,.2f} MB", f"{one['sent_bytes'] / one['plain_bytes']:.1%}", spread(one["runs"], 1),
                         f"{cost / saved:,.1f}" if saved > 0 else ""])
    return [f"{result['rows']:,} events; the server's processor time for a byte of the plain answer, query, encoding and sending included.", "",
            *table(["answer", "coding", "plain", "sent", "ns a plain byte", "ns a byte saved"], rows), "", quiet(result)]
