//! Opens the segments of views for a query.

use super::Part;
use super::closed::ClosedSegment;
use super::view::PartView;
use crate::error::StoreError;
use crate::waits;
use std::sync::Arc;

impl PartView {
    /// Returns the same view with its segment open.
    pub(crate) fn opened(&self) -> Result<PartView, StoreError> {
        if self.is_open() {
            return Ok(self.clone());
        }
        let opened = open_views(vec![self.clone()])?.pop();
        opened.ok_or(StoreError::Closed)
    }
}

/// Returns these views with their segments open. Missing trees are read concurrently.
pub(crate) fn open_views(views: Vec<PartView>) -> Result<Vec<PartView>, StoreError> {
    let mut opened: Vec<Option<Arc<Part>>> = Vec::with_capacity(views.len());
    for view in &views {
        opened.push(match view.part.closed() {
            None => Some(view.part.clone()),
            Some(closed) => closed.place().cache.opened.get(view.part.number),
        });
    }
    let missing = || views.iter().zip(&opened).filter(|(_, part)| part.is_none()).filter_map(|(v, _)| v.part.closed());
    // All of them belong to one partition, and so to one set of objects.
    if missing().next().is_some() {
        waits::check()?;
    }
    if let Some(objects) = missing().next().map(|closed| closed.place().objects.clone()) {
        let ahead: Vec<_> = missing().flat_map(ClosedSegment::ahead).collect();
        objects.load(&ahead);
    }
    let open = |(view, part): (PartView, Option<Arc<Part>>)| -> Result<PartView, StoreError> {
        let part = match (part, view.part.closed()) {
            (Some(part), _) => part,
            (None, None) => view.part.clone(),
            (None, Some(closed)) => {
                let part = Arc::new(closed.open()?);
                closed.place().cache.opened.insert(&part);
                part
            }
        };
        Ok(PartView { part, ..view })
    };
    views.into_iter().zip(opened).map(open).collect()
}
