//! Meridian's collections as a provider, and geocoding of addresses in one of them.

use super::{Fault, Provider, ProviderFuture, Sink};
use crate::area::Area;
use crate::event::Events;
use crate::question::Question;
use crate::search_result::SearchResult;
use meridian_admission::gate::{Account, Class, Gate, Permit};
use meridian_backend::{Clock, Collection, PermitScheduler, ReadPoint, View};
use meridian_formats::FeatureWriter;
use meridian_model::filter::{Predicate, parse_text};
use meridian_model::policy::quota::Quota;
use meridian_model::{FieldColumn, Invalid, Schema};
use meridian_observe::WorkContext;
use meridian_query::{Control, Hits, Items, QueryError};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::Arc;
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tokio::time::{Duration, Instant};

/// Max concurrent searches that read collections. Each takes a thread.
const AT_ONCE: usize = 4;
/// Events processed between two checks of the deadline.
const CHECKED: usize = 64;
/// Max places of one name that are read.
const PLACES_MAX: usize = 10_000;

/// The provider of the collections that the client sees.
pub struct LocalProvider {
    clock: Arc<dyn Clock>,
    gate: Option<Gate>,
    sure_of: [String; 1],
}

impl LocalProvider {
    /// Its name in questions and packets.
    pub const NAME: &'static str = "meridian";

    /// Creates a provider over the collections of the caller.
    pub fn new(clock: Arc<dyn Clock>) -> LocalProvider {
        // Keywords are tested on all texts of an event, some of which the result does not hold.
        LocalProvider { clock, gate: None, sure_of: ["keywords".to_owned()] }
    }

    /// Creates a provider that reads with a permit, charged to the caller's tenant.
    pub fn admitted_by(self, gate: Gate) -> LocalProvider {
        LocalProvider { gate: Some(gate), ..self }
    }

    async fn read(&self, sink: Sink) -> Result<(), Fault> {
        // Demand flows one way and results the other, so the reading thread never runs ahead of the pipeline.
        let (want, wants) = mpsc::channel(1);
        let (found, mut finds) = mpsc::channel(1);
        let time = sink.time_left();
        let mut control = Control::new(self.clock.clone(), time, sink.over());
        let door = self.gate.clone().map(|gate| ReadPermit::new(gate, sink.view(), Instant::now() + time));
        if let Some(door) = &door {
            control = control.scheduled_by(door.turns.clone());
        }
        // One budget for all collections: a search counts as one request.
        if let Some(bytes) = sink.view().caller().ledger.limit(Quota::ScannedBytesPerRequest) {
            control = control.reading_at_most(bytes);
        }
        // Resources held by the creating request are its own.
        let current = WorkContext { slot: None, ..meridian_observe::current() };
        let current = door.as_ref().map_or(current.clone(), |door| current.holding(&door.turns));
        let reading = LocalRead { question: sink.question().clone(), control, door, wants, found, wanted: 0 };
        let collections = sink.view().list().map_err(|e| Fault::Error(e.to_string()))?;
        // The store is blocking code; this thread sleeps between demands.
        let reading = tokio::task::spawn_blocking(move || current.run(|| reading.all(&collections)));
        loop {
            let wanted = sink.wanted().await;
            if wanted == 0 || want.send(wanted).await.is_err() {
                break;
            }
            let Some(found) = finds.recv().await else { break };
            sink.wait_for_space().await;
            sink.found(found).await?;
        }
        // Closing the channel ends the reading thread.
        drop(want);
        match reading.await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(QueryError::Deadline | QueryError::Cancelled)) => {
                Err(Fault::Timeout("not all collections could be read in time".to_owned()))
            }
            Ok(Err(QueryError::TooLarge { limit: Some(limit), .. })) => Err(Fault::Refused(format!(
                "the collections must be read beyond the tenant's quota {} of {limit}: ask for less with near, bbox, polygon, start or end",
                Quota::ScannedBytesPerRequest
            ))),
            Ok(Err(e)) => Err(Fault::Error(e.to_string())),
            Err(e) => Err(Fault::Error(format!("reading the collections failed: {e}"))),
        }
    }
}

impl Provider for LocalProvider {
    fn name(&self) -> &str {
        LocalProvider::NAME
    }

    fn title(&self) -> &str {
        "The collections of this server"
    }

    fn takes(&self, _: &Question, view: &View) -> Result<(), String> {
        match view.list() {
            Ok(list) if list.is_empty() => Err("this server has no collection".to_owned()),
            Ok(_) => Ok(()),
            Err(error) => Err(error.to_string()),
        }
    }

    fn sure_of(&self) -> &[String] {
        &self.sure_of
    }

    fn at_once(&self) -> usize {
        AT_ONCE
    }

    fn ask(&self, sink: Sink) -> ProviderFuture<'_> {
        Box::pin(self.read(sink))
    }

    fn report(&self, view: &View) -> Value {
        match view.list() {
            Ok(list) => json!({ "ready": true, "collections": list.len() }),
            Err(error) => json!({ "ready": false, "detail": error.to_string() }),
        }
    }
}

/// The permit of a reading thread, held while it computes.
pub(crate) struct ReadPermit {
    gate: Gate,
    account: Account,
    deadline: Instant,
    runtime: Handle,
    turns: Arc<PermitScheduler>,
    permit: Option<Permit>,
    /// Service under earlier permits.
    used: Duration,
}

impl ReadPermit {
    pub(crate) fn new(gate: Gate, view: &View, deadline: Instant) -> ReadPermit {
        let account = Account { ledger: view.caller().ledger.clone(), class: Class::Interactive, is_write: false };
        let (runtime, turns) = (Handle::current(), Arc::new(PermitScheduler::default()));
        ReadPermit { gate, account, deadline, runtime, turns, permit: None, used: Duration::ZERO }
    }

    /// Waits for a permit; returns false once the deadline has passed.
    fn enter(&mut self) -> bool {
        // As work in progress: no queue refuses a search that was admitted.
        self.permit = self.runtime.block_on(self.gate.resume(&self.account, self.used, self.deadline)).ok();
        self.permit.iter().for_each(|permit| self.turns.go_on(permit));
        self.permit.is_some()
    }

    fn leave(&mut self) {
        if let Some(permit) = self.permit.take() {
            (_, _, self.used) = permit.release();
        }
    }

    /// Runs a read on this thread with this permit. The permit of the request that waits for it rests meanwhile:
    /// requests that each held one and waited for another would block one another.
    pub(crate) fn run<T>(mut self, control: Control, read: impl FnOnce(&Control) -> T) -> T {
        let control = control.scheduled_by(self.turns.clone());
        let current = meridian_observe::current().holding(&self.turns);
        let over = || control.is_over().is_some();
        meridian_observe::away(&over, || {
            // Without a permit in time, the read ends at its first check.
            self.enter();
            let outcome = current.run(|| read(&control));
            self.leave();
            outcome
        })
    }
}

/// A read of collections for a search, on a thread of its own. It finds the number of results requested and then waits
/// for further demand. So memory holds no more than that, and nothing is read without demand.
struct LocalRead {
    question: Arc<Question>,
    control: Control,
    door: Option<ReadPermit>,
    wants: mpsc::Receiver<usize>,
    found: mpsc::Sender<Vec<SearchResult>>,
    /// The current demand.
    wanted: usize,
}

impl LocalRead {
    /// Reads the collections in turn until the demand ends.
    fn all(mut self, collections: &[Arc<dyn Collection>]) -> Result<(), QueryError> {
        if self.wants_more() {
            for collection in collections {
                if !self.read(collection.as_ref())? {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Waits for the demand, then for a permit; returns false if either fails.
    fn wants_more(&mut self) -> bool {
        self.wanted = self.wants.blocking_recv().unwrap_or(0);
        self.wanted > 0 && self.door.as_mut().is_none_or(ReadPermit::enter)
    }

    /// Sends results and waits for further demand; returns false if it has ended.
    fn send(&mut self, found: Vec<SearchResult>) -> bool {
        if found.is_empty() {
            return true;
        }
        // A thread that waits for its reader uses no processor.
        self.door.as_mut().into_iter().for_each(ReadPermit::leave);
        self.found.blocking_send(found).is_ok() && self.wants_more()
    }

    /// Reads the matches of a collection; returns false if the demand has ended. A collection without geometry has no
    /// match for a question about a place, and one without time none for a question about a time.
    fn read(&mut self, collection: &dyn Collection) -> Result<bool, QueryError> {
        let schema = collection.schema();
        let mut parts = Vec::new();
        if let Some(area) = self.question.area() {
            if schema.geometry.is_none() {
                return Ok(true);
            }
            parts.push(within(area, &schema)?);
        }
        if self.question.has_time() {
            if !schema.has_time() {
                return Ok(true);
            }
            parts.push(Predicate::interval(self.question.interval));
        }
        let predicate = Predicate::and(parts);
        let rows = collection.items(ReadPoint::newest(), &Items { predicate, ..Items::all(&schema) }, &self.control)?;
        let writer = FeatureWriter::new(&rows.head().schema, None)?;
        for hits in rows {
            let Hits { batch, seqs, .. } = hits?;
            let events = Events::of(collection.name(), &batch, &writer, &seqs);
            let mut found = Vec::new();
            for row in 0..batch.rows() {
                // Detecting the languages of a batch may take a second.
                if row.is_multiple_of(CHECKED) {
                    self.control.check()?;
                }
                found.extend(events.event(row).answer(&self.question));
                if found.len() == self.wanted && !self.send(std::mem::take(&mut found)) {
                    return Ok(false);
                }
            }
            if !self.send(found) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn within(area: &Area, schema: &Schema) -> Result<Predicate, Invalid> {
    match area {
        Area::Circle { lon, lat, radius_m } => Ok(Predicate::near(*lon, *lat, *radius_m)),
        Area::Box([west, south, east, north]) => Ok(Predicate::bbox(*west, *south, *east, *north)),
        Area::Polygon(polygon) => {
            let ring = |ring: &geo_types::LineString<f64>| {
                let positions: Vec<String> = ring.0.iter().map(|p| format!("{} {}", p.x, p.y)).collect();
                format!("({})", positions.join(","))
            };
            let rings: Vec<String> = std::iter::once(polygon.exterior()).chain(polygon.interiors()).map(ring).collect();
            let text = format!("S_INTERSECTS({}, POLYGON({}))", name(&schema.geometry_name), rings.join(","));
            Predicate::bind(&parse_text(&text)?, schema)
        }
    }
}

/// Returns the quoted name of a property in CQL2.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Geocodes an address: `Lyon`, `Springfield, Illinois`, `69001, FR`. Its last parts narrow by country or region. Of
/// several places with the name, those in the country that has most of them count; the most central of these is
/// returned.
pub fn locate(collection: &dyn Collection, address: &str, control: &Control) -> Result<(f64, f64), QueryError> {
    let wrong = |detail: String| QueryError::Invalid(Invalid::field("address", detail));
    let schema = collection.schema();
    let mut parts = address.split(',').map(str::trim).filter(|part| !part.is_empty());
    let sought = parts.next().ok_or_else(|| wrong("expected a name, such as Lyon, FR".to_owned()))?;
    let is = |fields: &[&str], value: &str| -> Option<String> {
        let value = value.replace('\'', "''");
        let known = fields.iter().filter(|field| schema.field_index(field).is_some());
        let tests: Vec<String> = known.map(|field| format!("CASEI({}) = CASEI('{value}')", name(field))).collect();
        (!tests.is_empty()).then(|| format!("({})", tests.join(" OR ")))
    };
    let lacks = || wrong(format!("the collection {:?} has no field name to look it up in", collection.name()));
    let mut filter = is(&["name", "postal_code"], sought).ok_or_else(lacks)?;
    for part in parts {
        filter.push_str(" AND ");
        filter.push_str(&is(&["country", "admin1", "admin2"], part).ok_or_else(lacks)?);
    }
    let predicate = Predicate::bind(&parse_text(&filter)?, &schema)?;
    let mut countries: HashMap<String, Vec<(f64, f64)>> = HashMap::new();
    let question = Items { predicate, limit: Some(PLACES_MAX), ..Items::all(&schema) };
    for hits in collection.items(ReadPoint::newest(), &question, control)? {
        let batch = hits?.batch;
        for row in 0..batch.rows() {
            if let Some(geo_types::Geometry::Point(point)) = batch.geometry(row) {
                let country = schema.field_index("country").and_then(|field| batch.field(field));
                let country = match country {
                    Some(FieldColumn::Text(column)) => column.value(row).to_owned(),
                    _ => String::new(),
                };
                countries.entry(country).or_default().push((point.x(), point.y()));
            }
        }
    }
    let most = countries.into_iter().max_by(|(a, of_a), (b, of_b)| of_a.len().cmp(&of_b.len()).then(b.cmp(a)));
    let (_, places) =
        most.ok_or_else(|| wrong(format!("{address:?} is not among the places of {:?}", collection.name())))?;
    let middle = |pick: fn(&(f64, f64)) -> f64| {
        let mut sorted: Vec<f64> = places.iter().map(pick).collect();
        sorted.sort_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    };
    let (lon, lat) = (middle(|p| p.0), middle(|p| p.1));
    let near = |p: &(f64, f64)| (p.0 - lon).powi(2) + (p.1 - lat).powi(2);
    Ok(places.iter().copied().min_by(|a, b| near(a).total_cmp(&near(b))).unwrap_or((lon, lat)))
}
