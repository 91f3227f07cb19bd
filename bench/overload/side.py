"""A build of Meridian under load; a side for each build that is measured."""

import contextlib
import json
import pathlib
import subprocess
import time

import data
import questions as q
from common import MERIDIAN, Server, free_port
from rig import DEADLINE_S, SERVER_CORE, System, on

# All clients of the lab have one address. What it may open is for clients that share one, and is not what is measured here.
ROOM = {"requests.connections_per_address_max": 10_000}


class Side(System):
    """One build: a server, its data, and the questions with the digests of its answers."""

    def __init__(self, stack, name, binary):
        super().__init__(stack, name)
        self.stack, self.binary, self.port = stack, pathlib.Path(binary).resolve(), free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        known = subprocess.run([self.binary, "serve", "--show-config"], capture_output=True, text=True, check=True).stdout
        known = {line.split("=")[0].strip("# ") for line in known.splitlines()}
        # A build before a setting refuses it.
        settings = {key: value for key, value in ROOM.items() if {key, key.split(".")[1]} & known}
        (self.folder / "meridian.toml").write_text("".join(f"{key} = {json.dumps(value)}\n" for key, value in settings.items()))
        self.start()

    def start(self):
        """Starts the server, now or again after its end."""
        argv = [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.folder / "data", "--config", self.folder / "meridian.toml"]
        self.server = self.stack.enter_context(Server("meridian", on(SERVER_CORE, argv), self.port))
        self.servers = [self.server]

    def load(self, files, token=None):
        """The events that are asked for, and a collection for events that come meanwhile."""
        self.command("create", "events", "--schema", data.SCHEMA, "--url", self.url, token=token)
        self.command("create", "arrivals", "--schema", q.INGEST, "--url", self.url, token=token)
        self.command("load", "events", *files, "--quiet", "--url", self.url, token=token)

    def tenant(self, name, files=(), quotas=()):
        """A tenant with its data and a token, which the lab has as TOKEN_NAME."""
        folder, socket = ("--data", self.folder / "data"), self.folder / "data" / "control.sock"
        # The server listens for clients a moment before it listens for the folder's owner.
        until = time.time() + 60
        while not socket.exists() and time.time() < until:
            time.sleep(0.01)
        last_word = lambda said: said.split()[-1]
        if not self.tokens:
            self.tokens["operator"] = last_word(self.command("token", "create", "--role", "operator", *folder))
        self.command("tenant", "create", name, *(word for quota in quotas for word in ("--quota", quota)), *folder)
        self.tokens[name] = last_word(self.command("token", "create", "--tenant", name, "--role", "admin", *folder))
        if files:
            self.load(files, self.tokens[name])

    def ready(self, by_band, token=None):
        """Asks every question once, and keeps the digests for the lab."""
        self.settle(most=300)
        self.questions = q.ask_all(q.Asker(self, token).question, by_band)
        self.digests = self.folder / "digests.json"
        self.digests.write_text(json.dumps({one.path: one.digest for band in self.questions.values() for one in band}))

    def mix(self, name, only=None):
        return q.mix_requests(name, self.questions[name], self.digests, int(DEADLINE_S * 1e3), only)

    def probe(self):
        chosen = [one._replace(name=f"probe {n}") for n, one in enumerate(one for one in self.questions["light"] if one.kind == "cities")]
        return "\n".join(q.asked(one, 1, self.digests, int(DEADLINE_S * 1e3)) for one in chosen), [one.name for one in chosen]


@contextlib.contextmanager
def sides(options):
    """A server for each build, the one that is measured first."""
    with contextlib.ExitStack() as stack:
        yield [Side(stack, name, binary) for name, binary in (("new", MERIDIAN), ("old", options.old)) if binary]


def turns(all_sides, number):
    """The sides, in an order that alternates."""
    return all_sides if number % 2 == 0 else all_sides[::-1]
