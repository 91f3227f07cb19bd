"""The spatial classes."""

from server import check, expect, ids, refused, tested


def spatial(sources):
    """The spatial classes, beside the standard's counts: cities held against boxes, and what must be the same or nothing."""
    west, south, east, north = 0, 40, 10, 50
    box, polygon = f"BBOX({west},{south},{east},{north})", "POLYGON((0 40,10 40,10 50,0 50,0 40))"

    def inside(feature):
        x, y = feature["geometry"]["coordinates"]
        return west <= x <= east and south <= y <= north

    cities, lines = sources["cities"], sources["lines"]
    within = {f["id"] for f in cities if inside(f)}
    others = {f["id"] for f in cities} - within
    for place in (box, polygon):
        expect("cities", f"S_INTERSECTS(geom,{place})", within)
        expect("cities", f"S_DISJOINT(geom,{place})", others)
        expect("cities", f"S_WITHIN(geom,{place})", within)
        expect("cities", f"S_CONTAINS(geom,{place})", 0)
    x, y = cities[5]["geometry"]["coordinates"]
    expect("cities", f"S_EQUALS(geom,POINT({x!r} {y!r}))", {cities[5]["id"]})
    half = {f["id"] for f in lines if all(x <= 0 for x, _ in f["geometry"]["coordinates"])}
    expect("lines", "S_WITHIN(geom,BBOX(-180,-90,0,90))", half)
    touched = {f["id"] for f in lines if any(x <= 0 for x, _ in f["geometry"]["coordinates"])}
    expect("lines", "S_INTERSECTS(geom,BBOX(-180,-90,0,90))", touched)
    expect("lines", "S_DISJOINT(geom,BBOX(-180,-90,0,90))", {f["id"] for f in lines} - touched)
    expect("lines", "S_CROSSES(geom,BBOX(-180,-90,0,90))", touched - half)
    world = "POLYGON((-180 -90,180 -90,180 90,-180 90,-180 -90))"
    for name, features in sources.items():
        for op, expected in (("INTERSECTS", len(features)), ("DISJOINT", 0), ("EQUALS", 0), ("CONTAINS", 0)):
            expect(name, f"S_{op}(geom,BBOX(-180,-90,180,90))", expected)
            expect(name, f"S_{op}(geom,{world})", expected)
        same = [ids(name, f"S_WITHIN(geom,{place})") for place in ("BBOX(-180,-90,180,90)", world)]
        check(same[0] == same[1], f"{name}: within the world as a box and as a polygon")
        for place in ("LINESTRING(7 50,10 51)", "POINT(7.02 49.92)"):
            both = ids(name, f"S_INTERSECTS(geom,{place})") & ids(name, f"S_DISJOINT(geom,{place})")
            check(not both, f"{name}: {place} both meets and does not meet {both}")
        for op in ("TOUCHES", "CROSSES", "OVERLAPS", "WITHIN", "CONTAINS", "EQUALS"):
            for place in ("LINESTRING(7 50,10 51)", "MULTIPOINT(7 50,10 51)"):
                ids(name, f"S_{op}(geom,{place})")
        for op in ("INTERSECTS", "DISJOINT"):
            refused(name, f"S_{op}(geom,POINT(90 180))")
    refused("countries", "S_INTERSECTS(geom,MULTIPOINT(7.02 49.92, 90 180))")
    tested.update({"basic-spatial-functions", "basic-spatial-functions-plus", "spatial-functions"})
