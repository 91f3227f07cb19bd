"""The picture of what comes out over what goes in."""

MARKS = {"never": "o", "impatient": "s", "obedient": "^"}


def draw(flood, path):
    """A panel for each mix: good answers a second over questions offered, for each kind of users and each build."""
    import matplotlib
    matplotlib.use("svg")
    from matplotlib import pyplot
    matplotlib.rcParams["svg.hashsalt"] = "meridian"
    runs = flood["runs"]
    mixes = list(dict.fromkeys(run["mix"] for run in runs))
    figure, panels = pyplot.subplots(1, len(mixes), figsize=(6 * len(mixes), 5), squeeze=False)
    for axes, mix in zip(panels[0], mixes):
        mine = [run for run in runs if run["mix"] == mix]
        for side in dict.fromkeys(run["side"] for run in mine):
            for users, mark in MARKS.items():
                chosen = sorted((run["offered_s"], run["goodput_s"]) for run in mine if (run["side"], run["users"]) == (side, users))
                if chosen:
                    axes.plot(*zip(*chosen), ("-" if side == "new" else "--") + mark, label=f"{users}" if side == "new" else f"{users}, build before")
        edge = mine[0]["edge"]
        axes.plot([0, edge], [0, edge], color="grey", linewidth=0.8)
        axes.axvline(edge, color="grey", linewidth=0.8, linestyle=":", label=f"edge: {edge:,.0f}/s")
        axes.set(xlabel="questions offered a second", ylabel="good answers a second", title=f"{mix} mix", ylim=(0, None), xlim=(0, None))
        axes.grid(True, alpha=0.2)
        axes.legend(fontsize=8)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)
