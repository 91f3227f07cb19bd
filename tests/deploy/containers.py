"""The image, and the services of the Compose file."""

import json
import pathlib
import re

import yaml
from common import DEPLOY, MEMORY_MIN, TOOLS, expect, expect_run, port, seconds, size, version
from program import options, server


def containerfile():
    """Checks the image, and returns its first words and its user."""
    path = DEPLOY / "container" / "Containerfile"
    where, text = "Containerfile", re.sub(r"\\\n\s*", "", path.read_text())
    expect_run(where, TOOLS / "hadolint", path)
    words = {name: json.loads(line) for name, line in re.findall(r"^(ENTRYPOINT|CMD) (.+)$", text, re.M)}
    volume = re.search(r"^VOLUME (\S+)$", text, re.M)[1]
    shown = server(where, words["ENTRYPOINT"] + words["CMD"], path.with_name("meridian.toml"), 3600, MEMORY_MIN, [volume])
    check = json.loads(re.search(r"^HEALTHCHECK .*CMD (\[.+\])$", text, re.M)[1])
    expect(check[0] == words["ENTRYPOINT"][0], f"{where}: HEALTHCHECK {check}: it is another program")
    options(where, check)
    exposed = int(re.search(r"^EXPOSE (\d+)$", text, re.M)[1])
    if shown:
        expect(exposed == port(shown["server"]["listen"]), f"{where}: EXPOSE {exposed}")
        expect(check[-1] == f"http://{shown['metrics']['listen']}", f"{where}: HEALTHCHECK {check}")
    return words["ENTRYPOINT"], int(re.search(r"^USER (\d+):", text, re.M)[1])


def compose(first):
    path = DEPLOY / "container" / "compose.yaml"
    expect_run("compose.yaml", TOOLS / "check-jsonschema", "--builtin-schema", "vendor.compose-spec", path)
    document = yaml.safe_load(path.read_text())
    files = {name: path.parent / of["file"] for name, of in document["configs"].items()}
    folders, owners = [], set()
    for name, of in document["services"].items():
        where = f"compose.yaml: {name}"
        expect(of["image"] == f"meridian:{version()}", f"{where}: image {of['image']}: this is {version()}")
        expect(of["pull_policy"] == "never", f"{where}: pull_policy {of['pull_policy']}: a registry may have another image of this name")
        mounts = dict(mount.split(":") for mount in of["volumes"])
        expect(mounts.keys() <= document["volumes"].keys(), f"{where}: volumes {mounts}")
        expect(set(of["networks"]) <= document["networks"].keys(), f"{where}: networks {of['networks']}")
        [config] = of["configs"]
        settings = files[config["source"]]
        expect(settings.name == pathlib.Path(config["target"]).name, f"{where}: {config}")
        stop = seconds(of["stop_grace_period"])
        shown = server(where, first + of["command"], settings, stop, size(of["mem_limit"]), list(mounts.values()))
        if shown is None:
            continue
        role = shown["server"]["role"]
        for published in of.get("ports", []):
            expect(port(published) == port(shown["server"]["listen"]), f"{where}: {published}: it listens on {shown['server']['listen']}")
        if role == "gateway":
            # It has no data folder, and the root of its file system cannot be written.
            temporary = pathlib.Path(of.get("environment", {}).get("TMPDIR", "/tmp"))
            expect(any(temporary.is_relative_to(place) for place in mounts.values()), f"{where}: TMPDIR {temporary}: volumes {mounts}")
        if role == "owner":
            # What the name leads to is where gateways find it.
            expect(shown["cluster"]["flight"].split(":")[0] == name, f"{where}: --flight {shown['cluster']['flight']}")
            owners.add(name)
        else:
            expect(name in shown["server"]["hosts"], f"{where}: it does not answer to its name")
        expect(("flight" in of["networks"]) == (role != "scan"), f"{where}: networks {of['networks']}")
        expect(("scans" in of["networks"]) == (role != "owner"), f"{where}: networks {of['networks']}")
        if role == "scan":
            # A name that leads to the network of the gateways alone.
            host = shown["cluster"]["scan"]["listen"].split(":")[0]
            expect(host in of["networks"]["scans"]["aliases"], f"{where}: --scan-listen {host}")
        folders += [shown["store"]["data"]] if role != "gateway" else []
    expect(len(owners) == 2, f"compose.yaml: owners {owners}")
    expect(len(set(folders)) == len(folders), f"compose.yaml: --data {folders}: expected a folder for each")
