"""Holds the files of deploy/ against the program and against each other: deploy.py MERIDIAN.

The program itself parses the command line of every unit, container and manifest, with the settings that it gets there (`--show-config`).
Every reference must lead somewhere, and every limit must fit the settings. At last a cluster runs by the manifests' command lines, and
answers their probes.
"""

import functools
import json
import pathlib
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request

import kubernetes_validate
import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEPLOY = ROOT / "deploy"
MERIDIAN = pathlib.Path(sys.argv[1]).resolve()
TOOLS = pathlib.Path(sys.executable).parent
# The oldest version that has all that the manifests use (`preStop.sleep`), and the newest that the validator knows.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]
# Time to write what is in memory to disk, after the grace.
FLUSH_SECONDS = 30
# The settings of a server fit into this much memory, or more.
MEMORY_MIN = 1 << 30
# Of a start, in the last step.
START_SECONDS = 30
# What the certificate of the manifests is for, as the guide has it made.
TLS_NAMES = re.search(r"certificates\.sh \S+ meridian '(\S+)'", (ROOT / "docs" / "deploy.md").read_text())[1]

problems = []


def expect(holds, problem):
    if not holds:
        problems.append(problem)
    return holds


def run(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60)


def expect_run(where, *command):
    done = run(*command)
    return expect(done.returncode == 0, f"{where}: {command[0]}: {(done.stdout + done.stderr).strip()}")


def seconds(text):
    count, unit = re.fullmatch(r"(\d+)(|s|m|min|h)", str(text)).groups()
    return int(count) * {"": 1, "s": 1, "m": 60, "min": 60, "h": 3600}[unit]


def size(text):
    count, unit = re.fullmatch(r"(\d+)([KMG])i?", str(text).upper().replace("I", "i")).groups()
    return int(count) << {"K": 10, "M": 20, "G": 30}[unit]


def port(address):
    return int(address.rpartition(":")[2])


def version():
    return tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]


def options(where, words):
    """Checks the options of a command that is not run here, by its help."""
    command = words[1 : next(n for n, word in enumerate(words) if word.startswith("-"))]
    known = set(re.findall(r"^ +(?:-\w, )?(--[a-z-]+)", run(MERIDIAN, *command, "--help").stdout, re.M))
    for word in words:
        expect(not word.startswith("--") or word in known, f"{where}: {word}: `meridian {' '.join(command)}` has {sorted(known)}")


def server(where, words, settings, stop, memory, writable):
    """Checks a server: its command line with the file `settings`, its time to stop, its memory, and where it may write. Returns its settings."""
    words = words[1:]
    at = words.index("--config") + 1
    expect(pathlib.Path(words[at]).name == settings.name, f"{where}: --config {words[at]}: the file there is {settings.name}")
    words[at] = settings
    done = run(MERIDIAN, *words, "--show-config")
    if not expect(done.returncode == 0, f"{where}: {done.stderr.strip()}"):
        return None
    shown = tomllib.loads(done.stdout)
    role, cluster, folders = shown["server"]["role"], shown["cluster"], []
    if role != "gateway":
        folders.append(shown["store"]["data"])
    if role != "all":
        # Not checked where settings are shown only.
        expect(cluster["log"] == "bucket" and cluster["bucket"].startswith("file:///"), f"{where}: no log or bucket of role {role}")
        folders.append(cluster["bucket"].removeprefix("file://"))
    for folder in folders:
        may = any(pathlib.Path(folder).is_relative_to(place) for place in writable)
        expect(may, f"{where}: {folder}: it may write {writable} only")
    grace = seconds(shown["server"]["shutdown_grace"])
    expect(stop >= grace + FLUSH_SECONDS, f"{where}: {stop} s to stop: a flush of {FLUSH_SECONDS} s may follow the grace of {grace} s")
    expect(memory >= MEMORY_MIN, f"{where}: {memory} bytes of memory: expected {MEMORY_MIN} or more")
    return shown


# systemd


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
        env |= variables([values.get("Environment", "")])
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
            server(where, words, settings, seconds(values["TimeoutStopSec"]), size(values["MemoryMax"]), state)
        # With a program that is here.
        (folder / path.name).write_text(text.replace(words[0], str(MERIDIAN)))
        # A line that it cannot read is no failure to it, but it says so.
        said = run("systemd-analyze", "verify", folder / name).stderr
        expect(path.stem not in said, f"{where}: systemd-analyze verify: {said}")
        # Tenths of its scale of exposure: up to 2.0 is "OK".
        expect_run(where, "systemd-analyze", "security", "--offline=true", "--threshold=20", folder / name)


# Containers


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


# Kubernetes


def matches(selector, labels):
    """Whether a selector takes pods with these labels."""
    by = [rule["key"] in labels and labels[rule["key"]] in rule["values"] for rule in selector.get("matchExpressions", [])]
    return all(by) and selector.get("matchLabels", {}).items() <= labels.items()


def pod_of(where, spec, known, user):
    """Checks a pod, and returns its only container and the paths that it may write."""
    [container] = spec["containers"]
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    mounts = {mount["name"]: mount for mount in container["volumeMounts"]}
    expect(volumes.keys() == mounts.keys(), f"{where}: volumes {sorted(volumes)}, mounts {sorted(mounts)}")
    for volume in volumes.values():
        kinds = [("configMap", "ConfigMap", "name"), ("persistentVolumeClaim", "PersistentVolumeClaim", "claimName"), ("secret", "Secret", "secretName")]
        for key, kind, name in kinds:
            if key in volume:
                expect((kind, volume[key][name]) in known, f"{where}: there is no {kind} {volume[key][name]}")
    # What the profile `restricted` of the namespace asks for, and a root that nobody writes.
    expect(spec["securityContext"]["runAsNonRoot"] and spec["securityContext"]["runAsUser"] == user, f"{where}: the image's user is {user}")
    expect(spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}, f"{where}: seccompProfile")
    wanted = {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    expect(container["securityContext"] == wanted, f"{where}: securityContext: expected {wanted}")
    limits, requests = container["resources"]["limits"], container["resources"]["requests"]
    expect(limits["memory"] == requests["memory"], f"{where}: another request of memory than its limit")
    return container, [mount["mountPath"] for mount in mounts.values() if not mount.get("readOnly")]


def kubernetes(first, user):
    """Checks the manifests, and returns the command lines, the settings and the paths of probes for the last step."""
    there = DEPLOY / "kubernetes"
    kustomization = yaml.safe_load((there / "kustomization.yaml").read_text())
    apart = {"kustomization.yaml", "first-token.yaml"}
    files = {path.name for path in there.glob("*.yaml")} - apart
    expect(set(kustomization["resources"]) == files, f"kustomization.yaml: resources: the files are {sorted(files)}")
    manifests = [m for name in sorted(files) for m in yaml.safe_load_all((there / name).read_text())]
    [job] = yaml.safe_load_all((there / "first-token.yaml").read_text())
    rendered = []
    if shutil.which("kubectl"):
        done = run("kubectl", "kustomize", there)
        expect(done.returncode == 0, f"kubectl kustomize: {done.stderr}")
        rendered = list(yaml.safe_load_all(done.stdout))
    else:
        print("NOTE: there is no kubectl: what kustomization.yaml renders was NOT validated")
    for manifest in [*manifests, job, *rendered]:
        for kubernetes_version in VERSIONS:
            try:
                kubernetes_validate.validate(manifest, kubernetes_version, strict=True)
            except (kubernetes_validate.ValidationError, kubernetes_validate.SchemaNotFoundError) as e:
                expect(False, f"{manifest['kind']} {manifest['metadata']['name']} for {kubernetes_version}: {e.message}")

    [image] = kustomization["images"]
    built = f"{image['newName']}:{image['newTag']}"
    expect(image["newTag"] == version(), f"kustomization.yaml: {built}: this is {version()}")
    [generated] = kustomization["configMapGenerator"]
    [settings] = [there / file for file in generated["files"]]
    made = re.findall(r"kubectl -n (\S+) create secret generic (\S+)", (ROOT / "docs" / "deploy.md").read_text())
    known = {(m["kind"], m["metadata"]["name"]): m for m in manifests} | {("ConfigMap", generated["name"]): None}
    known |= {("Secret", name): None for of, name in made if of == kustomization["namespace"]}
    of_kind = lambda kind: [m for m in manifests if m["kind"] == kind]
    [namespace] = of_kind("Namespace")
    expect(kustomization["namespace"] == namespace["metadata"]["name"] == job["metadata"]["namespace"], "kustomization.yaml: namespace")

    servers = {}
    for workload in of_kind("StatefulSet") + of_kind("Deployment"):
        name, spec = workload["metadata"]["name"], workload["spec"]["template"]["spec"]
        labels = workload["spec"]["template"]["metadata"]["labels"]
        expect(matches(workload["spec"]["selector"], labels), f"{name}: its selector does not take its pods")
        expect("serviceName" not in workload["spec"] or ("Service", workload["spec"]["serviceName"]) in known, f"{name}: serviceName")
        container, writable = pod_of(name, spec, known, user)
        expect(container["image"] == image["name"], f"{name}: image {container['image']}")
        pause = container.get("lifecycle", {}).get("preStop", {}).get("sleep", {}).get("seconds", 0)
        stop, memory = spec["terminationGracePeriodSeconds"] - pause, size(container["resources"]["limits"]["memory"])
        env = {variable["name"]: variable["valueFrom"]["fieldRef"]["fieldPath"] for variable in container.get("env", [])}
        used = set(re.findall(r"\$\((\w+)\)", " ".join(container["args"])))
        expect(used == env.keys(), f"{name}: variables {env}, used {used}")
        fields = {"metadata.name": f"{name}-0"}
        words = first + [re.sub(r"\$\((\w+)\)", lambda found: fields[env[found[1]]], word) for word in container["args"]]
        shown = server(name, words, settings, stop, memory, writable)
        if shown is None:
            continue
        role = shown["server"]["role"]
        roles_tls(workload, role, shown["cluster"], container, namespace["metadata"]["name"])
        expect(labels["app.kubernetes.io/component"] == role, f"{name}: labels {labels} of role {role}")
        of_clients = {"http": shown["server"]["listen"], "monitor": shown["metrics"]["listen"]}
        of_gateways = {"scan": shown["cluster"]["scan"]["listen"]} if role == "scan" else {}
        listened = {"flight": shown["cluster"]["flight"]} if role == "owner" else of_clients | of_gateways
        ports = {p["name"]: p["containerPort"] for p in container["ports"]}
        expect(ports == {of: port(address) for of, address in listened.items()}, f"{name}: ports {ports}, it listens on {listened}")
        probes = {key: container[key]["httpGet"] for key in container if key.endswith("Probe")}
        # An owner that waits accepts no connections.
        expect((role == "owner") != bool(probes), f"{name}: probes {probes}")
        expect(all(probe["port"] == "monitor" for probe in probes.values()), f"{name}: probes {probes}")
        servers[role] = (words, labels, ports, {probe["path"] for probe in probes.values()}, shown)
    expect(servers.keys() == {"owner", "gateway", "scan"}, f"roles {sorted(servers)}")

    container, _ = pod_of("first-token.yaml", job["spec"]["template"]["spec"], known, user)
    expect(container["image"] == built, f"first-token.yaml: image {container['image']}: expected {built}")
    options("first-token.yaml", first + container["args"])
    for role, (*_, shown) in servers.items():
        expect(shown["cluster"]["bucket"] == container["args"][-1], f"first-token.yaml: {container['args'][-1]}: not the bucket of role {role}")

    taken = lambda selector: {role for role, (_, labels, *_) in servers.items() if matches(selector, labels)}
    reached = {role: {} for role in servers}
    for service in of_kind("Service"):
        name, spec = service["metadata"]["name"], service["spec"]
        [role] = taken({"matchLabels": spec["selector"]})
        _, _, ports, _, shown = servers[role]
        offered = {p["targetPort"]: p["port"] for p in spec["ports"]}
        expect(offered.items() <= ports.items(), f"Service {name}: ports: the pods have {ports}")
        reached[role] |= offered
        full = f"{name}.{namespace['metadata']['name']}.svc.cluster.local".split(".")
        for names in [full[:1], full[:2], full[:3], full] if "http" in offered else []:
            expect(".".join(names) in shown["server"]["hosts"], f"{settings.name}: server.hosts lacks {'.'.join(names)}")
    for role, offered in reached.items():
        expect(offered == servers[role][2], f"Services of role {role}: ports {offered}: the pods have {servers[role][2]}")
    for budget in of_kind("PodDisruptionBudget"):
        expect(len(taken(budget["spec"]["selector"])) == 1, f"PodDisruptionBudget {budget['metadata']['name']}: selector")
    for scaler in of_kind("HorizontalPodAutoscaler"):
        target = scaler["spec"]["scaleTargetRef"]
        expect((target["kind"], target["name"]) in known, f"HorizontalPodAutoscaler: {target}")
        expect("replicas" not in known[target["kind"], target["name"]]["spec"], f"{target['name']}: replicas would undo the autoscaler's")
    expect({m["spec"]["accessModes"][0] for m in of_kind("PersistentVolumeClaim")} == {"ReadWriteMany"}, "bucket.yaml: accessModes")
    network(of_kind("NetworkPolicy"), servers, taken)
    return servers, settings, container["args"]


def roles_tls(workload, role, cluster, container, namespace):
    """Checks that a process has its certificate, and that the guide's is for the name by which gateways reach it."""
    where, mounts = workload["metadata"]["name"], [mount["mountPath"] for mount in container["volumeMounts"]]
    files = [cluster["tls"][name] for name in ["cert", "key", "ca"]]
    # A process does not start without a file that its settings name.
    has = all(any(pathlib.Path(file).is_relative_to(place) for place in mounts) for file in files)
    expect(has, f"{where}: {files}: its mounts are {mounts}")
    if role != "gateway":
        service = f"{workload['spec']['serviceName']}.{namespace}.svc"
        address = cluster["flight_advertise"] if role == "owner" else cluster["scan"]["advertise"]
        host = address.rpartition(":")[0]
        expect(host == f"{where}-0.{service}", f"{where}: it is reached by {host}: the service gives it another name")
        expect(f"DNS:*.{service}" in TLS_NAMES.split(","), f"docs/deploy.md: a certificate for {TLS_NAMES}: {role} is {host}")


def network(policies, servers, taken):
    expect(any(p["spec"]["podSelector"] == {} and "ingress" not in p["spec"] for p in policies), "network.yaml: nothing is closed by default")
    open_to = {}
    for policy in policies:
        name = policy["metadata"]["name"]
        for rule in policy["spec"].get("ingress", []):
            for role in taken(policy["spec"]["podSelector"]):
                for p in rule["ports"]:
                    expect(p["port"] in servers[role][2], f"NetworkPolicy {name}: pods of role {role} have no port {p['port']}")
                    callers = open_to.setdefault((role, p["port"]), [])
                    for peer in rule.get("from", [{}]):
                        inside = "namespaceSelector" not in peer and "podSelector" in peer
                        callers += taken(peer["podSelector"]) if inside else ["elsewhere"]
    for door in [("owner", "flight"), ("scan", "scan")]:
        expect(open_to.get(door) == ["gateway"], f"network.yaml: {door} is open to {open_to.get(door)}")
    expect(open_to.keys() == {(role, p) for role, (_, _, ports, *_) in servers.items() for p in ports}, f"network.yaml: open: {open_to}")


# A cluster


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def status(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code
    except OSError as e:
        return str(e)


def cluster(folder, servers, settings, first_token):
    """Runs the manifests' command lines on this machine, with other ports and below `folder`, and asks their probes."""
    moved = {"/var/lib/meridian": folder / "state", "/etc/meridian-tls": folder / "tls", "0.0.0.0": "127.0.0.1"}
    here = lambda text: functools.reduce(lambda text, of: text.replace(of[0], str(of[1])), moved.items(), str(text))
    (folder / "state").mkdir()
    # No service names the owner here.
    done = run(DEPLOY / "certificates.sh", folder / "tls", "tls", f"{TLS_NAMES},DNS:localhost")
    expect(done.returncode == 0, f"certificates.sh: {done.stderr}")
    done = run(MERIDIAN, *map(here, first_token))
    expect(done.returncode == 0, f"first-token.yaml: {done.stderr}")
    running, asked = {}, []
    try:
        for role in ["owner", "gateway", "scan"]:
            words, _, ports, paths, _ = servers[role]
            text, at = here(settings.read_text()), {}
            for name, number in ports.items():
                at[name] = free_port()
                text = text.replace(f"127.0.0.1:{number}", f"127.0.0.1:{at[name]}")
                words = [word.replace(f":{number}", f":{at[name]}") for word in words]
            file = folder / f"{role}.toml"
            file.write_text(text.replace("/state/data", f"/state/{role}"))
            words = [file if word.endswith(".toml") else here(word) for word in words[1:]]
            words = [re.sub(r"^meridian-(?:owner|scan)-0\.[^:]+", "localhost", str(word)) for word in words]
            log = open(folder / f"{role}.log", "w")
            running[role] = subprocess.Popen([MERIDIAN, *words], stdout=log, stderr=log)
            asked += [(role, f"http://127.0.0.1:{at['monitor']}{path}") for path in sorted(paths)]
        said = lambda role: (folder / f"{role}.log").read_text()
        until = time.monotonic() + START_SECONDS
        for role, url in asked:
            while (answer := status(url)) != 200 and time.monotonic() < until:
                time.sleep(0.1)
            expect(answer == 200, f"{role}: {url}: {answer}: {said(role)}")
        # The owner last: what a gateway does for its clients until its end, it does there.
        for role, process in reversed(running.items()):
            process.terminate()
            expect(process.wait(timeout=START_SECONDS) == 0, f"{role}: it ended with {process.returncode}: {said(role)}")
    finally:
        for process in running.values():
            process.kill()
            process.wait()


def guide():
    """Files that the guide names are there."""
    for file in re.findall(r"\bdeploy/[\w/.@*-]+", (ROOT / "docs" / "deploy.md").read_text()):
        expect(list(ROOT.glob(file.rstrip("."))), f"docs/deploy.md: there is no {file}")


def main():
    try:
        with tempfile.TemporaryDirectory() as folder:
            systemd(pathlib.Path(folder))
            first, user = containerfile()
            compose(first)
            servers, settings, first_token = kubernetes(first, user)
            guide()
            # What is wrong on paper need not be tried.
            if not problems:
                cluster(pathlib.Path(folder), servers, settings, first_token)
    finally:
        # Before the error of a file that lacks too much for this test to go on.
        print("\n".join(problems), end="\n" if problems else "")
    if not problems:
        print("deploy: units, containers and manifests agree with the program, and a cluster ran by them")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
