"""The cost for any server to read a request and to refuse it. Compares nginx with a constant 503 and Meridian's refusal of a tenant over its quota."""

import contextlib
import statistics

import questions as q
from common import MERIDIAN, Server, free_port, say
from rig import SERVER_CORE, System, on, users
from side import Side

TENANT = "capped"
# As long as Meridian's own problem details.
PROBLEM = '{"type":"about:blank","title":"Service Unavailable","status":503,"detail":"The server has more work than it can finish in time. Try again later."}'


class Nginx(System):
    """One worker that refuses everything from memory, without a log."""

    def __init__(self, stack):
        super().__init__(stack, "nginx")
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        conf = self.folder / "nginx.conf"
        conf.write_text(f"""daemon off; worker_processes 1; pid {self.folder}/nginx.pid; error_log stderr;
events {{ worker_connections 10000; }}
http {{ access_log off; keepalive_requests 100000000;
  server {{ listen 127.0.0.1:{port} backlog=4096; default_type application/problem+json;
    location / {{ add_header Retry-After 1 always; return 503 '{PROBLEM}'; }} }} }}
""")
        self.servers = [stack.enter_context(Server("nginx", on(SERVER_CORE, ["nginx", "-c", conf, "-p", self.folder]), port))]


def floor(options):
    """Microseconds of the server's processor a refusal, at a constant rate, both systems in turns."""
    with contextlib.ExitStack() as stack:
        side = Side(stack, "Meridian", MERIDIAN)
        side.tenant(TENANT, quotas=["requests_per_second=1"])
        both, found = [side, Nginx(stack)], {"Meridian": [], "nginx": []}
        for number in range(options.rounds):
            for system in both[:: -1 if number % 2 else 1]:
                mine = system is side
                one = users("all", f'kind = "constant", rate = {options.floor_rate}', ["one"], target=TENANT if mine else "")
                targets = system.target(TENANT, TENANT) if mine else ""
                run = system.lab("floor", [one], q.request("one", "/collections"), options.refusal_seconds, targets=targets, rest=0.5)
                found[system.name].append({"refused": int(run.refused.sum()), "outcomes": run.outcomes(run.due >= 0), "cpu_us": run.cpu_s * 1e6 / max(int(run.refused.sum()), 1), "void": run.void})
                say(f"{system.name}: {found[system.name][-1]['cpu_us']:.1f} us a refusal, {found[system.name][-1]['outcomes']}")
    return {"rate": options.floor_rate, "seconds": options.refusal_seconds, "rounds": options.rounds, "runs": found,
            "cpu_us": {name: statistics.median(one["cpu_us"] for one in runs) for name, runs in found.items()}}
