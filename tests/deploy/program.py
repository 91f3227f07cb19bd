"""A command line of deploy/ against the program: its settings, its time to stop, its memory, and where it may write."""

import pathlib
import re
import tomllib

from common import MEMORY_MIN, MERIDIAN, expect, run, seconds

# Time to write what is in memory to disk, after the grace.
FLUSH_SECONDS = 30


def options(where, words):
    """Checks the options of a command that is not run here, by its help."""
    command = words[1 : next(n for n, word in enumerate(words) if word.startswith("-"))]
    known = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", run(MERIDIAN, *command, "--help").stdout, re.M))
    for word in words:
        expect(not word.startswith("--") or word in known, f"{where}: {word}: `meridian {' '.join(command)}` has {sorted(known)}")


def server(where, words, settings, stop, memory, writable):
    """Checks a server: its command line with the file `settings`, its time to stop, its memory, and where it may write. Returns its settings."""
    words = words[1:]
    at = words.index("--config") + 1
    expect(pathlib.Path(words[at]).name == settings.name, f"{where}: --config {words[at]}: the file there is {settings.name}")
    words[at] = settings
    done = run(MERIDIAN, *words, "--show-config")
    if not expect(done.returncode == 0, f"{where}: {done.stderr.strip()}"):
        return None
    shown = tomllib.loads(done.stdout)
    role, cluster, folders = shown["server"]["role"], shown["cluster"], []
    if role != "gateway":
        folders.append(shown["store"]["data"])
    if role != "all":
        # Not checked where settings are shown only.
        expect(cluster["log"] == "bucket" and cluster["bucket"].startswith("file:///"), f"{where}: no log or bucket of role {role}")
        folders.append(cluster["bucket"].removeprefix("file://"))
    for folder in folders:
        may = any(pathlib.Path(folder).is_relative_to(place) for place in writable)
        expect(may, f"{where}: {folder}: it may write {writable} only")
    grace = seconds(shown["server"]["shutdown_grace"])
    expect(stop >= grace + FLUSH_SECONDS, f"{where}: {stop} s to stop: a flush of {FLUSH_SECONDS} s may follow the grace of {grace} s")
    expect(memory >= MEMORY_MIN, f"{where}: {memory} bytes of memory: expected {MEMORY_MIN} or more")
    return shown
