"""Holds the dashboards of deploy/grafana and the queries of docs/grafana.md against their schema, the program's metrics and its API: grafana.py MERIDIAN.

Grafana itself is not run. Its schema is that of its own SDK; a member that this does not know would be lost, and is named. Each query must
ask for metrics that the program has. Each panel over the API is asked of a server, its selector is evaluated on the answer, and must give
rows with the panel's columns.
"""

import datetime
import json
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

import jsonata
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.dashboard import Dashboard

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDER = ROOT / "deploy" / "grafana"
MERIDIAN = pathlib.Path(sys.argv[1]).resolve()
START_SECONDS = 30
EVENTS = "id,lon,lat,time,mag\n" + "\n".join(f"e{n},{n % 30},{n % 50},2026-0{1 + n % 3}-05T00:00:00Z,{n % 7}.5" for n in range(60))

problems = []


def expect(holds, problem):
    if not holds:
        problems.append(problem)
    return holds


def lost(ours, theirs, path):
    """The members of `ours` that the schema does not keep as they are."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key, value in ours.items():
            # Empty values are left out by their encoder.
            if key in theirs or value not in ([], {}, "", False, None):
                yield from lost(value, theirs.get(key), f"{path}/{key}")
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for n, (one, other) in enumerate(zip(ours, theirs)):
            yield from lost(one, other, f"{path}/{n}")
    elif ours != theirs:
        yield path


def schema(name, document):
    kept = json.loads(JSONEncoder().encode(Dashboard.from_json(document)))
    for path in lost(document, kept, ""):
        problems.append(f"{name}: {path}: not in Grafana's schema")


def layout(name, panels):
    ids = [panel["id"] for panel in panels]
    expect(len(set(ids)) == len(ids), f"{name}: ids repeat")
    taken = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        expect(at["x"] + at["w"] <= 24 and not cells & taken, f"{name}: {panel['title']}: it overlaps another panel, or the edge")
        taken |= cells


def families(page):
    """The metrics of the program: the ones that this server shows, and the ones in the code that only other roles have."""
    shown = set(re.findall(r"^# TYPE (\S+)", page, re.M))
    written = {name for path in ROOT.glob("crates/*/src/**/*.rs") for name in re.findall(r'"(meridian_[a-z_]+)"', path.read_text())}
    return shown | written


def queries(name, panels, known):
    asked = [target["expr"] for panel in panels for target in panel.get("targets", []) if "expr" in target]
    for expr in asked:
        for metric in re.findall(r"\b((?:meridian|http_server)_\w+)", expr):
            expect(re.sub(r"_(bucket|count|sum)$", "", metric) in known or metric in known, f"{name}: no metric {metric}: {expr}")
    return len(asked)


def filled(text, values):
    return re.sub(r"\$\{([^}]+)\}", lambda found: values[found[1]], text)


def answers(name, document, url):
    """Asks the API for each panel as the data source would."""
    values = {variable["name"]: variable["query"] for variable in document["templating"]["list"]}
    values |= {"__from:date:iso": "2026-01-01T00:00:00Z", "__to:date:iso": "2026-04-01T00:00:00Z", "window": "P1M"}
    asked = 0
    for panel in document["panels"]:
        for target in panel.get("targets", []):
            if target.get("source") != "url":
                continue
            where = f"{name}: {panel['title']}"
            parameters = {one["key"]: filled(one["value"], values) for one in target["url_options"]["params"]}
            address = f"{url}{filled(target['url'], values)}?{urllib.parse.urlencode(parameters)}"
            with urllib.request.urlopen(address, timeout=30) as answer:
                rows = jsonata.Jsonata(filled(target["root_selector"], values)).evaluate(json.load(answer))
            asked += 1
            if not expect(isinstance(rows, list) and len(rows) >= 3, f"{where}: {len(rows or [])} rows"):
                continue
            for column in target["columns"]:
                selector = filled(column["selector"], values)
                found = [step(row, selector) for row in rows]
                right = {"number": (int, float), "string": str, "timestamp": str}[column["type"]]
                expect(all(isinstance(value, right) for value in found), f"{where}: {selector}: {found[:3]}")
                if column["type"] == "timestamp":
                    [datetime.datetime.fromisoformat(value) for value in found]
    return asked


def guide():
    """The queries of docs/grafana.md, as a dashboard."""
    blocks = re.findall(r"```json\n(.*?)```", (ROOT / "docs" / "grafana.md").read_text(), re.S)
    kinds = ["timeseries", "geomap"]
    expect(len(blocks) == len(kinds), f"docs/grafana.md has {len(blocks)} queries")
    panels = [
        {"type": kind, "title": f"query {n}", "id": n + 1, "gridPos": {"x": 0, "y": 8 * n, "w": 24, "h": 8}, "targets": [json.loads(block)]}
        for n, (kind, block) in enumerate(zip(kinds, blocks))
    ]
    return {"panels": panels, "templating": {"list": []}}


def step(row, selector):
    for part in selector.split("."):
        row = row[int(part)] if isinstance(row, list) else (row or {}).get(part)
    return row


def served(folder):
    load = [MERIDIAN, "load", "earthquakes", "-", "--format", "csv", "--data", folder]
    subprocess.run(load, input=EVENTS.encode(), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([MERIDIAN, "serve", "--data", folder, "--listen", f"127.0.0.1:{port}"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    until = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < until:
        try:
            urllib.request.urlopen(f"{url}/readyz", timeout=5).close()
            return server, url
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.05)
    server.kill()
    sys.exit(f"the server does not start: {server.stderr.read().decode()}")


def main():
    fresh = subprocess.run([sys.executable, FOLDER / "build.py", "--check"], capture_output=True, text=True, timeout=60)
    expect(fresh.returncode == 0, f"deploy/grafana: {fresh.stderr.strip()}")
    documents = {path.name: json.loads(path.read_text()) for path in sorted(FOLDER.glob("*.json"))}
    expect(len(documents) == 3, f"deploy/grafana has {sorted(documents)}")
    documents["docs/grafana.md"] = guide()
    with tempfile.TemporaryDirectory() as folder:
        server, url = served(folder)
        try:
            # The first answer of a route is what makes its series.
            urllib.request.urlopen(f"{url}/collections", timeout=30).close()
            with urllib.request.urlopen(f"{url}/metrics", timeout=30) as page:
                known = families(page.read().decode())
            counts = [0, 0]
            for name, document in documents.items():
                schema(name, document)
                layout(name, document["panels"])
                counts[0] += queries(name, document["panels"], known)
                counts[1] += answers(name, document, url)
        finally:
            server.terminate()
            server.wait(timeout=60)
    expect(counts[0] > 60 and counts[1] == 5, f"{counts} queries")
    if problems:
        sys.exit("\n".join(problems))
    print(f"dashboards: {len(documents)}, {counts[0]} queries of metrics, {counts[1]} of the API")


main()
