//! Tests the module in an interpreter, without the Python package that programs use.

#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test that cannot go on ends, and reads files as they are"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs a script with the module built for this test.
fn python(script: &str) -> Output {
    let folder = tempfile::tempdir().unwrap();
    let here = std::env::current_exe().unwrap();
    let names = ["libmeridian_engine.so", "libmeridian_engine.dylib"];
    let built: Vec<PathBuf> = names.iter().map(|name| here.with_file_name(name)).filter(|path| path.exists()).collect();
    assert_eq!(built.len(), 1, "beside {}", here.display());
    std::fs::copy(&built[0], folder.path().join("meridian_engine.abi3.so")).unwrap();
    let mut command = Command::new("python3");
    command.args(["-W", "error", "-W", "ignore::DeprecationWarning", "-c", script]);
    command.env("PYTHONPATH", folder.path()).env("DATA", folder.path().join("data")).output().unwrap()
}

fn passes(script: &str) {
    let script = format!("{START}{script}");
    let ran = python(&script);
    let (out, err) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success() && out.ends_with("done\n"), "{script}\n{out}\n{err}");
}

const START: &str = r#"
import json, os, subprocess, sys, threading
from meridian_engine import Engine
data = os.environ["DATA"]

def ask(engine, method, target, body=None, kind="application/json", timeout=30.0):
    headers = [("Content-Type", kind)] if body is not None else []
    return engine.request(method, target, headers, body, timeout)

def fails(error, act, says=""):
    try:
        act()
    except error as e:
        assert says in str(e), e
    else:
        raise AssertionError(f"no {error.__name__}")

def make(engine):
    made = ask(engine, "PUT", "/collections/notes", b"note:String,seen:Date", "text/plain")
    assert made.status == 201, made.read()
    lines = "".join(json.dumps({"note": f"{n:0100}", "seen": "2026-01-01T00:00:00Z"}) + "\n" for n in range(20_000)).encode()
    wrote = ask(engine, "POST", "/collections/notes/items", lines, "application/x-ndjson")
    assert wrote.status == 201, wrote.read()
"#;

#[test]
fn a_folder_is_made_written_read_and_opened_again() {
    passes(
        r#"
fails(FileNotFoundError, lambda: Engine(data, False, False), data)
engine = Engine(data, True, False)
version = ask(engine, "GET", "/version")
assert version.status == 200 and json.loads(version.read())["name"] == "meridian"
make(engine)
answer = ask(engine, "GET", "/collections/notes/items?f=ndjson")
text = b""
while piece := answer.read(777):
    assert len(piece) == 777 or not answer.read(1)
    text += piece
assert sorted(json.loads(line)["properties"]["note"] for line in text.splitlines()) == [f"{n:0100}" for n in range(20_000)]
assert ask(engine, "GET", "/collections/none").status == 404
fails(ValueError, lambda: ask(engine, "GET", "no target"))
engine.close()
engine.close()
fails(ConnectionError, lambda: ask(engine, "GET", "/version"), "closed")
engine = Engine(data, False, False)
assert json.loads(ask(engine, "GET", "/collections/notes/aggregate?f=json").read())["groups"][0]["count"] == 20_000
print("done")
"#,
    );
}

#[test]
fn a_folder_that_is_open_is_refused_in_a_sentence() {
    passes(
        r#"
engine = Engine(data, True, False)
fails(BlockingIOError, lambda: Engine(data, True, False), "meridian.connect(")
again = "import os; from meridian_engine import Engine; Engine(os.environ['DATA'], True, False)"
other = subprocess.run([sys.executable, "-c", again], capture_output=True, text=True)
assert "BlockingIOError" in other.stderr and data in other.stderr, other.stderr
engine.close()
subprocess.run([sys.executable, "-c", again], check=True)
print("done")
"#,
    );
}

#[test]
fn a_fork_is_told_so_and_does_not_hang() {
    passes(
        r#"
import gc
engine = Engine(data, True, False)
make(engine)
answer = ask(engine, "GET", "/collections/notes/items?f=ndjson")
child = os.fork()
if child == 0:
    try:
        fails(RuntimeError, lambda: ask(engine, "GET", "/version"), "forked")
        fails(RuntimeError, lambda: answer.read(), "forked")
        engine.close()
        del engine, answer
        gc.collect()
        os._exit(7)
    finally:
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
assert len(answer.read().splitlines()) == 20_000
print("done")
"#,
    );
}

#[test]
fn a_wait_lets_other_threads_run_and_is_ended_by_them() {
    passes(
        r#"
engine = Engine(data, True, False)
make(engine)

def follow():
    stream = ask(engine, "GET", "/collections/notes/stream", timeout=None)
    while b"\n\n" not in stream.read1(1 << 16):
        pass
    return stream

def waiting(stream, found):
    def read():
        try:
            found.append(stream.read1())
        except Exception as error:
            found.append(error)
    thread = threading.Thread(target=read)
    thread.start()
    return thread

found = []
stream = follow()
thread = waiting(stream, found)
for _ in range(20):
    assert ask(engine, "GET", "/version").status == 200
stream.close()
thread.join()
assert isinstance(found[0], ConnectionError) and stream.closed, found
fails(ConnectionError, stream.read1)

stream = follow()
thread = waiting(stream, found)
engine.close()
thread.join()
assert isinstance(found[1], ConnectionError) or b"event: end" in found[1], found
print("done")
"#,
    );
}

#[test]
fn a_silent_answer_ends_after_its_timeout_and_the_signal_of_ctrl_c_ends_it_sooner() {
    passes(
        r#"
import signal
# A shell that starts this in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
engine = Engine(data, True, False)
make(engine)

def read_to_silence(stream):
    while True:
        assert stream.read1(1 << 16)

fails(TimeoutError, lambda: read_to_silence(ask(engine, "GET", "/collections/notes/stream", timeout=0.3)))
patient = ask(engine, "GET", "/collections/notes/stream", timeout=None)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
fails(KeyboardInterrupt, lambda: read_to_silence(patient))
fails(ConnectionError, patient.read1)
assert ask(engine, "GET", "/version").status == 200
print("done")
"#,
    );
}
