//! A source's stream: packets at an interval and a final one, like those of a search (API.md).

use super::file::{MockFault, SourceFile};
use super::items::items;
use crate::generate::stream;
use crate::protocol::websocket::frame_of;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// The packets of one call, made when due, so that ten thousand streams hold none.
#[derive(Debug, Clone, PartialEq)]
pub struct Packets {
    file: Arc<SourceFile>,
    seed: u64,
    number: u64,
    /// The call.
    call: u64,
    wrong: Option<MockFault>,
    /// The next packet, from 0.
    next: u64,
    /// Number of packets, including the final one; fewer if the source breaks.
    end: u64,
}

impl Packets {
    /// Returns the packets of a source's `call`; the file must specify a stream.
    pub(super) fn new(file: Arc<SourceFile>, seed: u64, number: u64, call: u64, wrong: Option<MockFault>) -> Packets {
        let all = file.stream.as_ref().map_or(0, |stream| stream.packets);
        let end = match wrong {
            None | Some(MockFault::Slow | MockFault::Schema) => all + 1,
            Some(MockFault::Truncated | MockFault::HalfOpen) => all / 2,
            Some(MockFault::Down | MockFault::Hang | MockFault::Garbage) => 0,
        };
        Packets { file, seed, number, call, wrong, next: 0, end }
    }

    /// Returns the time between two packets.
    fn every(&self) -> Duration {
        let slower =
            self.file.fault.iter().find(|fault| self.wrong == Some(MockFault::Slow) && fault.kind == MockFault::Slow);
        let ms = self.file.stream.as_ref().map_or(0.0, |stream| stream.every_ms);
        Duration::from_secs_f64((ms / 1e3 * slower.map_or(1.0, |fault| fault.factor)).min(86_400.0))
    }
}

impl Iterator for Packets {
    type Item = String;

    fn next(&mut self) -> Option<String> {
        let (seq, all) = (self.next, self.file.stream.as_ref()?.packets);
        if seq >= self.end {
            return None;
        }
        self.next += 1;
        let (name, call) = (&self.file.name, self.call);
        let head = format!(r#"{{"search":"{name}-{call}","seq":{seq}"#);
        if seq == all {
            let counts = format!(r#""packets":{},"result_packets":{all},"providers":{{"{name}":"complete"}}"#, all + 1);
            return Some(format!(r#"{head},"kind":"complete","state":"complete",{counts}}}"#));
        }
        let mut random = stream(self.seed, &[self.number, call, 2, seq]);
        let changed = self.wrong == Some(MockFault::Schema);
        let items = items(&self.file, &mut random, (seq + 1, self.file.items), changed);
        let member = if changed { "results" } else { "features" };
        Some(format!(r#"{head},"provider":"{name}","kind":"results","{member}":[{items}]}}"#))
    }
}

/// Sends the packets when due, over a WebSocket if the client requested one by its key. The connection ends then.
pub(super) async fn send(stream: &mut TcpStream, packets: Packets, key: Option<&str>) {
    let (wrong, every) = (packets.wrong, packets.every());
    let _ = sent(stream, packets, every, key).await;
    if matches!(wrong, Some(MockFault::HalfOpen | MockFault::Hang)) {
        // Until the client disconnects.
        let mut ignored = [0; 1024];
        while stream.read(&mut ignored).await.is_ok_and(|n| n > 0) {}
    }
}

async fn sent(stream: &mut TcpStream, packets: Packets, every: Duration, key: Option<&str>) -> std::io::Result<()> {
    match (packets.wrong, key) {
        (Some(MockFault::Garbage), _) => return stream.write_all(b"\x00\xffthis is not HTTP\r\n\r\n").await,
        (Some(MockFault::Down | MockFault::Hang), _) => return Ok(()),
        (_, Some(key)) => stream.write_all(agreement(key).as_bytes()).await?,
        (_, None) => {
            let head = b"HTTP/1.1 200 Mock\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream.write_all(head).await?;
        }
    }
    let (mut due, last) = (Instant::now(), packets.file.stream.as_ref().map_or(0, |stream| stream.packets));
    for (n, packet) in (0..).zip(packets) {
        // The final packet; no client waits for it.
        if n > 0 && n < last {
            due += every;
            tokio::time::sleep_until(due).await;
        }
        match key {
            Some(_) => stream.write_all(&frame_of(1, packet.as_bytes(), None)).await?,
            None => stream.write_all(format!("data: {packet}\n\n").as_bytes()).await?,
        }
    }
    Ok(())
}

fn agreement(key: &str) -> String {
    let accept = derive_accept_key(key.as_bytes());
    format!(
        "HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-accept: {accept}\r\n\r\n"
    )
}
