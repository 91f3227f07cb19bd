"""Runs the commands of pages as a reader would, and compares what they print with what the page shows.

usage: run.py MERIDIAN PAGE...

A page is one session in a folder of its own, with the project's `data`, `bench` and `deploy` in it. Blocks run in order:

    ```sh             commands; variables that they export stay
    ```sh fails       commands that end with an error
    ```sh if=COMMAND  commands where COMMAND succeeds, its spaces written as `_`
    ```sh skip        shown only, words after it say why; so is a block in any other language
    ```python         statements; names stay
    ```text           what the block before has printed: `…` stands for anything, alone on a line for any lines

Blocks in a comment (`<!--`, `-->`) are hidden from the reader: set-up, and text that is only checked.
`meridian serve` runs until the page ends, or serves again; its addresses become free ones. `meridian cluster up` runs in the
same way, and processes with a `--role` beside it and one another. `http://127.0.0.1:…` is the gateway that `cluster up` names.
A block that serves runs line by line. `/srv` and `/backups` are folders of the session. The blocks of README.md are not marked. Each line of them that begins with `meridian`, as built or installed, or `curl` runs. `make demo` serves the
small collections of the demo.
"""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request

from blocks import Block, blocks

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_SECONDS = 120
BLOCK_SECONDS = 300
# Folders of the reader's machine.
FOLDERS = ["srv", "backups"]
SERVES = re.compile(r"^meridian (serve|cluster up)\b", re.M)
DEMO = [line.split() for line in (ROOT / "scripts" / "demo.sh").read_text().split("\n") if line.startswith("load ") and "postal" not in line]
# As in a terminal, curl shows no progress; an answer that is an error fails the block.
CURL = 'curl() { command curl -sS --fail-with-body "$@"; }'
WORKER = """
import contextlib, io, json, sys, traceback
names = {"__name__": "page"}
for line in sys.stdin:
    said, failed = io.StringIO(), False
    with contextlib.redirect_stdout(said):
        try:
            exec(compile(json.loads(line), "block", "exec"), names)
        except BaseException:
            failed = True
            traceback.print_exc(file=said)
    print(json.dumps([failed, said.getvalue()]), flush=True)
"""


class Failed(Exception):
    """What a page says does not hold."""


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return str(listener.getsockname()[1])


def matches(shown, said):
    """Whether what was printed is what a page shows."""
    parts = []
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() in ("…", "..."):
            parts.append(r"(?:.*\n)*?")
        else:
            parts.append(r"[^\n]*?".join(re.escape(piece) for piece in line.rstrip().split("…")) + r"[ \t]*\n")
    return re.fullmatch("".join(parts), said.rstrip("\n") + "\n") is not None


class Session:
    """A reader's shell, Python and server."""

    def __init__(self, meridian, folder):
        self.folder, self.servers, self.gateway, self.worker = folder, [], None, None
        self.ports = {port: free_port() for port in ("7117", "7118", "7119", "7120")}
        for name in ("data", "bench", "deploy"):
            (folder / name).symlink_to(ROOT / name)
        home = folder / "home"
        for made in [home, *(folder / name for name in FOLDERS)]:
            made.mkdir()
        if os.environ.get("DOCS_HOME"):
            subprocess.run(["cp", "-rs", f"{os.environ['DOCS_HOME']}/.", home], check=True)
        self.variables = {k: v for k, v in os.environ.items() if not k.startswith("MERIDIAN_")}
        self.variables |= {"HOME": str(home), "PATH": f"{meridian.parent}:{os.environ['PATH']}", "PYTHONDONTWRITEBYTECODE": "1"}

    def here(self, text):
        """The text with the addresses and folders of this session in place of those of the page."""
        text = re.sub(rf"(?<![\w.:/-])(file://)?/({'|'.join(FOLDERS)})\b", lambda found: f"{found[1] or ''}{self.folder}/{found[2]}", text)
        ports = "|".join(self.ports)
        text = re.sub(rf"(127\.0\.0\.1|localhost|0\.0\.0\.0):({ports})\b", lambda found: f"{found[1]}:{self.ports[found[2]]}", text)
        return text.replace("http://127.0.0.1:…", self.gateway) if self.gateway else text

    def there(self, text):
        for port, own in self.ports.items():
            text = re.sub(rf"\b{own}\b", port, text)
        for name in FOLDERS:
            text = text.replace(f"{self.folder}/{name}", f"/{name}")
        return text

    def shell(self, text):
        """Whether it failed, and what it printed."""
        script = f"set -euo pipefail\n{CURL}\n{self.here(text)}\nexport -p > .exported\n"
        if (self.folder / ".exported").exists():
            script = f"source ./.exported\n{script}"
        run = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.variables, timeout=BLOCK_SECONDS, text=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        return run.returncode != 0, self.there(run.stdout)

    def python(self, text):
        if self.worker is None:
            interpreter = [os.environ.get("DOCS_PYTHON", sys.executable), "-c", WORKER]
            self.worker = subprocess.Popen(
                interpreter, cwd=self.folder, env=self.variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        self.worker.stdin.write(json.dumps(self.here(text)) + "\n")
        self.worker.stdin.flush()
        late = threading.Timer(BLOCK_SECONDS, self.worker.kill)
        late.start()
        line = self.worker.stdout.readline()
        late.cancel()
        if not line:
            return True, "Python ended"
        failed, said = json.loads(line)
        return failed, self.there(said)

    def serve(self, text):
        """Whether it failed, and what it printed; of a server that is alone, only why it failed."""
        words = shlex.split(self.here(text), comments=True)
        alone = words[1] == "serve" and "--role" not in words
        if "--role" not in words:
            self.stop()
        if alone and "--listen" not in words:
            words += ["--listen", f"127.0.0.1:{self.ports['7117']}"]
        path = self.folder / f"server-{len(self.servers)}.log"
        with open(path, "w") as log:
            server = subprocess.Popen(words, cwd=self.folder, env=self.variables, stdout=log, stderr=log)
        self.servers.append(server)
        until = time.monotonic() + START_SECONDS
        while server.poll() is None and time.monotonic() < until:
            if self.runs(words, path.read_text()):
                return False, "" if alone else self.there(path.read_text())
            time.sleep(0.05)
        return True, path.read_text()

    def runs(self, words, said):
        """Whether what these words have started is ready."""
        if words[1] == "cluster":
            ready = re.search(r"^ready (http://\S+)\n", said, re.M)
            self.gateway = ready and ready[1]
            return ready is not None
        if "owner" in words:
            # It answers gateways only.
            return re.search(r"^(owns|waiting)\b.*\n", said, re.M) is not None
        # Whether it serves, not who it is: the page's own commands check its certificate.
        scheme, context = ("https", ssl._create_unverified_context()) if "--tls-cert" in words else ("http", None)
        port = words[words.index("--listen") + 1].rpartition(":")[2]
        try:
            urllib.request.urlopen(f"{scheme}://127.0.0.1:{port}/readyz", timeout=5, context=context).close()
            return True
        except (urllib.error.URLError, ConnectionError):
            return False

    def each(self, text):
        """Runs the lines of a block that serves, up to one that fails."""
        said = ""
        for line in re.sub(r" *\\\n *", " ", text).splitlines():
            failed, more = (self.serve if SERVES.match(line) else self.shell)(line)
            said += more
            if failed:
                return True, said
        return False, said

    def demo(self):
        for _, collection, _, file, *options in DEMO:
            load = ["meridian", "load", collection, f"data/{file}", "--data", "demo-data", "--quiet", *options]
            subprocess.run(load, cwd=self.folder, env=self.variables, check=True, timeout=BLOCK_SECONDS)
        return self.serve("meridian serve --data demo-data")

    def stop(self):
        # Gateways and scan servers end before their owners.
        while self.servers:
            server = self.servers.pop()
            server.terminate()
            server.wait(timeout=START_SECONDS)
        self.gateway = None

    def close(self):
        self.stop()
        # The pictures of the pages are the ones that their commands make.
        if pictures := os.environ.get("DOCS_PICTURES"):
            for path in self.folder.glob("*.png"):
                shutil.copy(path, pictures)
        if self.worker:
            self.worker.stdin.close()
            self.worker.wait(timeout=60)

    def run(self, block):
        """Runs a block, and returns what it printed; None if it is shown only."""
        kind, *words = block.words or [""]
        wanted = next((word[3:].replace("_", " ") for word in words if word.startswith("if=")), None)
        if kind not in ("sh", "python") or "skip" in words or (wanted and self.shell(wanted)[0]):
            return None
        if kind == "python":
            failed, said = self.python(block.text)
        elif block.text.strip() == "make demo":
            failed, said = self.demo()
        elif SERVES.search(block.text):
            failed, said = self.each(block.text)
        else:
            failed, said = self.shell(block.text)
        if failed != ("fails" in words):
            raise Failed(f"line {block.line}: it {'fails' if failed else 'does not fail'}:\n{block.text}\n{said}")
        return said


def lines(found):
    """The commands of a page whose blocks are not marked."""
    for block in found:
        if block.words and (block.words[0] not in ("sh", "bash", "console") or "skip" in block.words):
            continue
        for offset, line in enumerate(re.sub(r" *\\\n *", " ", block.text).split("\n")):
            line = line.removeprefix("$ ").removeprefix("target/release/")
            if re.match(r"(meridian|curl)\b|make demo$", line.split("  #")[0].strip()):
                yield Block(["sh"], line.split("  #")[0].strip() + "\n", block.line + offset)


def page(meridian, path):
    """Runs a page; how many blocks ran, and how many were compared."""
    found = blocks(path.read_text())
    if path.name == "README.md":
        found = list(lines(found))
    ran = compared = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Session(meridian, pathlib.Path(folder))) as session:
        said = None
        for block in found:
            if block.words[:1] == ["text"]:
                if said is not None and not matches(block.text, said):
                    raise Failed(f"line {block.line}: the page shows\n{block.text}\nand this was printed:\n{said}")
                compared += said is not None
                said = None
            else:
                said = session.run(block)
                ran += said is not None
    return ran, compared


def main():
    meridian = pathlib.Path(sys.argv[1]).resolve()
    problems = []
    for name in sys.argv[2:]:
        try:
            ran, compared = page(meridian, ROOT / name)
            print(f"{name}: {ran} blocks ran, the output of {compared} is as shown", flush=True)
            if ran < 3:
                problems.append(f"{name}: only {ran} blocks ran")
        except (Failed, ValueError, subprocess.TimeoutExpired) as problem:
            problems.append(f"{name}: {problem}")
    if problems:
        sys.exit("\n".join(problems))


main()
