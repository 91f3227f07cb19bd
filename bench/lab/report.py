"""How the figures of bench-lab are drawn."""

from tables import middle, quiet, spread, table

TITLE = "Lab: what the load generator itself costs"
COMMAND = "python3 bench/lab/run.py --seconds {seconds:g} --rounds {rounds}"


def render(result):
    """The lab beside wrk, and its punctuality."""
    of = {name: [run[name] for run in result["runs"]] for name in ("wrk", "lab", "open")}
    column = lambda name, key, digits=0: spread([run[key] for run in of[name]], digits)
    cost = middle(of["lab"], "cpu_us") / middle(of["wrk"], "cpu_us")
    rate = middle(of["lab"], "per_second") / middle(of["wrk"], "per_second")
    disturbed = sum(run[name]["disturbed"] > 0.05 for run in result["runs"] for name in ("lab", "open"))
    rows = [[name, column(name, "per_second"), column(name, "cpu_us", 1)] for name in ("wrk", "lab")]
    return [
        f"A null server on one core, the client on the other, {result['connections']} connections; {result['rounds']} rounds of "
        f"{result['seconds']:g} s. The lab keeps histograms and raw records.", "",
        *table(["client", "requests a second", "client CPU, µs a request"], rows), "",
        f"The lab takes {cost:.2f} times wrk's processor time a request (at most 1.5 is the aim) at {rate:.0%} of its rate (at least 90 %).", "",
        f"Open, {result['open_rate']:,} a second: {spread([100 * run['within_1ms'] for run in of['open']], 2)} % of requests left within 1 ms "
        f"of their time (aim: 99.9); greatest lateness {column('open', 'late_max_ms', 1)} ms.", "",
        f"{disturbed} of {2 * result['rounds']} runs of the lab are void: others, or the host, took more than 5 % of the machine. {quiet(result)}"]
