//! The route of a query: to the owner, or to scan servers one after the other.

use super::super::answer::{Message, MessageStream};
use super::super::engine::Patience;
use super::super::link::Link;
use super::QueryAttempts;
use crate::wire::call::{Get, WireQuery};
use crate::wire::fault::Fault;
use meridian_backend::ReadPoint;
use serde_json::Value;
use std::sync::Arc;

/// Route of one query.
pub(in super::super) enum QueryRoute {
    /// To the owner. A response that breaks off is lost.
    Owner(Arc<Link>),
    /// To scan servers.
    Scans(Box<QueryAttempts>, Arc<Link>),
}

impl QueryRoute {
    /// Sends the query, and waits for the first message.
    pub(in super::super) fn begin(
        self,
        (asked, make): (WireQuery, fn(WireQuery) -> Get),
        patience: &Patience,
    ) -> Result<(QueryRoute, MessageStream, Message), Fault> {
        match self {
            QueryRoute::Owner(link) => {
                let (answer, first) = link.ask(make(asked), patience)?;
                Ok((QueryRoute::Owner(link), answer, first))
            }
            scans @ QueryRoute::Scans(..) => scans.again(patience),
        }
    }

    /// Requests again what was lost.
    pub(in super::super) fn again(self, patience: &Patience) -> Result<(QueryRoute, MessageStream, Message), Fault> {
        let QueryRoute::Scans(asking, link) = self else { return Err(Fault::internal("an owner is asked once")) };
        let mut asking = asking;
        let (asking, begun) = link.wait(patience, async move {
            let begun = asking.begin().await;
            Ok((asking, begun))
        })?;
        let (answer, first) = begun?;
        Ok((QueryRoute::Scans(asking, link), answer, first))
    }

    /// Handles a response that broke off; returns Ok if the query may be retried.
    pub(in super::super) fn lost(&mut self, fault: Fault) -> Result<(), Fault> {
        match self {
            QueryRoute::Owner(_) => Err(fault),
            QueryRoute::Scans(asking, _) => asking.lost(fault),
        }
    }

    /// Changes the query for later attempts: the rest of a response, from its snapshot.
    pub(in super::super) fn ask_for(&mut self, at: ReadPoint, question: Value) {
        if let QueryRoute::Scans(asking, _) = self {
            (asking.asked.at, asking.asked.question) = (at.into(), question);
        }
    }

    /// Marks the response as complete.
    pub(in super::super) fn done(&mut self) {
        if let QueryRoute::Scans(asking, _) = self {
            asking.done();
        }
    }

    /// The connection whose threads wait for responses.
    pub(in super::super) fn link(&self) -> &Arc<Link> {
        let (QueryRoute::Owner(link) | QueryRoute::Scans(_, link)) = self;
        link
    }
}
