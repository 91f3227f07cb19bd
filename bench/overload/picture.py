"""The pictures: what comes out over what goes in, what happens before, during and after a flood, and other systems beside this one."""

from flood import AFTER_S

MARKS = {"never": "o", "impatient": "s", "obedient": "^"}
SIDES = {"new": "this build", "old": "build before"}


def draw(figures, folder):
    """Every picture that there are figures for."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "meridian"
    ours = figures.get("flood", {}).get("runs", [])
    systems = figures.get("peers", {}).get("systems", {})
    pictures = {}
    for mix in dict.fromkeys(run["mix"] for run in ours):
        pictures[f"overload-{mix}"] = lambda mix=mix: goodput(pyplot, f"{mix} mix", [run for run in ours if run["mix"] == mix])
        pictures[f"overload-{mix}-time"] = lambda mix=mix: over_time(pyplot, f"{mix} mix", [run for run in ours if run["mix"] == mix and run["side"] == "new"])
    for key, system in systems.items():
        pictures[f"overload-{key}-time"] = lambda system=system: over_time(pyplot, system["name"], system["runs"])
    if systems:
        pictures["overload-peers"] = lambda: beside(pyplot, [run for run in ours if (run["mix"], run["side"]) == ("heavy", "new")], systems)
    for name, make in pictures.items():
        figure = make()
        figure.tight_layout()
        figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)


def goodput(pyplot, title, runs):
    """Good answers a second over questions offered, for each kind of users and each build."""
    figure, axes = pyplot.subplots(figsize=(7, 5))
    for side in dict.fromkeys(run["side"] for run in runs):
        for users, mark in MARKS.items():
            chosen = sorted((run["offered_s"], run["goodput_s"]) for run in runs if (run["side"], run["users"]) == (side, users))
            if chosen:
                axes.plot(*zip(*chosen), ("-" if side == "new" else "--") + mark, label=f"{users}" if side == "new" else f"{users}, {SIDES[side]}")
    edge = runs[0]["edge"]
    axes.plot([0, edge], [0, edge], color="grey", linewidth=0.8)
    axes.axvline(edge, color="grey", linewidth=0.8, linestyle=":", label=f"edge: {edge:,.0f}/s")
    axes.set(xlabel="questions offered a second", ylabel="good answers a second", title=title, ylim=(0, None), xlim=(0, None))
    axes.grid(True, alpha=0.2)
    axes.legend(fontsize=8)
    return figure


def over_time(pyplot, title, runs):
    """The largest flood by the second, a column for each kind of users. Offered, good and refused requests; below, the wait of the probe."""
    times = max(run["times"] for run in runs)
    chosen = [run for run in runs if run["times"] == times]
    figure, panels = pyplot.subplots(2, len(chosen), figsize=(5 * len(chosen), 6), squeeze=False, sharex="col", height_ratios=[2, 1])
    for (above, below), run in zip(panels.T, chosen):
        series = run["series"]
        seconds = [series["from_s"] + n + 0.5 for n in range(len(series["offered"]))]
        for what, color in (("offered", "lightgrey"), ("refused", "tab:orange"), ("good", "tab:green")):
            above.plot(seconds, series[what], color=color, label=what)
        above.axhline(run["edge"], color="grey", linewidth=0.8, linestyle=":", label="edge")
        above.set(title=f"{title}, {times:g}x, {run['users']}", ylabel="a second", yscale="symlog", ylim=(0, None))
        above.legend(fontsize=8)
        below.plot(seconds, [float("nan") if wait is None else wait for wait in series["probe_ms"]], color="tab:blue")
        below.set(xlabel="seconds", ylabel="probe, median ms", yscale="log")
        for axes in (above, below):
            axes.grid(True, alpha=0.2)
            axes.axvspan(0, seconds[-1] + 0.5 - AFTER_S, color="grey", alpha=0.08)
    return figure


def beside(pyplot, ours, systems):
    """Goodput as a share of the edge over multiples of the edge: each system by its own, a panel for each kind of users."""
    figure, panels = pyplot.subplots(1, len(MARKS), figsize=(5 * len(MARKS), 4.5), squeeze=False, sharey=True)
    lines = ([("Meridian", ours)] if ours else []) + [(system["name"], system["runs"]) for system in systems.values()]
    for axes, users in zip(panels[0], MARKS):
        for name, runs in lines:
            chosen = sorted((run["times"], run["goodput_s"] / run["edge"]) for run in runs if run["users"] == users)
            if chosen:
                axes.plot(*zip(*chosen), "-o", label=name)
        axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
        axes.set(xlabel="load, as a multiple of the system's edge", title=users, ylim=(0, None), xlim=(0, None))
        axes.grid(True, alpha=0.2)
        if axes.get_legend_handles_labels()[0]:
            axes.legend(fontsize=8)
    panels[0][0].set_ylabel("good answers, as a share of the edge")
    return figure
