//! Messages of a stream, as its client reads them by Server-Sent Events.

use crate::support::{Server, read_chunk, read_head, send};
use serde_json::Value;
use std::io::{self, BufReader};
use std::net::TcpStream;

/// A message of a stream: its position, kind and data.
#[derive(Debug, Clone)]
pub struct Message {
    pub id: String,
    pub kind: String,
    pub data: Option<Value>,
}

impl Message {
    pub fn n(&self) -> u64 {
        let data = self.data.as_ref().unwrap();
        assert_eq!(data["position"], self.id.as_str(), "{data}");
        data["properties"]["n"].as_u64().unwrap()
    }
}

/// A stream as Server-Sent Events, after its head.
pub struct Follow {
    /// Its bytes, for tests that read them as they are.
    pub reader: BufReader<TcpStream>,
    text: String,
}

impl Follow {
    pub fn open(server: &Server, path: &str, last: Option<&str>) -> Follow {
        Follow::over(server.connect(), path, last)
    }

    /// The same over a given connection.
    pub fn over(mut stream: TcpStream, path: &str, last: Option<&str>) -> Follow {
        let headers: Vec<(&str, &str)> = last.iter().map(|last| ("last-event-id", *last)).collect();
        send(&mut stream, "GET", path, &headers, b"");
        let mut reader = BufReader::new(stream);
        let (status, headers) = read_head(&mut reader).unwrap();
        assert_eq!((status, headers["content-type"].as_str()), (200, "text/event-stream"));
        Follow { reader, text: String::new() }
    }

    /// Returns the next message, even one without data; `None` at the end.
    pub fn message(&mut self) -> Option<Message> {
        self.try_message().unwrap()
    }

    /// The same; an interrupted connection is an error.
    pub fn try_message(&mut self) -> io::Result<Option<Message>> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let mut message = Message { id: String::new(), kind: "message".to_owned(), data: None };
                for line in block.lines() {
                    match line.split_once(": ") {
                        Some(("id", id)) => message.id = id.to_owned(),
                        Some(("event", kind)) => message.kind = kind.to_owned(),
                        Some(("data", data)) => message.data = Some(serde_json::from_str(data).unwrap()),
                        _ => {}
                    }
                }
                self.text = rest.to_owned();
                return Ok(Some(message));
            }
            let chunk = read_chunk(&mut self.reader)?;
            if chunk.is_empty() {
                return Ok(None);
            }
            self.text.push_str(std::str::from_utf8(&chunk).unwrap());
        }
    }

    /// Returns the next message with data.
    pub fn next(&mut self) -> Option<Message> {
        loop {
            let message = self.message()?;
            if message.data.is_some() {
                return Some(message);
            }
        }
    }
}
