"""The manifests of Kubernetes: their pods, what they refer to, and what the network lets through."""

import pathlib
import re
import shutil

import kubernetes_validate
import yaml
from common import DEPLOY, ROOT, TLS_NAMES, expect, port, run, size, version
from program import options, server

# The oldest version that has all that the manifests use (`preStop.sleep`), and the newest that the validator knows.
VERSIONS = ["1.30", kubernetes_validate.latest_version()]


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
        if role != "owner":
            files_of_answers(name, spec, container, shown)
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


def files_of_answers(where, spec, container, shown):
    """Checks that the folder in which responses are made is a volume with room for all of them, and for what else is there."""
    folder, cache = "/tmp", 0
    if shown["server"]["role"] == "scan":
        folder, cache = shown["store"]["data"], size(shown["cluster"]["cache"]["disk"])
    names = [mount["name"] for mount in container["volumeMounts"] if pathlib.Path(folder).is_relative_to(mount["mountPath"])]
    [limit] = [size(volume["emptyDir"]["sizeLimit"]) for volume in spec["volumes"] if volume["name"] in names]
    wanted = size(shown["answers"]["file_bytes_total"]) + cache
    expect(limit > wanted, f"{where}: {folder} holds {limit} bytes: expected more than {wanted}")


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
