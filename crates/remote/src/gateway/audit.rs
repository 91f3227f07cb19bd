//! The owner's log of administrative acts.

use super::link::Link;
use crate::wire::answer::WireAuditPage;
use crate::wire::call::Do;
use crate::wire::fault::Fault;
use meridian_backend::{Act, AuditLog, AuditPage, Audited, StoreError};
use std::sync::Arc;

/// Lines asked for at a time; unwanted ones are left out here.
const LINES: usize = 500;

#[derive(Debug)]
pub(super) struct RemoteAudit {
    pub(super) link: Arc<Link>,
}

impl AuditLog for RemoteAudit {
    fn append(&self, acts: &[Act]) -> Result<u64, StoreError> {
        self.link.once(Do::AuditAppend { acts: acts.to_vec() }, &self.link.patience()).map_err(Fault::into_store)
    }

    fn page(&self, after: u64, limit: usize, wanted: &dyn Fn(&Audited) -> bool) -> Result<AuditPage, StoreError> {
        let ask = Do::AuditPage { after, limit: LINES };
        let page: WireAuditPage = self.link.value(ask, &self.link.patience()).map_err(Fault::into_store)?;
        let AuditPage { mut lines, mut next } = page.into();
        lines.retain(|line| wanted(line));
        if lines.len() > limit {
            lines.truncate(limit);
            // The rest of the lines was wanted, too: the next page begins with it.
            next = lines.last().map(|line| line.n).or(Some(after));
        }
        Ok(AuditPage { lines, next })
    }
}
