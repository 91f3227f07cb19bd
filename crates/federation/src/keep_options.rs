//! The member `keep` of a question.

use meridian_model::{Invalid, schema};
use serde_json::{Map, Value};
use std::time::Duration;

/// Retention of results in a new collection when the question gives none.
const AGE_DEFAULT: Duration = Duration::from_secs(24 * 3_600);
/// Max retention in hours: 366 days.
const HOURS_MAX: u64 = 8_784;

/// The member `keep` of a question: where results are stored, and for how long.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeepOptions {
    /// Name of the collection.
    pub collection: String,
    /// Age since they were found at which results expire. `None` for the setting of the collection.
    pub age: Option<Duration>,
}

impl KeepOptions {
    /// Returns the retention of a collection created for this question.
    pub fn age_of_new(&self) -> Duration {
        self.age.unwrap_or(AGE_DEFAULT)
    }

    /// Reads the member. An error names it.
    pub(crate) fn read(members: &Map<String, Value>) -> Result<Option<KeepOptions>, Invalid> {
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
        Ok(Some(KeepOptions { collection: collection.to_owned(), age }))
    }
}
