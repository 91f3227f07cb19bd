//! Probes whether a process responds.

use super::nodes::{Kind, Node};
use meridian_remote::RoleTls;
use serde_json::Value;
use std::io::{self, ErrorKind};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use ureq::Agent;

/// Timeout of a response.
const ANSWER: Duration = Duration::from_secs(2);
/// Max bytes of a response that explains why a process is not ready.
const REASON_BYTES: u64 = 64 << 10;

/// The status that a process reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Readiness {
    /// Ready. An owner cannot report that, so it counts as ready if it accepts connections.
    Ready,
    /// Responds that it is not ready, with the reason.
    NotReady(String),
    /// Does not respond.
    Silent,
}

/// Returns true if a process is ready. Blocks briefly.
pub(super) fn is_ready(node: &Node) -> bool {
    ask(node) == Readiness::Ready
}

/// Asks a process whether it is alive and ready; for an owner, checks that it accepts connections. Blocks for a few
/// seconds at most.
pub(super) fn ask(node: &Node) -> Readiness {
    match (node.role, &node.monitor) {
        (Kind::Gateway | Kind::Scan, _) => ask_server(&node.address),
        (Kind::Log, Some(monitor)) => ask_at(&format!("http://{monitor}/healthz")),
        (Kind::Owner | Kind::Log, _) if takes_connections(&node.address) => Readiness::Ready,
        (Kind::Owner | Kind::Log, _) => Readiness::Silent,
    }
}

/// Returns true if connections to this address are accepted.
pub(super) fn takes_connections(address: &str) -> bool {
    connect(address).is_some()
}

/// Returns true if a standby runs at this address, which closes each connection at once. A paused or dead process does
/// not, although the system may accept connections for it.
pub(super) fn stands_by(address: &str) -> bool {
    let Some(stream) = connect(address) else { return false };
    if stream.set_read_timeout(Some(ANSWER)).is_err() {
        return false;
    }
    match stream.peek(&mut [0]) {
        // A standby that has just become the owner responds.
        Ok(_) => true,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    }
}

/// Checks that an owner responds at this address. With TLS between roles, each side must accept the other's
/// certificate. The error explains a failure.
pub(super) async fn answers(address: &str, tls: Option<&RoleTls>) -> io::Result<()> {
    let reached = async {
        match tls {
            Some(tls) => tls.reach(address).await,
            None => tokio::net::TcpStream::connect(address).await.map(drop),
        }
    };
    tokio::time::timeout(ANSWER, reached).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
}

fn connect(address: &str) -> Option<TcpStream> {
    let mut found = address.to_socket_addrs().into_iter().flatten();
    found.find_map(|address| TcpStream::connect_timeout(&address, ANSWER).ok())
}

/// Asks a server first whether it is alive: it may need longer than this timeout to find out whether it is ready.
fn ask_server(address: &str) -> Readiness {
    match ask_at(&format!("http://{address}/healthz")) {
        Readiness::Silent => Readiness::Silent,
        _ => match ask_at(&format!("http://{address}/readyz")) {
            Readiness::Silent => Readiness::NotReady(format!("no answer within {} s", ANSWER.as_secs())),
            said => said,
        },
    }
}

fn ask_at(url: &str) -> Readiness {
    let config = Agent::config_builder().timeout_global(Some(ANSWER)).http_status_as_error(false).proxy(None).build();
    let Ok(mut answer) = Agent::new_with_config(config).get(url).call() else { return Readiness::Silent };
    if answer.status() == 200 {
        return Readiness::Ready;
    }
    let said = answer.body_mut().with_config().limit(REASON_BYTES).read_to_string().unwrap_or_default();
    let said: Value = serde_json::from_str(&said).unwrap_or_default();
    // As a problem document of this program, or in the form of a NATS server.
    let why = ["detail", "error"].iter().find_map(|name| said[*name].as_str().map(str::to_owned));
    Readiness::NotReady(why.unwrap_or_else(|| format!("status {}", answer.status())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::path::PathBuf;

    fn listen() -> (TcpListener, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        (listener, address)
    }

    #[test]
    fn a_process_stands_by_if_it_is_there_and_runs() {
        let (running, there) = listen();
        std::thread::spawn(move || running.incoming().for_each(drop));
        assert!(stands_by(&there));
        // The system accepts its connections, and no process handles them.
        let (_paused, there) = listen();
        assert!(takes_connections(&there) && !stands_by(&there));
        let (gone, there) = listen();
        drop(gone);
        assert!(!takes_connections(&there) && !stands_by(&there));
    }

    #[test]
    fn a_process_that_is_not_ready_says_why() {
        let (server, address) = listen();
        std::thread::spawn(move || {
            let answers = [
                ("200 OK", "{}"),
                ("503 Service Unavailable", r#"{"title":"t","detail":"no owner answers"}"#),
                ("503 Service Unavailable", r#"{"status":"unavailable","error":"no quorum"}"#),
                ("502 Bad Gateway", "<html>"),
            ];
            let alive = ("200 OK", "{}");
            for ((status, body), path) in
                answers.into_iter().flat_map(|ready| [(alive, "/healthz"), (ready, "/readyz")])
            {
                let (mut stream, _) = server.accept().unwrap();
                let mut head = [0; 4096];
                let read = stream.read(&mut head).unwrap();
                assert!(head[..read].starts_with(format!("GET {path} ").as_bytes()));
                let length = body.len();
                write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}")
                    .unwrap();
            }
        });
        let node = |address: &str| Node {
            name: "gateway-1".to_owned(),
            role: Kind::Gateway,
            pid: Some(1),
            address: address.to_owned(),
            monitor: None,
            routes: None,
            log_file: PathBuf::new(),
        };
        let not_ready = |why: &str| Readiness::NotReady(why.to_owned());
        let expected = [
            Readiness::Ready,
            not_ready("no owner answers"),
            not_ready("no quorum"),
            not_ready("status 502 Bad Gateway"),
        ];
        for expected in expected {
            assert_eq!(ask(&node(&address)), expected);
        }
        let (gone, there) = listen();
        drop(gone);
        assert_eq!(ask(&node(&there)), Readiness::Silent);
    }
}
