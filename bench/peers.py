"""The servers under test, each started as its own documentation advises for a machine of this size."""

import contextlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from common import MERIDIAN, ROOT, TARGET, Server, free_port

QUESTDB = TARGET / "bench-peers" / "questdb-9.3.4.jar"


def http(server, method, target, body=None, headers=None):
    """One request; its answer's bytes, or the end of the bench with what the server said."""
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}{target}", body, headers or {}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=3600) as answer:
            return answer.read()
    except urllib.error.HTTPError as error:
        sys.exit(f"bench: {server.name}: {method} {target[:200]}: {error.code} {error.read()[:400]!r}")


def start_meridian(folder, *options):
    """Meridian as `meridian serve` starts it, its data in a folder of its own."""
    port = free_port()
    return Server("meridian", [MERIDIAN, "serve", "--listen", f"127.0.0.1:{port}", "--data", folder / "meridian", *options], port)


def meridian(server, *words):
    """One of the program's commands, on a running server."""
    run = subprocess.run([str(w) for w in (MERIDIAN, *words, "--url", f"http://127.0.0.1:{server.port}")], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: meridian {words[0]}: {run.stderr.strip()}")
    return run.stdout


def meridian_metrics(server):
    """The figures at /metrics that stand without labels."""
    lines = http(server, "GET", "/metrics").decode().splitlines()
    return {name: float(value) for name, value in (line.split(" ", 1) for line in lines if line[0] != "#" and "{" not in line)}


class Postgres(Server):
    """PostgreSQL in a fresh cluster; settings after its own advice for 2 cores and 24 GiB, durability as it comes."""

    def __init__(self, folder, **settings):
        home = pathlib.Path("/usr/lib/postgresql")
        self.binaries = pathlib.Path(sorted(home.iterdir())[-1]) / "bin"
        data, port = folder / "pg", free_port()
        data.mkdir()
        shutil.chown(data, "postgres")
        os.chmod(folder, 0o755)
        self.port = port
        self.run([self.binaries / "initdb", "-D", data, "-A", "trust", "-E", "UTF8", "--locale", "C.UTF-8"])
        settings = {
            "listen_addresses": "127.0.0.1", "port": port, "unix_socket_directories": data, "max_connections": 300,
            "shared_buffers": "4GB", "effective_cache_size": "12GB", "work_mem": "32MB", "maintenance_work_mem": "1GB",
            "max_wal_size": "8GB", "random_page_cost": 1.1, "jit": "off", "max_parallel_workers_per_gather": 0} | settings
        words = [x for k, v in settings.items() for x in ("-c", f"{k}={v}")]
        super().__init__("postgres", [self.binaries / "postgres", "-D", data, *words], port, user="postgres")

    def run(self, argv, **options):
        """A program of PostgreSQL's, as its own user."""
        options = {"stdout": subprocess.DEVNULL} | options
        return subprocess.run([str(a) for a in argv], check=True, user="postgres", extra_groups=[], cwd="/", **options)

    def psql(self, sql, **options):
        """Statements; what they answer, a row a line."""
        argv = ["psql", "-h", "127.0.0.1", "-p", self.port, "-U", "postgres", "-qAt", "-v", "ON_ERROR_STOP=1"]
        return self.run([*argv, "-c", sql], stdout=subprocess.PIPE, **options).stdout.decode().strip()


def start_questdb(folder, sync=False):
    """QuestDB from its one jar; `sync` makes it sync each commit, which it does not by default."""
    if not QUESTDB.exists():
        sys.exit("bench: no QuestDB; `make bench-peers` installs the peers")
    root, port = folder / "questdb", free_port()
    (root / "conf").mkdir(parents=True)
    settings = {
        "http.bind.to": f"127.0.0.1:{port}", "http.min.enabled": "false", "pg.net.bind.to": f"127.0.0.1:{free_port()}",
        "line.tcp.enabled": "false", "telemetry.enabled": "false", "cairo.commit.mode": "sync" if sync else "nosync",
        "cairo.sql.copy.root": str(TARGET), "http.export.connection.limit": 64, "http.json.query.connection.limit": 64}
    (root / "conf" / "server.conf").write_text("".join(f"{k}={v}\n" for k, v in settings.items()))
    argv = ["java", "-Xmx4g", "-p", QUESTDB, "-m", "io.questdb/io.questdb.ServerMain", "-d", root]
    return Server("questdb", argv, port)


def questdb(server, sql):
    """The rows that a statement answers."""
    answer = json.loads(http(server, "GET", "/exec?query=" + urllib.parse.quote(sql)))
    return answer.get("dataset", [])


def questdb_applied(server, table, rows, seconds=600):
    """Waits until QuestDB has applied its write-ahead log: rows that are acknowledged are not yet seen by queries."""
    end = time.time() + seconds
    while (seen := questdb(server, f"SELECT count() FROM {table}")[0][0]) != rows:
        if time.time() > end:
            sys.exit(f"bench: QuestDB shows {seen:,} rows of {rows:,} after {seconds} s")
        time.sleep(0.2)


@contextlib.contextmanager
def duckdb_spatial(memory="6GB"):
    """DuckDB in this process with its spatial extension, all in memory, on both cores."""
    import duckdb
    import duckdb_extension_spatial
    folder = pathlib.Path(duckdb_extension_spatial.__file__).parent
    database = duckdb.connect(config={"threads": os.cpu_count(), "memory_limit": memory})
    database.execute("SET TimeZone = 'UTC'")
    database.execute(f"LOAD '{next(folder.rglob('spatial.duckdb_extension'))}'")
    with database:
        yield database
