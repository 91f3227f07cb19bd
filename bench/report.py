"""Writes bench/RESULTS.md from the figures kept in bench/results/; each bench draws its own in its report.py."""

import importlib.util
import json
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
ORDER = ["ingest", "mixed", "spacetime", "tracks", "near", "near-5m", "aggregate", "python", "footprint", "scaling", "capacity", "compression", "lab", "searches", "overload", "cluster", "scans", "pairs"]
INTRO = """# Results

Every figure here was measured by the command above it, each system in the same run on the same machine,
in interleaved rounds; medians are quoted, with the min and max round in brackets. This file is written by
`bench/report.py` from `bench/results/`; nothing in it is typed by hand but the remarks in `bench/remarks/`.
"""


def drawn_by(name):
    """The report.py of a bench."""
    spec = importlib.util.spec_from_file_location(f"{name}_report", HERE / name / "report.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(name, result):
    """One bench: its title, the command that repeats it, its figures and its remarks."""
    bench = drawn_by(name.split("-")[0])
    # The run itself says how long and how often it measured: the bare target may measure longer.
    command = bench.COMMAND.format(**result)
    text = [f"## {bench.TITLE}", "", f"`{command}` on {result['machine']}, commit {result['commit']}, {result['date']}.", ""]
    text += bench.render(result)
    remarks = HERE / "remarks" / f"{name}.md"
    if remarks.exists():
        text += ["", remarks.read_text().strip()]
    return [*text, ""]


def main():
    sys.path.insert(0, str(HERE))
    text = [INTRO]
    for name in ORDER:
        path = HERE / "results" / f"{name}.json"
        if path.exists():
            text += section(name, json.loads(path.read_text()))
        elif definitions := getattr(drawn_by(name.split("-")[0]), "DEFINITIONS", None):
            text += [f"## {drawn_by(name).TITLE}", "", f"No figures yet: `make bench-{name}` measures them.", "", *definitions]
    (HERE / "RESULTS.md").write_text("\n".join(text))


if __name__ == "__main__":
    main()
