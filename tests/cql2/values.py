"""The classes of numbers, texts, times, truth values and lists, and combinations of predicates."""

import operator
import random
import re

from server import check, expect, ids, tested
from sources import rows

OPS = {"=": operator.eq, "<>": operator.ne, ">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}


def literals(features):
    """Column, literal and its value here, for each type that can be compared."""
    some = features[107]["properties"]
    return [
        ("name", f"'{some['name']}'", some["name"]),
        ("pop_other", str(some["pop_other"]), some["pop_other"]),
        ("start", f"TIMESTAMP('{some['start']}')", some["start"]),
        ("boolean", "true", True),
    ]


def comparisons(features):
    """Classes basic-cql2 and property-property: values on either side, columns on both, literals on both."""
    for column, literal, value in literals(features):
        quoted = f'"{column}"'
        for op, compare in OPS.items():
            here = rows(features, lambda p: compare(p[column], value))
            expect("cities", f"{quoted} {op} {literal}", here)
            there = rows(features, lambda p: compare(value, p[column]))
            expect("cities", f"{literal} {op} {quoted}", there)
            same = rows(features, lambda p: compare(p[column], p[column]))
            expect("cities", f"{quoted} {op} {quoted}", same)
            expect("cities", f"{literal} {op} {literal}", len(features) if compare(value, value) else 0)
        expect("cities", f"{quoted} IS NULL", {f["id"] for f in features if f["properties"].get(column) is None})
        expect("cities", f"{quoted} is not null", rows(features, lambda p: p[column] is not None))
    expect("cities", "start < end", rows(features, lambda p: p["start"] < p["end"]))
    expect("cities", "true", len(features))
    expect("cities", "false", 0)
    tested.update({"basic-cql2", "property-property"})


def advanced(features):
    """Class advanced-comparison-operators."""
    like = {"%": r".*", "_%": r".+", "": r"", "%%": r".*", r"\%\_": r"%_", "B_r%": r"B.r.*", "%a": r".*a"}
    for pattern, regex in like.items():
        holds = re.compile(regex, re.DOTALL).fullmatch
        expect("cities", f"name LIKE '{pattern}'", rows(features, lambda p: holds(p["name"])))
        expect("cities", f"name NOT LIKE '{pattern}'", rows(features, lambda p: not holds(p["name"])))
    expect("cities", "pop_other between 1000000 and 2000000", rows(features, lambda p: 1e6 <= p["pop_other"] <= 2e6))
    expect("cities", "pop_other not between 1000000 and 2000000", rows(features, lambda p: not 1e6 <= p["pop_other"] <= 2e6))
    expect("cities", "pop_other between 100.0 and 1.0", 0)
    names = ("Berlin", "athens", "Bern", "foo")
    expect("cities", f"name IN {names}", rows(features, lambda p: p["name"] in names))
    expect("cities", f"name NOT IN {names}", rows(features, lambda p: p["name"] not in names))
    start = features[7]["properties"]["start"]
    expect("cities", f"start in (TIMESTAMP('{start}'), TIMESTAMP('1999-01-01T00:00:00Z'))", 1)
    expect("cities", f"start not in (TIMESTAMP('{start}'))", 2)
    expect("cities", "boolean in (true)", 2)
    expect("cities", "boolean not in (false)", 2)
    tested.add("advanced-comparison-operators")


def folded(features):
    """Class case-insensitive-comparison."""
    for word in ("KØBENHAVN", "københavn", "København"):
        expect("cities", f"CASEI(name) = casei('{word}')", rows(features, lambda p: p["name"].lower() == "københavn"))
        expect("cities", f"CASEI(name) <> casei('{word}')", rows(features, lambda p: p["name"].lower() != "københavn"))
    for pattern in ("B_r%", "b_r%", "B_R%"):
        expect("cities", f"CASEI(name) LIKE casei('{pattern}')", rows(features, lambda p: re.match("b.r", p["name"].lower())))
    names = ["berlin", "athens", "bern"]
    expect("cities", "CASEI(name) IN (casei('BERLIN'), casei('athens'), casei('Bern'))", rows(features, lambda p: p["name"].lower() in names))
    tested.add("case-insensitive-comparison")


def arrays(features):
    """Class array-functions."""
    wanted = ["a", "b"]
    for op, holds in (
        ("A_CONTAINS", lambda have: set(wanted) <= have),
        ("A_CONTAINEDBY", lambda have: have <= set(wanted)),
        ("A_EQUALS", lambda have: have == set(wanted)),
        ("A_OVERLAPS", lambda have: bool(have & set(wanted))),
    ):
        expect("cities", f"{op}(letters,('a','b'))", rows(features, lambda p: holds(set(p["letters"]))))
    tested.add("array-functions")


def combined(features):
    """Combinations of four predicates, with NOT over nulls: what is neither true nor false is left out."""
    every = {f["id"] for f in features}
    kept = [
        "pop_other > 1000000",
        "name < 'København'",
        "start IS NULL",
        "start < TIMESTAMP('2022-04-16T10:13:19Z')",
        "boolean = true",
        "name LIKE 'B%'",
        "S_INTERSECTS(geom,BBOX(0,40,10,50))",
        "T_AFTER(start,TIMESTAMP('2022-01-01T00:00:00Z'))",
        "CASEI(name) >= casei('m')",
        "A_OVERLAPS(letters,('a','z'))",
    ]
    known = {p: (ids("cities", p), ids("cities", f"NOT ({p})")) for p in kept}
    chance = random.Random(1)
    for _ in range(30):
        names = chance.sample(kept, 4)
        (_, f1), (t2, _), (t3, _), (_, f4) = chosen = [known[p] for p in names]
        check(all(not (t & f) and t | f <= every for t, f in chosen), f"{names}: both true and false")
        text = "((NOT ({}) AND {}) OR ({} and NOT ({})) or not ({} AND {}))".format(*names, names[0], names[3])
        # True where one of the three is: each is true by Kleene's tables.
        expect("cities", text, (f1 & t2) | (t3 & f4) | (f1 | f4))
