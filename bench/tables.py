"""What the reports share: figures with their spread, and tables in Markdown."""

import statistics


def spread(values, digits=0):
    """Median [min..max]."""
    shown = [f"{v:,.{digits}f}" for v in (statistics.median(values), min(values), max(values))]
    return f"{shown[0]} [{shown[1]}..{shown[2]}]"


def middle(runs, key):
    """Median of one figure over the rounds."""
    return statistics.median(run[key] for run in runs)


def apart(runs, *keys):
    """How far the rounds lie apart: the widest of some figures, max less min in per cent of the median."""
    return f"{max((max(r[k] for r in runs) - min(r[k] for r in runs)) / middle(runs, k) for k in keys):.0%}"


def table(head, rows):
    """Lines of a Markdown table."""
    return ["| " + " | ".join(map(str, cells)) + " |" for cells in (head, ["---"] * len(head), *rows)]


def quiet(result):
    """How busy the machine was with other things: load, and processor time that the host took away."""
    runs = {}
    for reading in result["quiet"]:
        runs.setdefault(reading.get("run"), []).append(reading["steal_ticks"])
    taken = sum(ticks[-1] - ticks[0] for ticks in runs.values())
    loads = ", ".join(f"{q['load1']:.1f}" for q in result["quiet"])
    return f"Load average before and after each round: {loads}; taken by the host during the run: {taken / 100:,.0f} s of processor time."


def parts(result, heads, drawn):
    """The parts of a bench that can be measured alone, each with its commit and how quiet the machine was."""
    out = []
    for name, draw in drawn.items():
        figures = result["parts"].get(name)
        if figures:
            stolen = (figures["quiet"][1]["steal_ticks"] - figures["quiet"][0]["steal_ticks"]) / 100
            loads = ", ".join(f"{q['load1']:.1f}" for q in figures["quiet"])
            noise = figures.get("noise")
            others = f" Other programs used {noise['others']:.1%} of the machine ({noise['worst']['others']:.1%} at worst){': **noisy**' if noise['noisy'] else ''}." if noise else ""
            out += [f"### {heads[name]}", "", *draw(figures), "", f"Commit {figures['commit']}; load average before and after: {loads}; taken by the host: {stolen:.0f} s.{others}", ""]
    return out[:-1]
