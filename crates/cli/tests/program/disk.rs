//! The real server on real disks that are full, or that the kernel makes read-only. Mounting needs root.

use crate::common::mount::{Mount, quietly};
use crate::common::{Server, command, count_in_folder, counted, meridian};
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

fn events(batch: u64, count: u64) -> String {
    let event = |n: u64| {
        format!(
            "{{\"type\":\"Feature\",\"geometry\":{{\"type\":\"Point\",\"coordinates\":[{},{}]}},\"properties\":\
             {{\"note\":\"{:016x}{:016x}\",\"dtg\":\"2026-01-02T00:00:00Z\"}}}}\n",
            n % 180,
            n % 90,
            (batch * 1000 + n).wrapping_mul(0x9e37_79b9_7f4a_7c15),
            (batch * 1000 + n).wrapping_mul(0xbf58_476d_1ce4_e5b9),
        )
    };
    (0..count).map(event).collect()
}

fn send(server: &Server, batch: u64, count: u64) -> (u16, String) {
    server.post("/collections/notes/items", "application/x-ndjson", None, events(batch, count).as_bytes()).unwrap()
}

fn count(server: &Server) -> u64 {
    counted(&server.json("/collections/notes/aggregate?function=count"))
}

fn made(folder: &Path) -> Server {
    let server = Server::start(folder);
    server.create("notes", "note:String,dtg:Date,*geom:Point");
    server
}

#[test]
fn a_full_disk_refuses_writes_clearly_and_nothing_is_lost() {
    let Some(mount) = Mount::new(&["-t", "tmpfs", "-o", "size=6m", "none"]) else { return };
    let ballast = mount.path().join("lost+found");
    std::fs::write(&ballast, vec![7; 3 << 20]).unwrap();
    let server = made(mount.path());
    let (mut stored, mut refused) = (0, None);
    for batch in 0..400 {
        match send(&server, batch, 400) {
            (200 | 201, _) => stored += 400,
            answer => {
                refused = Some(answer);
                break;
            }
        }
    }
    let (status, text) = refused.expect("the disk never filled up");
    assert_eq!(status, 507, "{text}");
    assert!(text.contains("disk is full") && text.contains("\"type\""), "{text}");
    assert!(stored > 0);
    assert_eq!(count(&server), stored, "readers go on, and see what was acknowledged");

    // To the last page: not even the record of a saved search fits.
    let mut filler = std::fs::OpenOptions::new().append(true).open(&ballast).unwrap();
    while filler.write_all(&[7; 4096]).is_ok() {}
    let save = || {
        let asked = br#"{"name": "floods", "question": {"keywords": "flood"}}"#;
        server.post("/saved-searches", "application/json", None, asked).unwrap()
    };
    let (status, text) = save();
    assert!(status == 507 && text.contains("disk is full") && text.contains("\"type\""), "{status} {text}");
    let (status, text) = server.get("/readyz");
    assert!(status == 503 && text.contains("disk is full"), "{status} {text}");

    std::fs::remove_file(&ballast).unwrap();
    drop(filler);
    assert_eq!(server.get("/readyz").0, 200, "nobody has to write for that");
    let (status, text) = save();
    assert_eq!(status, 201, "{text}");
    let (status, text) = send(&server, 1000, 400);
    assert!(matches!(status, 200 | 201), "there is room again: {status} {text}");
    server.kill();
    assert_eq!(count_in_folder("notes", mount.path()), stored + 400);
    meridian(&["check", "--data", mount.path().to_str().unwrap()]).ended(0);
}

#[test]
fn a_disk_that_turns_read_only_stops_writes_and_nothing_is_lost() {
    let image = tempfile::NamedTempFile::new().unwrap();
    image.as_file().set_len(48 << 20).unwrap();
    let path = image.path().to_str().unwrap();
    if let Err(why) = quietly(Command::new("mkfs.ext4").args(["-q", "-F", path])) {
        eprintln!("\n*** NOT TESTED ON A REAL DISK: no ext4 can be made here ({why}). ***\n");
        return;
    }
    let options = ["-o", "loop,errors=remount-ro", path];
    let Some(mount) = Mount::new(&options) else { return };
    let server = made(mount.path());
    assert!(matches!(send(&server, 1, 400).0, 200 | 201));

    // As after a media error: the kernel remounts the file system read-only under the running server.
    let source = Command::new("findmnt").args(["-n", "-o", "SOURCE"]).arg(mount.path()).output().unwrap();
    let device = String::from_utf8(source.stdout).unwrap().trim().trim_start_matches("/dev/").to_owned();
    std::fs::write(format!("/sys/fs/ext4/{device}/trigger_fs_error"), "a test").unwrap();
    for batch in 2..4 {
        let (status, text) = send(&server, batch, 400);
        assert!(matches!(status, 503 | 507) && text.contains("\"type\""), "{status} {text}");
        // The file that could not be written or synced, with the kernel's error: EROFS, or EIO for an aborted journal.
        assert!(text.contains("could not ") && text.contains("/notes/p0/log"), "{text}");
        assert!(text.contains("(os error 30)") || text.contains("(os error 5)"), "{text}");
        let what_now = match status {
            503 => "nothing of the write is stored",
            _ => "the collection notes accepts no writes: could not ",
        };
        assert!(text.contains(what_now), "{status} {text}");
    }
    assert_eq!(count(&server), 400, "readers go on");
    server.kill();
    let run = meridian(&["query", "notes", "--data", mount.path().to_str().unwrap()]);
    assert!(run.code != 0 && run.err.contains("cannot be written"), "{}", run.err);

    drop(mount);
    let _ = Command::new("e2fsck").args(["-fy", path]).output();
    let mount = Mount::new(&options).unwrap();
    let server = Server::start(mount.path());
    assert_eq!(count(&server), 400, "what was acknowledged is there, what was refused is not");
    assert!(matches!(send(&server, 5, 400).0, 200 | 201));
    assert_eq!(count(&server), 800);
    server.kill();
}

#[test]
fn a_lab_run_on_a_full_disk_says_so_and_leaves_nothing_half_written() {
    let Some(disk) = Mount::new(&["-t", "tmpfs", "-o", "size=256k", "tmpfs"]) else { return };
    let folder = tempfile::tempdir().unwrap();
    let mock = ["lab", "mock", "--null", "--listen", "127.0.0.1:0"];
    let mut mock = command(&mock).stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(mock.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let path = folder.path().join("full.toml");
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"closed\"\nusers = 8\n[request]\npath = \"/\"\n[phases]\nmeasured_s = 600\n",
        line.trim().rsplit_once(' ').unwrap().1
    );
    std::fs::write(&path, text).unwrap();
    let out = disk.path().join("out");
    let ran = meridian(&["lab", "run", path.to_str().unwrap(), "--out", out.to_str().unwrap()]);
    mock.kill().unwrap();
    mock.wait().unwrap();
    ran.ended(3).says(&["results cannot be written"]);
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 0);
}
