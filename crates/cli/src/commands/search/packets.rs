//! The packets of a search, or of a saved one, as Server-Sent Events. A broken connection is reopened, and continues
//! at the same position.

use crate::failure::Failure;
use crate::http::{NoEvents, Server};
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::time::{Duration, Instant};

/// Pause before the first try to reconnect; it doubles with each further try.
const PAUSE: Duration = Duration::from_millis(100);
/// Max pause. A connection that lasted longer counts as good.
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// Time for which a broken connection of a search is retried.
const SEARCH_PATIENCE: Duration = Duration::from_secs(25);
/// As above, for a saved search: the server may be repaired or upgraded meanwhile.
const SAVED_PATIENCE: Duration = Duration::from_secs(3_600);
/// Max bytes of a line; a server's packets are far shorter.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// A stream of packets.
pub struct Packets<'a> {
    server: &'a Server,
    path: &'a [&'a str],
    patience: Duration,
    lines: Option<Box<dyn BufRead>>,
    /// When the connection was made.
    connected: Instant,
    /// Number of the next packet; `None` if any may be the first.
    due: Option<u64>,
    /// Whether packets may be missing: a saved search keeps only the newest.
    may_lack: bool,
    /// When the connection broke, and the tries since.
    broken: Option<(Instant, u32)>,
}

/// An event of a stream.
pub enum StreamEvent {
    /// The next packet: each once, in order.
    Packet(Value),
    /// The connection broke, for this reason.
    Broke(String),
    /// The connection is established again.
    Mended,
    /// The packet with number `due` is no longer kept; the next one has number `first`.
    Gap { due: u64, first: u64 },
}

impl<'a> Packets<'a> {
    /// Returns the packets of a search, from the first on, without a gap. A packet of kind `complete` is the last.
    pub fn of_search(server: &'a Server, path: &'a [&'a str]) -> Packets<'a> {
        let (patience, connected) = (SEARCH_PATIENCE, Instant::now());
        Packets { server, path, patience, lines: None, connected, due: Some(0), may_lack: false, broken: None }
    }

    /// The packets of a saved search, after this number or from the oldest kept.
    pub fn of_saved(server: &'a Server, path: &'a [&'a str], after: Option<u64>) -> Packets<'a> {
        let due = after.map(|after| after.saturating_add(1));
        Packets { due, may_lack: true, patience: SAVED_PATIENCE, ..Packets::of_search(server, path) }
    }

    /// Waits for the next event, and returns it.
    pub fn next(&mut self) -> Result<StreamEvent, Failure> {
        loop {
            let Some(lines) = &mut self.lines else {
                match self.connect()? {
                    Some(came) => return Ok(came),
                    None => continue,
                }
            };
            let why = match event(lines) {
                Ok(Some(data)) => match self.take(&data)? {
                    Some(packet) => return Ok(StreamEvent::Packet(packet)),
                    None => continue,
                },
                Ok(None) => "it ended before the last packet".to_owned(),
                Err(e) => e.to_string(),
            };
            self.lines = None;
            // A connection that lasted was good: only failures in quick succession count towards the limit.
            if self.connected.elapsed() > PAUSE_MAX {
                self.broken = None;
            }
            let (since, _) = self.broken.get_or_insert((Instant::now(), 0));
            if since.elapsed() > self.patience {
                return Err(Failure::Refused(format!("the connection broke repeatedly, last with: {why}")));
            }
            return Ok(StreamEvent::Broke(why));
        }
    }

    /// Connects; returns the event to report, if any.
    fn connect(&mut self) -> Result<Option<StreamEvent>, Failure> {
        loop {
            if let Some((_, tries)) = &mut self.broken {
                std::thread::sleep((PAUSE * (1 << (*tries).min(10))).min(PAUSE_MAX));
                *tries += 1;
            }
            let last = self.due.and_then(|due| due.checked_sub(1));
            match self.server.events(self.path, last) {
                Ok(stream) => {
                    // `broken` stays: only a packet shows that the new connection works.
                    self.lines = Some(Box::new(BufReader::new(stream)));
                    self.connected = Instant::now();
                    return Ok(self.broken.is_some().then_some(StreamEvent::Mended));
                }
                Err(NoEvents::Gone { first, why }) => match self.due.filter(|due| self.may_lack && first > *due) {
                    Some(due) => {
                        self.due = Some(first);
                        return Ok(Some(StreamEvent::Gap { due, first }));
                    }
                    None => return Err(why),
                },
                // A server that cannot be reached may come back.
                Err(NoEvents::NotNow(_)) if self.broken.is_some_and(|(since, _)| since.elapsed() < self.patience) => {}
                Err(NoEvents::NotNow(why) | NoEvents::Refused(why)) => return Err(why),
            }
        }
    }

    /// Parses a packet from an event's data; `None` if it was seen before.
    fn take(&mut self, data: &str) -> Result<Option<Value>, Failure> {
        let wrong = || Failure::Refused("the event is no packet of a search".to_owned());
        let packet: Value = serde_json::from_str(data).map_err(|_| wrong())?;
        let seq = packet["seq"].as_u64().ok_or_else(wrong)?;
        let due = self.due.unwrap_or(seq);
        // A gap without notice is an error: results would be missing silently.
        if seq > due {
            return Err(Failure::Bad(format!("packet {due} is missing: {seq} came")));
        }
        // The server may repeat packets after a reconnect. A repeated result would be printed twice.
        if seq < due {
            return Ok(None);
        }
        (self.due, self.broken) = (Some(seq.saturating_add(1)), None);
        Ok(Some(packet))
    }
}

/// Returns the data of the next event without a name (WHATWG HTML, section 9.2); `None` at the end of the stream. A
/// stream that ends within an event is broken.
fn event(lines: &mut dyn BufRead) -> io::Result<Option<String>> {
    let (mut data, mut begun, mut has_name) = (String::new(), false, false);
    let mut line = Vec::new();
    loop {
        line.clear();
        // Bounded: a stream that never ends a line must not fill the memory.
        Read::take(&mut *lines, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            return match begun || !line.is_empty() {
                true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within an event")),
                false => Ok(None),
            };
        };
        let text = String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned();
        match text.split_once(':').unwrap_or((text.as_str(), "")) {
            // No packet: it says that access has ended, and the next connection is refused.
            ("", _) if text.is_empty() && has_name => (data, begun, has_name) = (String::new(), false, false),
            ("", _) if text.is_empty() && !data.is_empty() => return Ok(Some(data)),
            ("", _) if text.is_empty() => begun = false,
            ("event", _) => (begun, has_name) = (true, true),
            ("data", value) => {
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value.strip_prefix(' ').unwrap_or(value));
                begun = true;
            }
            // A comment: the server sends them to keep the connection open.
            ("", _) => {}
            _ => begun = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn events_are_told_from_what_keeps_a_connection_alive() {
        let text = ":\n\nid: 0\ndata: {\"a\":1}\n\n: still here\n\nid: 1\r\ndata: x\r\ndata: y\r\n\r\nid: 2\ndata: {";
        let mut lines = BufReader::new(text.as_bytes());
        assert_eq!(event(&mut lines).unwrap().as_deref(), Some("{\"a\":1}"));
        assert_eq!(event(&mut lines).unwrap().as_deref(), Some("x\ny"));
        assert!(event(&mut lines).is_err());
        assert_eq!(event(&mut BufReader::new(&b":\n\n"[..])).unwrap(), None);
        let ended = b"event: end\ndata: {\"reason\":\"unauthorized\"}\n\n";
        assert_eq!(event(&mut BufReader::new(&ended[..])).unwrap(), None);
    }

    proptest! {
        /// Each event's data arrives once and in order, for all line ends, comments and splits of the bytes.
        #[test]
        fn events_come_whole_and_in_order(
            events in proptest::collection::vec((proptest::collection::vec("[a-z{}:]{1,12}", 1..3), any::<bool>(), any::<bool>()), 0..8),
            capacity in 1_usize..40,
        ) {
            let mut text = String::new();
            for (n, (data, crlf, comment)) in events.iter().enumerate() {
                let end = if *crlf { "\r\n" } else { "\n" };
                if *comment {
                    text += &format!(": still here{end}{end}");
                }
                text += &format!("id: {n}{end}");
                data.iter().for_each(|line| text += &format!("data: {line}{end}"));
                text += end;
            }
            let mut lines = BufReader::with_capacity(capacity, text.as_bytes());
            for (data, ..) in &events {
                prop_assert_eq!(event(&mut lines).unwrap(), Some(data.join("\n")));
            }
            prop_assert_eq!(event(&mut lines).unwrap(), None);
        }
    }
}
