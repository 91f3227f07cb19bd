//! Place names of the `enrich` stage: read from a collection, cached in memory, and reloaded after the collection
//! changed.

use crate::gazetteer::{Gazetteer, NamedPlace};
use meridian_backend::{Backend, Clock, Collection, ReadPoint};
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::{FieldColumn, FieldType, Positions};
use meridian_query::{CancelFlag, Control, Items, QueryError, select};
use parking_lot::Mutex;
use std::pin::pin;
use std::sync::Arc;
use tokio::sync::Notify;
use tokio::time::{Duration, Instant};

/// Max places loaded: some tens of megabytes of names.
const PLACES_MAX: usize = 200_000;
/// Min time between two reloads of a collection that changes continuously.
const AGAIN: Duration = Duration::from_secs(10);
/// Timeout of a reload.
const READING: Duration = Duration::from_secs(60);

/// A gazetteer over a collection, if that exists.
pub struct PlaceNames {
    backend: Arc<dyn Backend>,
    tenant: String,
    collection: String,
    people_min: u64,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    read: Notify,
}

#[derive(Default)]
struct State {
    /// When the last reload began.
    began: Option<Instant>,
    reading: bool,
    /// The snapshot from which the names were read.
    seq: Option<Positions>,
    names: Option<Arc<Gazetteer>>,
}

impl PlaceNames {
    /// Creates a gazetteer over a collection with points and a text field `name`. If it has a numeric field
    /// `population`, places below `people_min` are left out.
    pub fn new(
        backend: Arc<dyn Backend>,
        tenant: String,
        collection: String,
        people_min: u64,
        clock: Arc<dyn Clock>,
    ) -> PlaceNames {
        PlaceNames { backend, tenant, collection, people_min, clock, state: Mutex::default(), read: Notify::new() }
    }

    /// Returns the names; `None` if there are none, or none loaded within `patience`. During a reload, returns the old
    /// names.
    pub async fn names(self: &Arc<PlaceNames>, patience: Duration) -> Option<Arc<Gazetteer>> {
        let mut read = pin!(self.read.notified());
        // Enabled before the state is read, so that the end of a reload is not missed.
        read.as_mut().enable();
        {
            let mut state = self.state.lock();
            if !state.reading {
                self.look(&mut state);
            }
            if !state.reading || state.names.is_some() {
                return state.names.clone();
            }
        }
        let _ = tokio::time::timeout(patience, read).await;
        self.state.lock().names.clone()
    }

    /// Starts a reload if the collection has changed.
    fn look(self: &Arc<PlaceNames>, state: &mut State) {
        let collection = match self.backend.existing(&self.tenant, &self.collection) {
            Ok(Some(collection)) => collection,
            Ok(None) => {
                (state.seq, state.names) = (None, None);
                return;
            }
            // The old names serve until the collection can be reached.
            Err(_) => return,
        };
        let seq = collection.position();
        // `AGAIN` bounds the reloads of a collection that is written continuously. Questions use the old names
        // meanwhile.
        if state.seq.as_ref() == Some(&seq) || state.began.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        (state.began, state.reading) = (Some(Instant::now()), true);
        let places = self.clone();
        let control = Control::new(self.clock.clone(), READING, CancelFlag::new());
        let people_min = self.people_min;
        tokio::spawn(async move {
            let reading = tokio::task::spawn_blocking(move || names(collection.as_ref(), people_min, &control)).await;
            let failed = |why: String| {
                let collection = &places.collection;
                tracing::warn!(collection, why, "place names could not be loaded: texts are not searched for them");
                None
            };
            let names = match reading {
                Ok(Ok(names)) => Some(Arc::new(names)).filter(|names| !names.is_empty()),
                Ok(Err(e)) => failed(e.to_string()),
                Err(e) => failed(e.to_string()),
            };
            {
                let mut state = places.state.lock();
                // The position is recorded even after a failure: the same content would fail again at every question.
                (state.reading, state.seq, state.names) = (false, Some(seq), names);
            }
            places.read.notify_waiters();
        });
    }
}

/// Reads the names of a collection.
fn names(collection: &dyn Collection, people_min: u64, control: &Control) -> Result<Gazetteer, QueryError> {
    let schema = collection.schema();
    let (Some(name), Some(_)) = (schema.field_index("name"), schema.geometry) else { return Ok(Gazetteer::default()) };
    let counted = |field: &usize| matches!(schema.fields[*field].kind, FieldType::Int | FieldType::Float);
    let people = schema.field_index("population").filter(counted);
    let predicate = match people {
        Some(_) => Predicate::bind(&parse_text(&format!("population >= {people_min}"))?, &schema)?,
        None => Predicate::all(),
    };
    let wanted: &[&str] = if people.is_some() { &["name", "population"] } else { &["name"] };
    let projection = select(&schema, Some(wanted))?;
    let mut places = Vec::new();
    let question = Items { predicate, limit: Some(PLACES_MAX), projection, ..Items::all(&schema) };
    for hits in collection.items(ReadPoint::newest(), &question, control)? {
        let batch = hits?.batch;
        let Some(FieldColumn::Text(column)) = batch.field(name) else { continue };
        for row in (0..batch.rows()).filter(|row| arrow_array::Array::is_valid(column, *row)) {
            let Some(geo_types::Geometry::Point(point)) = batch.geometry(row) else { continue };
            let people = match people.and_then(|field| batch.field(field)) {
                Some(FieldColumn::Int(column)) => Some(column.value(row) as f64),
                Some(FieldColumn::Float(column)) => Some(column.value(row)),
                _ => None,
            };
            places.push(NamedPlace { name: column.value(row).to_owned(), lon: point.x(), lat: point.y(), people });
        }
    }
    Ok(Gazetteer::new(places))
}
