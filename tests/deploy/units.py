"""The units of systemd."""

import pathlib
import re
import shlex

from common import DEPLOY, MERIDIAN, expect, expect_run, run, seconds, size
from program import server


def assignments(text):
    """Of each name in a unit its values, in order."""
    found = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", re.sub(r"\\\n\s*", "", text), re.M):
        found.setdefault(name, []).append(value)
    return found


def variables(lines):
    return dict(line.strip('"').split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def systemd(folder):
    there = DEPLOY / "systemd"
    units = {path: path.read_text() for path in sorted(there.glob("*.service"))}
    expect(len(units) == 4, f"deploy/systemd has {len(units)} units")
    expect(len({text.partition("# What the processes may reach")[2] for text in units.values()}) == 1, "deploy/systemd: sandboxes differ")
    drop = assignments((there / "tls.conf").read_text())
    for path, text in units.items():
        where = f"deploy/systemd/{path.name}"
        values = {name: of[0] for name, of in assignments(text).items()}
        # As in the first line: `The instance is its port for clients: meridian-gateway@7117.`
        instance = re.search(rf": {path.stem}(\d+)\.", text)[1] if "@" in path.stem else ""
        name = f"{path.stem}{instance}.service"
        # A file with a dash need not be there.
        env = {} if (file := values["EnvironmentFile"]).startswith("-") else variables((there / pathlib.Path(file).name).read_text().splitlines())
        env |= variables(assignments(text).get("Environment", []))
        kinds = [env]
        if "OPTIONS" in env:
            kinds.append(env | {"OPTIONS": variables(drop["Environment"])["OPTIONS"].replace("%d", f"/run/credentials/{name}")})
            credentials = {line.split(":")[0] for line in drop["LoadCredential"]}
            expect(set(re.findall(r"%d/(\S+?)[\s\"]", drop["Environment"][0])) == credentials, f"tls.conf: credentials are {credentials}")
        for env in kinds:
            command = values["ExecStart"].replace("%i", instance)
            words = shlex.split(re.sub(r"\$\{?(\w+)\}?", lambda found: env[found[1]], command))
            settings = there / pathlib.Path(words[words.index("--config") + 1]).name
            state = [f"/var/lib/{values['StateDirectory']}"]
            shown = server(where, words, settings, seconds(values["TimeoutStopSec"]), size(values["MemoryMax"]), state)
            if shown and shown["server"]["role"] == "gateway":
                # Its /tmp may be memory, which MemoryMax counts.
                private = values["PrivateTmp"] == "yes"
                expect(private and env.get("TMPDIR") == "/var/tmp", f"{where}: TMPDIR={env.get('TMPDIR')}: expected /var/tmp, private")
        # With a program that is here.
        (folder / path.name).write_text(text.replace(words[0], str(MERIDIAN)))
        # A line that it cannot read is no failure to it, but it says so.
        said = run("systemd-analyze", "verify", folder / name).stderr
        expect(path.stem not in said, f"{where}: systemd-analyze verify: {said}")
        # Tenths of its scale of exposure: up to 2.0 is "OK".
        expect_run(where, "systemd-analyze", "security", "--offline=true", "--threshold=20", folder / name)
