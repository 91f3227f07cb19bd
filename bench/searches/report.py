"""How the figures of bench-searches are drawn."""

from tables import parts, spread, table

TITLE = "Searches: many sources, answers as they come, and the truth about what is missing"
COMMAND = "make bench-searches"
SET_A = ("Set A follows the published run: 25 sources, 14 take the question, 17 calls, 93 packets of {} bytes of text, the first near 2.5 s and the last near 21.9 s. "
         "(The text is made of words of some five letters, so that the fingerprint which finds near duplicates costs what it does with real ones.)")
SET_B = "Set B: 25 sources of 5 to 50 ms with two items of 500 bytes each."


def render(result):
    """One part after the other."""
    sizes = sorted({figures["item_bytes"] for figures in result["parts"].values() if "item_bytes" in figures}, reverse=True)
    set_a = SET_A.format(" or ".join(f"{size:,}" for size in sizes))
    own = all(figures.get("users") for figures in result["parts"].values())
    users = "Each is by a user of its own: an `Authorization` that no other has." if own else "Not in all parts can the server tell their users apart, but none may join another's: `search.join` is off."
    out = [f"Every search is a question that nobody asked before. {users} The log of the mock sources is the truth. {set_a} {SET_B} Client, sources and server share the machine.", ""]
    return out + parts(result, HEADS, DRAWN)


def outcomes(found):
    return ", ".join(f"{count:,} {word}" for word, count in found.items())


def ended(load):
    """The same of a load, with the lab's reasons for failed searches."""
    return outcomes(load["outcomes"]) + "".join(f"; {count:,} failed: {why}" for why, count in load.get("failures", {}).items())


def calls(found):
    same = "as many as" if found["calls"] == found["calls_due"] else "but not the"
    return f"{found['calls']:,} calls at the sources, {same} {found['calls_due']:,} due"


def tilt(slope, unit="search"):
    return f"{slope['slope'] * 1e3:+.3f} ± {slope['half'] * 1e3:.3f} ms a {unit}"


def beside(found):
    """What searches said that were asked beside a load and judged by the ids of their events; older figures have none."""
    if "probe_ids" not in found:
        return "not judged by ids"
    refused = f", {found['probes_refused']} refused" if found.get("probes_refused") else ""
    return f"{found['probe_ids']:,} ids of {found['probes']}{refused}: {'; '.join(found['wrong']) or 'right'}"


def void(found):
    return f" Void: {'; '.join(found['void'])}." if found.get("void") else ""


def isolated(found):
    alone, late = found["alone"], found["deadline"]
    return [
        f"{found['item_bytes']:,} bytes a packet. {alone['searches']} searches, one at a time, on a server that has answered one: first result after {spread(alone['first_s'], 2)} s, last after {spread(alone['last_s'], 2)} s; "
        f"the first {spread(alone['first_later_ms'], 1)} ms after the quickest source (50 wanted), the last {spread(alone['last_later_ms'], 1)} ms after the slowest "
        f"(100 wanted). {alone['sound']} whole; {calls(alone)}.", "",
        f"{late['searches']} searches at once with a deadline of 20 s: of their sources {late['in_time']} were in time and {late['late']} were not, by the log ({late['near']} within "
        f"0.25 s of it); told otherwise: {late['wrong_count']}. {late['ids']:,} ids came, held against the ids that the sources gave. The last packet came at most "
        f"{late['end_over_ms_max']:.0f} ms after the deadline." + (f" Wrong: {'; '.join(late['wrong'])}." if late["wrong"] else "")]


def flat(found):
    return [
        f"One a second, {found['searches']} searches: {outcomes(found['outcomes'])}; {calls(found)}. First result: p50 {found['first_ms']['p50']:,.0f} ms, p99 {found['first_ms']['p99']:,.0f}; "
        f"slope {tilt(found['slope_first'])} (95 % interval; it should hold 0 and stay under 1): {'flat' if found['flat'] else 'not shown to be flat'}. Less what the quickest source took, which is "
        f"what Meridian adds: p50 {found['first_later_ms']['p50']:.1f} ms, p99 {found['first_later_ms']['p99']:.1f}, slope {tilt(found['slope_later'])}. "
        f"Server: {found['server_cores']:.3f} cores, {found['resident_mb']:.0f} MB. {found['probe_ids']:,} ids of {found['probes']} searches beside them: "
        + ("each is a source's, and none is missing." if not found["wrong"] else "; ".join(found["wrong"]) + ".") + void(found),
        "The study's pipeline waited 3.88 s longer with each search on 8 workers and 0.51 s on 32; it needed 64 to be flat."]


def edge(found):
    rows = [[f"{r['rate']:g}", ended(r), "yes" if r["flat"] else "no", tilt(r["slope_first"]), f"{r['first_later_ms']['p50']:.1f} / {r['first_later_ms']['p99']:.1f}",
             f"{r['last_later_ms']['p50']:.1f} / {r['last_later_ms']['p99']:.1f}", f"{r['in_flight']:,}", f"{r['server_cores']:.2f} / {r['mock_cores']:.2f} / {r['lab_cores']:.2f}",
             f"{r['resident_peak_mb']:,.0f}", f"{r['descriptors']:,}", beside(r)] for r in found["slow"]]
    windows = [f"of the last {r['resume_s']:.1f} s at {r['rate']:g} a second ({r['packet_bytes_s'] / 1e6:.1f} MB/s)" for r in found["slow"] if "resume_s" in r]
    room = f" They may take half of it, which holds those {', '.join(windows)}; an ended search stays for `search.keep` at most." if windows else ""
    limits = ", ".join(f"`{key} = {value}`" for key, value in found["slow"][0]["limits"].items())
    fast, below = found["fast"]["found"], found["fast"]["below"]
    at = fast["breakpoint"]
    return [
        f"Set A with {found['item_bytes']:,} bytes a packet, {found['seconds']:g} s at each rate, with {limits}:", "",
        *table(["searches/s", "outcome", "flat", "slope of the first", "first later by, p50 / p99 ms", "last later by", "at once", "cores: server / sources / client", "resident MB, most", "descriptors", "ids of searches beside it"], rows), "",
        "A search of set A holds one connection of its asker for its whole time and one to a source for each call that runs, 92 seconds of calls in all: at 100 a second some 2,200 and 9,200, "
        "of 28,232 ports to one address. Connections to sources are kept and used again. Packets that were read are kept for a reader whose connection breaks, as long as "
        f"`search.buffer_bytes_total` has room.{room} Nothing is spilled to disk.", "",
        f"Set B, the server on one core, client and sources on the other: {fast['sentence']}" + (f" (95 %: {at['low']:.0f} to {at['high']:.0f})" if at else "")
        + f" At 0.8 of it, {below['searches']:,} searches: {outcomes(below['outcomes'])}; {calls(below)}; first result p50 {below['first_ms']['p50']:.1f} ms, whole p99 {below['last_ms']['p99']:.1f} ms; "
        f"{below['server_cpu_ms']:.2f} ms of the server's processor a search: **{below['searches_per_cpu_s']:,.0f} searches a CPU second**, 25 calls each. Beside them, {beside(below)}." + void(below)]


def overload(found):
    again = {False: "never", True: "at once"}
    rows = [[f"{r['times']}x", again.get(r["retries"], r["retries"]), f"{r['arrivals']:,}", f"{r['accepted']:,}", f"{r['whole']:.2%}", outcomes(r["outcomes"]), f"{r['answers_s']:,.0f}",
             f"{r['refusal_ms']['p50']:.1f} / {r['refusal_ms']['p99']:.1f}" if r["refusal_ms"] else "none", f"{r['without_retry_after']} of {r['looked_at']}",
             "not seen" if r["recovery_s"] is None else f"{r['recovery_s']:g}", beside(r)] for r in found["runs"]]
    return [f"Set B at half of {found['at']:.0f} searches a second, then so many times as much, then half again, {found['each_s']:g} s each; with users who leave, with users who try again up to six "
            "times (after a quarter of a second, then twice as long each time), and with users who do so but not before `Retry-After`.", "",
            *table(["past the edge", "tried again", "questions", "accepted", "of these whole", "answers", "whole/s", "refused after, p50 / p99 ms", "without Retry-After", "recovered after s", "ids of searches beside it"], rows)]


def bursts(found):
    rows = [[r["size"], f"{r['gap_s']:g}", ended(r), calls(r), ", ".join(f"{b['first_s']:.2f}" for b in r["bursts"]), tilt(r["growth_later"], "burst"),
             f"{r['resident_peak_mb']:,.0f}", beside(r), r.get("commit", found["commit"])] for r in found["runs"]]
    return [f"Set A at {found['time']:g} of its time; the gap runs from a burst's last answer. Growth is that of the first result less what the quickest source took.", "",
            *table(["at once", "gap s", "outcome", "calls", "first result of each burst, median s", "growth", "resident MB, most", "ids of searches beside it", "commit"], rows)]


def faults(found):
    names = sorted(found["breakers"])
    detail = lambda packet: f"{packet['state']}, {packet['results']} results" + (f": {packet['detail']}" if packet["detail"] else "")
    changes = lambda name: ", ".join(f"{state} at {at:g} s" for at, state in found["breakers"][name][:8]) + (" …" if len(found["breakers"][name]) > 8 else "")
    after = found["failing_calls_s"][4:]
    gaps = [b - a for a, b in zip(after, after[1:]) if b - a > 0.5]
    return [f"14 sources that all take 20 ms, at {found['rate']:g} searches a second for {found['seconds']:g} s; every other search, at random, asks the faulty ones as well.", "",
            *table(["last result of the 14, ms", "p50", "p95", "p99", "most"], [[name, *(f"{found[key][q]:.1f}" for q in ("p50", "p95", "p99", "max"))]
                                                                              for name, key in (("without", "well"), ("beside faulty ones", "beside"))]), "",
            f"At p99 the faulty ones delay the others by {found['beside']['p99'] - found['well']['p99']:+.1f} ms (at most 10 wanted); {found['fewer']} searches had fewer than 14 packets; of "
            f"{found['probes']} searches beside them the {found['ids']:,} ids of the sources that are well were held against what these gave: {'; '.join(found['unlike']) or 'none is missing or foreign'}. "
            f"Breakers of those: {'stayed closed' if not found['good_opened'] else 'opened for ' + ', '.join(found['good_opened'])}.{void(found)}", "",
            *table(["source", "told, breaker closed", "told at the end", "breaker"], [[name, detail(found["fresh"][name]), detail(found["after"][name]), changes(name)] for name in names]), "",
            f"Told wrongly: {'; '.join(found['wrong']) or 'nothing'}. A breaker opens for {found['open_ms'] / 1e3:g} s, then twice as long each time: the source that always fails was tried again "
            f"after {', '.join(f'{gap:.1f}' for gap in gaps)} s."]


def standing(found):
    named = {0: "0 (one in a hundred: 1)", "fences": "ships through fences"}
    rows = [[named.get(m["matches"]) or f"{m['matches']:,}", f"{m['events']:,}", f"{m['event_rate']:,.0f}", f"{m['matched']:,} of {m['matched_due']:,}", f"{m['dropped']:,}",
             f"{m['wait_ms']['p50']:.1f} / {m['wait_ms']['p99']:.1f}", f"{m['sent_wait_ms']['p50']:.1f} / {m['sent_wait_ms']['p99']:.1f}", f"{m['server_cpu_us']:.1f}",
             f"{m['checked_ids']:,}: {m['missing']} missing, {m['foreign']} foreign"] for m in found["modes"]]
    ceiling = next(m for m in found["modes"] if m["matches"] == 1_000)
    fences = (f"a twentieth both, a twentieth fences, {found['fences']:,} of them, that ask for `enter`, `inside`, `exit` or some of these of {found['ships']:,} ships" if "fences" in found else "a tenth both")
    return [f"{found['standing']:,} saved searches (two fifths boxes, two fifths words, a tenth words that a thousand share, {fences}), made in {found['made_s']:.1f} s "
            f"({found['standing'] / found['made_s']:,.0f} a second, each synced); {found['resident_peak_mb']:,.0f} MB at most. Events come at {found['rate']:,.0f} a second in batches of 100; events that answer "
            f"a thousand as fast as they are acknowledged. From the acknowledged write to the packet at one of {found['read']} readers over SSE, whose ids are held against a matcher that tries each question.", "",
            *table(["matches an event", "events", "events/s", "matched", "dropped", "to the reader, p50 / p99 ms", "acknowledged after", "server CPU µs an event", "ids checked"], rows), "",
            f"With a thousand matches an event the ceiling is {ceiling['deliveries_s']:,.0f} packets made a second: {ceiling['deliveries_s'] / ceiling['matches']:,.0f} such events. "
            f"Packets out of turn: {found['gaps']}; ids twice: {found['twice']}; streams refused or ended: {found['refused'] + found['ended']}."]


def streams(found):
    return [f"{found['streams']:,} streams (SSE), each of a saved search of its own with a packet a second for {found['seconds']} s: {found['packets']:,} of {found['packets_due']:,} packets, "
            f"{found['gaps']} out of turn, {found['refused']} refused, {found['ended']} ended. The server had {found['resident_peak_mb']:,.0f} MB at most (1 GiB wanted; {found['resident_before_mb']:,.0f} before "
            f"the first stream) and took {found['server_cores']:.2f} cores. A round of all took {found['round_ms_max']:,.0f} ms at most, from the write to the last packet."]


def peer(found):
    if "missing" in found:
        return [f"No peer: {', '.join(found['missing'])} not found; `make bench-peers` installs searx."]
    of = lambda name, users: [r for r in found["runs"] if (r["system"], r["users"]) == (name, users)]
    rows = [[name, users, spread([r["per_second"] for r in of(name, users)], 1), spread([r["first_ms"]["p50"] for r in of(name, users)], 1),
             f"{spread([r['whole_ms']['p50'] for r in of(name, users)], 1)} / {spread([r['whole_ms']['p99'] for r in of(name, users)], 1)}", spread([r["cpu_ms"] for r in of(name, users)], 2),
             outcomes({word: sum(r["outcomes"].get(word, 0) for r in of(name, users)) for r in of(name, users) for word in r["outcomes"]})]
            for users in (1, 8) for name in ("meridian", "searx")]
    alone = found["alone"]
    return [f"Set B, users who ask one search after the other, {found['rounds']} rounds of {found['seconds']:g} s, each system on one core; searx 1.1.0 of Debian under uWSGI, "
            f"{found['workers']} workers of {found['threads']} threads, an engine for each source. (SearXNG is in none of the registries that could be reached.)", "",
            *table(["system", "users", "searches/s", "first result, p50 ms", "whole, p50 / p99 ms", "CPU ms a search", "outcome"], rows), "",
            f"Set A in searx, which asks each source for one page and answers once: {alone['results']} results after {alone['whole_s']:.1f} s (its slowest call took {max(alone['calls']):.1f} s; "
            f"the quickest {min(alone['calls']):.1f})."]


HEADS = {"isolated": "Alone, and at a deadline", "flat": "One a second", "edge": "The edge", "overload": "Past the edge", "bursts": "On and off", "faults": "Faulty sources",
         "standing": "Saved searches while events come in", "streams": "Open streams", "peer": "Beside searx"}
DRAWN = {"isolated": isolated, "flat": flat, "edge": edge, "overload": overload, "bursts": bursts, "faults": faults, "standing": standing, "streams": streams, "peer": peer}
