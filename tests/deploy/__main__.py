"""Holds the files of deploy/ against the program and against each other: deploy MERIDIAN.

The program itself parses the command line of every unit, container and manifest, with the settings that it gets there (`--show-config`).
Every reference must lead somewhere, and every limit must fit the settings. At last a cluster runs by the manifests' command lines, and
answers their probes.
"""

import pathlib
import re
import sys
import tempfile

from cluster import cluster
from common import ROOT, expect, problems
from containers import compose, containerfile
from manifests import kubernetes
from units import systemd


def guide():
    """Files that the guide names are there."""
    for file in re.findall(r"\bdeploy/[\w/.@*-]+", (ROOT / "docs" / "deploy.md").read_text()):
        expect(list(ROOT.glob(file.rstrip("."))), f"docs/deploy.md: there is no {file}")


def main():
    try:
        with tempfile.TemporaryDirectory() as folder:
            systemd(pathlib.Path(folder))
            first, user = containerfile()
            compose(first)
            servers, settings, first_token = kubernetes(first, user)
            guide()
            # What is wrong on paper need not be tried.
            if not problems:
                cluster(pathlib.Path(folder), servers, settings, first_token)
    finally:
        # Before the error of a file that lacks too much for this test to go on.
        print("\n".join(problems), end="\n" if problems else "")
    if not problems:
        print("deploy: units, containers and manifests agree with the program, and a cluster ran by them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
