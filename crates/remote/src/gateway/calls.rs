//! Calls to the owner: reads, acts and writes.

use super::answer::{Message, MessageStream};
use super::engine::Patience;
use super::failed::{CallFailure, is_refused};
use super::link::{CallConnection, Link};
use super::retry::Retry;
use crate::wire::answer::{Reply, WireWritten};
use crate::wire::call::{ActionCall, Call, Get};
use crate::wire::fault::Fault;
use arrow_flight::{Action, FlightData, PutResult, Ticket};
use bytes::Bytes;
use futures_util::stream;
use serde::de::{DeserializeOwned, IgnoredAny};
use std::sync::Arc;
use std::time::Duration;
use tonic::Status;

/// How long to wait for the owner when callers can do without its response.
pub(super) const SOON: Duration = Duration::from_secs(1);

impl Link {
    /// Starts a read and returns once its first message has arrived.
    pub(super) async fn get(&self, ticket: Vec<u8>) -> Result<(MessageStream, Message), Fault> {
        self.get_heard(ticket, || ()).await
    }

    /// As [`Link::get`], and calls `heard` once the server has taken the call, which it does before it starts the read.
    pub(super) async fn get_heard(
        &self,
        ticket: Vec<u8>,
        heard: impl FnOnce() + Send,
    ) -> Result<(MessageStream, Message), Fault> {
        let mut asked = self.connect()?;
        let request = asked.request(Ticket::new(ticket));
        let response = asked.client.do_get(request).await.map_err(|status| self.broken(&asked, status))?;
        self.heard(&asked, response.metadata(), false)?;
        heard();
        let mut answer = MessageStream::new(response.into_inner());
        let first = answer.next().await?;
        let first = first.ok_or_else(|| Fault::internal("an answer without a message"))?;
        Ok((answer, first))
    }

    /// Starts a read and waits for its first message; retries if the link failed.
    pub(super) fn ask(self: &Arc<Self>, get: Get, patience: &Patience) -> Result<(MessageStream, Message), Fault> {
        let ticket = Call::of(get, patience.left()).to_json()?;
        let link = self.clone();
        self.wait(patience, async move { link.again(|| link.get(ticket.clone())).await })
    }

    /// Returns a connection to an owner that has identified itself, and its instance number. Calls that must run at
    /// most once go only there. A standby closes its connections, and then the outcome of a call in flight is unknown.
    pub(super) async fn named(&self) -> Result<(CallConnection, u64), Fault> {
        let asked = self.connect()?;
        if let Some(instance) = asked.instance {
            return Ok((asked, instance));
        }
        // A call without effect, so that its loss leaves nothing in doubt.
        self.action_now(Call::of(ActionCall::Hello, self.options.timeout).to_json()?).await?;
        // The owner may have changed meanwhile.
        let asked = self.connect()?;
        let instance = asked.instance;
        let changes = || Fault::Unavailable("the owner of the data changes: try again".to_owned());
        instance.map(|instance| (asked, instance)).ok_or_else(changes)
    }

    async fn action(
        &self,
        mut asked: CallConnection,
        body: Vec<u8>,
        of_change: bool,
    ) -> Result<Vec<Bytes>, CallFailure> {
        let request = asked.request(Action::new("meridian", body));
        let response = asked.client.do_action(request).await.map_err(|status| self.broken(&asked, status))?;
        self.heard(&asked, response.metadata(), of_change).map_err(CallFailure::after)?;
        let (mut stream, mut bodies) = (response.into_inner(), Vec::new());
        while let Some(result) = stream.message().await.map_err(CallFailure::of)? {
            bodies.push(result.body);
        }
        // The data was handed over meanwhile, and nothing was done.
        match bodies.first().map(|first| Reply::<IgnoredAny>::read(first)) {
            Some(Err(fault)) if fault.is_of_the_link() => {
                self.refused(&asked);
                Err(CallFailure::before(fault))
            }
            _ => Ok(bodies),
        }
    }

    /// Runs an act at most once: retries only while it cannot have arrived.
    async fn action_once(&self, body: Vec<u8>) -> Result<Vec<Bytes>, Fault> {
        let mut retry = Retry::default();
        loop {
            let done = match self.named().await {
                Ok((asked, _)) => self.action(asked, body.clone(), true).await,
                Err(fault) => Err(CallFailure::before(fault)),
            };
            match done {
                Ok(bodies) => return Ok(bodies),
                // It may have been done. Sent again, it could be done twice.
                Err(CallFailure { fault: Fault::Unavailable(why), arrived: true }) => return Err(unknown(&why)),
                Err(CallFailure { fault, arrived: true }) => return Err(fault),
                // It was certainly not done, so another attempt is its first.
                Err(CallFailure { fault, arrived: false }) => retry.after(self, fault).await?,
            }
        }
    }

    async fn action_now(&self, body: Vec<u8>) -> Result<Vec<Bytes>, Fault> {
        Ok(self.action(self.connect()?, body, false).await?)
    }

    /// Runs an idempotent act.
    pub(super) async fn act(&self, ask: ActionCall) -> Result<Vec<Bytes>, Fault> {
        self.repeat(&Call::of(ask, self.options.timeout).to_json()?).await
    }

    /// As [`Link::act`], for an encoded call.
    pub(super) async fn repeat(&self, body: &[u8]) -> Result<Vec<Bytes>, Fault> {
        self.again(|| self.action_now(body.to_vec())).await
    }

    /// Runs an idempotent act and returns the messages of the response.
    pub(super) fn repeatable(self: &Arc<Self>, ask: ActionCall, patience: &Patience) -> Result<Vec<Bytes>, Fault> {
        let body = Call::of(ask, patience.left()).to_json()?;
        let link = self.clone();
        self.wait(patience, async move { link.repeat(&body).await })
    }

    /// Runs an idempotent act and returns its value.
    pub(super) fn value<T: DeserializeOwned>(
        self: &Arc<Self>,
        ask: ActionCall,
        patience: &Patience,
    ) -> Result<T, Fault> {
        one(&self.repeatable(ask, patience)?)
    }

    /// As [`Link::value`], but without retries and with [`SOON`] as the timeout: for callers that can do without the
    /// value.
    pub(super) fn value_now<T: DeserializeOwned>(self: &Arc<Self>, ask: ActionCall) -> Result<T, Fault> {
        let body = Call::of(ask, SOON).to_json()?;
        let link = self.clone();
        let asking =
            async move { tokio::time::timeout(SOON, link.action_now(body)).await.unwrap_or(Err(Fault::Deadline)) };
        one(&self.wait(&Patience::within(SOON), asking)?)
    }

    /// Runs an act at most once. Returns [`Fault::Unknown`] if the outcome is unknown: the link or the log failed
    /// midway, or no response came in time.
    pub(super) fn once<T: DeserializeOwned>(
        self: &Arc<Self>,
        ask: ActionCall,
        patience: &Patience,
    ) -> Result<T, Fault> {
        let body = Call::of(ask, patience.left()).to_json()?;
        let link = self.clone();
        let done = self.wait(patience, async move { link.action_once(body).await });
        one(&done.map_err(|fault| match fault {
            Fault::Deadline => unknown("the owner of the data did not answer in time"),
            other => other,
        })?)
    }

    /// Sends the messages of a write to an owner and returns the outcome.
    pub(super) async fn put(
        &self,
        mut asked: CallConnection,
        messages: Vec<FlightData>,
    ) -> Result<WireWritten, CallFailure> {
        let request = asked.request(stream::iter(messages));
        let response = asked.client.do_put(request).await.map_err(|status| self.broken(&asked, status))?;
        self.heard(&asked, response.metadata(), true).map_err(CallFailure::after)?;
        let first: Option<PutResult> = response.into_inner().message().await.map_err(CallFailure::of)?;
        let first = first.ok_or_else(|| CallFailure::after(Fault::internal("a write without an answer")))?;
        Reply::read(&first.app_metadata).map_err(|fault: Fault| {
            // The data was handed over meanwhile: the write either does not count, or its key identifies it.
            if fault.is_of_the_link() {
                self.refused(&asked);
            }
            CallFailure::before(fault)
        })
    }

    /// Classifies a failed call, and records a refusal.
    fn broken(&self, asked: &CallConnection, status: Status) -> CallFailure {
        if is_refused(&status) {
            self.refused(asked);
        }
        CallFailure::of(status)
    }
}

fn unknown(why: &str) -> Fault {
    Fault::Unknown(format!("whether it was done is not known: {why}"))
}

/// Decodes the value of an act.
pub(super) fn one<T: DeserializeOwned>(bodies: &[Bytes]) -> Result<T, Fault> {
    Reply::read(bodies.first().ok_or_else(|| Fault::internal("an act without an answer"))?)
}
