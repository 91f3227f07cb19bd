"""The class of relations in time, which are Allen's."""

from server import expect, tested


def spans(a, b, c, d):
    """Which relations of Allen's hold between the time from a to b and that from c to d, by CQL2's names."""
    instants = a == b or c == d
    found = {
        "T_AFTER": a > d,
        "T_BEFORE": b < c,
        "T_DISJOINT": a > d or b < c,
        "T_INTERSECTS": not (a > d or b < c),
        "T_EQUALS": a == c and b == d,
    }
    if not instants:
        found |= {
            "T_CONTAINS": a < c and b > d,
            "T_DURING": a > c and b < d,
            "T_FINISHES": a > c and b == d,
            "T_FINISHEDBY": a < c and b == d,
            "T_MEETS": b == c,
            "T_METBY": a == d,
            "T_OVERLAPS": a < c < b < d,
            "T_OVERLAPPEDBY": c < a < d < b,
            "T_STARTS": a == c and b < d,
            "T_STARTEDBY": a == c and b > d,
        }
    return found


def temporal(features):
    """Class temporal-functions."""
    timed = [f for f in features if f["properties"].get("start")]
    one, two = (timed[n]["properties"] for n in (0, 1))
    sides = [
        ("2021-01-01T00:00:00Z", "2022-12-31T23:59:59Z"),
        (one["start"], one["end"]),
        (one["end"], "2024-01-01T00:00:00Z"),
        (one["start"], "2022-01-01T00:00:00Z"),
        ("2020-01-01T00:00:00Z", two["end"]),
        ("2021-01-01T00:00:00Z", two["start"]),
        ("2022-01-01T00:00:00Z", "2022-02-01T00:00:00Z"),
        ("2022-06-01T00:00:00Z", "2023-06-01T00:00:00Z"),
    ]
    for c, d in sides:
        for op in spans("0", "2", "1", "3"):
            held = {f["id"] for f in timed for p in [f["properties"]] if spans(p["start"], p["end"], c, d)[op]}
            expect("cities", f"{op}(INTERVAL(start,end),INTERVAL('{c}','{d}'))", held)
        for op in spans("0", "0", "1", "1"):
            held = {f["id"] for f in timed for p in [f["properties"]] if spans(p["start"], p["start"], c, d)[op]}
            expect("cities", f"{op}(start,INTERVAL('{c}','{d}'))", held)
            held = {f["id"] for f in timed for p in [f["properties"]] if spans(p["start"], p["start"], c, c)[op]}
            expect("cities", f"{op.lower()}(start,timestamp('{c}'))", held)
    tested.add("temporal-functions")
