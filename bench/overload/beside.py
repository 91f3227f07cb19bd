"""The same floods over other systems: PostGIS behind a REST layer, and Tile38.

Each is set up as its documentation advises and has the server's core. Each is asked in its own words about the same
circles and countries, for as much of the heavy mix as it supports. It is then flooded by multiples of its own edge. The
events that each answer holds are compared with Meridian's before anything is timed.
"""

import collections
import contextlib
import datetime
import hashlib
import json
import os
import re
import socket
import subprocess
import sys
import urllib.request

import pyarrow.parquet

import data
import questions as q
from common import MERIDIAN, Server, free_port, say, tree
from flood import calibrated, edge_of, multiples, one_flood
from peers import Postgres
from rig import DEADLINE_S, SERVER_CORE, System, on
from side import Side

MIX = "heavy"
ALL = 1_000_000
# Answers that may differ from Meridian's, as events on a border do where two systems compute it otherwise.
DIFFERING = 0.05


class Peer(System):
    """A system that is asked about the same subjects as Meridian, in its own words."""

    # The kinds of the mix that it has an interface for, and what the report says of the others.
    asks, lacks = (), ""

    def ready(self, by_band):
        """Asks every question twice: its digest where both answers are the same, and how many events it holds."""
        chosen = {band: {kind: subjects for kind, subjects in by_band[band].items() if kind in self.asks} for band in (MIX, "light")}
        self.settle(most=600)
        self.questions = q.ask_all(self.question, chosen)
        self.digests = self.folder / "digests.json"
        self.digests.write_text(json.dumps({one.path: one.digest for band in self.questions.values() for one in band if one.digest}))

    def kinds(self, mix):
        return [kind for kind in super().kinds(mix) if kind in self.asks]

    def mix(self, name, only=None):
        text, names = [], []
        for kind in self.kinds(name):
            if only in (None, kind):
                mine = self.writes() if kind == "ingest" else [(one.name, self.request(one, q.MIXES[name][kind] / self.count(kind))) for one in self.questions[name] if one.kind == kind]
                names += [name for name, _ in mine]
                text += [request for _, request in mine]
        return "\n".join(text), names

    def count(self, kind):
        return sum(one.kind == kind for one in self.questions[MIX])

    def probe(self):
        chosen = [one._replace(name=f"probe {n}") for n, one in enumerate(one for one in self.questions["light"] if one.kind == "cities")]
        return "\n".join(self.request(one, 1) for one in chosen), [one.name for one in chosen]

    def writes(self):
        """Requests that write, with their names."""
        return []


class Tipg(Peer):
    """PostGIS behind tipg (OGC API Features and Tiles): a pool of connections for each of two workers, statements that end with their client's patience."""

    asks = ("cities", "countries", "tiles")
    lacks = "tipg has no aggregates and takes no writes"
    SETTINGS = {"DB_MIN_CONN_SIZE": "2", "DB_MAX_CONN_SIZE": "10", "TIPG_MAX_FEATURES_PER_QUERY": str(ALL), "TIPG_MAX_FEATURES_PER_TILE": str(ALL)}

    def __init__(self, stack, files):
        super().__init__(stack, "PostGIS, tipg")
        postgres = stack.enter_context(Postgres(self.folder))
        load(postgres, files)
        # The clients that it has started by now: it starts no more.
        for process in tree(postgres.pid):
            with contextlib.suppress(OSError):
                os.sched_setaffinity(process, {int(SERVER_CORE)})
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        env = self.SETTINGS | {"DATABASE_URL": f"postgresql://postgres@127.0.0.1:{postgres.port}/postgres"}
        argv = ["env", *(f"{key}={value}" for key, value in env.items()), sys.executable, "-m", "uvicorn", "tipg.main:app", "--port", port, "--workers", "2", "--no-access-log"]
        self.servers = [postgres, stack.enter_context(Server("tipg", on(SERVER_CORE, argv), port))]

    def path(self, subject):
        items = f"datetime={subject.start}/{subject.end}"
        if subject.tile:
            zoom, row, column = subject.tile
            return f"/collections/public.events/tiles/WebMercatorQuad/{zoom}/{column}/{row}?{items}"
        return f"/collections/public.events/items?f=ndjson&limit={ALL}&filter-lang=cql2-text&filter={data.quoted(f'S_INTERSECTS(geom,{subject.shape})')}&{items}"

    def question(self, name, kind, subject):
        path = self.path(subject)
        first, second = (self.get(path) for _ in range(2))
        return q.Question(name, kind, path, hashlib.sha256(first).hexdigest() if first == second else None, first.count(b"\n"))

    def get(self, path):
        with urllib.request.urlopen(self.url + path, timeout=600) as answer:
            return answer.read()

    def request(self, one, weight):
        return q.asked(one, weight, self.digests if one.digest else None)


def load(postgres, files):
    """A table of events, with an index on place and time by which it is clustered."""
    postgres.psql("CREATE EXTENSION postgis; CREATE EXTENSION btree_gist")
    postgres.psql("CREATE TABLE taken (id int8, kind text, value float8, time timestamptz, lon float8, lat float8)")
    for file in files:
        postgres.psql("COPY taken FROM STDIN (FORMAT binary)", input=data.postgres_copy(file))
    postgres.psql("CREATE TABLE events (id int8 PRIMARY KEY, kind text, value float8, time timestamptz NOT NULL, geom geometry(Point, 4326))")
    postgres.psql("INSERT INTO events SELECT id, kind, value, time, ST_SetSRID(ST_MakePoint(lon, lat), 4326) FROM taken; DROP TABLE taken")
    postgres.psql("CREATE INDEX events_at ON events USING gist (geom, time); CLUSTER events USING events_at")
    postgres.psql("VACUUM ANALYZE events")
    # An answer later than that is of no use to anybody.
    postgres.psql(f"ALTER ROLE postgres SET statement_timeout = '{DEADLINE_S:g}s'")


class Tile38(Peer):
    """Tile38 by RESP: points with their time as a field, polygons as GeoJSON, and its own deadline for each command."""

    asks = ("cities", "countries", "ingest")
    lacks = "Tile38 has no aggregates, and no tiles over RESP; a write is one event"

    def __init__(self, stack, files):
        super().__init__(stack, "Tile38")
        port = free_port()
        self.url, self.port = f"redis://127.0.0.1:{port}", port
        argv = [os.environ["TILE38_SERVER"], "-h", "127.0.0.1", "-p", port, "-d", self.folder / "tile38", "--metrics-addr", ""]
        self.servers = [stack.enter_context(Server("tile38", on(SERVER_CORE, argv), port))]
        pipe = subprocess.Popen(["redis-cli", "-p", str(port), "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
        for file in files:
            columns = [column.to_pylist() for column in pyarrow.parquet.read_table(file).select(["id", "kind", "value", "time", "lon", "lat"]).columns]
            for at, kind, value, time, lon, lat in zip(*columns):
                pipe.stdin.write(f"SET events {at} FIELD kind {kind} FIELD value {value} FIELD time {time.timestamp()} POINT {lat} {lon}\n")
        pipe.stdin.close()
        if pipe.wait() != 0:
            sys.exit("bench: loading Tile38 failed")

    def command_of(self, subject):
        since, until = (seconds(moment) for moment in (subject.start, subject.end))
        return f"TIMEOUT {DEADLINE_S:g} INTERSECTS events WHERE time {since} {until} LIMIT {ALL} OBJECT {geojson(subject.shape)}"

    def question(self, name, kind, subject):
        command = self.command_of(subject)
        return q.Question(name, kind, command, None, self.ask(command.replace(f"TIMEOUT {DEADLINE_S:g} ", "").replace(f"LIMIT {ALL} ", f"LIMIT {ALL} COUNT ")))

    def ask(self, command):
        """A command that answers with a number."""
        words = command.split(" ")
        with socket.create_connection(("127.0.0.1", self.port), 600) as one:
            one.sendall(f"*{len(words)}\r\n".encode() + b"".join(f"${len(word)}\r\n{word}\r\n".encode() for word in words))
            said = one.recv(4096)
        if not said.startswith(b":"):
            sys.exit(f"bench: Tile38: {command[:100]}: {said[:200]!r}")
        return int(said[1:].split(b"\r\n")[0])

    def request(self, one, weight):
        lines = ["[[request]]", f"name = {json.dumps(one.name)}", f"weight = {weight:g}", f"body = {json.dumps(one.path)}", 'result = "line"',
                 f"check = {{ results_at_least = {one.rows}, results_at_most = {one.rows} }}"]
        return "\n".join(lines) + "\n"

    def writes(self):
        weight = q.MIXES[MIX]["ingest"]
        text = f'[[request]]\nname = "ingest"\nweight = {weight}\nbody = "SET arrivals {{arrival}} POINT {{somewhere.lat}} {{somewhere.lon}}"\n'
        generators = '[generate.arrival]\nkind = "id"\nto = 1000000000000000\n[generate.somewhere]\nkind = "box"\nbox = [-180.0, -80.0, 180.0, 80.0]\n'
        return [("ingest", text + generators)]


def geojson(shape):
    """A MULTIPOLYGON of WKT as GeoJSON, without a blank."""
    points = re.sub(r"(-?[\d.]+) (-?[\d.]+)", r"[\1,\2]", shape.removeprefix("MULTIPOLYGON"))
    return f'{{"type":"MultiPolygon","coordinates":{points.replace("(", "[").replace(")", "]")}}}'


def seconds(moment):
    """RFC 3339 as seconds since 1970."""
    return datetime.datetime.fromisoformat(moment.replace("Z", "+00:00")).timestamp()


def subjects(options):
    """What is asked about, and how many events Meridian finds, by name of the question."""
    with contextlib.ExitStack() as stack:
        side = Side(stack, "Meridian", MERIDIAN)
        side.load(options.files)
        side.settle(most=300)
        by_band = q.subjects(q.Asker(side), options.seed)
        side.ready(by_band)
        return by_band, {one.name: one.rows for band in side.questions.values() for one in band if one.kind in ("cities", "countries")}


PEERS = {"tipg": Tipg, "tile38": Tile38}


def there(options):
    """The peers that are asked for and can be started."""
    if "tile38" in options.peers and not os.environ.get("TILE38_SERVER"):
        say("no Tile38: TILE38_SERVER names no binary")
        return [name for name in options.peers if name != "tile38"]
    return options.peers


def peers(options):
    """Calibration, edge and floods of each peer that is there."""
    found = {}
    by_band, rows = subjects(options)
    for name in there(options):
        make = PEERS[name]
        with contextlib.ExitStack() as stack:
            peer = make(stack, options.files)
            peer.ready(by_band)
            asked = [one for band in peer.questions.values() for one in band if one.name in rows]
            differing = [{"question": one.name, "meridian": rows[one.name], "peer": one.rows} for one in asked if one.rows != rows[one.name]]
            say(f"{peer.name}: {len(asked)} answers compared with Meridian's, {len(differing)} hold another number of events {differing[:3]}")
            if len(differing) > DIFFERING * len(asked):
                sys.exit(f"bench: {peer.name} finds other events than Meridian: {differing[:10]}")
            calibration = calibrated(peer, MIX, options.calibrate_seconds)
            edge = {"calibration": calibration, **edge_of(peer, MIX, calibration, options)}
            runs = [one_flood(peer, MIX, edge["at"], times, again, options) for times, again in multiples(options, MIX)]
            digests = collections.Counter("digest" if one.digest else "count" for band in peer.questions.values() for one in band)
            found[name] = {"name": peer.name, "asks": peer.kinds(MIX), "lacks": peer.lacks, "checks": dict(digests), "differing": differing, "edge": edge, "runs": runs}
    return {"rows": options.rows, "seconds": options.seconds, "deadline_s": DEADLINE_S, "mix": MIX, "systems": found}
