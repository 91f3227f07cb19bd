"""A Meridian for one study, and what its set-up may need."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
from common import Server, free_port

HERE = pathlib.Path(__file__).resolve().parent
# The lab on one half of the processors and what it asks on the other, so that neither takes the other's time.
CORES = sorted(os.sched_getaffinity(0))
LAB_CORES, TARGET_CORES = CORES[:len(CORES) // 2] or CORES, CORES[len(CORES) // 2:]
TRIES = 3


def on(cores, argv):
    """A command on some processors."""
    return ["taskset", "-c", ",".join(map(str, cores)), *map(str, argv)]


class Study:
    """One server with a folder of its own; both end with the stack."""

    def __init__(self, stack, program):
        self.stack, self.program = stack, program
        self.folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="studies-")))
        self.url = None

    def serve(self, *options):
        """Starts the server."""
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        argv = [self.program, "serve", "--listen", f"127.0.0.1:{port}", *options]
        self.stack.enter_context(Server("meridian", on(TARGET_CORES, argv), port))

    def mock(self, sources):
        """Starts mock sources; their address."""
        port = free_port()
        address = f"127.0.0.1:{port}"
        self.stack.enter_context(Server("mock", on(TARGET_CORES, [self.program, "lab", "mock", sources, "--listen", address]), port))
        return address

    def serve_searches(self, providers):
        """Starts a server whose searches ask these providers: their declarations, by name."""
        folder = self.folder / "providers"
        folder.mkdir()
        for name, declared in providers.items():
            (folder / f"{name}.toml").write_text(declared)
        config = self.folder / "meridian.toml"
        config.write_text(f'[search]\nproviders = "{folder}"\njoin = "0s"\n')
        self.serve("--ephemeral", "--config", config)

    def meridian(self, *args, codes=(0,)):
        """Runs the program to its end, which must be one of these codes; what it said."""
        run = subprocess.run(on(LAB_CORES, [self.program, *args]), capture_output=True, text=True)
        if run.returncode not in codes:
            sys.exit(f"studies: meridian {args[0]} {args[1]}: {run.stderr.strip()}\n{run.stdout.strip()}")
        return run.stdout

    def lab_run(self, scenario, out, sets, seed=1):
        """Runs a scenario; again where others used the machine, so that the run is void, a few times at most."""
        for n in range(TRIES):
            shutil.rmtree(out, ignore_errors=True)
            # Another seed each time: events that were written by a void run, or by one before, are there already.
            again = [*sets, f"seed={seed + n}"] if seed + n > 1 else sets
            # An objective that cannot be judged ends a void run with 1.
            said = self.meridian("lab", "run", scenario, "--out", out, "--json", *(part for one in again for part in ("--set", one)), codes=(0, 1))
            if not json.loads(said)["run"]["void"]:
                return

    def load(self, collection, features, *options):
        """Loads features."""
        path = self.folder / f"{collection}.geojsonl"
        with path.open("w") as out:
            out.writelines(json.dumps(feature) + "\n" for feature in features)
        self.meridian("load", collection, path, "--url", self.url, "--quiet", *options)
