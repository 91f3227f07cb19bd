//! Stores search results as events of a collection.
//!
//! An event lasts from the time given by its source until it was found. Windows and time filters therefore use its own
//! time, while retention, which counts from an event's end, uses the time when it was found.

use crate::access::audit;
use crate::contract::text::retention_text;
use crate::protocol::problem::{self, Problem};
use crate::request::context::Context;
use crate::request::errors;
use crate::request::scope::Scope;
use crate::state::LOCAL;
use meridian_admission::identity::Registry;
use meridian_backend::{Clock, Collection, Settings, StoreError, View, Write};
use meridian_federation::{KeepOptions, Refusal, ResultStore, SearchResult};
use meridian_model::{
    Batch, BatchBuilder, Field, FieldType, GeometryType, IdRole, Invalid, Schema, TimeRole, builder::Value,
};
use std::sync::Arc;

/// Fields of a stored result, in order; the last two are the interval.
const FIELDS: [(&str, FieldType); 8] = [
    ("title", FieldType::Text),
    ("text", FieldType::Text),
    ("link", FieldType::Text),
    ("author", FieldType::Text),
    ("provider", FieldType::Text),
    ("search", FieldType::Text),
    ("time", FieldType::Time),
    ("found", FieldType::Time),
];
const TIME: usize = 6;
const FOUND: usize = 7;
/// Max length of a stored text, in bytes.
const TEXT_BYTES_MAX: usize = 64 << 10;
/// Max length of an id in a collection, in bytes.
const ID_BYTES_MAX: usize = 1_024;

/// Stores results in collections of this server.
pub struct CollectionResults {
    registry: Arc<Registry>,
    clock: Arc<dyn Clock>,
}

impl CollectionResults {
    /// Creates a keeper that writes to the collections of the searching caller.
    pub fn new(registry: Arc<Registry>, clock: Arc<dyn Clock>) -> CollectionResults {
        CollectionResults { registry, clock }
    }
}

impl ResultStore for CollectionResults {
    fn prepare(&self, view: &View, keep: &KeepOptions) -> Result<(), Refusal> {
        view.caller().ledger.check_write().map_err(Refusal::Quota)?;
        match view.collection(&keep.collection)? {
            Some(collection) => fits(&*collection, keep).map_err(Refusal::Invalid),
            None => Err(Refusal::Absent(keep.clone())),
        }
    }

    fn write(
        &self,
        view: &View,
        keep: &KeepOptions,
        search: &str,
        provider: &str,
        found: &[SearchResult],
    ) -> Result<(), String> {
        let name = &keep.collection;
        let collection = view
            .collection(name)
            .map_err(|error| format!("its results are not kept: {error}"))?
            .ok_or_else(|| format!("there is no collection {name:?} any more: its results are not kept"))?;
        let not_kept = |e: &dyn std::fmt::Display| format!("results could not be kept in {name:?}: {e}");
        // Results arrive long after the search was admitted, so the right to write may have ended.
        let caller = view.caller();
        if caller.is_void(self.clock.now()) {
            return Err(not_kept(&"the credential of the search was revoked or has expired"));
        }
        // Polls of saved searches have no credential, so they continue.
        if self.registry.is_behind() && (caller.is_revocable() || *caller.name == *LOCAL) {
            return Err(not_kept(&"whether the credential of the search was revoked cannot be known now"));
        }
        // Checked for each page: one search can store many.
        view.caller().ledger.check_write().map_err(|e| not_kept(&e))?;
        let (batch, left_out) =
            batch(collection.schema(), search, provider, found, self.clock.now()).map_err(|e| not_kept(&e))?;
        if batch.rows() > 0 {
            // A result that is found again replaces its earlier version, and its retention starts again.
            let (events, bytes) = (batch.rows() as u64, batch.bytes() as u64);
            collection.write(Write::new(batch).replacing()).map_err(|e| not_kept(&e))?;
            view.caller().ledger.charge_write(events, bytes);
        }
        match left_out {
            None => Ok(()),
            Some(mistake) => Err(format!("some results could not be kept in {name:?}: {mistake}")),
        }
    }
}

/// Returns the missing result collection, if that is why a request was refused.
pub fn absent<T>(asked: &Result<T, Refusal>) -> Option<KeepOptions> {
    match asked {
        Err(Refusal::Absent(keep)) => Some(keep.clone()),
        _ => None,
    }
}

/// Creates a collection for results, as an administrative act of the caller.
pub async fn create(state: &Scope, context: &Context, keep: KeepOptions) -> problem::Result<()> {
    let (name, retention) = (keep.collection.clone(), keep.age_of_new());
    let change = format!("retention {}, for results of searches", retention_text(retention));
    let create = move |state: &Scope| {
        let settings = Settings { retention: Some(retention), ..Settings::default() };
        match state.view().create(&keep.collection, schema(), settings) {
            // Another request created it meanwhile; it is checked when the search is requested again.
            Ok(_) | Err(StoreError::Exists { .. }) => Ok(()),
            Err(StoreError::Invalid(mistake)) => {
                Err(Problem::invalid_body(Invalid::field("keep", mistake.to_string())))
            }
            Err(e) => Err(errors::store_problem(e)),
        }
    };
    audit::creating(state, context, (&*name, Some(change)), create).await
}

/// Checks that a collection can store the results of a search.
fn fits(collection: &dyn Collection, keep: &KeepOptions) -> Result<(), Invalid> {
    let (name, there, ours) = (&keep.collection, collection.schema(), schema());
    let same = there.fields == ours.fields && there.time == ours.time && there.id == ours.id;
    let wrong = |detail: String| Err(Invalid::field("keep", detail));
    if !same || there.geometry != ours.geometry {
        return wrong(format!("the collection {name:?} is not one of kept results: expected another name"));
    }
    let kept = collection.settings().retention;
    match keep.age {
        Some(age) if kept != Some(age) => wrong(format!(
            "hours: the collection {name:?} keeps its results {}: expected that, or leave hours out",
            kept.map_or("for ever".to_owned(), |kept| format!("for {} hours", kept.as_secs_f64() / 3_600.0)),
        )),
        _ => Ok(()),
    }
}

fn schema() -> Schema {
    let field = |(name, kind): (&str, FieldType)| Field {
        name: name.to_owned(),
        kind,
        required: ["provider", "search", "time", "found"].contains(&name),
        title: None,
    };
    Schema {
        fields: FIELDS.map(field).to_vec(),
        geometry: Some(GeometryType::Any),
        time: TimeRole::Interval { start: TIME, end: FOUND },
        id: IdRole::Given,
        title: Some("Results of searches".to_owned()),
        ..Schema::default()
    }
}

/// Converts results to events. Drops results that cannot be stored, and returns the first error.
fn batch(
    schema: Arc<Schema>,
    search: &str,
    provider: &str,
    found: &[SearchResult],
    now: i64,
) -> Result<(Batch, Option<Invalid>), Invalid> {
    let mut builder = BatchBuilder::new(schema);
    let mut left_out = None;
    for found in found {
        if let Err(mistake) = event(&mut builder, search, provider, found, now) {
            // The fields set so far must not become part of the next event.
            builder.abandon_event();
            left_out.get_or_insert(mistake);
        }
    }
    Ok((builder.finish()?, left_out))
}

fn event(
    builder: &mut BatchBuilder,
    search: &str,
    provider: &str,
    found: &SearchResult,
    now: i64,
) -> Result<(), Invalid> {
    builder.set_id(id(provider, &found.id))?;
    if let Some(shape) = &found.shape {
        builder.set_geometry(shape)?;
    }
    let texts = [&found.title, &found.text, &found.link, &found.author].map(Option::as_deref);
    for (field, text) in texts.into_iter().chain([Some(provider), Some(search)]).enumerate() {
        if let Some(text) = text {
            builder.set_text(field, &text[..text.floor_char_boundary(TEXT_BYTES_MAX)])?;
        }
    }
    // A time in the future is set to now, so that no event outlasts the requested age.
    builder.set(TIME, Value::Time(found.start().unwrap_or(now).min(now)))?;
    builder.set(FOUND, Value::Time(now))?;
    builder.end_event()
}

/// Builds an id from the provider's name and its id of the result, shortened to the max length.
fn id(provider: &str, own: &str) -> String {
    let id: String = format!("{provider}/{own}").chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match id.len() > ID_BYTES_MAX {
        true => {
            // Long URLs differ more often at the end than at the beginning.
            let tail = &id[id.ceil_char_boundary(id.len() - ID_BYTES_MAX + 1 + provider.len())..];
            format!("{provider}/{tail}")
        }
        false => id,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::records::{RECORDS, RecordVault};
    use meridian_admission::identity::NewToken;
    use meridian_backend::{Backend, Embedded, Seams};
    use meridian_model::policy::access::{Grant, Role};
    use meridian_store::{Options, Store};

    #[test]
    fn nothing_is_kept_while_it_cannot_be_known_who_may() {
        let seams = Seams::real();
        let store = Arc::new(Store::open(Options::ephemeral(), seams.clone()).unwrap());
        let backend: Arc<dyn Backend> = Embedded::new(store);
        let registry = Arc::new(Registry::open(Arc::new(RecordVault::new(backend.records(RECORDS)))).unwrap());
        let new = NewToken { tenant: None, grant: Grant::over_all(Role::Operator), expires: None };
        let (_, text) = registry.create_token(&new, seams.clock.now()).unwrap();
        let view = View::new(backend, registry.caller(&text, seams.clock.now()).unwrap());
        view.create("kept", schema(), Settings::default()).unwrap();
        let keeper = CollectionResults::new(registry.clone(), seams.clock.clone());
        let keep = KeepOptions { collection: "kept".to_owned(), age: None };
        let write = || keeper.write(&view, &keep, "search", "provider", &[]);
        assert_eq!(write(), Ok(()));
        registry.set_behind(true);
        assert!(write().unwrap_err().contains("cannot be known"));
        registry.set_behind(false);
        assert_eq!(write(), Ok(()));
    }
}
