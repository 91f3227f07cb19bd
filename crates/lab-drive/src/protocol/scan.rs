//! Counts results in a body while it streams, with the times of the first and the last.

use crate::scenario::ResultUnit;
use meridian_lab_results::record::Micros;
use sha2::{Digest as _, Sha256};

/// Max bytes of a body kept for checks, and of one event of a stream.
pub const BODY_MAX: usize = 64 << 20;

/// A counter of the results of one response.
#[derive(Debug, Default)]
pub struct Scan {
    unit: ResultUnit,
    /// First result's time.
    pub first: Option<Micros>,
    /// Last result's time.
    pub last: Option<Micros>,
    /// Packets that carried results.
    pub packets: u32,
    /// Results.
    pub results: u64,
    /// Bytes of the body.
    pub bytes: u64,
    /// Overall state in the last packet, if it was a search's.
    pub state: Option<State>,
    /// The body, if it is kept.
    pub body: Option<Vec<u8>>,
    /// Whether the body was larger than the kept part.
    pub too_large: bool,
    /// SHA-256 of the body so far, if a check compares it.
    pub digest: Option<Sha256>,
    /// `Retry-After` of the response, in seconds.
    pub retry_after: Option<u32>,
    line_open: bool,
    matched: usize,
    line: Vec<u8>,
    event: Vec<u8>,
}

/// How a search reports its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// Every source responded.
    Complete,
    /// Some sources responded.
    Partial,
    /// No source responded.
    Absent,
}

const FEATURE: &[u8] = b"\"Feature\"";

impl Scan {
    /// Prepares for the next response; buffers are kept.
    pub fn reset(&mut self, unit: &ResultUnit, keep_body: bool) {
        let (mut line, mut event) = (std::mem::take(&mut self.line), std::mem::take(&mut self.event));
        line.clear();
        event.clear();
        let body = keep_body.then(|| {
            let mut body = self.body.take().unwrap_or_default();
            body.clear();
            body
        });
        *self = Scan { unit: unit.clone(), line, event, body, ..Scan::default() };
    }

    /// Consumes the next bytes of a body.
    pub fn take(&mut self, bytes: &[u8], now: Micros) {
        self.bytes += bytes.len() as u64;
        if let Some(digest) = &mut self.digest {
            digest.update(bytes);
        }
        if let Some(body) = &mut self.body {
            // Counting continues past the limit: only the checks of the whole body are lost.
            if body.len() + bytes.len() <= BODY_MAX {
                body.extend_from_slice(bytes);
            } else {
                self.too_large = true;
            }
        }
        match self.unit {
            ResultUnit::Body => {
                self.first.get_or_insert(now);
            }
            ResultUnit::Line => self.lines(bytes, now),
            ResultUnit::Feature => self.features(bytes, now),
            ResultUnit::Event | ResultUnit::Packet => self.events(bytes, now),
        }
    }

    /// Handles the end of the body.
    pub fn end(&mut self, now: Micros) {
        match self.unit {
            ResultUnit::Body if self.bytes > 0 && self.packets == 0 => {
                self.results = 1;
                self.last = Some(now);
            }
            // The last line may lack its line end.
            ResultUnit::Line if self.line_open => self.found(1, now),
            // A stream that breaks off inside an event: blank lines complete it for the count.
            ResultUnit::Event | ResultUnit::Packet => self.events(b"\n\n", now),
            _ => {}
        }
        if self.packets == 0 && matches!(self.unit, ResultUnit::Body | ResultUnit::Line | ResultUnit::Feature) {
            self.packets = u32::from(self.results > 0);
        }
    }

    /// Counts one message of a WebSocket. Checks use the last.
    pub fn message(&mut self, text: &[u8], now: Micros) {
        self.bytes += text.len() as u64;
        if let Some(body) = &mut self.body {
            body.clear();
            body.extend_from_slice(text);
        }
        match self.unit {
            ResultUnit::Packet => self.packet(text, now),
            _ => self.one_packet(now),
        }
    }

    /// Counts more of a reply that counts its own results: `count` so far, in `bytes` more bytes.
    pub fn elements(&mut self, count: u64, bytes: usize, now: Micros) {
        self.bytes += bytes as u64;
        if count > 0 {
            self.results = 0;
            self.found(count, now);
        }
    }

    /// Counts one row of this many bytes; `text` writes it if checks need the whole.
    pub fn row(&mut self, bytes: usize, now: Micros, text: impl FnOnce(&mut Vec<u8>)) {
        self.bytes += bytes as u64;
        if let Some(body) = &mut self.body {
            if body.len() + bytes <= BODY_MAX {
                text(body);
            } else {
                self.too_large = true;
            }
        }
        match self.unit {
            ResultUnit::Body => {
                self.first.get_or_insert(now);
            }
            _ => self.found(1, now),
        }
    }

    fn found(&mut self, count: u64, now: Micros) {
        self.results += count;
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn one_packet(&mut self, now: Micros) {
        self.packets += 1;
        self.found(1, now);
    }

    fn lines(&mut self, bytes: &[u8], now: Micros) {
        let mut count = 0;
        for byte in bytes {
            match byte {
                b'\n' => count += u64::from(std::mem::take(&mut self.line_open)),
                // The record separator of RFC 8142 and blanks are not content.
                b'\r' | b' ' | 0x1e => {}
                _ => self.line_open = true,
            }
        }
        if count > 0 {
            self.found(count, now);
        }
    }

    fn features(&mut self, bytes: &[u8], now: Micros) {
        let mut count = 0;
        for byte in bytes {
            self.matched = match *byte {
                // A match may span two reads, so its state is kept between calls.
                b if b == FEATURE[self.matched] => self.matched + 1,
                // The text's only repetition is its quote.
                b'"' => 1,
                _ => 0,
            };
            if self.matched == FEATURE.len() {
                count += 1;
                self.matched = 0;
            }
        }
        if count > 0 {
            self.found(count, now);
        }
    }

    /// Parses events of a Server-Sent Events stream: lines `data: …`, ended by a blank line.
    fn events(&mut self, mut bytes: &[u8], now: Micros) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep_line(&bytes[..at]);
            bytes = &bytes[at + 1..];
            // Taken out and put back, so that its allocation is reused while `self` is borrowed.
            let line = std::mem::take(&mut self.line);
            let text = line.strip_suffix(b"\r").unwrap_or(&line);
            if text.is_empty() {
                if !self.event.is_empty() {
                    let mut event = std::mem::take(&mut self.event);
                    match self.unit {
                        ResultUnit::Packet => self.packet(&event, now),
                        _ => self.one_packet(now),
                    }
                    event.clear();
                    self.event = event;
                }
            } else if let Some(data) = text.strip_prefix(b"data:")
                && self.event.len() + data.len() < BODY_MAX
            {
                if !self.event.is_empty() {
                    self.event.push(b'\n');
                }
                self.event.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            }
            self.line = line;
            self.line.clear();
        }
        self.keep_line(bytes);
    }

    fn keep_line(&mut self, bytes: &[u8]) {
        if self.line.len() + bytes.len() <= BODY_MAX {
            self.line.extend_from_slice(bytes);
        } else {
            self.too_large = true;
        }
    }

    /// Counts a packet of a search (API.md, "Result packets of a search").
    fn packet(&mut self, text: &[u8], now: Micros) {
        let Ok(packet) = serde_json::from_slice::<serde_json::Value>(text) else { return };
        match packet["kind"].as_str() {
            Some("results") => {
                self.packets += 1;
                self.found(packet["features"].as_array().map_or(0, Vec::len) as u64, now);
            }
            Some("complete") => {
                self.state = match packet["state"].as_str() {
                    Some("complete") => Some(State::Complete),
                    Some("absent") => Some(State::Absent),
                    _ => Some(State::Partial),
                };
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn scan(unit: ResultUnit, pieces: &[&[u8]]) -> Scan {
        let mut scan = Scan::default();
        scan.reset(&unit, false);
        for (now, piece) in pieces.iter().enumerate() {
            scan.take(piece, now as Micros);
        }
        scan.end(pieces.len() as Micros);
        scan
    }

    #[test]
    fn packets_of_a_search_are_counted_and_its_last_word_is_believed() {
        let stream = b"data: {\"kind\":\"results\",\"features\":[1,2]}\n\n: ping\n\nevent: x\ndata: {\"kind\":\"provider\"}\n\ndata: {\"kind\":\"complete\",\"state\":\"partial\"}\n\n";
        let scan = scan(ResultUnit::Packet, &[&stream[..30], &stream[30..]]);
        assert_eq!((scan.packets, scan.results, scan.state), (1, 2, Some(State::Partial)));
        assert_eq!(scan.first, Some(1));
    }

    proptest! {
        #[test]
        fn counts_do_not_depend_on_how_the_body_was_cut(
            lines in prop::collection::vec(prop::sample::select(vec!["", "a", "{\"type\":\"Feature\"}", "\"\"Feature\"", "\"Feature"]), 0..20),
            cut in 1..7_usize,
        ) {
            let text = lines.join("\n");
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(cut).collect();
            let full = lines.iter().filter(|line| !line.is_empty()).count() as u64;
            prop_assert_eq!(scan(ResultUnit::Line, &pieces).results, full);
            prop_assert_eq!(scan(ResultUnit::Feature, &pieces).results, text.matches("\"Feature\"").count() as u64);
        }
    }
}
