"""bench-near: the places profile beside PostGIS, Redis, Tile38 (where TILE38_SERVER names a binary) and nginx.

Question: how many "what is within R of here, nearest first" answers a second, at six radii, on the same places. Each
system uses its own best protocol. The numbers found by Meridian, Redis and PostGIS are compared first: where they
differ by more than the edge of the radius, a count over all places must agree with Meridian. nginx sends a static body
of the same median size: nobody can be faster than that over HTTP.

Rounds are interleaved (every system once, then again), so that a drift of the machine touches all of them alike.

    make bench-near                                           at the default sizes
    make bench-near ARGS="--places 5000000 --name near-5m"    the larger size
"""

import argparse
import http.client
import json
import math
import os
import pathlib
import random
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import (MERIDIAN, ROOT, Server, drive, dump, free_port, median, need, read_zst, resident_mb, save, say, steal_and_load)
from peers import Postgres

RADII = [0.5, 2, 5, 10, 25, 50]
SQL = ("SELECT id, name, city, state, zip, ST_Y(geog::geometry), ST_X(geog::geometry), "
       "ST_Distance(geog, p, false) / 1000 AS km, count(*) OVER () "
       "FROM places, (SELECT ST_SetSRID(ST_MakePoint($1::float8, $2::float8), 4326)::geography AS p) q "
       "WHERE ST_DWithin(geog, p, $3::float8 * 1000, false) ORDER BY km LIMIT 25")


def places(count, seed):
    """The postal places, shuffled by a fixed seed: (name, city, state, zip, lat, lon); more than there are are copies some kilometres away."""
    lines = read_zst(ROOT / "data" / "geonames-postal-places" / "postal_places.tsv.zst")
    head = next(lines).split("\t")
    at = {name: i for i, name in enumerate(head)}
    rows = [line.split("\t") for line in lines]
    rng = random.Random(seed)
    rng.shuffle(rows)
    rows = [r for r in rows if r[at["name"]]]  # a place without a name is none to the places profile
    found = [(r[at["name"]], r[at["admin2"]], r[at["admin1"]], r[at["postal_code"]], float(r[at["lat"]]), float(r[at["lon"]])) for r in rows[:count]]
    for name, city, state, code, lat, lon in rng.choices(found, k=count - len(found)):
        lat, lon = min(max(lat + rng.gauss(0, 0.02), -85), 85), min(max(lon + rng.gauss(0, 0.02), -180), 180)
        found.append((name, city, state, code, round(lat, 6), round(lon, 6)))
    return found


def questions(folder, rows, seed, count=20_000):
    """Two sets: near places of the data, and as published (a box of the US west coast, mostly far from any place)."""
    rng = random.Random(seed + 1)
    near = [(r[5] + rng.gauss(0, 0.01), r[4] + rng.gauss(0, 0.01)) for r in rng.choices(rows, k=count)]
    near = [(min(max(lon, -180), 180), min(max(lat, -85), 85)) for lon, lat in near]
    published = [(-rng.randint(118, 123) - rng.random() ** 2 * 0.99, rng.randint(37, 42) + rng.random() ** 2 * 0.99) for _ in range(count)]
    files = {}
    for name, points in (("data", near), ("published", published)):
        for radius in RADII:
            path = folder / f"{name}-{radius}.txt"
            path.write_text("".join(f"{lon:.6f}\t{lat:.6f}\t{radius}\n" for lon, lat in points))
            files[name, radius] = path
    return files


def start_meridian(folder, rows, durability, admit=None):
    """Loads the places through the program's own bulk path into the collection that the places profile serves. `admit` is given the server's URL
    first, and gives the token that its clients show."""
    port = free_port()
    source = folder / "places.ndjson"
    if not source.exists():
        with source.open("w") as out:
            for i, (name, city, state, code, lat, lon) in enumerate(rows):
                place = {"id": f"p{i}", "name": name, "city": city, "state": state, "zipCode": code}
                out.write(json.dumps({k: v for k, v in place.items() if v} | {"latitude": lat, "longitude": lon}) + "\n")
    extra = ["--ephemeral"] if durability == "ephemeral" else ["--data", folder / "meridian"]
    server = Server("meridian", [MERIDIAN, "serve", "--listen", f"127.0.0.1:{port}", "--places-durability", durability, *extra], port)
    server.token = admit(f"http://127.0.0.1:{port}") if admit else None
    shown = {"Authorization": f"Bearer {server.token}"} if admit else {}
    # The profile makes its collection on first use; one place in and out again leaves it empty and ready.
    client = http.client.HTTPConnection("127.0.0.1", port)
    for method, path, place in (("POST", "", {"name": "first", "latitude": 0.0, "longitude": 0.0}), ("DELETE", "/deleteAllPlaces", None)):
        client.request(method, "/api/v0/places" + path, place and json.dumps(place), {"Content-Type": "application/json"} | shown)
        answer = client.getresponse()
        answer.read()
        if answer.status >= 400:
            sys.exit(f"bench: the places profile answered {answer.status} to {method}")
    run = subprocess.run([MERIDIAN, "load", "places", source, "--url", f"http://127.0.0.1:{port}"], capture_output=True, text=True,
                         env=os.environ | ({"MERIDIAN_TOKEN": server.token} if admit else {}))
    if run.returncode != 0:
        sys.exit(f"bench: loading places: {run.stderr}")
    return server


def start_redis(folder, rows):
    port = free_port()
    server = Server("redis", ["redis-server", "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", folder], port)
    pipe = subprocess.Popen(["redis-cli", "-p", str(port), "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for i, row in enumerate(rows):
        pipe.stdin.write(f"GEOADD places {row[5]} {min(max(row[4], -85.05), 85.05)} p{i}\n")
    pipe.stdin.close()
    if pipe.wait() != 0:
        sys.exit("bench: loading Redis failed")
    return server


def load_postgis(server, rows):
    """Loaded, indexed, clustered and analysed."""
    server.psql("CREATE EXTENSION postgis")
    server.psql("CREATE TABLE places (id text PRIMARY KEY, name text, city text, state text, zip text, geog geography(Point, 4326))")
    clean = lambda text: text.replace("\\", "\\\\").replace("\t", " ")
    copy = "".join(f"p{i}\t{clean(n)}\t{clean(c)}\t{clean(s)}\t{clean(z)}\tSRID=4326;POINT({lon} {lat})\n" for i, (n, c, s, z, lat, lon) in enumerate(rows))
    server.psql("COPY places FROM STDIN", input=copy.encode())
    server.psql("CREATE INDEX places_geog ON places USING gist (geog)")
    server.psql("CLUSTER places USING places_geog")
    server.psql("VACUUM ANALYZE places")


def start_postgis(folder, rows):
    server = Postgres(folder)
    load_postgis(server, rows)
    return server


def start_tile38(folder, rows):
    port = free_port()
    server = Server("tile38", [os.environ["TILE38_SERVER"], "-h", "127.0.0.1", "-p", port, "-d", folder / "tile38", "--metrics-addr", ""], port)
    pipe = subprocess.Popen(["redis-cli", "-p", str(port), "--pipe"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    for i, row in enumerate(rows):
        pipe.stdin.write(f"SET places p{i} POINT {row[4]} {row[5]}\n")
    pipe.stdin.close()
    pipe.wait()
    return server


def start_nginx(folder, sizes):
    """Static bodies of Meridian's median answer sizes."""
    port, root = free_port(), folder / "static"
    root.mkdir()
    for key, size in sizes.items():
        (root / f"{key[0]}-{key[1]}").write_bytes(b"x" * size)
    for path in (folder, root):
        os.chmod(path, 0o755)
    conf = folder / "nginx.conf"
    conf.write_text(f"""daemon off; worker_processes 2; pid {folder}/nginx.pid; error_log stderr;
events {{ worker_connections 1024; }}
http {{ access_log off; sendfile on; tcp_nopush on; keepalive_requests 100000000; default_type application/json;
 open_file_cache max=100; server {{ listen 127.0.0.1:{port}; root {root}; }} }}\n""")
    return Server("nginx", ["nginx", "-c", conf, "-p", folder], port)


def body(answer):
    return answer.split(b"\r\n\r\n", 1)[1]


def counted(rows, lon, lat, radius_km):
    """How many places lie within a radius, by testing each of them: haversine on Meridian's sphere of 6,371,008.8 m."""
    lat0, found = math.radians(lat), 0
    for _, _, _, _, at_lat, at_lon in rows:
        if abs(at_lat - lat) * 111.19 > radius_km + 0.1:
            continue
        h = (math.sin(math.radians(at_lat - lat) / 2) ** 2
             + math.cos(lat0) * math.cos(math.radians(at_lat)) * math.sin(math.radians(at_lon - lon) / 2) ** 2)
        found += 2 * 6371.0088 * math.asin(math.sqrt(h)) <= radius_km
    return found


def check(meridian, redis, postgis, files, places, count=200):
    """The same total from all; returns hits, sizes, and what differs, which a count over all places settles."""
    hits, sizes, differing = {}, {}, []
    for key, path in files.items():
        ours = dump(meridian, "http", "/api/v0/places/near/{2}/{1}/{3}", path, count)
        redis_all = dump(redis, "resp", "GEOSEARCH places FROMLONLAT {1} {2} BYRADIUS {3} km ASC WITHDIST", path, count)
        pg = dump(postgis, "pg", SQL, path, count)
        totals = []
        points = [tuple(map(float, line.split("\t"))) for line in path.read_text().splitlines()[:count]]
        for (lon, lat, radius_km), mine, theirs, rows in zip(points, ours, redis_all, pg):
            answer = json.loads(body(mine))
            total = answer["totalPlaces"]
            totals.append(total)
            in_redis = int(theirs.split(b"\r\n", 1)[0][1:])
            words = [int.from_bytes(w, "big") for w in pg_counts(rows)]
            in_pg = words[0] if words else 0
            # Distances on the edge of the radius may fall on either side. Spheres of radius 6,371,008.8 m
            # (Meridian), 6,372,797.6 m (Redis) and PostGIS's own differ by 0.03 %.
            slack = max(3, 0.02 * max(total, in_redis, in_pg))
            if abs(total - in_redis) > slack or abs(total - in_pg) > slack:
                true = counted(places, lon, lat, radius_km)
                differing.append({"lon": lon, "lat": lat, "radius_km": radius_km, "meridian": total, "redis": in_redis, "postgis": in_pg, "counted": true})
                say(f"differs: {differing[-1]}")
                if total != true:
                    sys.exit("bench: Meridian counts other places than there are")
        hits[key] = {"median": median(totals), "mean": sum(totals) / len(totals), "max": max(totals), "empty": sum(t == 0 for t in totals) / len(totals)}
        sizes[key] = int(median([len(body(a)) for a in ours]))
    if len(differing) > 0.01 * count * len(files):
        sys.exit(f"bench: {len(differing)} of {count * len(files)} answers differ between the systems by more than the edge of the radius allows")
    say(f"answers checked: {count * len(files)} questions, {len(differing)} differ by more than the edge of the radius allows")
    return hits, sizes, differing


def pg_counts(answer):
    """The last column (the total) of each row of a PostgreSQL answer."""
    at = 0
    while at + 5 <= len(answer):
        kind, length = answer[at:at + 1], int.from_bytes(answer[at + 1:at + 5], "big")
        if kind == b"D":
            columns, p, value = int.from_bytes(answer[at + 5:at + 7], "big"), at + 7, None
            for _ in range(columns):
                size = int.from_bytes(answer[p:p + 4], "big", signed=True)
                p += 4
                value = answer[p:p + max(size, 0)]
                p += max(size, 0)
            yield value
        at += 1 + length


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=650_000, help="the larger size: 5000000")
    parser.add_argument("--seconds", type=float, default=4.0, help="measured seconds of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--name", default="near", choices=["near", "near-5m"], help="the file of bench/results to write")
    parser.add_argument("--durability", default="local", choices=["local", "ephemeral"])
    options = parser.parse_args()
    need(MERIDIAN, "redis-server", "redis-cli", "psql", "nginx", "zstd")
    with tempfile.TemporaryDirectory(prefix="bench-near-") as name:
        folder = pathlib.Path(name)
        say(f"{options.places:,} places")
        rows = places(options.places, options.seed)
        files = questions(folder, rows, options.seed)
        say("loading Meridian")
        with start_meridian(folder, rows, options.durability) as meridian:
            say("loading Redis")
            with start_redis(folder, rows) as redis:
                say("loading PostGIS")
                with start_postgis(folder, rows) as postgis:
                    hits, sizes, differing = check(meridian, redis, postgis, files, rows)
                    with start_nginx(folder, sizes) as nginx:
                        measure(options, folder, rows, files, hits, sizes, differing, meridian, redis, postgis, nginx)


def measure(options, folder, rows, files, hits, sizes, differing, meridian, redis, postgis, nginx):
    systems = {
        "meridian": (meridian, "http", lambda key: "/api/v0/places/near/{2}/{1}/{3}"),
        "nginx static (ceiling)": (nginx, "http", lambda key: f"/{key[0]}-{key[1]}"),
        "redis, all hits": (redis, "resp", lambda key: "GEOSEARCH places FROMLONLAT {1} {2} BYRADIUS {3} km ASC WITHDIST"),
        "redis, COUNT 25, no total": (redis, "resp", lambda key: "GEOSEARCH places FROMLONLAT {1} {2} BYRADIUS {3} km ASC COUNT 25 WITHDIST"),
        "postgis": (postgis, "pg", lambda key: SQL),
    }
    tile38 = None
    if os.environ.get("TILE38_SERVER"):
        tile38 = start_tile38(folder, rows)
        systems["tile38, RESP"] = (tile38, "resp", lambda key: f"NEARBY places LIMIT 25 DISTANCE POINT {{2}} {{1}} {key[1] * 1000:g}")  # metres
    else:
        say("no Tile38: TILE38_SERVER names no binary")
    runs, quiet = {}, [steal_and_load()]
    for round_number in range(options.rounds):
        for key in files:
            for name, (server, protocol, template) in systems.items():
                result = drive(server, protocol, template(key), files[key], options.seconds)
                runs.setdefault((key, name), []).append(result)
            line = ", ".join(f"{name.split(',')[0].split()[0]} {runs[key, name][-1]['per_second']:,.0f}" for name in systems)
            say(f"round {round_number + 1}/{options.rounds} {key[0]} {key[1]} km: {line} per second")
        quiet.append(steal_and_load())
    memory = {name: resident_mb(server.pid) for name, (server, _, _) in systems.items()}
    if tile38:
        tile38.__exit__()
    save(options.name, {
        "name": options.name,
        "places": options.places, "seconds": options.seconds, "rounds": options.rounds, "seed": options.seed, "durability": options.durability,
        "connections": 50, "differing": len(differing), "differing_answers": differing, "quiet": quiet, "resident_mb": memory,
        "rows": [{"points": key[0], "radius_km": key[1], "hits": hits[key], "bytes": sizes[key],
                  "systems": {name: runs[key, name] for name in systems}} for key in files],
    })


if __name__ == "__main__":
    main()
