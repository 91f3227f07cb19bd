//! A new place: the body sent by clients, with the validation that the profile's clients expect.

use super::{TEXTS, field_error, field_errors};
use crate::protocol::problem::Result;
use meridian_model::{Batch, BatchBuilder, Invalid, Schema};
use serde::Deserialize;
use std::sync::Arc;

/// A place as sent by a client; other members are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NewPlace {
    name: Option<String>,
    address: Option<String>,
    city: Option<String>,
    state: Option<String>,
    zip_code: Option<String>,
    telephone_number: Option<String>,
    latitude: Option<f64>,
    longitude: Option<f64>,
}

impl NewPlace {
    /// Converts the place to a batch of one event with this id.
    pub fn to_batch(&self, schema: &Arc<Schema>, id: &str) -> Result<Batch> {
        let mut errors: Vec<(&str, String)> = Vec::new();
        if self.name.as_deref().is_none_or(|n| n.trim().is_empty()) {
            errors.push(("name", "must not be empty".to_owned()));
        }
        for (name, value, limit) in [("latitude", self.latitude, 90.0), ("longitude", self.longitude, 180.0)] {
            match value {
                None => errors.push((name, "must not be null".to_owned())),
                Some(degrees) if !(-limit..=limit).contains(&degrees) => {
                    errors.push((name, format!("{degrees} is outside -{limit}..{limit}")));
                }
                Some(_) => {}
            }
        }
        if !errors.is_empty() {
            return Err(field_errors(&errors));
        }
        let mut builder = BatchBuilder::new(schema.clone());
        let texts = [&self.name, &self.address, &self.city, &self.state, &self.zip_code, &self.telephone_number];
        let mut build = || -> Result<Batch, Invalid> {
            builder.set_id(id)?;
            builder.set_point(self.longitude.unwrap_or_default(), self.latitude.unwrap_or_default())?;
            for (name, text) in TEXTS.iter().zip(texts) {
                if let (Some(field), Some(text)) = (schema.field_index(name), text) {
                    builder.set_text(field, text)?;
                }
            }
            builder.end_event()?;
            builder.finish()
        };
        build().map_err(|e| field_error(e.field.as_deref().unwrap_or("place"), e.detail))
    }
}
