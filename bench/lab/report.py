"""How the figures of bench-lab are drawn."""

from tables import middle, quiet, spread, table

TITLE = "Lab: what the load generator itself costs"
COMMAND = "python3 bench/lab/run.py --seconds {seconds:g} --rounds {rounds}"


def render(result):
    """The lab beside wrk and k6, its punctuality, and its figures beside oha's."""
    runs = result["runs"]
    of = {name: [run[name] for run in runs] for name in runs[0]}
    column = lambda name, key, digits=0: spread([run[key] for run in of[name]], digits)
    times = lambda key, other: middle(of["lab"], key) / middle(of[other], key)
    watched = [found["disturbed"] for run in runs + (result.get("stalls") or {"runs": []})["runs"] for found in run.values() if "disturbed" in found]
    clients = [name for name in ("wrk", "lab", "k6") if name in of]
    # Results of before this was recorded do not have it.
    served = all("server_cpu" in run[name] for run in runs for name in clients)
    share = lambda name: [f"{spread([100 * run['server_cpu'] for run in of[name]])} %"] if served else []
    out = [
        f"A server on one core, the client on the other, {result['connections']} connections; {result['rounds']} rounds of "
        f"{result['seconds']:g} s. The lab keeps histograms and raw records. The server of the first table does nothing.", "",
        *table(["client", "requests a second", "client CPU, µs a request", *(["server, of its core"] if served else [])],
               [[name, column(name, "per_second"), column(name, "cpu_us", 1), *share(name)] for name in clients]), "",
        f"The lab takes {times('cpu_us', 'wrk'):.2f} times wrk's processor time a request (at most 1.5 is the aim) at {times('per_second', 'wrk'):.0%} of its rate (at least 90 %)"
        + (f", and {times('cpu_us', 'k6'):.2f} of k6's (at most a third)." if "k6" in of else "; k6 was not installed."), "",
        f"Open, {result['open_rate']:,} a second: {spread([100 * run['within_1ms'] for run in of['open']], 2)} % of requests left within 1 ms "
        f"of their time (aim: 99.9); max lateness {column('open', 'late_max_ms', 1)} ms.", ""]
    if "oha" in of:
        apart = lambda key: middle(of["agreed"], key) / middle(of["oha"], key) - 1
        out += [f"A mock source with log-normal answers (median 5 ms), {result['agreed_rate']:,} requests a second, waits from when a request was due:", "",
                *table(["client", "p50 ms", "p99 ms"], [[name, column(of_name, "p50", 2), column(of_name, "p99", 2)] for name, of_name in (("lab", "agreed"), ("oha", "oha"))]), "",
                f"The lab's p50 is {apart('p50'):+.1%} and its p99 {apart('p99'):+.1%} of oha's (aims: 5 % and 10 %).", ""]
    stood = result.get("stalls")
    if stood:
        out += stalled(stood)
    held = result.get("streams")
    if held:
        out += [f"{held['count']:,} WebSockets, opened a thousand a second, each with a packet a second for {held['packets_each']} s: {held['at_once']:,} at once, "
                f"{held['sound']:,} whole, {held['packets']:,} packets. Most memory: client {held['client_mib']:.0f} MiB, server {held['server_mib']:.0f} MiB "
                f"(aim: 1 GiB); the client took {held['client_cpu']:.2f} cores." + (f" Void: {held['void'][0]}." if held["void"] else ""), ""]
    many = result.get("report")
    if many:
        out += [f"A report of {many['count']:,} requests, each recorded ({many['parquet_mib']:.0f} MiB), was there after {many['seconds']:.1f} s on one core (aim: 10 s).", ""]
    jobs = result.get("simulated")
    if jobs:
        out += [f"{jobs['jobs']:,} simulated jobs ({jobs['requests']:,} searches of the study's pipeline with 64 workers) took {' and '.join(f'{s:.1f}' for s in jobs['seconds'])} s "
                f"on one core (aim: a minute); two runs with one seed {'are the same to the byte' if jobs['same'] else 'DIFFER'}.", ""]
    void = sum(share > 0.05 for share in watched)
    return [*out, f"{void} of {len(watched)} watched runs are void: others, or the host, took more than 5 % of the machine, three times over. {quiet(result)}"]


def stalled(stood):
    """A stall under an open load and under a closed one, by theory and as measured."""
    runs, seconds = stood["runs"], stood["seconds"]
    column = lambda name, key, digits=0: spread([run[name][key] for run in runs], digits)
    # Requests on schedule that are due in the stall wait for the rest of it. So the 99th percentile is the
    # stall's length less a hundredth of the run.
    theory = spread([1_000 * (run["open"]["stall_s"] - seconds / 100) for run in runs])
    met = max(stood["users"] / run["closed"]["sound"] for run in runs)
    hidden = f"met by {met:.2%} of the answers, so as without it: {column('calm', 'p99', 2)}" if met < 0.01 else "met by more than one in a hundred"
    length = spread([run[name]["stall_s"] for run in runs for name in ("open", "closed")], 2)
    return [f"The null server stopped (SIGSTOP) for {length} s in the middle of {seconds:g} s; milliseconds:", "",
            *table(["load", "p99 by theory", "p99 measured", "longest wait"],
                   [[f"open, {stood['rate']} a second", theory, column("open", "p99"), column("open", "max")],
                    [f"closed, {stood['users']} users, {1_000 * stood['think_s']:g} ms of thought", hidden, column("closed", "p99", 2), column("closed", "max")]]), ""]
