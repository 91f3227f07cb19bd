//! The packets of a search, as Server-Sent Events: a connection that breaks is made again, and goes on where it was.

use crate::failure::Failure;
use crate::http::Server;
use serde_json::Value;
use std::io::{self, BufRead, BufReader, Read};
use std::time::Duration;

/// Connections that may break one after the other without a packet between.
const BREAKS_MAX: u32 = 8;
/// Wait before the first new connection; it doubles.
const WAIT: Duration = Duration::from_millis(100);
/// Longest line of an event; a server's packets are far shorter.
const LINE_BYTES_MAX: u64 = 16 << 20;

/// A stream of packets.
pub struct Packets<'a> {
    server: &'a Server,
    path: &'a [&'a str],
    lines: Option<Box<dyn BufRead>>,
    last: Option<u64>,
    breaks: u32,
}

impl<'a> Packets<'a> {
    /// From the first packet on.
    pub fn open(server: &'a Server, path: &'a [&'a str]) -> Result<Packets<'a>, Failure> {
        let mut packets = Packets { server, path, lines: None, last: None, breaks: 0 };
        packets.connect()?;
        Ok(packets)
    }

    /// The next packet, each once and in order. After the last, a `complete` one, none is to be asked for.
    pub fn next(&mut self) -> Result<Value, Failure> {
        loop {
            let broken = match self.lines.as_mut().map(|lines| event(&mut *lines)) {
                Some(Ok(Some(data))) => match self.take(&data)? {
                    Some(packet) => return Ok(packet),
                    None => continue,
                },
                Some(Ok(None)) => "it ended before the last packet".to_owned(),
                Some(Err(e)) => e.to_string(),
                None => "it could not be made again".to_owned(),
            };
            self.lines = None;
            self.breaks += 1;
            if self.breaks > BREAKS_MAX {
                return Err(Failure::Refused(format!("the connection broke {BREAKS_MAX} times, at last so: {broken}")));
            }
            std::thread::sleep(WAIT * (1 << (self.breaks - 1)));
            match self.connect() {
                Ok(()) => {}
                // A refusal is an answer: the search is gone. A server that cannot be reached may come back.
                Err(failure) if self.breaks == BREAKS_MAX || failure.to_string().starts_with("refused") => {
                    return Err(failure);
                }
                Err(_) => {}
            }
        }
    }

    fn connect(&mut self) -> Result<(), Failure> {
        let stream = self.server.events(self.path, self.last)?;
        self.lines = Some(Box::new(BufReader::new(stream)));
        Ok(())
    }

    /// A packet of an event's data; `None` of one that has been seen.
    fn take(&mut self, data: &str) -> Result<Option<Value>, Failure> {
        let wrong = || Failure::Refused("what came is no packet of a search".to_owned());
        let packet: Value = serde_json::from_str(data).map_err(|_| wrong())?;
        let seq = packet["seq"].as_u64().ok_or_else(wrong)?;
        let due = self.last.map_or(0, |last| last + 1);
        if seq > due {
            return Err(Failure::Bad(format!("packet {due} is missing: {seq} came")));
        }
        if seq < due {
            return Ok(None);
        }
        (self.last, self.breaks) = (Some(seq), 0);
        Ok(Some(packet))
    }
}

/// The data of the next event (WHATWG HTML, section 9.2); `None` at the end of the stream. A stream that ends within an
/// event is broken.
fn event(lines: &mut dyn BufRead) -> io::Result<Option<String>> {
    let (mut data, mut begun) = (String::new(), false);
    let mut line = Vec::new();
    loop {
        line.clear();
        Read::take(&mut *lines, LINE_BYTES_MAX).read_until(b'\n', &mut line)?;
        let Some(text) = line.strip_suffix(b"\n") else {
            return match begun || !line.is_empty() {
                true => Err(io::Error::new(io::ErrorKind::UnexpectedEof, "it ended within an event")),
                false => Ok(None),
            };
        };
        let text = String::from_utf8_lossy(text.strip_suffix(b"\r").unwrap_or(text)).into_owned();
        match text.split_once(':').unwrap_or((text.as_str(), "")) {
            ("", "") if text.is_empty() && !data.is_empty() => return Ok(Some(data)),
            ("", _) if text.is_empty() => begun = false,
            ("data", value) => {
                if !data.is_empty() {
                    data.push('\n');
                }
                data.push_str(value.strip_prefix(' ').unwrap_or(value));
                begun = true;
            }
            ("", _) => {}
            _ => begun = true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_from_what_keeps_a_connection_alive() {
        let text = ":\n\nid: 0\ndata: {\"a\":1}\n\n: still here\n\nid: 1\r\ndata: x\r\ndata: y\r\n\r\nid: 2\ndata: {";
        let mut lines = BufReader::new(text.as_bytes());
        assert_eq!(event(&mut lines).unwrap().as_deref(), Some("{\"a\":1}"));
        assert_eq!(event(&mut lines).unwrap().as_deref(), Some("x\ny"));
        assert!(event(&mut lines).is_err());
        assert_eq!(event(&mut BufReader::new(&b":\n\n"[..])).unwrap(), None);
    }
}
