//! A real S3-compatible store: versitygw, in the version built by `scripts/versitygw.sh`. The program's tests use it
//! too.

use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Max duration of a start before a test gives up.
const PATIENCE: Duration = Duration::from_secs(120);
/// Id and secret of the only access key.
pub const KEY: (&str, &str) = ("meridian-test", "a secret of tests alone");
/// The region of the store.
pub const REGION: &str = "eu-test-1";
/// The existing bucket.
pub const BUCKET: &str = "events";

/// Returns the path of the program, which is built if missing.
#[track_caller]
fn program() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/versitygw.sh");
    let made = Command::new(script).stderr(Stdio::inherit()).output().unwrap();
    let said = String::from_utf8_lossy(&made.stdout).trim().to_owned();
    assert!(
        made.status.success() && Path::new(&said).is_file(),
        "there is no versitygw: scripts/versitygw.sh has to build it from Go modules, and could not; what it said is above"
    );
    PathBuf::from(said)
}

/// Returns a port that was free a moment ago.
fn port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A running store; killed when dropped.
pub struct Gateway {
    program: PathBuf,
    folder: PathBuf,
    tls: Option<(String, String)>,
    child: Child,
    port: u16,
}

impl Gateway {
    /// Starts a store with one bucket, below a folder. `tls`: files with its certificate and key.
    #[track_caller]
    pub fn start(folder: &Path, tls: Option<(String, String)>) -> Gateway {
        std::fs::create_dir_all(folder.join("store").join(BUCKET)).unwrap();
        for (name, text) in [("access.key", KEY.0), ("secret.key", KEY.1)] {
            std::fs::write(folder.join(name), format!("{text}\n")).unwrap();
        }
        let (program, port) = (program(), port());
        let child = run(&program, folder, port, tls.as_ref());
        let gateway = Gateway { program, folder: folder.to_owned(), tls, child, port };
        gateway.answers();
        gateway
    }

    /// `http://HOST:PORT`.
    pub fn endpoint(&self) -> String {
        format!("{}://{}", if self.tls.is_some() { "https" } else { "http" }, self.address())
    }

    /// `HOST:PORT`.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Path of a file: `access.key` and `secret.key` have the access key, `store` the objects.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Kills the store. Its objects stay.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Restarts it at the same address.
    #[track_caller]
    pub fn restart(&mut self) {
        self.kill();
        self.child = run(&self.program, &self.folder, self.port, self.tls.as_ref());
        self.answers();
    }

    #[track_caller]
    fn answers(&self) {
        let begun = Instant::now();
        while TcpStream::connect(self.address()).is_err() {
            let log = || std::fs::read_to_string(self.path("versitygw.log")).unwrap_or_default();
            assert!(begun.elapsed() < PATIENCE, "versitygw does not start:\n{}", log());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.kill();
    }
}

fn run(program: &Path, folder: &Path, port: u16, tls: Option<&(String, String)>) -> Child {
    let said = std::fs::File::options().create(true).append(true).open(folder.join("versitygw.log")).unwrap();
    let mut command = Command::new(program);
    command.args(["--port", &format!("127.0.0.1:{port}"), "--region", REGION, "--keep-alive", "--quiet"]);
    if let Some((certificate, key)) = tls {
        command.args(["--cert", certificate, "--key", key]);
    }
    command.arg("posix").arg(folder.join("store"));
    command.env("ROOT_ACCESS_KEY", KEY.0).env("ROOT_SECRET_KEY", KEY.1);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said).spawn().unwrap()
}
