"""A cluster on this machine, by the command lines of the manifests."""

import functools
import re
import socket
import subprocess
import time
import urllib.error
import urllib.request

from common import DEPLOY, MERIDIAN, TLS_NAMES, expect, run

# Of a start.
START_SECONDS = 30


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
