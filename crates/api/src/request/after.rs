//! `Meridian-After`: guarantees that a read sees at least a write known to its client, wherever it is served.

use crate::protocol::params::Params;
use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::blocking::Run;
use crate::request::context::Context;
use crate::request::dispatch::Lease;
use crate::request::scope::Scope;
use crate::state::AppState;
use axum::http::{HeaderMap, HeaderName};
use meridian_backend::{Backend, Collection, Eventual, ReadPoint};
use meridian_model::{Positions, Seqs};
use std::sync::Arc;
use tokio::time::{Duration, Instant};

/// The position of a write, as returned in its response.
static AFTER: HeaderName = HeaderName::from_static("meridian-after");
/// First interval at which a waiting request checks for the write. It doubles up to the max, because many may wait, and
/// a gateway asks the owner.
const LOOK: Duration = Duration::from_millis(20);
const LOOK_MAX: Duration = Duration::from_millis(250);

impl Context {
    /// Returns the collection of a read. If this server follows an owner, a client that knows of a write may know of a
    /// collection that has not arrived here. The server then waits for it, as for the write. A name that the caller's
    /// grant does not cover is reported absent at once.
    ///
    /// # Errors
    /// As for [`Scope::collection`], with the same response after a wait.
    pub async fn collection(&self, state: &Scope, name: &str) -> Result<Arc<dyn Collection>> {
        let mut found = state.collection(name);
        // Faults of the request are reported once the collection exists.
        let named = position(&self.headers).is_ok_and(|after| after.is_some());
        let given = Params::parse(self.query.as_deref()).and_then(|mut params| params.take_timeout());
        let deadline = given.and_then(|given| self.deadline(given, state.config.timeout_default));
        let waits = named && state.backend.follows() && state.view().covers(name);
        let (Ok(deadline), true) = (deadline, waits) else { return found };
        let (until, mut look) = (self.until(state, deadline), LOOK);
        while found.as_ref().is_err_and(|problem| problem.kind() == Kind::NotFound) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            self.lease.give_back();
            tokio::time::sleep(look.min(left)).await;
            look = (look * 2).min(LOOK_MAX);
            found = state.collection(name);
        }
        found
    }

    /// Returns until when a request waits for a write.
    fn until(&self, state: &AppState, deadline: Instant) -> Instant {
        deadline.min(self.arrived + state.config.timeout_default)
    }

    /// Returns the run of a read once the collection includes the write named by the header `Meridian-After`, if any.
    ///
    /// # Errors
    /// 400 for a position of a collection with another number of partitions. 503 if the write has not arrived by the
    /// deadline, or by the default deadline of requests; at once if it can never arrive.
    pub async fn read(&self, state: &AppState, collection: &dyn Collection, deadline: Instant) -> Result<Run> {
        if let Some(after) = position(&self.headers)? {
            fits(&after, collection)?;
            let until = self.until(state, deadline);
            wait(after, collection, &self.lease, until, &*state.backend).await?;
        }
        self.lease.run(state, deadline).await
    }
}

fn position(headers: &HeaderMap) -> Result<Option<Positions>> {
    let Some(value) = headers.get(&AFTER) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let position = Positions::read(text.trim());
    position.map(Some).ok_or_else(|| {
        let detail =
            format!("{text:?}: expected the position of a write, as the header Meridian-Position of its answer has it");
        Problem::parameter("Meridian-After", detail)
    })
}

/// Refuses a position that cannot belong to a write of the collection: waiting for it would never end.
fn fits(after: &Positions, collection: &dyn Collection) -> Result<()> {
    let (given, expected) = (after.len(), collection.position().len());
    if given == expected {
        return Ok(());
    }
    let detail = format!(
        "{after}: it has a value for each of {given} partitions, and the collection {} has {expected}: expected the Meridian-Position \
         of a write to this collection",
        collection.name()
    );
    Err(Problem::parameter("Meridian-After", detail))
}

async fn wait(
    after: Positions,
    collection: &dyn Collection,
    lease: &Lease,
    until: Instant,
    backend: &dyn Backend,
) -> Result<()> {
    let (mut shown, mut look) = (collection.position(), LOOK);
    if !shown.covers(&after) {
        // The permit is given back during the wait, so that others can run; the request is admitted again afterwards.
        lease.give_back();
    }
    while !shown.covers(&after) {
        let left = until.saturating_duration_since(Instant::now());
        // A write is shown before its position is told. So what this process does not show yet, nobody can know of.
        if left.is_zero() || backend.has_every_write() {
            let why = match backend.follows() {
                true => "ask again later, or ask a gateway, which shows every write at once",
                false => "is it of this collection?",
            };
            let detail =
                format!("the write at position {after} has not arrived: this server shows writes up to {shown}; {why}");
            return Err(Problem::new(Kind::Behind, detail));
        }
        tokio::time::sleep(look.min(left)).await;
        look = (look * 2).min(LOOK_MAX);
        shown = collection.position();
    }
    Ok(())
}

/// Returns the consistency of a read that names none: all acknowledged writes, or whatever the owner has flushed.
pub fn consistency(state: &AppState) -> &'static str {
    if state.backend.follows() { "eventual" } else { "immediate" }
}

/// The consistency of a read, as requested.
#[derive(Debug, Clone)]
pub struct Consistency {
    /// Its name in the response.
    pub name: &'static str,
    /// Set if another process than the owner of the data may respond.
    eventual: Option<Eventual>,
}

impl Consistency {
    /// Takes `consistency` and `scan_type`. If this process has every write, both values of the former are satisfied.
    pub fn take(params: &mut Params, headers: &HeaderMap, state: &AppState) -> Result<Consistency> {
        let given = params.take("consistency");
        let name = match given.as_deref() {
            None => consistency(state),
            Some("eventual") => "eventual",
            Some("immediate") if !state.backend.follows() => "immediate",
            Some("immediate") => {
                let detail = "this server shows what the owner of the data has flushed: expected eventual; a gateway answers immediate";
                return Err(Problem::parameter("consistency", detail));
            }
            Some(other) => {
                return Err(Problem::parameter("consistency", format!("{other:?}: expected immediate or eventual")));
            }
        };
        // Without it, the name may be that of a property.
        let asked = given.as_deref() == Some("eventual");
        let scan_type = if asked { params.take("scan_type") } else { None };
        if scan_type.as_ref().is_some_and(|name| name.is_empty() || name.len() > SCAN_TYPE_BYTES_MAX) {
            let detail = format!("expected a name of 1 to {SCAN_TYPE_BYTES_MAX} bytes");
            return Err(Problem::parameter("scan_type", detail));
        }
        // A client that knows of a write is served where all writes are present.
        let elsewhere = asked && !headers.contains_key(&AFTER);
        let eventual = elsewhere.then(|| Eventual { scan_type: scan_type.map(Arc::from) });
        Ok(Consistency { name, eventual })
    }

    /// Returns the newest snapshot.
    pub fn newest(&self, history: bool) -> ReadPoint {
        ReadPoint { seq: None, history, eventual: self.eventual.clone() }
    }

    /// Returns the snapshot with this number, or the newest.
    pub fn at(&self, seq: Option<Seqs>, history: bool) -> ReadPoint {
        ReadPoint { seq, ..self.newest(history) }
    }
}

/// Max length of the name of a scan type.
const SCAN_TYPE_BYTES_MAX: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn a_position_is_a_number() {
        let of =
            |value: &'static str| position(&HeaderMap::from_iter([(AFTER.clone(), HeaderValue::from_static(value))]));
        assert_eq!(of(" 17").unwrap(), Some(Positions::one(17)));
        assert_eq!(of("17-0-4").unwrap(), Some([17, 0, 4].into_iter().collect()));
        assert_eq!(position(&HeaderMap::new()).unwrap(), None);
        for wrong in ["", "-1", "x", "1.5", "1-", "18446744073709551616"] {
            let problem = of(wrong).unwrap_err();
            assert!(problem.detail().contains("Meridian-Position"), "{wrong}");
        }
    }
}
