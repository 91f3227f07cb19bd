"""Checks the arrows between crates against the list of crates in ARCHITECTURE.md. A crate may only need crates that
stand below it there. Those of ONLY may need only the crates that ONLY names for them. `api`, `saved` and `federation`
reach collections through `backend`, never by `store` or `index`."""

import json
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# What must not be named, though it stands below.
NEVER = {"api": {"store", "index"}, "saved": {"store", "index"}, "federation": {"store", "index"}}
ONLY = {
    "lab-plan": {"lab-drive", "lab-results", "model"},
    "lab-drive": {"lab-results", "model"},
    "lab-results": {"model"},
    "formats": {"model"},
    "index": {"model"},
    "admission": {"model"},
    "labels": set(),
    "observe": set(),
    "model": set(),
}


def main():
    listed = re.findall(r"^\| `crates/([a-z-]+)` \|", (ROOT / "ARCHITECTURE.md").read_text(), re.M)
    described = json.loads(subprocess.run(["cargo", "metadata", "--format-version=1", "--no-deps", "--locked"], cwd=ROOT, capture_output=True, check=True).stdout)
    crates = {p["name"].removeprefix("meridian-"): p for p in described["packages"] if p["name"].startswith("meridian-")}
    wrong = [f"crates/{name} is not in the list of ARCHITECTURE.md" for name in crates.keys() - set(listed)]
    wrong += [f"ARCHITECTURE.md lists crates/{name}, which is not there" for name in set(listed) - crates.keys()]
    for name in crates.keys() & set(listed):
        below = ONLY.get(name, set(listed[listed.index(name) + 1 :])) - NEVER.get(name, set())
        # What only tests need may come from anywhere.
        needs = {d["name"].removeprefix("meridian-") for d in crates[name]["dependencies"] if d["kind"] is None} & crates.keys()
        wrong += [f"crates/{name} needs crates/{other}, which it may not" for other in sorted(needs - below)]
    print("\n".join(wrong) if wrong else f"{len(crates)} crates, all arrows point down")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
