//! The route of a query: to the owner, or to scan servers one after the other.

use super::super::answer::{Message, MessageStream};
use super::super::engine::Patience;
use super::super::link::Link;
use super::Asking;
use crate::wire::call::{Get, WireQuery};
use crate::wire::fault::Fault;
use meridian_backend::ReadPoint;
use serde_json::Value;
use std::sync::Arc;

/// Route of one query.
pub(in super::super) enum Via {
    /// To the owner. A response that breaks off is lost.
    Owner(Arc<Link>),
    /// To scan servers.
    Scans(Box<Asking>, Arc<Link>),
}

impl Via {
    /// Sends the query, and waits for the first message.
    pub(in super::super) fn begin(
        self,
        (asked, make): (WireQuery, fn(WireQuery) -> Get),
        patience: &Patience,
    ) -> Result<(Via, MessageStream, Message), Fault> {
        match self {
            Via::Owner(link) => {
                let (answer, first) = link.ask(make(asked), patience)?;
                Ok((Via::Owner(link), answer, first))
            }
            scans @ Via::Scans(..) => scans.again(patience),
        }
    }

    /// Requests again what was lost.
    pub(in super::super) fn again(self, patience: &Patience) -> Result<(Via, MessageStream, Message), Fault> {
        let Via::Scans(asking, link) = self else { return Err(Fault::internal("an owner is asked once")) };
        let mut asking = asking;
        let (asking, begun) = link.wait(patience, async move {
            let begun = asking.begin().await;
            Ok((asking, begun))
        })?;
        let (answer, first) = begun?;
        Ok((Via::Scans(asking, link), answer, first))
    }

    /// Handles a response that broke off; returns Ok if the query may be retried.
    pub(in super::super) fn lost(&mut self, fault: Fault) -> Result<(), Fault> {
        match self {
            Via::Owner(_) => Err(fault),
            Via::Scans(asking, _) => asking.lost(fault),
        }
    }

    /// Changes the query for later attempts: the rest of a response, from its snapshot.
    pub(in super::super) fn ask_for(&mut self, at: ReadPoint, question: Value) {
        if let Via::Scans(asking, _) = self {
            (asking.asked.at, asking.asked.question) = (at.into(), question);
        }
    }

    /// Marks the response as complete.
    pub(in super::super) fn done(&mut self) {
        if let Via::Scans(asking, _) = self {
            asking.done();
        }
    }

    /// The connection whose threads wait for responses.
    pub(in super::super) fn link(&self) -> &Arc<Link> {
        let (Via::Owner(link) | Via::Scans(_, link)) = self;
        link
    }
}
