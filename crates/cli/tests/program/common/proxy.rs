//! A TCP proxy in front of a process, whose links can be made slow, silent or broken.
//!
//! Accepted bytes are never dropped. Held-back bytes continue once the link is healed, as over a network that resends
//! lost packets.

use std::collections::HashMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::watch;

/// Timeout of a connection to a server.
const CONNECT: Duration = Duration::from_secs(2);
/// Max bytes read at a time.
const CHUNK: usize = 16 << 10;
/// How often per second a throttled link lets bytes through.
const DROPS: u64 = 20;

/// The threads of all proxies of a test program.
static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    let mut threads = tokio::runtime::Builder::new_multi_thread();
    threads.worker_threads(2).thread_name("proxy").enable_all().build().unwrap()
});

/// The state of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fault {
    /// No fault.
    #[default]
    None,
    /// Each piece is delayed by this much.
    Delay(Duration),
    /// Bytes per second that pass in each direction.
    Throttle(u64),
    /// Connections are accepted and stay open; nothing passes.
    HalfOpen,
    /// Nothing passes to the server.
    AsksLost,
    /// Nothing passes to the client.
    AnswersLost,
    /// Connections are closed, and so are new ones.
    Cut,
    /// As [`Fault::Cut`], with RST instead of FIN.
    Reset,
}

impl Fault {
    fn breaks(self) -> bool {
        matches!(self, Fault::Cut | Fault::Reset)
    }

    /// Returns true if bytes are held back: the client's (`asks`), or the server's.
    fn holds(self, asks: bool) -> bool {
        match self {
            Fault::HalfOpen => true,
            Fault::AsksLost => asks,
            Fault::AnswersLost => !asks,
            _ => false,
        }
    }
}

/// Returns the process with this end of a connection, whose other end has the second address.
pub type Callers = Arc<dyn Fn(SocketAddr, SocketAddr) -> Option<String> + Send + Sync>;

/// A proxy in front of a process. Its address stays the same when the process behind it is restarted elsewhere.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
}

struct State {
    target: Mutex<Option<SocketAddr>>,
    /// By the name of the calling process.
    links: Mutex<HashMap<String, watch::Sender<Fault>>>,
    callers: Option<Callers>,
}

impl State {
    fn link(&self, caller: &str) -> watch::Sender<Fault> {
        self.links.lock().unwrap().entry(caller.to_owned()).or_insert_with(|| watch::Sender::new(Fault::None)).clone()
    }
}

impl Proxy {
    /// Makes a proxy with a single link for all callers, without a name.
    pub fn new() -> Proxy {
        Proxy::with(None)
    }

    /// Makes a proxy with a link for each named caller.
    pub fn by_caller(callers: Callers) -> Proxy {
        Proxy::with(Some(callers))
    }

    fn with(callers: Option<Callers>) -> Proxy {
        let listener = RUNTIME.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))).unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State { target: Mutex::default(), links: Mutex::default(), callers });
        // It ends with the program: a test has few.
        let shared = state.clone();
        RUNTIME.spawn(async move {
            while let Ok((client, peer)) = listener.accept().await {
                let callers = shared.callers.as_ref();
                let caller = callers.and_then(|callers| callers(peer, address)).unwrap_or_default();
                tokio::spawn(carry(client, shared.clone(), caller));
            }
        });
        Proxy { address, state }
    }

    /// Sends new connections to this address from now on; `None` closes them.
    pub fn turn(&self, to: Option<SocketAddr>) {
        *self.state.target.lock().unwrap() = to;
    }

    /// Sets the fault of a caller's link, for open connections as well.
    pub fn fail(&self, caller: &str, fault: Fault) {
        self.state.link(caller).send_replace(fault);
    }

    /// Clears the faults of all links.
    pub fn heal(&self) {
        for link in self.state.links.lock().unwrap().values() {
            link.send_replace(Fault::None);
        }
    }
}

/// Carries one connection to its end.
async fn carry(client: TcpStream, state: Arc<State>, caller: String) {
    let link = state.link(&caller).subscribe();
    let (at_once, target) = (*link.borrow(), *state.target.lock().unwrap());
    let server = match target {
        Some(target) if !at_once.breaks() => tokio::time::timeout(CONNECT, TcpStream::connect(target)).await,
        _ => {
            reset(&client, at_once);
            return;
        }
    };
    let Ok(Ok(server)) = server else { return };
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    let mut watched = link.clone();
    let ((asks, answered), (answers, asked)) = (client.into_split(), server.into_split());
    let (mut asks, mut answers) = (Pipe(asks, asked, link.clone(), true), Pipe(answers, answered, link, false));
    // The end of one direction ends both, as there are only requests and responses here.
    let breaks = async { watched.wait_for(|fault| fault.breaks()).await.map_or(Fault::None, |fault| *fault) };
    let broken = tokio::select! {
        () = asks.pass() => Fault::None,
        () = answers.pass() => Fault::None,
        fault = breaks => fault,
    };
    for Pipe(from, to, ..) in [asks, answers] {
        reset(from.as_ref(), broken);
        if broken == Fault::Reset {
            // Dropping it would send a FIN first.
            to.forget();
        }
    }
}

/// Makes the close of a connection an RST, if that is the fault.
fn reset(stream: &TcpStream, fault: Fault) {
    if fault == Fault::Reset {
        let _ = stream.set_zero_linger();
    }
}

/// One direction of a connection; true for client to server.
struct Pipe(OwnedReadHalf, OwnedWriteHalf, watch::Receiver<Fault>, bool);

impl Pipe {
    async fn pass(&mut self) {
        let Pipe(from, to, link, asks) = self;
        let mut buffer = vec![0; CHUNK];
        loop {
            let Ok(read @ 1..) = from.read(&mut buffer).await else { return };
            let mut left = &buffer[..read];
            while !left.is_empty() {
                if link.wait_for(|fault| !fault.holds(*asks)).await.is_err() {
                    return;
                }
                let fault = *link.borrow();
                let now = match fault {
                    Fault::Throttle(rate) => usize::try_from(rate / DROPS).unwrap().clamp(1, left.len()),
                    _ => left.len(),
                };
                match fault {
                    Fault::Delay(time) => tokio::time::sleep(time).await,
                    Fault::Throttle(_) => tokio::time::sleep(Duration::from_secs(1) / DROPS as u32).await,
                    _ => {}
                }
                if to.write_all(&left[..now]).await.is_err() {
                    return;
                }
                left = &left[now..];
            }
        }
    }
}

/// Returns which of these processes has an end of a connection of this machine, by the kernel's tables.
pub fn caller_of(peer: SocketAddr, other: SocketAddr, processes: &[(String, u32)]) -> Option<String> {
    let table = std::fs::read_to_string("/proc/net/tcp").ok()?;
    let (own, far) = (in_table(peer)?, in_table(other)?);
    let fields = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let row = fields.into_iter().find(|row| row.get(1) == Some(&own.as_str()) && row.get(2) == Some(&far.as_str()))?;
    let socket = format!("socket:[{}]", row.get(9)?);
    let has = |pid: &u32| {
        let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
        let mut links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        links.any(|link| link.to_str() == Some(socket.as_str()))
    };
    processes.iter().find(|(_, pid)| has(pid)).map(|(name, _)| name.clone())
}

/// Formats an address as in the table of connections.
fn in_table(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port()))
}
