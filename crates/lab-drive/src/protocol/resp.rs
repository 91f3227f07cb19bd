//! RESP, the protocol of Redis and Tile38 (redis.io/docs/reference/protocol-spec): a command, a reply, one at a time.

use super::address::{Address, Login};
use super::fault::{CLOSED, ExchangeError};
use super::scan::BODY_MAX;
use super::stream::Stream;
use crate::protocol::{Client, Exchange};
use crate::scenario::{Request, ResultUnit};

/// A connection, opened when first needed and reopened when lost.
#[derive(Debug)]
pub struct Resp {
    address: Address,
    stream: Option<Stream>,
    buffer: Vec<u8>,
    command: Vec<u8>,
}

/// Bytes read at once, and max length of a line of a reply.
const BUFFER: usize = 16 << 10;

/// Position within a reply.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    /// Elements still to come.
    pending: u64,
    /// Bytes of a bulk string still to come, including its line end.
    bulk: u64,
    /// Elements of the largest array.
    largest: u64,
    /// The first word of an error, if the reply is one.
    error: Option<String>,
}

impl Resp {
    /// Creates an unopened connection.
    pub fn new(address: Address) -> Resp {
        Resp { address, stream: None, buffer: Vec::new(), command: Vec::new() }
    }

    /// Checks that the request is a command.
    pub fn can_ask(request: &Request) -> Result<(), String> {
        let name = &request.name;
        if request.body.as_deref().is_none_or(|body| body.trim().is_empty()) {
            return Err(format!(
                "request {name}: over redis:// the body is the command: expected one such as \"PING\""
            ));
        }
        match request.result {
            ResultUnit::Body | ResultUnit::Line => Ok(()),
            _ => Err(format!("request {name}: result: over redis:// expected \"body\" or \"line\" (array elements)")),
        }
    }
}

impl Client for Resp {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        if self.stream.is_none() {
            let mut stream = Stream::open(&self.address).await?;
            sign_in(&self.address.login, &mut stream).await?;
            self.stream = Some(stream);
        }
        Ok(())
    }

    /// Sends the request's body as a command, word by word, and reads the reply.
    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        let Exchange { question, unit, record, scan, clock } = of;
        self.open().await?;
        // Only a whole reply leaves a connection that can be used again.
        let Some(mut stream) = self.stream.take() else { return Err(ExchangeError::failed(CLOSED)) };
        let words: Vec<&[u8]> =
            question.body().split(u8::is_ascii_whitespace).filter(|word| !word.is_empty()).collect();
        encode(&words, &mut self.command);
        self.buffer.clear();
        record.sent = Some(clock.now());
        stream.send(&self.command).await?;
        let mut reply = Reply::new();
        while !reply.is_whole() {
            self.buffer.reserve(BUFFER);
            stream.fill(&mut self.buffer).await?;
            let now = clock.now();
            record.first_byte.get_or_insert(now);
            let used = reply.feed(&self.buffer).map_err(ExchangeError::failed)?;
            match unit {
                ResultUnit::Body => scan.take(&self.buffer[..used], now),
                _ => scan.elements(reply.largest, used, now),
            }
            self.buffer.drain(..used);
        }
        if !self.buffer.is_empty() {
            return Err(ExchangeError::failed("more came than one reply"));
        }
        self.stream = Some(stream);
        match reply.error {
            Some(word) => Err(ExchangeError::failed(format!("the server answered {word}"))),
            None => Ok(()),
        }
    }

    fn abandon(&mut self) {
        self.stream = None;
    }
}

/// Authenticates, if the address has a name or a password (redis.io/docs/latest/commands/auth).
async fn sign_in(login: &Login, stream: &mut Stream) -> Result<(), ExchangeError> {
    let mut words: Vec<&[u8]> = [&login.user, &login.password].into_iter().flatten().map(String::as_bytes).collect();
    words.retain(|word| !word.is_empty());
    if words.is_empty() {
        return Ok(());
    }
    words.insert(0, b"AUTH");
    let (mut bytes, mut reply) = (Vec::new(), Reply::new());
    encode(&words, &mut bytes);
    stream.send(&bytes).await?;
    bytes.clear();
    while !reply.is_whole() {
        stream.fill(&mut bytes).await?;
        let used = reply.feed(&bytes).map_err(ExchangeError::failed)?;
        bytes.drain(..used);
    }
    match reply.error {
        Some(word) => Err(ExchangeError::failed(format!("the server refuses this name and password: {word}"))),
        None => Ok(()),
    }
}

/// Encodes a command's words as an array of bulk strings.
fn encode(words: &[&[u8]], out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
    for word in words {
        out.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
        out.extend_from_slice(word);
        out.extend_from_slice(b"\r\n");
    }
}

impl Reply {
    pub(crate) fn new() -> Reply {
        Reply { pending: 1, bulk: 0, largest: 0, error: None }
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.pending == 0 && self.bulk == 0
    }

    /// Consumes the usable part of the next bytes and returns its length.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Result<usize, &'static str> {
        let mut used = 0;
        while !self.is_whole() {
            let rest = &bytes[used..];
            if self.bulk > 0 {
                let take = usize::try_from(self.bulk).unwrap_or(usize::MAX).min(rest.len());
                if take == 0 {
                    break;
                }
                self.bulk -= take as u64;
                used += take;
                continue;
            }
            let Some(end) = rest.windows(2).position(|two| two == b"\r\n") else {
                // Only a line is bounded: bulk data goes to the scan as it arrives and is not kept here.
                if rest.len() > BUFFER {
                    return Err("a line of the reply is too long");
                }
                break;
            };
            self.line(&rest[..end])?;
            used += end + 2;
        }
        Ok(used)
    }

    fn line(&mut self, line: &[u8]) -> Result<(), &'static str> {
        let (kind, rest) = line.split_first().ok_or("the answer is not RESP")?;
        let count = || {
            let number = std::str::from_utf8(rest).ok().and_then(|text| text.parse::<i64>().ok());
            // RESP 2 writes null as minus one.
            number
                .map(|n| u64::try_from(n).unwrap_or(0))
                .filter(|n| *n <= BODY_MAX as u64)
                .ok_or("the answer is not RESP")
        };
        self.pending -= 1;
        match kind {
            b'+' | b':' | b'_' | b',' | b'#' | b'(' => {}
            b'-' => {
                let word = rest.split(|byte| *byte == b' ').next().unwrap_or_default();
                self.error = Some(String::from_utf8_lossy(word).into_owned());
            }
            // A length of -1 is null, which has neither content nor line end.
            b'$' | b'=' | b'!' if !rest.starts_with(b"-") => self.bulk = count()? + 2,
            b'$' | b'=' | b'!' => {}
            b'*' | b'~' | b'>' | b'%' => {
                // A map counts pairs, and each pair is two elements.
                let count = count()? * if *kind == b'%' { 2 } else { 1 };
                self.pending = self.pending.saturating_add(count);
                self.largest = self.largest.max(count);
            }
            _ => return Err("the answer is not RESP"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A reply and its wire form, nested at will.
    fn reply() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            Just("+OK\r\n".to_owned()),
            Just(":7\r\n".to_owned()),
            Just("$-1\r\n".to_owned()),
            "[a-z\r\n]{0,20}".prop_map(|text| format!("${}\r\n{text}\r\n", text.len())),
        ];
        leaf.prop_recursive(3, 30, 6, |inner| {
            prop::collection::vec(inner, 0..6).prop_map(|all| format!("*{}\r\n{}", all.len(), all.concat()))
        })
    }

    proptest! {
        #[test]
        fn a_reply_cut_anywhere_ends_where_it_ends(wire in reply(), cut in 1..9_usize) {
            let whole = format!("{wire}+NEXT\r\n");
            let (mut reply, mut held, mut used) = (Reply::new(), Vec::new(), 0);
            for piece in whole.as_bytes().chunks(cut) {
                held.extend_from_slice(piece);
                let taken = reply.feed(&held).expect("RESP");
                held.drain(..taken);
                used += taken;
            }
            prop_assert!(reply.is_whole());
            prop_assert_eq!(used, wire.len());
        }

        #[test]
        fn garbage_is_refused_or_waited_for(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = Reply::new().feed(&bytes);
        }
    }

    #[test]
    fn a_command_is_an_array_of_words_and_the_largest_array_counts() {
        let mut out = Vec::new();
        encode(&[b"GET", b"key"], &mut out);
        assert_eq!(out, b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n");
        let mut reply = Reply::new();
        reply.feed(b"*2\r\n$1\r\n0\r\n*3\r\n:1\r\n:2\r\n:3\r\n").expect("RESP");
        assert_eq!((reply.largest, reply.is_whole(), reply.error), (3, true, None));
        let mut reply = Reply::new();
        reply.feed(b"-WRONGTYPE Operation\r\n").expect("RESP");
        assert_eq!(reply.error.as_deref(), Some("WRONGTYPE"));
    }
}
