"""Clusters and bare log servers under test, each as its own documentation starts it on one machine."""

import contextlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

from common import MERIDIAN, ROOT, Server, cpu_seconds, free_port, say, wait_port

# The version that the cluster's own tests use, and its client, whose benchmark is the ceiling.
NATS = ROOT / "scripts" / "nats.sh"
CLI, CLI_VERSION = "github.com/nats-io/natscli", "v0.3.0"


def nats_server():
    """The program, built once."""
    run = subprocess.run([str(NATS)], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit("bench: scripts/nats.sh could not build the NATS server")
    return run.stdout.strip()


def nats_cli(target):
    """The client of NATS, built once from its Go module."""
    made = target / "tools" / f"nats-cli-{CLI_VERSION}" / "nats"
    if made.exists():
        return made
    say(f"building the client of NATS {CLI_VERSION}, once")
    with tempfile.TemporaryDirectory() as folder:
        for words in (["mod", "init", "client"], ["get", f"{CLI}/nats@{CLI_VERSION}"], ["build", "-o", str(made), f"{CLI}/nats"]):
            run = subprocess.run(["go", *words], cwd=folder, capture_output=True, text=True)
            if run.returncode != 0:
                sys.exit(f"bench: go {words[0]}: {run.stderr[-400:]}")
    return made


class Cluster:
    """`meridian cluster up` in a folder of its own; ends with the `with` block."""

    def __init__(self, folder, nodes, log, settings=""):
        self.name, self.folder = f"cluster, log in {log}", folder
        config = folder / "bench.toml"
        config.write_text(settings)
        words = [MERIDIAN, "cluster", "up", "--nodes", nodes, "--dir", folder, "--log", log, "--config", config]
        words += ["--nats-server", nats_server()] if log == "nats" else []
        self.said = open(folder / "up.log", "w")
        self.process = subprocess.Popen([str(w) for w in words], stdout=subprocess.PIPE, stderr=self.said, text=True)
        self.pid = self.process.pid
        for line in self.process.stdout:
            if line.startswith("ready http://"):
                self.port = int(line.rsplit(":", 1)[1])
                break
        else:
            sys.exit(f"bench: {self.name} did not start: {(folder / 'up.log').read_text()[-800:]}")

    def nodes(self, role):
        """The processes of a role, as `cluster.json` has them now."""
        return [node for node in json.loads((self.folder / "cluster.json").read_text())["nodes"] if node["role"] == role]

    def cpu(self):
        """Processor seconds by role."""
        return {role: sum(cpu_seconds(node["pid"]) for node in self.nodes(role) if node["pid"]) for role in ("gateway", "owner", "scan", "log")}

    def status(self):
        """What `meridian cluster status` says."""
        run = subprocess.run([MERIDIAN, "cluster", "status", "--dir", self.folder, "--json"], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"bench: cluster status: {run.stderr.strip()}")
        return json.loads(run.stdout)

    def owner(self):
        """The process that owns the collections."""
        name = self.status()["owner"]["node"]
        return next(node for node in self.nodes("owner") if node["name"] == name)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(120)
        self.process.kill()
        self.process.wait()
        self.said.close()


class Bare:
    """NATS servers alone, with the settings of `meridian cluster up`: one, or three that keep every message."""

    def __init__(self, folder, servers):
        self.folder, self.servers = folder, []
        ports = [(free_port(), free_port()) for _ in range(servers)]
        self.url = ",".join(f"nats://127.0.0.1:{client}" for client, _ in ports)
        routes = [f"nats://127.0.0.1:{route}" for _, route in ports]
        program = nats_server()
        for number, (client, route) in enumerate(ports):
            text = f'server_name: "bare-{number}"\nlisten: "127.0.0.1:{client}"\njetstream {{ store_dir: "{folder / str(number)}", sync_interval: always }}\n'
            if servers > 1:
                text += f'cluster {{ name: "bare", listen: "127.0.0.1:{route}", routes: {json.dumps(routes)} }}\n'
            path = folder / f"bare-{number}.conf"
            path.write_text(text)
            log = open(folder / f"bare-{number}.log", "w")
            self.servers.append(subprocess.Popen([program, "-c", str(path)], stdout=log, stderr=log))
        for client, _ in ports:
            wait_port(client)
        # A leader must have been chosen before a stream can be made.
        time.sleep(3 if servers > 1 else 0.5)

    def cpu(self):
        """Processor seconds of all servers."""
        return sum(cpu_seconds(server.pid) for server in self.servers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for server in self.servers:
            server.kill()
            server.wait()


def embedded(folder):
    """One process with its own log."""
    port = free_port()
    return Server("embedded", [MERIDIAN, "serve", "--listen", f"127.0.0.1:{port}", "--data", folder / "data"], port)


def size_of(folder, part=""):
    """Bytes of the files in a folder whose path has a part."""
    return sum(path.stat().st_size for path in pathlib.Path(folder).rglob("*") if path.is_file() and part in os.fspath(path))
