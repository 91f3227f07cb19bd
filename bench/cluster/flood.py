"""Batches of the driver at a rate, or as fast as they are answered."""

import subprocess

from common import DRIVER

# A batch for which no connection is free after so many seconds is not sent, and counted.
LATE_S = 2


def flood(port, folder, target, kind, template, first, seconds, connections, rate=None):
    """For each batch its number, status (0: no answer; -1: not sent), seconds, and how late it was sent. `kind`: media type; `None`: published to NATS."""
    body, out = folder / "template.body", folder / "batches.csv"
    body.write_bytes(template)
    argv = [DRIVER, "flood", "--address", f"127.0.0.1:{port}", "--target", target, "--template", body, "--first", first, "--seconds", seconds,
            "--connections", connections, "--late", LATE_S, "--out", out]
    argv += ["--rate", rate] if rate else []
    argv += ["--kind", kind] if kind else []
    subprocess.run([str(word) for word in argv], check=True, stdout=subprocess.DEVNULL)
    rows = (line.split(",") for line in out.read_text().splitlines())
    return [(int(number), int(status), int(took) / 1e6, int(late) / 1e6) for number, status, took, late in rows]


def acknowledged(ended):
    """The numbers of batches that were acknowledged."""
    return {number for number, status, _, _ in ended if status in (200, 201)}


def percentile(values, p):
    """A percentile, in order of size."""
    return sorted(values)[min(len(values) - 1, int(len(values) * p / 100))]
