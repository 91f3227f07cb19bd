"""How the figures of bench-pairs are drawn."""

import statistics

from tables import table

TITLE = "Pairs: what changes to the server cost"
COMMAND = "python3 bench/pairs/run.py --old PATH --new PATH --rounds {rounds} --seconds {seconds:g}"


def render(result):
    """A row a part: medians of both builds, ratios with quartiles."""
    rows = []
    for part, found in result["parts"].items():
        both = [f"{statistics.median(found['cpu_us'][side]):,.1f}" for side in ("old", "new")]
        rows.append([part, *both, *(f"{found[key]['middle']:.3f} ({found[key]['low']:.3f} to {found[key]['high']:.3f})" for key in ("cpu", "rate"))])
    return [f"Releases of {result['old']} (old) and {result['new']} (new) in turns, on the same 100,000 places and the same writes.", "",
            *table(["part", "processor µs, old", "new", "new / old", "rate, new / old"], rows)]
