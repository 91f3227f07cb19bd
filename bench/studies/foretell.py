"""A breakpoint foretold, then measured: `make studies ARGS=forecast`, some six minutes on a machine that does nothing else.

Meridian asks an outside source for its searches, so many calls at a time (`limits.at_once` of the source's declaration); what comes beyond waits.
It is run with two such limits at low rates. A model is fitted to those runs and given a limit that was never run, and the breakpoint that it
foretells is written to prediction.json. Only then is Meridian run with that limit, and `lab breakpoint` measures. forecast/README.md says more.
"""

import contextlib
import json
import os
import pathlib
import re
import sys
import tempfile
import time
import tomllib

from study import HERE, Study
from common import commit, machine, say, steal_and_load  # study.py says where it is

FOLDER = HERE / "forecast"
CALIBRATED = {3: 20, 6: 40}  # calls at once: searches a second, about 70 % of what they hold
CALIBRATED_S = 30
FORETOLD = 10
AGREED = 0.10  # share by which the two may differ

FIGURES = """source = "runs of load.toml"
[[fit]]
group = "server"
parameters = ["source.work.call.mean_s", "source.work.call.cv"]
seeds = 10
"""
TRIAL = """[[trial]]
name = "{at_once} at once"
group = "server"
fit = true
results = "at-{at_once}"
set = {{ workers = {at_once} }}
"""


def served(stack, program, at_once):
    """A Meridian whose one source takes `at_once` calls at once. The source's times are drawn anew for each."""
    study = Study(stack, program)
    sources = study.folder / "source.toml"
    sources.write_text((FOLDER / "source.toml").read_text().replace("seed = 1\n", f"seed = {at_once}\n"))
    declared = (FOLDER / "provider.toml").read_text()
    declared = declared.replace("127.0.0.1:7118", study.mock(sources)).replace("at_once = 4", f"at_once = {at_once}")
    study.serve_searches({"source": declared})
    return study


def at(study):
    """Where the load goes, and what says that the server is idle."""
    return [f"target.url={study.url}", f"phases.wait_idle.url={study.url}/metrics"]


def sets(values):
    """Options that change a scenario."""
    return [part for value in values for part in ("--set", value)]


def foretell(options, folder, objective, seconds):
    """Calibrates at the two limits, and asks the model for the third."""
    for at_once, rate in CALIBRATED.items():
        with contextlib.ExitStack() as stack:
            study = served(stack, options.meridian, at_once)
            say(f"forecast: {at_once} calls at once, {rate} searches a second for {CALIBRATED_S} s")
            own = [*at(study), f"arrival.rate={rate}", f"phases.measured_s={CALIBRATED_S}", "objective.at_most=60000"]
            study.lab_run(FOLDER / "load.toml", folder / f"at-{at_once}", own + options.set)
    figures = folder / "figures.toml"
    figures.write_text(FIGURES + "".join(TRIAL.format(at_once=at_once) for at_once in CALIBRATED))
    with contextlib.ExitStack() as stack:
        study, model = Study(stack, options.meridian), FOLDER / "server.toml"
        said = study.meridian("lab", "simulate", model, "--calibrate", figures)
        fitted = {key: float(value) for key, value in re.findall(r"^(source\S+) = (\S+)$", said, re.MULTILINE)}
        # Fitted again, so that the interval carries what the calibration may be off.
        edge = json.loads(study.meridian("lab", "simulate", model, "--calibrate", figures, "--edge", f"p95_s={objective / 1000}", "--over-s", seconds, "--json",
                                         *sets([f"workers={FORETOLD}"])))
    return {"written": now(), "at_once": FORETOLD, "objective": f"p95_ms at most {objective:g} over {seconds:g} s of even arrivals",
            "calibrated_on": [{"at_once": at_once, "rate": rate, "seconds": CALIBRATED_S} for at_once, rate in CALIBRATED.items()],
            "fitted": fitted, "breakpoint": edge["breakpoint"], "machine": machine(), "commit": commit(), "load1": steal_and_load()["load1"]}


def measure(options, folder):
    """The breakpoint at the third limit, its picture beside it."""
    with contextlib.ExitStack() as stack:
        study = served(stack, options.meridian, FORETOLD)
        say(f"forecast: {FORETOLD} calls at once, searching for the breakpoint")
        edge = folder / "edge"
        said = study.meridian("lab", "breakpoint", FOLDER / "load.toml", "--within", "0.05", "--out", edge, "--json",
                              *sets([*at(study), *options.set]), codes=(0, 1))
        return json.loads(said), (edge / "pictures" / "breakpoint.svg").read_text()


def forecast(options):
    """Foretells, writes it down, measures, compares. Ends with 1 where they do not agree or nothing was found."""
    scenario = tomllib.loads((FOLDER / "load.toml").read_text())
    objective, seconds = scenario["objective"][0]["at_most"], scenario["phases"]["measured_s"]
    kept = options.out / "forecast"
    kept.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="forecast-") as folder:
        folder = pathlib.Path(folder)
        prediction = foretell(options, folder, objective, seconds)
        write(kept / "prediction.json", prediction)
        say(f"forecast: foretold {span(prediction['breakpoint'])} searches a second, written down")
        found, picture = measure(options, folder)
    write(kept / "measured.json", found)
    (kept / "breakpoint.svg").write_text(picture)
    words = compared(prediction, found)
    (kept / "RESULT.md").write_text(words)
    say(words.splitlines()[-1])
    if found["conclusion"] != "found" or abs(apart(prediction, found)) > AGREED:
        sys.exit(1)


def compared(prediction, found):
    """What came of it, as a page."""
    fitted = ", ".join(f"`{key}` = {value:g}" for key, value in prediction["fitted"].items())
    lines = ["# What came of it", "", f"{prediction['objective']}; {prediction['machine']}; {prediction['commit']}; load average {prediction['load1']:.1f}. Fitted: {fitted}.", "",
             "| | searches a second | when |", "|---|---|---|",
             f"| foretold for {prediction['at_once']} calls at once | {span(prediction['breakpoint'])} | {prediction['written']} |"]
    if found["breakpoint"]:
        lines.append(f"| measured, {len(found['steps'])} steps | {span(found['breakpoint'])}, ±{found['within']:.1%} | {found['started'][:19]}Z to {found['ended'][:19]}Z |")
    if found["conclusion"] != "found":
        return "\n".join([*lines, "", f"Nothing to compare with: {found['sentence']}", ""])
    off, a, b = apart(prediction, found), prediction["breakpoint"], found["breakpoint"]
    meet = "meet" if a["low"] <= b["high"] and b["low"] <= a["high"] else "do not meet"
    holds = "holds" if abs(off) <= AGREED else "does not hold"
    return "\n".join([*lines, "", f"The forecast is {off:+.1%} off (at most {AGREED:.0%}): it {holds}. The two intervals {meet}.", ""])


def apart(prediction, found):
    """Foretold over measured, less one."""
    return prediction["breakpoint"]["value"] / found["breakpoint"]["value"] - 1


def span(estimate):
    """A value with its interval."""
    return f"{estimate['value']:.1f} ({estimate['low']:.1f} to {estimate['high']:.1f})"


def write(path, content):
    """Writes JSON, on the disk when it comes back."""
    with path.open("w") as out:
        out.write(json.dumps(content, indent=1) + "\n")
        out.flush()
        os.fsync(out.fileno())


def now():
    """Now, as RFC 3339."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
