//! A proxy that can swallow responses, and cut connections.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

/// Passes bytes between clients and a server.
pub struct Proxy {
    pub address: SocketAddr,
    state: Arc<State>,
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct State {
    /// Whether responses are read and thrown away.
    swallows: AtomicBool,
    /// Connections with a lower number are cut.
    cut: AtomicUsize,
    /// Response bytes left until the connection is cut; the max for never.
    left: AtomicUsize,
    connections: AtomicUsize,
}

impl Proxy {
    pub fn to(server: SocketAddr) -> Proxy {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let state = Arc::new(State { left: AtomicUsize::new(usize::MAX), ..State::default() });
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let shared = state.clone();
        runtime.spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let number = shared.connections.fetch_add(1, Ordering::AcqRel);
                let Ok(upstream) = TcpStream::connect(server).await else { continue };
                let ((from, to), (back_from, back_to)) = (client.into_split(), upstream.into_split());
                tokio::spawn(pass(from, back_to, number, shared.clone(), false));
                tokio::spawn(pass(back_from, to, number, shared.clone(), true));
            }
        });
        Proxy { address, state, runtime: Some(runtime) }
    }

    /// Throws responses away from now on, or passes them again.
    pub fn swallow(&self, swallows: bool) {
        self.state.swallows.store(swallows, Ordering::Release);
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        self.state.cut.store(self.state.connections.load(Ordering::Acquire), Ordering::Release);
    }

    /// Cuts a connection after `bytes` more bytes of responses.
    pub fn cut_after(&self, bytes: usize) {
        self.state.left.store(bytes, Ordering::Release);
    }

    pub fn heal(&self) {
        self.swallow(false);
        self.cut_after(usize::MAX);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, number: usize, state: Arc<State>, answers: bool) {
    let mut buffer = vec![0; 16 << 10];
    loop {
        let read = tokio::time::timeout(std::time::Duration::from_millis(5), from.read(&mut buffer)).await;
        if number < state.cut.load(Ordering::Acquire) {
            return;
        }
        let read = match read {
            Err(_) => continue,
            Ok(Ok(0) | Err(_)) => return,
            Ok(Ok(read)) => read,
        };
        if answers {
            if state.swallows.load(Ordering::Acquire) {
                continue;
            }
            let left = state.left.load(Ordering::Acquire);
            if left != usize::MAX {
                if left < read {
                    state.cut.store(number + 1, Ordering::Release);
                    return;
                }
                state.left.store(left - read, Ordering::Release);
            }
        }
        if to.write_all(&buffer[..read]).await.is_err() {
            return;
        }
    }
}
