//! Preparation of an admitted search before its first provider is asked: coordinates of its address, and a
//! collection for its results.

use super::Searches;
use crate::area::Area;
use crate::provider::{ReadPermit, locate};
use crate::question::{Location, Question};
use crate::refusal::Refusal;
use meridian_backend::View;
use meridian_model::Invalid;
use meridian_model::policy::quota::{Exceeded, Quota};
use meridian_query::{CancelFlag, Control, QueryError};
use tokio::time::Instant;

impl Searches {
    /// The question with its address geocoded.
    pub async fn located(&self, mut question: Question, view: &View, arrived: Instant) -> Result<Question, Refusal> {
        let Some(Location::Address { name, radius_m }) = question.place.clone() else { return Ok(question) };
        let name_of = &self.settings.addresses;
        let Some(collection) = view.existing(name_of)? else {
            return Err(Refusal::Invalid(Invalid::field(
                "address",
                format!("there is no collection {name_of:?} to look it up in: load one, or give near and radius"),
            )));
        };
        let left = question.deadline.saturating_sub(arrived.elapsed());
        let control = Control::new(self.clock.clone(), left, CancelFlag::new());
        let control = match view.caller().ledger.limit(Quota::ScannedBytesPerRequest) {
            Some(bytes) => control.reading_at_most(bytes),
            None => control,
        };
        let permit = self.gate.clone().map(|gate| ReadPermit::new(gate, view, Instant::now() + left));
        match look_up(control, permit, move |control| locate(collection.as_ref(), &name, control)).await? {
            Ok((lon, lat)) => {
                question.place = Some(Location::Area(Area::Circle { lon, lat, radius_m }));
                Ok(question)
            }
            Err(QueryError::Invalid(invalid)) => Err(Refusal::Invalid(Invalid::field("address", invalid.detail))),
            // The permit has counted the refusal.
            Err(QueryError::TooLarge { limit: Some(limit), .. }) => {
                let quota = Quota::ScannedBytesPerRequest;
                Err(Refusal::Quota(Exceeded { quota, limit, whole: limit, wait: None }))
            }
            Err(e) => Err(Refusal::Failed(e.to_string())),
        }
    }

    /// Checks that the collection for the results of a question exists.
    ///
    /// # Errors
    ///
    /// [`Refusal::Absent`] if it does not.
    pub async fn ready_to_keep(&self, question: &Question, view: &View) -> Result<(), Refusal> {
        let Some(keep) = question.keep.clone() else { return Ok(()) };
        keep.allowed(view)?;
        let result_store =
            self.result_store.clone().ok_or_else(|| Invalid::field("keep", "this server does not store results"))?;
        let view = view.clone();
        let ready = tokio::task::spawn_blocking(move || result_store.prepare(&view, &keep)).await;
        ready.map_err(|e| Refusal::Failed(e.to_string()))?
    }
}

/// Cancels a lookup when its request is dropped.
struct CancelOnDrop(CancelFlag);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.cancel();
    }
}

/// Runs a lookup where blocking is allowed, with its own permit like any query. It ends when its client leaves: the
/// slot of its search, which bounds the number of lookups, is then another's.
async fn look_up<T: Send + 'static>(
    control: Control,
    permit: Option<ReadPermit>,
    work: impl FnOnce(&Control) -> T + Send + 'static,
) -> Result<T, Refusal> {
    let _guard = CancelOnDrop(control.cancel_flag().clone());
    let current = meridian_observe::current();
    let looking = move || match permit {
        Some(permit) => permit.run(control, work),
        None => work(&control),
    };
    let found = tokio::task::spawn_blocking(move || current.run(looking)).await;
    found.map_err(|e| Refusal::Failed(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_store::seams::Seams;
    use tokio::sync::oneshot;
    use tokio::time::Duration;

    #[tokio::test]
    async fn a_lookup_ends_when_its_client_leaves() {
        let (begins, begun) = oneshot::channel();
        let (ends, ended) = oneshot::channel();
        let control = Control::new(Seams::real().clock, Duration::from_secs(60), CancelFlag::new());
        let request = tokio::spawn(look_up(control, None, move |control| {
            let _ = begins.send(());
            let why = loop {
                match control.check() {
                    Ok(()) => std::thread::yield_now(),
                    Err(why) => break why,
                }
            };
            let _ = ends.send(why);
        }));
        begun.await.expect("a lookup");
        request.abort();
        let why = ended.await.expect("its end");
        assert!(matches!(why, QueryError::Cancelled), "{why}");
    }
}
