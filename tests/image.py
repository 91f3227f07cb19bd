"""Starts the image of `make package` as a container's engine does, and uses it: image.py IMAGE.tar.

Command, user, folder, environment, volume, port and health check are those of the image's configuration. The root is read-only but for the
volume. What this machine refuses of a container is named, and the image is started without it. Needs root.
"""

import ctypes
import errno
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.error
import urllib.request

# Of <linux/sched.h>. Each container gets its namespace of processes when it starts.
NAMESPACES = {"mounts": 0x00020000, "host names": 0x04000000, "messages": 0x08000000, "networks": 0x40000000}
# By their paths: the environment of a container is not that of this machine.
TOOLS = {name: shutil.which(name) for name in ["ip", "mount", "nsenter", "setpriv", "true", "umount", "unshare"]}
DEVICES = ["full", "null", "random", "urandom", "zero"]
# Of a command in a container, and of a start.
SECONDS_MAX = 60
SPOTS = "lon,lat,time,size\n4.8,45.7,2026-01-01T00:00:00Z,1\n5.0,46.0,2026-01-02T00:00:00Z,2\n"


def expect(holds, problem):
    if not holds:
        sys.exit(f"image: {problem}")


def say(text):
    print(f"image: {text}", flush=True)


def run(*command, **options):
    return subprocess.run([str(word) for word in command], **{"capture_output": True, "text": True} | options)


def do(*command):
    done = run(*command)
    expect(done.returncode == 0, f"{' '.join(map(str, command))}: {done.stderr.strip()}")


def unpack(image, root):
    """Puts the image's files below `root`, and returns its configuration."""
    with tarfile.open(image) as archive:
        [manifest] = json.load(archive.extractfile("manifest.json"))
        config = json.load(archive.extractfile(manifest["Config"]))["config"]
        # From scratch, no layer takes away a file of another.
        for layer in manifest["Layers"]:
            with tarfile.open(fileobj=archive.extractfile(layer)) as files:
                # With all owners and modes, in every version of Python.
                files.extraction_filter = lambda member, _: member
                files.extractall(root, numeric_owner=True)
    return config


class Image:
    """An unpacked image on this machine, and how it is started here."""

    def __init__(self, config, root, state):
        self.config, self.root, self.state = config, root, state
        self.read_only = self.processes = False
        self.user, self.group = config["User"].split(":")
        [self.volume] = config["Volumes"]
        [port] = config["ExposedPorts"]
        self.url = f"http://127.0.0.1:{port.removesuffix('/tcp')}"
        self.env = dict(pair.split("=", 1) for pair in config["Env"])
        # A new volume begins as the image's folder.
        shutil.copytree(self.inside(self.volume), state)
        of = self.inside(self.volume).stat()
        os.chown(state, of.st_uid, of.st_gid)

    def inside(self, path):
        return self.root / path.lstrip("/")

    def isolate(self):
        """Gives this process and the containers what this machine grants: namespaces, and a root that is read-only."""
        libc = ctypes.CDLL(None, use_errno=True)
        refused = [name for name, flag in NAMESPACES.items() if libc.unshare(flag) != 0]
        self.processes = run(TOOLS["unshare"], "--pid", "--fork", "--mount-proc", TOOLS["true"]).returncode == 0
        for name in refused + ([] if self.processes else ["processes"]):
            say(f"NOTE: this machine refuses a namespace of {name}: the containers share it")
        if "mounts" not in refused:
            do(TOOLS["mount"], "--make-rprivate", "/")
        if "networks" not in refused:
            do(TOOLS["ip"], "link", "set", "lo", "up")
        # Engines make these folders.
        for name in ["proc", "dev"]:
            self.inside(name).mkdir()
        self.read_only = run(TOOLS["mount"], "--bind", self.root, self.root).returncode == 0
        if not self.read_only:
            say("NOTE: this machine refuses mounts: the root is not read-only, and the volume is a folder of it")
            return
        do(TOOLS["mount"], "--bind", self.state, self.inside(self.volume))
        do(TOOLS["mount"], "-t", "proc", "proc", self.inside("proc"))
        do(TOOLS["mount"], "-t", "tmpfs", "-o", "mode=755", "dev", self.inside("dev"))
        for name in DEVICES:
            (self.inside("dev") / name).touch()
            do(TOOLS["mount"], "--bind", f"/dev/{name}", self.inside("dev") / name)
        do(TOOLS["mount"], "-o", "remount,bind,ro", self.root)

    def release(self):
        if self.read_only:
            run(TOOLS["umount"], "--recursive", self.root)

    def as_user(self, words, *namespaces):
        """The command that runs `words` in the image's root and folder as its user, who can get no other rights."""
        place = ["--root", self.root, "--wd", self.config["WorkingDir"], "--setgid", self.group, "--setuid", self.user]
        return [str(word) for word in [TOOLS["setpriv"], "--no-new-privs", TOOLS["unshare"], *namespaces, *place, "--", *words]]


class Container:
    """A running container of the image."""

    def __init__(self, image, words, log):
        self.image, self.log = image, log
        namespaces = ["--pid", "--fork", "--mount-proc"] if image.processes else []
        with open(log, "w") as to:
            command = image.as_user(words, *namespaces)
            self.process = subprocess.Popen(command, env=image.env, stdin=subprocess.DEVNULL, stdout=to, stderr=to)

    def said(self):
        return self.log.read_text()

    @property
    def pid(self):
        """The first process of the container, by its number outside."""
        outer = self.process.pid
        children = pathlib.Path(f"/proc/{outer}/task/{outer}/children").read_text().split()
        # Without a namespace of its own, that is the process itself.
        return int(children[0]) if self.image.processes and children else outer

    def until_ready(self):
        until = time.monotonic() + SECONDS_MAX
        while ask(f"{self.image.url}/readyz")[0] != 200:
            expect(self.process.poll() is None and time.monotonic() < until, f"it does not get ready: {self.said()}")
            time.sleep(0.1)

    def exec(self, *words, env=None, **options):
        """Runs `words` in this container beside its server."""
        enter = [TOOLS["nsenter"], f"--target={self.pid}", "--mount", "--pid"] if self.image.processes else []
        return run(*enter, *self.image.as_user(words), env=self.image.env | (env or {}), **options)

    def healthy(self):
        """Whether the image's health check says so in its time."""
        check = self.image.config["Healthcheck"]
        # Its output would keep this process waiting for a check that hangs.
        options = {"timeout": check["Timeout"] / 1e9, "capture_output": False, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            return self.exec(*check["Test"][1:], **options).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def ended(self, within):
        """The exit code, or that there is none."""
        try:
            return self.process.wait(timeout=within)
        except subprocess.TimeoutExpired:
            return f"it runs after {within} s"

    def stop(self, grace):
        os.kill(self.pid, signal.SIGTERM)
        code = self.ended(grace)
        expect(code == 0, f"SIGTERM: {code}: {self.said()}")

    def kill(self):
        """Ends what a failure has left."""
        if self.process.poll() is None:
            # With it all processes of its namespace end.
            os.kill(self.pid, signal.SIGKILL)
            self.process.wait()


def ask(url, token=None):
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=5) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as e:
        return e.code, e.read()
    except OSError as e:
        return None, str(e).encode()


def files(image):
    """Checks what is in the image: one program, and no user who is root."""
    programs = {path.name for path in image.root.rglob("*") if path.is_file() and path.stat().st_mode & 0o111 and ".so" not in path.name}
    expect(programs == {"meridian"}, f"it has the programs {sorted(programs)}: expected meridian alone, and no shell")
    expect(int(image.user) > 0 and int(image.group) > 0, f"its user is {image.config['User']}: expected numbers, and not root")


def rights(image, server):
    """Checks the rights of the server's process, and that nothing can be written but the volume."""
    lines = (line.split(":", 1) for line in pathlib.Path(f"/proc/{server.pid}/status").read_text().splitlines())
    status = {name: value.split() for name, value in lines}
    wanted = {"Uid": [image.user] * 4, "Gid": [image.group] * 4, "Groups": [], "CapPrm": ["0" * 16], "NoNewPrivs": ["1"]}
    has = {name: status[name] for name in wanted}
    expect(has == wanted, f"its process has {has}: expected {wanted}")
    if image.processes:
        expect(status["NSpid"][-1] == "1", f"its process has the numbers {status['NSpid']}: expected 1 as the last")
    expect(os.readlink(f"/proc/{server.pid}/cwd") == str(image.inside(image.config["WorkingDir"])), "its process is in another folder")
    done = server.exec(*image.config["Entrypoint"], "load", "spots", "-", "--data", "/usr/share/data", input=SPOTS)
    reason = "Read-only file system" if image.read_only else "Permission denied"
    expect(done.returncode != 0 and reason in done.stderr, f"load into /usr/share/data: {done.returncode}: {done.stderr}: expected: {reason}")
    if image.read_only:
        # Root itself cannot.
        try:
            pathlib.Path(f"/proc/{server.pid}/root/written").touch()
            failed = None
        except OSError as e:
            failed = e.errno
        expect(failed == errno.EROFS, f"/written: expected a root that is read-only, not {failed}")


def found(image, token):
    """How many of the events are near the first."""
    code, body = ask(f"{image.url}/collections/spots/items?bbox=4.7,45.6,4.9,45.8", token)
    expect(code == 200, f"a query: {code}: {body.decode()}")
    return len(json.loads(body)["features"])


def use(image, folder, containers):
    entry, words = image.config["Entrypoint"], image.config["Cmd"]
    settings = tomllib.loads(image.inside(words[words.index("--config") + 1]).read_text())
    grace = int(settings["server"]["shutdown_grace"].removesuffix("s"))

    def start(*command):
        containers.append(Container(image, command, folder / f"{len(containers)}.log"))
        return containers[-1]

    def serve():
        server = start(*entry, *words)
        server.until_ready()
        return server

    first = start(*entry, *words)
    code = first.ended(SECONDS_MAX)
    expect(code == 2 and "token" in first.said(), f"a first start without a token: {code}: {first.said()}")
    create = start(*entry, "token", "create", "--role", "operator", "--data", settings["store"]["data"])
    code = create.ended(SECONDS_MAX)
    expect(code == 0, f"token create: {code}: {create.said()}")
    token = create.said().split()[-1]

    test, *check = image.config["Healthcheck"]["Test"]
    expect(test == "CMD", f"its health check is of kind {test}: expected CMD, as there is no shell")
    # As `meridian health` says that nobody answers.
    code = start(*check).ended(SECONDS_MAX)
    expect(code == 3, f"the health check where nothing is served: {code}: expected 3")

    server = serve()
    # By its name alone, as the guide has it in `kubectl exec`.
    done = server.exec("meridian", "load", "spots", "-", "--format", "csv", "--url", image.url, input=SPOTS, env={"MERIDIAN_TOKEN": token})
    expect(done.returncode == 0, f"load: {done.stderr}")
    expect(found(image, token) == 1, "a query of one event")
    rights(image, server)
    expect(server.healthy(), f"the health check of a server: it fails: {server.said()}")
    os.kill(server.pid, signal.SIGSTOP)
    expect(not server.healthy(), "the health check of a server that hangs: it succeeds")
    os.kill(server.pid, signal.SIGCONT)
    server.stop(grace)

    server = serve()
    expect(found(image, token) == 1, "a query after another start")
    server.stop(grace)


def main():
    containers = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        # Others reach the root: the folder itself is for its owner alone.
        folder.chmod(0o755)
        root = folder / "root"
        root.mkdir()
        image = Image(unpack(sys.argv[1], root), root, folder / "state")
        try:
            files(image)
            image.isolate()
            use(image, folder, containers)
        finally:
            for container in containers:
                container.kill()
            image.release()
    kind = "read-only" if image.read_only else "protected"
    say(f"served as its user from a {kind} root, and healthy while it answered; SIGTERM ended it, and its events were there again")


if __name__ == "__main__":
    main()
