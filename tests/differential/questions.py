"""Questions made at random, asked over HTTP and answered by loops over lists; each `check` gives a mismatch or None."""

import json
import math
import urllib.parse

import filters
from model import DAY, FIELDS, NEW_YEAR, instant

EARTH_M = 6_371_008.8


def distance(a, b):
    """Metres between two points over the globe (haversine)."""
    (x1, y1), (x2, y2) = ([math.radians(v) for v in p] for p in (a, b))
    h = math.sin((y2 - y1) / 2) ** 2 + math.cos(y1) * math.cos(y2) * math.sin((x2 - x1) / 2) ** 2
    return 2 * EARTH_M * math.asin(min(1.0, math.sqrt(h)))


def sends(question):
    """The parameters of a question as they are sent."""
    out = {name: value for name, value in question.items() if name not in ("kind", "filter", "lang", "functions")}
    if "functions" in question:
        out["function"] = ",".join(question["functions"])
    if "filter" in question:
        text, tree = filters.write(question["filter"])
        out["filter"] = json.dumps(tree) if question.get("lang") == "json" else text
        if question.get("lang") == "json":
            out["filter-lang"] = "cql2-json"
    for name in ("bbox", "near"):
        if name in out:
            out[name] = ",".join(map(str, out[name]))
    if "datetime" in out:
        out["datetime"] = "/".join(".." if t is None else instant(t) for t in out["datetime"])
    return urllib.parse.urlencode(out)


def conditions(rng, world):
    """Conditions that every question takes."""
    question = {}
    if world.geometry and rng.random() < 0.4:
        (x, y), w, h = world.position(), rng.randint(0, 16) / 2, rng.randint(0, 12) / 2
        question["bbox"] = [x, y, x + w, y + h]
    if world.time and rng.random() < 0.4:
        first, last = sorted([world.moment(), world.moment()])
        question["datetime"] = rng.choice([(first, last), (first, None), (None, last), (first, first)])
    if rng.random() < 0.6:
        question["filter"] = filters.make(rng, world)
        question["lang"] = rng.choice(["text", "json"])
    if world.latest and rng.random() < 0.4:
        question["history"] = "true"
    return question


def matching(world, question):
    """The events that a question is about."""
    found = []
    for event in world.shown(question.get("history") == "true" or question["kind"] in ("track", "tracks")):
        if "bbox" in question and not (event["geometry"] and filters.meets(event["geometry"], question["bbox"])):
            continue
        if "datetime" in question:
            times, (first, last) = world.times(event), question["datetime"]
            if times is None or first is not None and times[1] < first or last is not None and times[0] > last:
                continue
        if "filter" in question and filters.says(question["filter"], event) is not True:
            continue
        if "radius" in question:
            if not event["geometry"] or distance(event["geometry"]["coordinates"], question["near"]) > question["radius"]:
                continue
        found.append(event)
    return found


def make(rng, world):
    kinds = ["items"] * 5 + ["aggregate"] * 3 + ["event"]
    if world.geometry:
        kinds += ["density"]
    if world.geometry == "point":
        kinds += ["near", "near"]
        kinds += ["track", "tracks"] if world.time else []
    question = {"kind": rng.choice(kinds), **conditions(rng, world)}
    kind = question["kind"]
    if kind == "items":
        question["limit"] = rng.choice([1, 3, 7, 1000])
        question["f"] = rng.choice(["json", "json", "ndjson", "csv"])
        if rng.random() < 0.5:
            names = rng.sample(["n", "x", "name", "flag", "seen", "id", "obj"], rng.randint(1, 3))
            question["sortby"] = ",".join(rng.choice(["", "-"]) + name for name in names)
    if kind == "near":
        # Radii that lie on no distance between halves of degrees.
        question |= {"near": [v + 0.123 for v in world.position()], "limit": rng.choice([2, 1000])}
        question |= rng.choice([{}, {"radius": rng.randint(1, 900) * 1234.5}, {"nearest": rng.randint(1, 9)}])
    if kind == "aggregate":
        fields = [f"{name}({field})" for name in ("sum", "avg", "min", "max") for field in "nx"]
        question["functions"] = ["count", *rng.sample(fields, 3)]
        if rng.random() < 0.5:
            question["by"] = rng.choice(["n", "name", "flag", "obj"])
        if world.time and rng.random() < 0.5:
            question["window"] = rng.choice(["P1D", "PT6H", "P1M", "PT36H"])
    if kind == "density":
        question["bbox"] = [-6.37, -4.41, 7.19, 6.83]
        question |= {"width": rng.randint(1, 9), "height": rng.randint(1, 9)}
    if kind == "track":
        question = {k: v for k, v in question.items() if k != "history"} | {"track": rng.choice(["o1", "o2", "o9"])}
    if kind == "tracks":
        question = {k: v for k, v in question.items() if k != "history"} | {"limit": rng.choice([1, 10])}
    if kind == "event":
        question = {"kind": kind, "id": rng.choice(world.events)["id"] if world.events and rng.random() < 0.8 else "nobody"}
    return question


def check(client, world, question):
    """A sentence about what differs, or None."""
    try:
        return globals()[f"check_{question['kind']}"](client, world, question)
    except client.Failed as failed:
        return str(failed)


def differ(what, found, expected):
    return None if found == expected else f"{what}: the server says {found!r}, the oracle {expected!r}"


def whole(world, feature):
    """An event of an answer against the oracle's, value by value; times as text."""
    expected = next((e for e in world.events if e["id"] == feature["id"]), None)
    if expected is None:
        return f"the event {feature['id']} is not there"
    times = [name for name in expected["properties"] if FIELDS.get(name) == "time" or name in ("at", "start", "end")]
    properties = dict(expected["properties"])
    properties |= {name: instant(properties[name]) for name in times if properties[name] is not None}
    found = {name: feature["properties"].get(name) for name in properties}
    return differ(f"properties of {feature['id']}", found, properties) or differ(
        f"geometry of {feature['id']}", feature["geometry"], expected["geometry"])


def check_event(client, world, question):
    status, feature = client.get(f"/items/{question['id']}", None)
    known = any(event["id"] == question["id"] for event in world.events)
    if not known or status != 200:
        return differ(f"status of {question['id']}", status, 200 if known else 404)
    return whole(world, feature)


def pages(client, question):
    """The features of all pages, the number matched of each, and how many each had."""
    path, features, matched, sizes = f"/items?{sends(question)}", [], [], []
    while path:
        page = client.ok(path)
        features += page["features"]
        matched.append(page.get("numberMatched"))
        sizes.append(len(page["features"]))
        path = next((link["href"] for link in page["links"] if link["rel"] == "next"), None)
    return features, matched, sizes


def check_items(client, world, question):
    expected = matching(world, question)
    limit = question["limit"]
    if "sortby" in question:
        expected.sort(key=lambda event: event["seq"])
        for name in reversed(question["sortby"].split(",")):
            key = lambda e: e["seq"] if name.strip("-") == "id" and not world.given else (
                e["id"] if name.strip("-") == "id" else e["properties"][name.strip("-")])
            nulls = [event for event in expected if key(event) is None]
            some = [event for event in expected if key(event) is not None]
            # Equal values keep their order, in both directions; those without a value come last.
            expected = sorted(some, key=key, reverse=name.startswith("-")) + nulls
    if question["f"] != "json":
        lines = client.text(f"/items?{sends(question)}").splitlines()
        return differ("lines", len(lines) - (question["f"] == "csv"), min(limit, len(expected)))
    features, matched, sizes = pages(client, question)
    ids, wanted = [f["id"] for f in features], [e["id"] for e in expected]
    if "sortby" not in question:
        ids, wanted = sorted(ids), sorted(wanted)
    wrong = differ("ids", ids, wanted) or differ("numbers matched", set(matched), {len(wanted)})
    full = [limit] * (len(wanted) // limit) + [len(wanted) % limit]
    wrong = wrong or differ("pages", sizes, full[:-1] if len(full) > 1 and full[-1] == 0 else full)
    return wrong or next(filter(None, (whole(world, feature) for feature in features)), None)


def check_near(client, world, question):
    measured = [(distance(e["geometry"]["coordinates"], question["near"]), e["seq"], e["id"])
                for e in matching(world, question) if e["geometry"]]
    # Distances that differ by rounding alone are one: then the order of writing decides.
    expected = [i for _, _, i in sorted((round(d, 3), seq, i) for d, seq, i in measured)][: question.get("nearest")]
    features, matched, _ = pages(client, question)
    wrong = differ("numbers matched", set(matched), {len(expected)})
    return wrong or differ("ids by distance", [f["id"] for f in features], expected)


def window_of(world, event, length):
    times = world.times(event)
    start = None if times is None or times[0] < -(1 << 62) else times[0]
    if start is None or length is None:
        return None
    if length == "P1M":
        text = instant(start)
        year, month = int(text[:4]), int(text[5:7])
        after = f"{year + month // 12:04}-{month % 12 + 1:02}"
        return f"{text[:7]}-01T00:00:00Z/{after}-01T00:00:00Z"
    step = {"P1D": DAY, "PT6H": DAY // 4, "PT36H": DAY * 3 // 2}[length]
    first = start // step * step
    return f"{instant(first)}/{instant(first + step)}"


def check_aggregate(client, world, question):
    groups = {}
    for event in matching(world, question):
        window = window_of(world, event, question["window"]) if "window" in question else None
        by = event["properties"][question["by"]] if "by" in question else None
        groups.setdefault((window, by), []).append(event)
    if "by" not in question and "window" not in question:
        groups.setdefault((None, None), [])
    answer = client.ok(f"/aggregate?{sends(question)}")["groups"]
    found = {(group.get("window"), group.get("by")): group for group in answer}
    key = lambda pair: json.dumps(pair)
    if len(found) != len(answer) or set(map(key, found)) != set(map(key, groups)):
        return differ("groups", sorted(map(key, found)), sorted(map(key, groups)))
    for pair, events in groups.items():
        wrong = differ(f"count of {pair}", found[pair]["count"], len(events))
        for function in question["functions"][1:]:
            wrong = wrong or number(function, found[pair][function], events)
        if wrong:
            return f"{pair}: {wrong}"
    return None


def number(function, found, events):
    name, field = function[:3], function[4]
    values = [e["properties"][field] for e in events if e["properties"][field] is not None]
    if not values:
        return differ(function, found, None)
    exact = field == "n"
    total = sum(values) if exact else math.fsum(values)
    expected = {"sum": total, "avg": total / len(values), "min": min(values), "max": max(values)}[name]
    if name in ("min", "max") or name == "sum" and exact:
        return differ(function, found, expected)
    close = found is not None and abs(found - expected) <= 1e-12 * sum(abs(v) for v in values)
    return None if close else differ(function, found, expected)


def corners(geometry):
    at = geometry["coordinates"]
    return {"Point": [at], "LineString": at, "Polygon": at[0] if geometry["type"] == "Polygon" else []}[geometry["type"]]


def check_density(client, world, question):
    (w, s, e, n), width, height = question["bbox"], question["width"], question["height"]
    counts = [0] * (width * height)
    for event in matching(world, question):
        xs, ys = zip(*corners(event["geometry"]))
        x, y = (min(xs) + max(xs)) / 2, (min(ys) + max(ys)) / 2
        if w <= x <= e and s <= y <= n:
            column, row = int((x - w) / (e - w) * width), int((n - y) / (n - s) * height)
            counts[min(row, height - 1) * width + min(column, width - 1)] += 1
    return differ("counts", client.ok(f"/density?{sends(question)}")["counts"], counts)


def check_track(client, world, question):
    events = [e for e in matching(world, question) if e["properties"]["obj"] == question["track"] and e["geometry"]]
    # An event without a start is nowhere on the way.
    start = lambda e: (world.times(e) or (-(1 << 63), 0))[0]
    events = sorted((e for e in events if start(e) > -(1 << 62)), key=lambda e: (start(e), e["seq"]))
    feature = client.ok(f"/items?{sends(question)}")
    places = [e["geometry"]["coordinates"] for e in events]
    at = feature["geometry"] and feature["geometry"]["coordinates"]
    expected = places if len(places) > 1 else places[0] if places else None
    times = [instant(start(e)) for e in events]
    return differ("places", at, expected) or differ("times", feature["properties"]["times"], times)


def check_tracks(client, world, question):
    objects = {}
    for event in matching(world, question):
        if event["properties"]["obj"] is not None:
            objects.setdefault(event["properties"]["obj"], []).append(world.times(event) or (-(1 << 63), (1 << 63) - 1))
    shown = lambda t: None if abs(t) > 1 << 62 else instant(t)
    expected = [{"object": name, "count": len(times), "first": shown(min(t[0] for t in times)),
                 "last": shown(max(t[1] for t in times))} for name, times in sorted(objects.items())]
    path, found = f"/tracks?{sends(question)}", []
    while path:
        page = client.ok(path)
        found += page["tracks"]
        path = next((link["href"] for link in page["links"] if link["rel"] == "next"), None)
    return differ("tracks", found, expected)


def shrink(client, world, question):
    """The smallest question, made by leaving parts out, that still differs."""
    smaller = True
    while smaller:
        smaller = False
        for candidate in less(question):
            if check(client, world, candidate):
                question, smaller = candidate, True
                break
    return question


def less(question):
    fixed = {"kind", "lang", "limit", "f", "near", "track", "functions", "width", "height", "id"}
    fixed |= {"bbox"} if question["kind"] == "density" else set()
    for name in question:
        if name not in fixed:
            yield {k: v for k, v in question.items() if k != name}
    for part in parts(question.get("filter")):
        yield question | {"filter": part}
    if "datetime" in question:
        yield question | {"datetime": (NEW_YEAR - 9 * DAY, NEW_YEAR + 9 * DAY)}


def parts(expr):
    if expr and expr[0] in ("and", "or", "not"):
        yield from expr[1:]
        for i, part in enumerate(expr[1:], 1):
            for smaller in parts(part):
                yield (*expr[:i], smaller, *expr[i + 1:])
