"""How the figures of bench-near are drawn."""

import statistics

from tables import spread

TITLE = "Near: what is within R of here, nearest first"
COMMAND = "python3 bench/near/run.py --places {places} --seconds {seconds:g} --rounds {rounds} --name {name}"


def render(result):
    """The places profile at six radii."""
    systems = list(result["rows"][0]["systems"])
    out = [
        f"{result['places']:,} places (the postal places, shuffled by seed {result['seed']}), {result['connections']} connections, "
        f"{result['rounds']} rounds of {result['seconds']:g} s each, Meridian with durability `{result['durability']}`. "
        f"{result['differing']} of the checked answers differed by more than the edge of the radius allows"
        + "".join(f"; at {d['lon']:.6f} {d['lat']:.6f} within {d['radius_km']:g} km Meridian says {d['meridian']:,}, Redis {d['redis']:,}, "
                  f"PostGIS {d['postgis']:,}, a count over all places {d['counted']:,}" for d in result.get("differing_answers", [])) + ". "
        "An answer of Meridian, PostGIS and \"redis, all hits\" has the total and the nearest 25 (Redis: all ids); "
        "\"COUNT 25\" gives no total. nginx sends a static body as long as Meridian's median answer: the ceiling.", ""]
    for points, title in (("data", "Query points drawn from the data"), ("published", "Query points as published (mostly far from any place)")):
        rows = [r for r in result["rows"] if r["points"] == points]
        out += [f"### {title}: answers per second", ""]
        out += ["| radius | hits: median, mean | empty | body | " + " | ".join(systems) + " | of the ceiling | best peer |",
                "|---|---|---|---|" + "---|" * (len(systems) + 2)]
        for r in rows:
            rate = {s: statistics.median(x["per_second"] for x in r["systems"][s]) for s in systems}
            ceiling = next(s for s in systems if s.startswith("nginx"))
            peers = [s for s in systems if s not in ("meridian", ceiling)]
            best = max(peers, key=rate.get)
            cells = [spread([x["per_second"] for x in r["systems"][s]]) for s in systems]
            out.append(f"| {r['radius_km']:g} km | {r['hits']['median']:,.0f}, {r['hits']['mean']:,.0f} | {r['hits']['empty']:.0%} | {r['bytes']:,} B | "
                       + " | ".join(cells) + f" | {rate['meridian'] / rate[ceiling]:.0%} | {rate['meridian'] / rate[best]:.1f}x {best.split(',')[0]} |")
        out += ["", "Server CPU microseconds an answer and latency p50 / p99 in ms (medians of the rounds):", "",
                "| radius | " + " | ".join(systems) + " |", "|---|" + "---|" * len(systems)]
        for r in rows:
            med = lambda s, k: statistics.median(x[k] for x in r["systems"][s])
            out.append(f"| {r['radius_km']:g} km | " + " | ".join(f"{med(s, 'cpu_us'):,.0f} µs, {med(s, 'p50_ms'):.2f} / {med(s, 'p99_ms'):.2f}" for s in systems) + " |")
        out.append("")
    out.append("Resident memory after the run: " + ", ".join(f"{s.split(',')[0]} {mb:,.0f} MB" for s, mb in result["resident_mb"].items()) + ".")
    out.append(f"Load average before and after each round: {', '.join(str(q['load1']) for q in result['quiet'])}.")
    return out
