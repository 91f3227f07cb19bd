"""searx beside Meridian: the metasearch engine that Debian has, over the same sources.

SearXNG, which goes on from it, is in none of the registries that this bench may use. searx is set up as its
documentation advises (uWSGI, a worker a core, threads), with an engine of its kind `json_engine` for each source. It
asks each source for one page, waits for all of them and answers once. It has no stream.
"""

import contextlib
import json
import pathlib
import time
import urllib.request

from common import Server, free_port, say
from rig import Rig, SERVER_CORE, exactly, quantiles, search_request
from sources import B_ITEMS, B_SOURCES, names, set_a, set_b

UWSGI = pathlib.Path("/usr/bin/uwsgi-core")
SEARX = pathlib.Path("/usr/lib/python3/dist-packages/searx/webapp.py")
WORKERS, THREADS = 2, 4
# What ships in settings.yml, except for languages, themes and the engines.
SETTINGS = {
    "general": {"debug": False, "instance_name": "bench", "enable_stats": False},
    "brand": {},
    "search": {"safe_search": 0, "autocomplete": "", "default_lang": "en", "ban_time_on_fail": 5, "max_ban_time_on_fail": 120},
    "server": {"secret_key": "of this bench alone", "base_url": False, "image_proxy": False, "http_protocol_version": "1.1", "method": "GET", "default_http_headers": {}},
    "ui": {"static_path": "/usr/share/python3-searx/static", "templates_path": "/usr/share/python3-searx/templates", "default_theme": "oscar", "default_locale": "en"},
    "outgoing": {"request_timeout": 30.0, "useragent_suffix": "", "pool_connections": 100, "pool_maxsize": 10},
    "locales": {"en": "English"},
    "doi_resolvers": {"doi.org": "https://doi.org/"},
    "default_doi_resolver": "doi.org",
}
ANSWER = """
[[request]]
name = "search"
path = "/search?q={{word}}&format=json"
check = {{ fields = ["/results/{last}=object"] }}
"""


def engine(name, port):
    """A source as searx is told of it."""
    url = f"http://127.0.0.1:{port}/{name.replace('-', '/')}?q={{query}}"
    return {"name": name, "engine": "json_engine", "shortcut": name, "categories": "general", "enable_http": True, "search_url": url, "results_query": "items",
            "url_query": "id", "title_query": "id", "content_query": "text", "timeout": 30.0}


def searx(rig):
    """searx over the sources of a rig, on the core that Meridian has."""
    path, port = rig.folder / "settings.yml", free_port()
    # JSON is YAML.
    path.write_text(json.dumps(SETTINGS | {"engines": [engine(name, rig.mock.port) for name in names(rig.kinds)]}))
    # Debian's searx is for Debian's Python: the environment that the bench runs in must not be seen by it.
    argv = ["env", "-i", f"SEARX_SETTINGS_PATH={path}", "PATH=/usr/bin:/bin", UWSGI, "--plugin", "python3", "--http-socket", f"127.0.0.1:{port}", "--master",
            "--single-interpreter", "--lazy-apps", "--enable-threads", "--workers", WORKERS, "--threads", THREADS, "--disable-logging", "--module", "searx.webapp"]
    return rig.stack.enter_context(Server("searx", rig.on(SERVER_CORE, argv), port))


def missing():
    """What is not installed."""
    return [str(path) for path in (UWSGI, SEARX) if not path.exists()]


def peer(options):
    """Users who ask one search after the other, at each system in turn; then one search of the slow sources."""
    if missing():
        return {"missing": missing()}
    runs = []
    with contextlib.ExitStack() as stack:
        rig = Rig(stack, set_b(), pinned=True)
        other = searx(rig)
        warm(other, 2)
        systems = {"meridian": (rig.server, rig.url, search_request(check=exactly(B_SOURCES * B_ITEMS), limit=B_ITEMS)),
                   "searx": (other, f"http://127.0.0.1:{other.port}", ANSWER.format(last=B_SOURCES * B_ITEMS - 1))}
        for number in range(options.rounds):
            for users in (1, 8):
                for name, (server, url, request) in systems.items():
                    rig.calls()
                    run = rig.lab(f"{name[0]}{number}u{users}q", f'kind = "closed", users = {users}', server=server, url=url, seconds=options.peer_seconds,
                                  requests=request, late_ms=100)
                    seconds = float((run.due + run.done).max() - run.due.min())
                    sound = int(run.sound.sum())
                    runs.append({"system": name, "users": users, "searches": len(run.n), "outcomes": run.outcomes(), "per_second": sound / seconds,
                                 "first_ms": quantiles(run.first[run.sound]), "whole_ms": quantiles(run.done[run.sound]), "calls": len(rig.calls()),
                                 "cpu_ms": run.used["server_cpu_s"] * 1e3 / max(sound, 1)})
                    say(f"{name}, {users} users: {runs[-1]['per_second']:.1f} searches/s, {runs[-1]['cpu_ms']:.2f} ms of CPU, {runs[-1]['outcomes']}")
    with contextlib.ExitStack() as stack:
        rig = Rig(stack, set_a())
        other = searx(rig)
        began = time.monotonic()
        results = warm(other, 1)
        alone = {"whole_s": time.monotonic() - began, "results": results, "calls": [call.delay_ms / 1e3 for call in rig.calls()]}
        say(f"searx, the slow sources' first pages: {results} results after {alone['whole_s']:.1f} s")
    return {"rounds": options.rounds, "seconds": options.peer_seconds, "workers": WORKERS, "threads": THREADS, "runs": runs, "alone": alone}


def warm(server, count):
    """Asks a few searches; results of the last."""
    for n in range(count):
        with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/search?q=warm{n}&format=json", timeout=60) as answer:
            results = len(json.load(answer)["results"])
    return results
