"""What every bench shares: peers started and stopped, the driver, CPU seconds, and honest notes on the machine."""

import contextlib
import json
import os
import pathlib
import platform
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
MERIDIAN = pathlib.Path(os.environ.get("MERIDIAN", TARGET / "release" / "meridian"))
DRIVER = MERIDIAN.with_name("bench-driver")
RESULTS = ROOT / "bench" / "results"


def say(text):
    """Progress, on standard error so that results can be piped."""
    print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def need(*programs):
    """Stops with one clear sentence if a peer is not installed."""
    missing = [str(p) for p in programs if not shutil.which(p) and not pathlib.Path(p).exists()]
    if missing:
        sys.exit(f"bench: not found: {', '.join(missing)}; `make bench-peers` installs the peers")


def free_port():
    """A free port, below the ports that the system gives to connections: one of these may take a port between this look and its use."""
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as s, contextlib.suppress(OSError):
            s.bind(("127.0.0.1", port))
            return port


def wait_port(port, process=None, seconds=60):
    """Waits until something listens."""
    end = time.time() + seconds
    while time.time() < end:
        if process is not None and process.poll() is not None:
            sys.exit(f"bench: a server ended at start with code {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        # Short, since starts are timed with it.
        time.sleep(0.002)
    sys.exit(f"bench: nothing listens on port {port} after {seconds} s")


def read_zst(path):
    """Lines of a zstd text file, through the zstd program or Meridian's own reader."""
    process = subprocess.Popen(["zstd", "-dc", str(path)], stdout=subprocess.PIPE, text=True, encoding="utf-8")
    yield from (line.rstrip("\n") for line in process.stdout)
    if process.wait() != 0:
        sys.exit(f"bench: {path} cannot be read")


def tree(pid):
    """The process and its descendants."""
    found, todo = [], [pid]
    while todo:
        p = todo.pop()
        found.append(p)
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{p}/task"):
                todo += map(int, pathlib.Path(f"/proc/{p}/task/{task}/children").read_text().split())
    return found


def cpu_seconds(pid):
    """User and system seconds of a process and its living descendants, their reaped children included."""
    ticks = 0
    for p in tree(pid):
        with contextlib.suppress(OSError, IndexError):
            fields = pathlib.Path(f"/proc/{p}/stat").read_text().rsplit(")", 1)[1].split()
            ticks += sum(int(x) for x in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def written_bytes(pid):
    """Bytes that a process and its descendants have sent to the disk."""
    total = 0
    for p in tree(pid):
        with contextlib.suppress(OSError):
            total += int(next(line for line in open(f"/proc/{p}/io") if line.startswith("write_bytes")).split()[1])
    return total


def settle(pid, rest=1.0, most=60):
    """Waits until a process has used next to nothing for a second; the seconds that it took."""
    began, last, since = time.time(), cpu_seconds(pid), time.time()
    while time.time() - since < rest and time.time() - began < most:
        time.sleep(0.25)
        now = cpu_seconds(pid)
        if now - last > 0.05:
            since = time.time()
        last = now
    return since - began


def resident_mb(pid):
    """Proportional set size of a process and its descendants, so that shared pages count once."""
    total = 0
    for p in tree(pid):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{p}/smaps_rollup").read_text().splitlines():
                if line.startswith("Pss:"):
                    total += int(line.split()[1])
    return total / 1024


class Server:
    """A peer in a process of its own; ends with the `with` block."""

    def __init__(self, name, argv, port, cwd=None, user=None):
        self.name, self.port = name, port
        self.log = tempfile.NamedTemporaryFile(prefix=f"bench-{name}-", suffix=".log", delete=False)
        extra = {"user": user, "extra_groups": []} if user else {}
        self.process = subprocess.Popen([str(a) for a in argv], stdout=self.log, stderr=self.log, cwd=cwd, **extra)
        self.pid = self.process.pid
        wait_port(port, self.process)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGINT if "postgres" in self.name else signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.process.kill()
        self.process.wait()
        os.unlink(self.log.name)


def drive(server, protocol, template, questions, seconds, connections=50, database="postgres", token=None):
    """One measured run; adds the server's CPU microseconds per answer, which noise elsewhere touches least."""
    before, started = cpu_seconds(server.pid), time.time()
    run = subprocess.run(
        [DRIVER, "ask", "--protocol", protocol, "--address", f"127.0.0.1:{server.port}", "--template", template, "--questions", questions,
         "--seconds", str(seconds), "--connections", str(connections), "--database", database, *(["--token", token] if token else [])],
        capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: {server.name}: {run.stderr.strip()}")
    result = json.loads(run.stdout)
    share = result["seconds"] / (time.time() - started)  # the warm-up's part is taken off by its share of the time
    result["cpu_us"] = (cpu_seconds(server.pid) - before) * share * 1e6 / max(result["answers"], 1)
    if result["errors"]:
        sys.exit(f"bench: {server.name}: {result['errors']} errors, the first: {result['first_error']}")
    return result


def dump(server, protocol, template, questions, count, database="postgres"):
    """Raw answers to the first questions."""
    run = subprocess.run(
        [DRIVER, "ask", "--protocol", protocol, "--address", f"127.0.0.1:{server.port}", "--template", template, "--questions", questions,
         "--dump", str(count), "--database", database], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: {server.name}: {run.stderr.strip()}")
    return [bytes.fromhex(line) for line in run.stdout.split()]


def median(values):
    """Median, the figure that is quoted."""
    return statistics.median(values)


def machine():
    """The machine in a line."""
    model = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), platform.processor())
    memory = int(next(line.split()[1] for line in open("/proc/meminfo") if line.startswith("MemTotal"))) // 1024 // 1024
    return f"{os.cpu_count()} cores of {model}, {memory} GiB, Linux {platform.release()}"


RUN = int(time.time())  # this run of a bench, whose figures may stand beside those of others


def steal_and_load():
    """Load average and stolen ticks so far, to judge how quiet the run was."""
    return {"load1": os.getloadavg()[0], "steal_ticks": int(open("/proc/stat").readline().split()[8]), "run": RUN}


def commit():
    """The commit that `make build` noted beside the binary measured; without a note, that of the working tree."""
    noted = MERIDIAN.with_suffix(".commit")
    if noted.exists() and noted.stat().st_mtime >= MERIDIAN.stat().st_mtime:
        return noted.read_text().strip()
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout.strip() or "none"


def save(name, result, folder=RESULTS):
    """Keeps a run's figures beside the others."""
    folder.mkdir(exist_ok=True)
    result |= {"machine": machine(), "commit": commit(), "date": time.strftime("%Y-%m-%d")}
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1) + "\n")
    say(f"wrote {folder / name}.json")
