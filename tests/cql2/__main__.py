"""The abstract tests of CQL2 (OGC 21-065r2, annex A) over HTTP, against a live server: cql2 URL DATA_FOLDER

Countries are Natural Earth's, as in the standard, whose counts they are held against. The standard's populated places
and rivers are not part of this project. Cities, with columns of the same names, and lines through them stand in for
them. What they must answer is computed here, row by row. At the end the server must declare exactly the classes that
were tested.
"""

import sys

import server
from server import check, expect, tested
from sources import load
from spatial import spatial
from standard import STANDARD, WORDS
from temporal import temporal
from values import advanced, arrays, combined, comparisons, folded

CLASS = "http://www.opengis.net/spec/cql2/1.0/conf/"


def main():
    sources = load()
    for name, predicate, count in STANDARD:
        expect("countries", predicate.format(**WORDS), count)
        tested.add(name)
    cities = sources["cities"]
    comparisons(cities)
    advanced(cities)
    folded(cities)
    spatial(sources)
    temporal(cities)
    arrays(cities)
    combined(cities)
    # Both encodings are held against each other by the unit tests of the filters.
    tested.update({"cql2-text", "cql2-json"})
    _, conformance = server.call("GET", "/conformance")
    declared = {uri.removeprefix(CLASS) for uri in conformance["conformsTo"] if uri.startswith(CLASS)}
    check(declared == tested, f"declared but not tested: {declared - tested}; tested but not declared: {tested - declared}")
    print("\n".join(server.wrong))
    print(f"cql2: {server.asked} predicates, {len(server.wrong)} wrong")
    sys.exit(1 if server.wrong or server.asked < 300 else 0)


if __name__ == "__main__":
    main()
