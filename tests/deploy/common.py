"""What the checks share: the folders, the problems that they found, commands, and readings of sizes and times."""

import pathlib
import re
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DEPLOY = ROOT / "deploy"
MERIDIAN = pathlib.Path(sys.argv[1]).resolve()
TOOLS = pathlib.Path(sys.executable).parent
# The settings of a server fit into this much memory, or more.
MEMORY_MIN = 1 << 30
# What the certificate of the manifests is for, as the guide has it made.
TLS_NAMES = re.search(r"certificates\.sh \S+ meridian '(\S+)'", (ROOT / "docs" / "deploy.md").read_text())[1]

problems = []


def expect(holds, problem):
    if not holds:
        problems.append(problem)
    return holds


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)


def expect_run(where, *command):
    done = run(*command)
    return expect(done.returncode == 0, f"{where}: {command[0]}: {(done.stdout + done.stderr).strip()}")


def seconds(text):
    count, unit = re.fullmatch(r"(\d+)(|s|m|min|h)", str(text)).groups()
    return int(count) * {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}[unit]


def size(text):
    count, unit = re.fullmatch(r"(\d+) ?([KMG])i?B?", str(text).upper().replace("I", "i")).groups()
    return int(count) << {"K": 10, "M": 20, "G": 30}[unit]


def port(address):
    return int(address.rpartition(":")[2])


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
