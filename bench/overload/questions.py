"""What the users of bench-overload ask: fixed questions whose answers are known, in mixes of known cost.

Every question has a window of the three years that are loaded, and what is written meanwhile goes to another collection. So each answer
has one digest. Questions are chosen by how many events they find, because that is what they cost. The bands were set so
that a heavy question takes some 10 ms of a core and a light one some 1 ms. The bench prints what they took.
"""

import collections
import hashlib
import http.client
import json
import math
import random

import data

Question = collections.namedtuple("Question", "name kind path digest rows")
# The subject of a question, for systems with another query language. It is a shape as WKT or a tile (zoom, row, column), and a window of time.
Subject = collections.namedtuple("Subject", "path shape tile start end")
RADII_KM, SPANS_DAYS = [10, 25, 50, 100, 200, 400, 650], [6, 30, 90, 180, 425]
CANDIDATES = 1_000
# Events that the answers of a kind hold.
BANDS = {"heavy": (20_000, 80_000), "light": (20, 200), "middle": (9_000, 16_000), "huge": (40_000, 200_000)}
# Shares of the kinds; what is left of a hundred is written.
MIXES = {"heavy": {"cities": 45, "countries": 25, "tiles": 10, "aggregates": 10, "ingest": 10}, "light": {"cities": 50, "tiles": 20, "aggregates": 20, "ingest": 10}}
BATCH = {"heavy": 500, "light": 10}
EACH = 12
INGEST = "object:String,value:Double,time:Date,*geometry:Point;meridian.id='given'"
INGEST_PATH = "/collections/arrivals/items"


def selection(shape, start, end):
    return f"filter={data.quoted(f'S_INTERSECTS(geom,{shape})')}&datetime={start}/{end}"


def cities(rng):
    """A circle about a city and a window of time."""
    span = rng.choice(SPANS_DAYS)
    ring = data.circle(*data.CITIES[rng.choice(list(data.CITIES))], rng.choice(RADII_KM))
    return data.wkt([[ring]]), *data.window(rng.randrange(data.DAYS - span), span)


def countries(rng, shapes):
    """A country by its borders and a window of time."""
    span = rng.choice([30, 90, 180, 425, 1_000])
    return data.wkt(rng.choice(shapes)[1]), *data.window(rng.randrange(data.DAYS - span), span)


def tile(rng, zooms):
    """A tile that holds a city, in a window of time."""
    lon, lat = data.CITIES[rng.choice(list(data.CITIES))]
    zoom, span = rng.choice(zooms), rng.choice([90, 180])
    column = int((lon + 180) / 360 * 2**zoom)
    row = int((1 - math.asinh(math.tan(math.radians(lat))) / math.pi) / 2 * 2**zoom)
    start, end = data.window(rng.randrange(data.DAYS - span), span)
    return Subject(f"/collections/events/tiles/WebMercatorQuad/{zoom}/{row}/{column}?datetime={start}/{end}", None, (zoom, row, column), start, end)


class Asker:
    """One connection that asks a side while nobody else does."""

    def __init__(self, side, token=None):
        self.connection = http.client.HTTPConnection("127.0.0.1", side.port, timeout=120)
        self.headers = {"Authorization": f"Bearer {token}"} if token else {}

    def get(self, path):
        self.connection.request("GET", path, headers=self.headers)
        answer = self.connection.getresponse()
        body = answer.read()
        if answer.status not in (200, 204):
            raise SystemExit(f"bench: GET {path[:200]}: {answer.status} {body[:300]!r}")
        return body

    def count(self, selected):
        """How many events a selection finds, which the index tells without reading them."""
        groups = json.loads(self.get(f"/collections/events/aggregate?function=count&{selected}"))["groups"]
        return groups[0]["count"] if groups else 0

    def question(self, name, kind, subject):
        """A question with the digest of its answer; one that has two answers cannot be judged."""
        path = subject.path
        body = self.get(path)
        if body != self.get(path):
            raise SystemExit(f"bench: GET {path[:200]}: two answers differ")
        return Question(name, kind, path, hashlib.sha256(body).hexdigest(), body.count(b"\n"))


def subjects(asker, seed):
    """What is asked about, by band and kind: the same for every side, so that one is asked for the counts."""
    rng, shapes, found = random.Random(seed), list(data.countries()), {band: collections.defaultdict(list) for band in BANDS}
    for make, kind in ((cities, "cities"), (lambda rng: countries(rng, shapes), "countries")):
        for _ in range(CANDIDATES):
            where = make(rng)
            selected = selection(*where)
            count = asker.count(selected)
            for band, (low, high) in BANDS.items():
                if low <= count <= high:
                    about = lambda path: Subject(path, where[0], None, *where[1:])
                    found[band][kind].append(about(f"/collections/events/items?f=ndjson&{selected}"))
                    if kind == "countries" or band == "light":
                        # Events of a day by their kind, and how strong they were: every event is read.
                        found[band]["aggregates"].append(about(f"/collections/events/aggregate?function=count,avg(value)&window=P1D&by=kind&{selected}"))
    for band, zooms in (("heavy", (4, 5, 6)), ("light", (11, 12, 13))):
        found[band]["tiles"] = [tile(rng, zooms) for _ in range(EACH)]
    return {band: {kind: chosen[:EACH] for kind, chosen in kinds.items()} for band, kinds in found.items()}


def ask_all(ask, by_band):
    """The questions of one side by band: `ask` takes a name, a kind and a subject."""
    return {band: [ask(f"{band} {kind} {n}", kind, subject) for kind, chosen in kinds.items() for n, subject in enumerate(chosen)] for band, kinds in by_band.items()}


def request(name, path, weight=1.0, check="", method="GET", body="", headers=None, result="body"):
    """A request of a scenario. JSON's strings are TOML's."""
    headers = ", ".join(f"{key} = {json.dumps(value)}" for key, value in (headers or {}).items())
    lines = ["[[request]]", f"name = {json.dumps(name)}", f"method = {json.dumps(method)}", f"path = {json.dumps(path)}", f"weight = {weight:g}",
             f"headers = {{ {headers} }}", f"result = {json.dumps(result)}", f"check = {{ {check} }}"]
    return "\n".join([*lines, *([f"body = {json.dumps(body)}"] if body else [])]) + "\n"


def asked(question, weight, checks, deadline_ms=None):
    """A question as a request: `checks` is a file of digests, or None where lines are counted."""
    check = f"digests = {json.dumps(str(checks))}" if checks else (f"results_at_least = {question.rows}, results_at_most = {question.rows}" if question.kind in ("cities", "countries") else "")
    headers = {"meridian-timeout": str(deadline_ms)} if deadline_ms else {}
    return request(question.name, question.path, weight, check, headers=headers, result="line" if question.kind in ("cities", "countries") else "body")


def mix_requests(mix, questions, checks, deadline_ms, only=None):
    """The requests of a mix, and the names of them; `only` leaves one kind."""
    text, names = [], []
    for kind, weight in MIXES[mix].items():
        mine = [q for q in questions if q.kind == kind]
        if only not in (None, kind):
            continue
        if kind == "ingest":
            names.append(f"{mix} ingest")
            text.append(request(names[-1], INGEST_PATH, weight, "", "POST", f"{{{mix}.ndjson}}", {"content-type": "application/x-ndjson", "meridian-timeout": str(deadline_ms)}))
        for question in mine:
            names.append(question.name)
            text.append(asked(question, weight / len(mine), checks, deadline_ms))
    return "\n".join(text), names


GENERATORS = "\n".join(f'[generate.{mix}]\nkind = "event"\nbox = [-180.0, -80.0, 180.0, 80.0]\nstart = "2026-01-01T00:00:00Z"\nend = "2026-12-31T00:00:00Z"\nbatch = {batch}\n'
                       for mix, batch in BATCH.items())
