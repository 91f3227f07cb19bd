//! PostgreSQL's protocol 3, with the extended query: a request's body is a statement, its placeholders are parameters,
//! rows are results.
//!
//! A connection prepares each statement at its first use and binds it from then on, as applications with a pool do.
//! Parameters and columns are sent as text, so the server decides their types.

pub(crate) mod message;
mod session;

use crate::protocol::address::Address;
use crate::protocol::fault::{CLOSED, ExchangeError};
use crate::protocol::{Client, Exchange};
use crate::scenario::{Request, ResultUnit};
use message::ServerError;
use session::{Session, complaint};

/// A connection, opened when first needed and reopened when lost.
#[derive(Debug)]
pub struct Postgres {
    address: Address,
    session: Option<Session>,
    out: Vec<u8>,
}

impl Postgres {
    /// Creates an unopened connection.
    pub fn new(address: Address) -> Postgres {
        Postgres { address, session: None, out: Vec::new() }
    }

    /// Checks that the request is a statement.
    pub fn can_ask(request: &Request) -> Result<(), String> {
        let name = &request.name;
        if request.body.as_deref().is_none_or(|body| body.trim().is_empty()) {
            return Err(format!(
                "request {name}: over postgres:// the body is the statement: expected one such as \"select 1\""
            ));
        }
        match request.result {
            ResultUnit::Body | ResultUnit::Line => Ok(()),
            _ => Err(format!("request {name}: result: over postgres:// expected \"body\" or \"line\" (rows)")),
        }
    }

    /// Writes the messages of a request: prepare if necessary, bind, execute, and sync.
    fn write(&mut self, of: &Exchange<'_>, is_prepared: bool) {
        let question = of.question;
        let name = format!("q{}\0", question.request);
        self.out.clear();
        if !is_prepared {
            message::put(&mut self.out, b'P', &[name.as_bytes(), question.statement(), &[0], &[0; 2]]);
        }
        // An unnamed portal, parameters all as text, columns all as text.
        message::put(&mut self.out, b'B', &[&[0], name.as_bytes(), &[0; 2], question.body(), &[0; 2]]);
        message::put(&mut self.out, b'E', &[&[0], &[0; 4]]);
        message::put(&mut self.out, b'S', &[]);
    }
}

impl Client for Postgres {
    async fn open(&mut self) -> Result<(), ExchangeError> {
        if self.session.is_none() {
            self.session = Some(Session::open(&self.address).await?);
        }
        Ok(())
    }

    async fn ask(&mut self, of: &mut Exchange<'_>) -> Result<(), ExchangeError> {
        self.open().await?;
        // Only a whole response leaves a session that can be used again.
        let Some(mut session) = self.session.take() else { return Err(ExchangeError::failed(CLOSED)) };
        self.write(of, session.prepared.contains(&of.question.request));
        let Exchange { question, record, scan, clock, .. } = of;
        record.sent = Some(clock.now());
        session.stream.send(&self.out).await?;
        let mut wrong = None;
        let mut ready = false;
        while !ready {
            if let Err(fault) = session.read().await {
                // A server that ends a session states the reason before it closes.
                return Err(wrong.unwrap_or(fault));
            }
            let now = clock.now();
            record.first_byte.get_or_insert(now);
            let mut used = 0;
            while let Some(message) = message::next(&session.buffer[used..]).map_err(ExchangeError::failed)? {
                used += message.length;
                match message.kind {
                    // A row of a query or of COPY … TO STDOUT.
                    b'D' => scan.row(message.body.len(), now, |text| line(message.body, text)),
                    b'd' => scan.row(message.body.len(), now, |text| text.extend_from_slice(message.body)),
                    // Only after the server confirmed it: a statement that failed to parse must be sent again.
                    b'1' => drop(session.prepared.insert(question.request)),
                    b'E' => wrong = Some(complaint(&ServerError::read(message.body))),
                    // After an error too, the server skips to the Sync and reports that it is ready: the session can
                    // be used again.
                    b'Z' => ready = true,
                    b'G' | b'W' => {
                        return Err(ExchangeError::failed("COPY … FROM STDIN is not spoken: expected an insert"));
                    }
                    // Bound, closed, complete, empty, notices, notifications, parameters, descriptions, the frame of a
                    // COPY.
                    b'2' | b'3' | b'C' | b'I' | b'N' | b'A' | b'S' | b'n' | b'T' | b't' | b's' | b'H' | b'c' => {}
                    _ => return Err(ExchangeError::failed("the answer is not PostgreSQL's")),
                }
            }
            session.buffer.drain(..used);
        }
        self.session = Some(session);
        wrong.map_or(Ok(()), Err)
    }

    fn abandon(&mut self) {
        self.session = None;
    }
}

/// Writes a row as checks see it: columns separated by tabs, a line end, null as nothing.
fn line(row: &[u8], text: &mut Vec<u8>) {
    for (at, column) in message::columns(row).enumerate() {
        if at > 0 {
            text.push(b'\t');
        }
        text.extend_from_slice(column.unwrap_or_default());
    }
    text.push(b'\n');
}
