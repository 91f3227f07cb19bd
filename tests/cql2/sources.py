"""What the server is filled with: countries, cities and lines."""

import json
import subprocess
import sys

from server import call

DATA = sys.argv[2]


def read(name):
    text = subprocess.run(["zstd", "-dc", f"{DATA}/{name}"], check=True, capture_output=True).stdout
    return [json.loads(line) for line in text.splitlines()]


def create(name, geometry, properties, features):
    kinds = {"geom": {"format": geometry, "x-ogc-role": "primary-geometry"}, "id": {"type": "string", "x-ogc-role": "id"}}
    status, answer = call("PUT", f"/collections/{name}", {"type": "object", "properties": kinds | properties})
    assert status == 201, answer
    for n, feature in enumerate(features):
        feature["type"], feature["id"] = "Feature", f"{name}-{n}"
    collection = {"type": "FeatureCollection", "features": features}
    status, answer = call("POST", f"/collections/{name}/items", collection, "application/geo+json")
    assert status == 201, answer
    return features


def load():
    """Fills the server; gives the features of each source."""
    text, time = {"type": "string"}, {"type": "string", "format": "date-time"}
    countries = [
        {"geometry": f["geometry"], "properties": {"NAME": p["name"], "CONTINENT": p["continent"], "POP_EST": p["pop_est"]}}
        for f in read("countries_110m_pop.geojsonl.zst")
        for p in [f["properties"]]
    ]
    create(
        "countries",
        "geometry-polygon-or-multipolygon",
        {"NAME": text, "CONTINENT": text, "POP_EST": {"type": "number"}},
        countries,
    )
    cities = []
    for n, feature in enumerate(read("capitals_110m.geojsonl.zst")):
        name = feature["properties"]["name"]
        row = {"name": name, "pop_other": n * 7919 % 3001 * 1000, "letters": sorted(set(name.lower()))[:4]}
        # Three rows have times and flags, as in the standard's data.
        if n % 100 == 7:
            year = 2021 + n // 100
            row |= {"date": f"{year}-04-16T00:00:00Z", "start": f"{year}-04-16T10:13:19Z", "boolean": n != 107}
            row["end"] = f"{year + 1}-04-16T10:16:06Z"
        cities.append({"geometry": feature["geometry"], "properties": row})
    kinds = {"name": text, "pop_other": {"type": "integer"}, "date": time, "start": time, "end": time}
    kinds |= {"boolean": {"type": "boolean"}, "letters": {"type": "array", "items": text}}
    create("cities", "geometry-point", kinds, cities)
    places = [feature["geometry"]["coordinates"] for feature in cities]
    lines = [
        {"geometry": {"type": "LineString", "coordinates": places[n : n + 18]}, "properties": {"name": f"line {n}"}}
        for n in range(0, 234, 18)
    ]
    create("lines", "geometry-linestring", {"name": text}, lines)
    return {"countries": countries, "cities": cities, "lines": lines}


def rows(features, keep):
    """Ids of the features whose properties are so; a null is never so."""
    found = set()
    for feature in features:
        try:
            if keep(feature["properties"]):
                found.add(feature["id"])
        except (KeyError, TypeError):
            pass
    return found
