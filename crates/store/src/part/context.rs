//! The context in which a collection's rows are read: its schema, and the rule of its keys.

use super::rows::KeyRule;
use crate::manifest::Manifest;
use crate::stats::Counters;
use meridian_model::{Batch, Invalid, Layout, Numbering, Schema};
use std::sync::Arc;

/// State that all parts of a snapshot share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) schema: Arc<Schema>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) rule: KeyRule,
    pub(crate) numbering: Numbering,
    pub(crate) counters: Arc<Counters>,
}

impl Context {
    /// Returns the context of a partition: its schema, the seed for hashes of ids, and how events are numbered.
    pub(crate) fn of(manifest: &Manifest, counters: &Arc<Counters>) -> Arc<Context> {
        let schema = Arc::new(manifest.schema.clone());
        let layout = Arc::new(Layout::of(&schema));
        let rule = KeyRule { role: schema.id, seed: manifest.seed };
        Arc::new(Context { schema, layout, rule, numbering: manifest.numbering(), counters: counters.clone() })
    }

    /// Adapts a batch to the collection's schema: fields added since are null.
    pub(crate) fn widen(&self, batch: Batch) -> Result<Batch, Invalid> {
        if Arc::ptr_eq(batch.schema(), &self.schema) && batch.columns().iter().all(Option::is_some) {
            return Ok(batch);
        }
        let have = &batch.layout().columns;
        let layout = &self.layout;
        let fits = have.len() <= layout.columns.len()
            && have.iter().zip(&layout.columns).all(|(a, b)| a.name() == b.name() && a.data_type() == b.data_type());
        if !fits {
            return Err(Invalid::new("the batch was read for another schema than the collection has"));
        }
        let rows = batch.rows();
        let mut columns = Vec::with_capacity(layout.columns.len());
        for (i, field) in layout.columns.iter().enumerate() {
            columns.push(Some(match batch.columns().get(i) {
                Some(Some(column)) => column.clone(),
                Some(None) => return Err(Invalid::field(field.name(), "the batch was read without this column")),
                None => arrow_array::new_null_array(field.data_type(), rows),
            }));
        }
        Batch::new(self.schema.clone(), layout.clone(), rows, columns)
    }
}
