"""How long the parts take, before they are begun."""

import beside
import flood
import questions as q
from common import say as tell

# Seconds that are not measuring: a start, a million events loaded, the questions chosen and asked twice, a run of the lab beside its load.
START_S, MILLION_S, CHOOSING_S, RUN_S = 5, 40, 60, 2
# Loading a million events into PostGIS, clustered, and into Tile38.
PEER_MILLION_S = {"tipg": 60, "tile38": 90}


def estimates(options, left):
    """Seconds of each part, of `peers` where it is left to do. That of `entry` leaves out the build before tokens, where it has to be made."""
    sides = 2 if options.old else 1
    ready = sides * (START_S + options.rows / 1e6 * MILLION_S + CHOOSING_S)
    runs = {mix: len(flood.multiples(options, mix)) for mix in options.mixes}
    calibration = lambda kinds: (kinds + 2) * (options.calibrate_seconds + RUN_S)
    # A second of pause between two steps, and the confirmations.
    edge = options.steps * (options.step_seconds + 1 + RUN_S)
    one_flood = options.seconds + flood.BEFORE_S + flood.AFTER_S + RUN_S
    peers = beside.there(options) if "peers" in left else []
    tenants = 9 * options.tenant_rows / 1e6 * MILLION_S
    return {
        "edge": ready + sides * sum(calibration(len(q.MIXES[mix])) + edge for mix in options.mixes),
        "flood": ready + sides * sum(runs.values()) * one_flood,
        "peers": ready + sum(options.rows / 1e6 * PEER_MILLION_S[peer] + CHOOSING_S + calibration(3) + edge + len(flood.multiples(options, "heavy")) * one_flood for peer in peers),
        "drift": ready + sides * (options.drift_seconds + RUN_S),
        "fairness": sides * (tenants + CHOOSING_S + 3 * (options.calibrate_seconds + RUN_S) + options.rounds * 5 * (options.share_seconds + RUN_S)),
        "refusal": ready + sides * (5 * (options.calibrate_seconds + RUN_S) + options.rounds * 6 * (options.refusal_seconds + RUN_S)),
        "floor": START_S + 2 * options.rounds * (options.refusal_seconds + RUN_S),
        "cascade": ready + sides * options.rounds * 3 * (options.cascade_seconds + 2 * RUN_S),
        "restart": START_S + 3 * options.restart_rows / 1e6 * MILLION_S + 2 * options.kills * (options.restart_seconds + 2),
        "entry": 2 * START_S + 2 * options.entry_rounds * 1.2 * options.entry_seconds,
    }


def say(options, left, done):
    """What will be measured, and for how long."""
    if done:
        tell(f"measured already for this commit at these sizes: {', '.join(done)}")
    seconds = estimates(options, left)
    for name in left:
        tell(f"  {name:<9} about {seconds[name] / 60:5.1f} minutes")
    tell(f"  all of it about {sum(seconds[name] for name in left) / 60:.0f} minutes")
