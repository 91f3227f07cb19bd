"""What identity, admission and metering together cost a small question: a build without tokens beside this one, asked with a token. That difference has
all that came between the two builds. So this build is also held against itself, asked without a token and with one."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys

from common import MERIDIAN, ROOT, TARGET, need, say

# The last commit before tokens, tenants and quotas.
BEFORE = "1eefdea"
PART = "near-0.5"


def pairs():
    """`bench/pairs/run.py`, whose name is that of every other bench's file."""
    spec = importlib.util.spec_from_file_location("pairs", ROOT / "bench" / "pairs" / "run.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def built_before():
    """The program as it was at `BEFORE`, built once, without the lab, the map and the labels of images, which no question passes."""
    made = TARGET / "bench-before" / BEFORE / "meridian"
    if made.exists():
        return made
    say(f"building commit {BEFORE}, once: ten minutes or more")
    with_source = TARGET / "bench-before" / "source"
    shutil.rmtree(with_source, ignore_errors=True)
    with_source.mkdir(parents=True)
    archive = subprocess.Popen(["git", "archive", BEFORE], cwd=ROOT, stdout=subprocess.PIPE)
    subprocess.run(["tar", "-x", "-C", with_source], stdin=archive.stdout, check=True)
    if archive.wait() != 0:
        sys.exit(f"bench: commit {BEFORE} is not in this clone; name a build of it with --before")
    target = TARGET / "bench-before" / "target"
    build = ["cargo", "build", "--release", "--locked", "-p", "meridian-cli", "--no-default-features"]
    subprocess.run(build, cwd=with_source, env=os.environ | {"CARGO_TARGET_DIR": str(target)}, check=True)
    made.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "release" / "meridian", made)
    shutil.rmtree(target)
    shutil.rmtree(with_source)
    return made


def entry(options):
    """Near questions at 0.5 km from 50 connections, both builds in turns."""
    before = pathlib.Path(options.before) if options.before else built_before()
    need(before)
    module = pairs()
    found = module.compared(before, MERIDIAN, [PART], options.entry_rounds, options.entry_seconds, tenant=True)
    same = module.compared(MERIDIAN, MERIDIAN, [PART], options.entry_rounds, options.entry_seconds, tenant=True)
    return {"same": same[PART], "before": BEFORE if not options.before else str(before), "rounds": options.entry_rounds, "seconds": options.entry_seconds, "quotas": module.QUOTAS, "figures": found[PART]}
