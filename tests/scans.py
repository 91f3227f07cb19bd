"""Tests of bench-scans: what makes a row void, the arithmetic of its report, the scans that it draws, and a tiny row end to end.

The row needs a build with debug assertions (MERIDIAN; MERIDIAN_BUILT=1 skips building it).
"""

import contextlib
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
TARGET = pathlib.Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
os.environ.setdefault("MERIDIAN", str(TARGET / "debug" / "meridian"))
sys.path[:0] = [str(ROOT / "bench" / "scans"), str(ROOT / "bench")]
import report
import rows
import run
from client import Seen
from rig import profile
from scans import Scans, draw, pieces
from waits import Waits, run_delays


def readings(own=0.0, busy=0.0, stolen=0.0, passed=100.0):
    """Processor seconds at the end of a span that began at nothing."""
    return {"all": passed, "busy": busy, "stolen": stolen, "own": own}


START = readings(passed=0.0)
DISTINCT = 20


class Void(unittest.TestCase):
    def test_a_row_is_void_above_60_percent_of_the_processors(self):
        seen = Seen(took=[1.0], ended=1, complete=True)
        void = lambda after: run.reasons_void(run.used_share(START, after), 0.0, seen)
        self.assertEqual(void(readings(own=60.0)), [])
        self.assertIn("61%", void(readings(own=61.0))[0])
        # What the host takes is not there for the servers. What other programs take shows as waits.
        self.assertIn("65%", void(readings(own=40.0, stolen=25.0))[0])
        self.assertEqual(void(readings(own=40.0, busy=100.0)), [])
        # Nothing is known of a span without length.
        self.assertTrue(void(START))

    def test_a_row_is_void_where_its_threads_waited_for_a_processor(self):
        seen = Seen(took=[60.0, 40.0], ended=2, complete=True)
        void = lambda waited_s: run.reasons_void(0.1, run.waited_share(waited_s, seen.took), seen)
        self.assertEqual(void(5.0), [])
        self.assertIn("5.1%", void(5.1)[0])

    def test_waits_are_those_of_all_processes_of_the_study(self):
        # Two that want the one processor they may use: one of them always waits.
        words = [sys.executable, "-c", "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nprint(flush=True)\nwhile True: pass"]
        with contextlib.ExitStack() as both, Waits() as waits:
            spins = [both.enter_context(subprocess.Popen(words, stdout=subprocess.PIPE)) for _ in range(2)]
            for spin in spins:
                both.callback(spin.kill)
                spin.stdout.readline()
            # A test that hangs is cut off by its suite.
            while sum(run_delays(os.getpid()).values()) - sum(waits.first.values()) < 0.2:
                time.sleep(0.05)
        self.assertGreater(waits.seconds, 0.1)

    def test_a_row_is_void_with_a_scan_that_failed_or_differs_or_is_missing(self):
        for seen, said in [(Seen(failed=["503"], complete=True), "503"), (Seen(differ=[7], complete=True), "scan 7"), (Seen(took=[1.0] * 12), "12 scans")]:
            self.assertIn(said, run.reasons_void(0.01, 0.0, seen)[0])


def row(published, measured, forecast, **more):
    return {"published": {"mean_ms": published}, "figures": {"mean_ms": measured}, "forecast": {"mean_ms": forecast}, "fitted": False, "void": [], "times": 20, "cache_hits": 0.5, "scans": 300,
            "held_against": 300, "used": 0.3, "waited": 0.01, "set": {}} | more


class Report(unittest.TestCase):
    def setUp(self):
        self.rows = {"A": row(100, 110, 100), "B": row(200, 150, 210), "C": row(400, 400, 100), "D": row(10, 99, 10, fitted=True), "E": row(10, 99, 10, void=["busy"])}

    def test_errors_are_of_rows_that_are_not_void_and_that_nothing_was_fitted_to(self):
        found = report.agree(self.rows, "figures")
        self.assertEqual((found["rows"], found["worst"], found["rank"]), (3, "B", 1.0))
        self.assertAlmostEqual(found["median"], 0.10)
        self.assertAlmostEqual(found["max"], 0.25)
        found = report.agree(self.rows, "forecast")
        self.assertEqual((found["worst"], found["median"]), ("C", 210 / 200 - 1))
        # Two are equal and last of what was published comes first.
        self.assertAlmostEqual(found["rank"], 0.0)
        self.assertIsNone(report.agree({"D": self.rows["D"]}, "figures"))

    def test_ranks_of_equal_values_are_shared(self):
        self.assertEqual(report.ranks([5, 1, 5, 9]), [1.5, 0, 1.5, 3])
        self.assertAlmostEqual(report.spearman([(1, 30), (2, 20), (3, 10)]), -1.0)
        self.assertIsNone(report.spearman([(1, 1), (2, 1), (3, 1)]))
        self.assertIsNone(report.spearman([(1, 1), (2, 2)]))

    def test_the_tables_are_drawn(self):
        drawn = "\n".join(report.render({"rows": self.rows}))
        for said in ["100 / **110** / 100", "+10% / +0%", "fitted to", "**void**", "25% (B)", "holds"]:
            self.assertIn(said, drawn)

    def test_figures_are_in_the_time_of_the_study(self):
        self.assertEqual(run.figures([1.0, 3.0], 7.4), {"busy_events": 7, "mean_ms": 2.0, "sd_ms": 1.0, "min_ms": 1.0, "max_ms": 3.0})


class Drawn(unittest.TestCase):
    def test_scans_have_the_published_mean_and_range(self):
        for name, work in rows.scenario()["workloads"].items():
            sizes, rng = work["entries"], random.Random(1)
            values = [draw(sizes, rng) for _ in range(4_000)]
            self.assertAlmostEqual(sum(values) / len(values) / sizes["mean"], 1.0, delta=0.06, msg=name)
            self.assertAlmostEqual(statistics.pstdev(values) / sizes["sd"], 1.0, delta=0.06, msg=name)
            self.assertTrue(sizes["min"] <= min(values) and max(values) <= sizes["max"], name)

    def test_a_scan_crosses_tablets_in_their_order_and_loses_nothing(self):
        for seed in range(50):
            crossed = pieces(120.0, 5, 100.0, random.Random(seed))
            self.assertAlmostEqual(sum(part for _, part in crossed), 120.0)
            numbers = [tablet for tablet, _ in crossed]
            self.assertEqual(numbers, list(range(numbers[0], numbers[0] + len(numbers))))

    def test_busy_timeouts_are_dilated_as_all_else(self):
        said = profile(3, 12, 33, 20)[0]
        self.assertEqual(said["attemptPlans"], [{"servers": "3", "busyTimeout": "660ms"}, {"servers": "12", "busyTimeout": "660ms"}])
        self.assertEqual((said["maxBusyTimeout"], said["busyTimeoutMultiplier"]), ("100m", 8))

    def test_every_published_row_is_there_and_fits_its_time(self):
        self.assertEqual(sum(bool(row.published) for row in rows.rows()), 23)
        self.assertEqual([row.name for row in rows.rows() if row.fitted], ["D806", "D816", "D824"])
        for row in rows.rows():
            self.assertLessEqual(row.seconds(300), rows.ROW_S_MAX, row.name)


class Tiny(unittest.TestCase):
    def test_a_row_from_end_to_end(self):
        """Real processes: two scan servers and eight clients. Whatever the machine does, nothing fails, and all answers are the owner's."""
        if "MERIDIAN_BUILT" not in os.environ:
            subprocess.run(["cargo", "build", "--locked", "-p", "meridian-cli"], cwd=ROOT, check=True)
        with tempfile.TemporaryDirectory() as folder:
            words = ["--rows", "D815", "--noisy", "--keep-void", "--results", folder, "--scans", "12", "--distinct", str(DISTINCT), "--times", "10", "--threads", "8", "--servers", "2", "--warm-s", "0.5",
                     "--changes-s", "0", "--no-forecast"]
            began = time.monotonic()
            subprocess.run([sys.executable, str(ROOT / "bench" / "scans" / "run.py"), *words], check=True, capture_output=True)
            print(f"a tiny row took {time.monotonic() - began:.1f} s", file=sys.stderr)
            result = json.loads((pathlib.Path(folder) / "scans.json").read_text())
        one = result["rows"]["D815"]
        self.assertEqual((one["scans"], one["failed"], one["differ"]), (12, 0, 0))
        self.assertGreaterEqual(one["held_against"], 12)
        self.assertGreaterEqual(one["counters"]["questions"], 11)
        self.assertEqual(one["counters"]["fallbacks"], 0)
        # What the smallest scan takes of a server's cores: less is not possible, on any machine.
        tier, [row] = rows.scenario(), [row for row in rows.rows() if row.name == "D815"]
        costs = tier["costs"]
        events = [json.loads(event)["properties"] for event in Scans(row, tier, DISTINCT).events[0]]
        entries_ms = min(event["read"] * costs["read_us"] + event["returned"] * costs["return_us"] for event in events) / 1e3
        bound_ms = tier["clients"]["scan_ms"] + (entries_ms + costs["request_ms"] * (1 - costs["storage_share"])) / costs["scan_server_speed"]
        self.assertGreaterEqual(one["figures"]["min_ms"], bound_ms)
        self.assertIn("D815", "\n".join(report.render(result)))


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
