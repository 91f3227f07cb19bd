"""The rows of the study: the published ones, with their published figures, and a tier that storage bounds."""

import dataclasses
import math
import tomllib

from common import ROOT

SCENARIO = ROOT / "bench" / "studies" / "scan-forecast.toml"
FIGURES = SCENARIO.with_suffix(".figures.toml")
# Issue 21 asks for 20. Small scans by servers come too often for that: a machine of two cores answers some hundred scans a second.
TIMES, TIMES_SMALL = 20, 200
# Seconds of a row that are to be measured, if that takes more than the min number of scans.
MEASURED_S, SCANS_MAX = 120, 3_000
ROW_S_MAX = 20 * 60
# A storage node that serves one read on one core in place of eight: then it is full, and not the servers.
BOUND = {"workload": "small", "threads": 193, "busy_ms": 33, "costs.storage_cores": 1}
BOUND_SERVERS = [3, 6, 12]


def scenario():
    """The simulator's scenario, whose costs the servers of the study take."""
    return tomllib.loads(SCENARIO.read_text())


@dataclasses.dataclass
class Row:
    """A row of the tables: its name, what it changes of the scenario, and what was published of it."""

    name: str
    set: dict
    published: dict
    # The scenario's costs were fitted to it.
    fitted: bool
    times: int

    def of(self, key):
        """A setting: the row's own, or the scenario's."""
        return self.set[key] if key in self.set else scenario()[key]

    @property
    def eventual(self):
        return not self.of("immediate")

    @property
    def workload(self):
        return scenario()["workloads"][self.of("workload")]

    def sets(self):
        """Words that `meridian lab simulate --set` takes."""
        return [f"{key}={str(value).lower() if isinstance(value, bool) else value}" for key, value in self.set.items()]

    def expected_ms(self):
        """A mean to plan by."""
        return self.published.get("mean_ms", 110.0)

    def scans(self, min_scans):
        """Scans to measure: the min that is asked for, or what some minutes give."""
        if min_scans < 300:
            return min_scans
        fit = MEASURED_S / (self.expected_ms() / 1e3 * self.times) * self.of("threads")
        return int(min(max(fit, min_scans), SCANS_MAX))

    def warm_s(self):
        """As long as a scan takes: what begins after that meets the lines of a server that is in use. At least 10 s, and at most 100, as the row must end."""
        return min(max(self.expected_ms() / 1e3 * self.times, 10), 100)

    def seconds(self, min_scans):
        """How long the row takes: the start of its processes, a warm-up, its scans, and the last of these."""
        mean_s = self.expected_ms() / 1e3 * self.times
        last_s = min(self.published.get("max_ms", self.expected_ms() * 2), self.expected_ms() * 4) / 1e3 * self.times
        return 10 + self.of("servers") * self.eventual + self.warm_s() + math.ceil(self.scans(min_scans) / self.of("threads")) * mean_s + last_s


def rows(times=TIMES, times_small=TIMES_SMALL):
    """All rows, in the order of the tables."""
    found = []
    for trial in tomllib.loads(FIGURES.read_text())["trial"]:
        small = trial["set"]["workload"] == "small" and not trial["set"].get("immediate")
        published = trial["figures"] | trial.get("also", {})
        found.append(Row(trial["name"], trial["set"], published, trial.get("fit", False), times_small if small else times))
    return found + [Row(f"S{n}", BOUND | {"servers": n, "initial": n}, {}, False, times) for n in BOUND_SERVERS]
