//! Preparation of an admitted search before its first provider is asked: coordinates of its address, and a
//! collection for its results.

use super::Searches;
use crate::area::Area;
use crate::provider::locate;
use crate::question::{Location, Question};
use crate::refusal::Refusal;
use meridian_backend::View;
use meridian_model::Invalid;
use meridian_model::policy::quota::Quota;
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
        let ledger = &view.caller().ledger;
        let control = match ledger.limit(Quota::ScannedBytesPerRequest) {
            Some(bytes) => control.reading_at_most(bytes),
            None => control,
        };
        let found = tokio::task::spawn_blocking(move || locate(collection.as_ref(), &name, &control)).await;
        match found.map_err(|e| Refusal::Failed(e.to_string()))? {
            Ok((lon, lat)) => {
                question.place = Some(Location::Area(Area::Circle { lon, lat, radius_m }));
                Ok(question)
            }
            Err(QueryError::Invalid(invalid)) => Err(Refusal::Invalid(Invalid::field("address", invalid.detail))),
            Err(QueryError::TooLarge { bytes, limit: Some(limit), .. }) => {
                // Already counted as a refusal there.
                ledger.within(Quota::ScannedBytesPerRequest, || bytes.max(limit)).map_err(Refusal::Quota)?;
                // The limit was raised meanwhile.
                Err(Refusal::Failed("the quota changed while the address was looked up: try again".to_owned()))
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
