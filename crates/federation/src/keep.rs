//! Results that are kept: written into a collection while they are delivered, for as long as the asker says.
//!
//! Where collections are and how they are made is not this crate's matter: whoever runs searches hands them a [`Keeper`].

use crate::found::Found;
use crate::searches::Refusal;
use meridian_model::{Invalid, schema};
use serde_json::{Map, Value};
use std::time::Duration;

/// For how long results are kept in a new collection where the question does not say.
const AGE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);
/// Longest, in hours: a year.
const HOURS_MAX: u64 = 8_784;

/// Where, and for how long: the member `keep` of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keep {
    /// Name of the collection.
    pub collection: String,
    /// Age, since they were found, at which results go; where the question does not say, that of the collection.
    pub age: Option<Duration>,
}

impl Keep {
    /// The age for a collection that is made for it.
    pub fn age_of_new(&self) -> Duration {
        self.age.unwrap_or(AGE_DEFAULT)
    }

    /// Reads the member; a mistake names it.
    pub(crate) fn read(members: &Map<String, Value>) -> Result<Option<Keep>, Invalid> {
        let wrong = |detail: String| Invalid::field("keep", detail);
        let keep = match members.get("keep") {
            None | Some(Value::Null) => return Ok(None),
            Some(Value::Object(keep)) => keep,
            Some(_) => {
                return Err(wrong("expected an object such as {\"collection\":\"floods\",\"hours\":24}".to_owned()));
            }
        };
        if let Some(unknown) = keep.keys().find(|name| !["collection", "hours"].contains(&name.as_str())) {
            return Err(wrong(format!("it has no member {unknown:?}: expected collection and hours")));
        }
        let collection = keep.get("collection").and_then(Value::as_str).ok_or_else(|| {
            wrong("expected the name of a collection, as in {\"collection\":\"floods\",\"hours\":24}".to_owned())
        })?;
        schema::validate_name("collection", collection).map_err(|e| wrong(e.detail))?;
        let hours = match keep.get("hours") {
            None | Some(Value::Null) => None,
            Some(hours) => Some(
                hours
                    .as_u64()
                    .filter(|hours| (1..=HOURS_MAX).contains(hours))
                    .ok_or_else(|| wrong(format!("hours: {hours}: expected a whole number from 1 to {HOURS_MAX}")))?,
            ),
        };
        let age = hours.map(|hours| Duration::from_secs(hours * 3_600));
        Ok(Some(Keep { collection: collection.to_owned(), age }))
    }
}

/// Whoever has a place for results. Its calls block.
pub trait Keeper: Send + Sync + 'static {
    /// Makes the collection where it is not there; called before the search begins, so that what is wrong is said at once.
    fn ready(&self, keep: &Keep) -> Result<(), Refusal>;

    /// Writes results of a provider. The error is a sentence that says what was not written and why.
    fn keep(&self, keep: &Keep, search: &str, provider: &str, found: &[Found]) -> Result<(), String>;
}
