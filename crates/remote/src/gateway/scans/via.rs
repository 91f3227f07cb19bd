//! Who answers a question: the owner, or scan servers one after the other.

use super::super::answer::{Message, MessageStream};
use super::super::engine::Patience;
use super::super::link::Link;
use super::Asking;
use crate::wire::call::{Asked, Get};
use crate::wire::fault::Fault;
use meridian_backend::At;
use serde_json::Value;
use std::sync::Arc;

/// The way of one question.
pub(in super::super) enum Via {
    /// To the owner. An answer that breaks off is lost.
    Owner(Arc<Link>),
    /// To scan servers.
    Scans(Box<Asking>, Arc<Link>),
}

impl Via {
    /// Asks, and waits for the first message.
    pub(in super::super) fn begin(
        self,
        (asked, make): (Asked, fn(Asked) -> Get),
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

    /// Asks again for what was lost.
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

    /// An answer broke off: whether it may be asked for again.
    pub(in super::super) fn lost(&mut self, fault: Fault) -> Result<(), Fault> {
        match self {
            Via::Owner(_) => Err(fault),
            Via::Scans(asking, _) => asking.lost(fault),
        }
    }

    /// What is asked for from now on: the rest of an answer, of its snapshot.
    pub(in super::super) fn ask_for(&mut self, at: At, question: Value) {
        if let Via::Scans(asking, _) = self {
            (asking.asked.at, asking.asked.question) = (at.into(), question);
        }
    }

    /// The answer is whole.
    pub(in super::super) fn done(&mut self) {
        if let Via::Scans(asking, _) = self {
            asking.done();
        }
    }

    /// The connection on whose threads answers are waited for.
    pub(in super::super) fn link(&self) -> &Arc<Link> {
        let (Via::Owner(link) | Via::Scans(_, link)) = self;
        link
    }
}
