//! The wire formats of queries, and conversions in both directions.
//!
//! They are written by hand: a core type with its own serialization could never change. The only exception is
//! [`ByValue`], a plain value.

use super::{Count, NearCircle, Question, WireError, malformed, refused};
use crate::aggregate::Aggregate;
use crate::by::ByValue;
use crate::cursor::Cursor;
use crate::density::Density;
use crate::function::Function;
use crate::items::{Items, Order};
use crate::passages::Passages;
use crate::sort::{SortKey, SortTarget};
use crate::tile::Tile;
use crate::token::{base64url, base64url_decode};
use crate::track::Track;
use crate::windows::Windows;
use meridian_model::filter::Predicate;
use meridian_model::geometry::validate_position;
use meridian_model::{Layout, Projection, Schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A query with its version.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Message {
    pub(super) version: u32,
    pub(super) time_left_us: u64,
    pub(super) question: WireQuestion,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum WireQuestion {
    Items(WireItems),
    Count { filter: Value, tested_max: u64 },
    Aggregate(WireAggregate),
    Density { filter: Value, bbox: [f64; 4], width: u32, height: u32 },
    Tile(WireTile),
    Track { object: String, filter: Value, simplify_m: Option<f64> },
    Passages { filter: Value, after: Option<ByValue>, limit: u64 },
    Near { lon: f64, lat: f64, radius_m: f64, k: u64, columns: Vec<String> },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireItems {
    filter: Value,
    order: WireOrder,
    limit: Option<u64>,
    /// The bytes of a cursor in base64url.
    after: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    until: Option<String>,
    columns: Vec<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum WireOrder {
    Natural,
    Near { lon: f64, lat: f64, k: Option<u64> },
    Fields(Vec<WireSortKey>),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireSortKey {
    /// The id, if `None`.
    property: Option<String>,
    descending: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireAggregate {
    filter: Value,
    /// Such as `sum(price)`.
    functions: Vec<String>,
    windows: Option<WireWindows>,
    /// The first `by` field.
    by: Option<String>,
    /// The other `by` fields. A server that does not support several rejects the query.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    also_by: Vec<String>,
    empty: bool,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct WireWindows {
    duration: String,
    zone: String,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WireTile {
    filter: Value,
    z: u8,
    row: u32,
    column: u32,
    layer: String,
    properties: Option<Vec<String>>,
    density: bool,
    /// A server that knows no averages rejects the query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    average: Option<String>,
}

/// Max value of a limit: sums of limits stay far within 64 bits.
const LIMIT_MAX: u64 = 1 << 48;

fn limit(n: u64) -> Result<usize, WireError> {
    // Above it, adding one for the next page could overflow.
    let fits = usize::try_from(n).ok().filter(|_| n <= LIMIT_MAX);
    fits.ok_or_else(|| refused("limit", format!("a limit of {n}: expected at most {LIMIT_MAX}")))
}

fn filter(predicate: &Predicate) -> Result<Value, WireError> {
    predicate.to_json().ok_or_else(|| malformed("the filter has no expression"))
}

fn columns(projection: &Projection, schema: &Schema) -> Vec<String> {
    let layout = Layout::of(schema);
    projection.columns().filter_map(|column| Some(layout.columns.get(column)?.name().clone())).collect()
}

fn projection(columns: &[String], schema: &Schema) -> Result<Projection, WireError> {
    let layout = Layout::of(schema);
    let mut projection = Projection::none(&layout);
    for name in columns {
        let column = layout.columns.iter().position(|column| column.name() == name);
        projection.add(column.ok_or_else(|| refused("columns", format!("this collection has no column {name:?}")))?);
    }
    Ok(projection)
}

fn field_name(field: usize, schema: &Schema) -> Result<String, WireError> {
    schema.fields.get(field).map(|f| f.name.clone()).ok_or_else(|| malformed("a property that the schema has not"))
}

fn field_of(name: &str, schema: &Schema) -> Result<usize, WireError> {
    let missing = || refused(name, format!("{name:?} is not a property of this collection"));
    schema.field_index(name).ok_or_else(missing)
}

impl WireQuestion {
    pub(super) fn of(question: &Question, schema: &Schema) -> Result<WireQuestion, WireError> {
        Ok(match question {
            Question::Items(items) => WireQuestion::Items(WireItems::of(items, schema)?),
            Question::Count(count) => {
                WireQuestion::Count { filter: filter(&count.predicate)?, tested_max: count.tested_max }
            }
            Question::Aggregate(aggregate) => WireQuestion::Aggregate(WireAggregate::of(aggregate, schema)?),
            Question::Density(Density { predicate, bbox, width, height }) => {
                let filter = filter(predicate)?;
                WireQuestion::Density { filter, bbox: *bbox, width: *width, height: *height }
            }
            Question::Tile(tile) => WireQuestion::Tile(WireTile::of(tile, schema)?),
            Question::Track(Track { object, predicate, simplify_m }) => {
                let filter = filter(predicate)?;
                WireQuestion::Track { object: object.clone(), filter, simplify_m: *simplify_m }
            }
            Question::Passages(Passages { predicate, after, limit }) => {
                WireQuestion::Passages { filter: filter(predicate)?, after: after.clone(), limit: *limit as u64 }
            }
            Question::Near(NearCircle { lon, lat, radius_m, k, projection }) => {
                let columns = columns(projection, schema);
                WireQuestion::Near { lon: *lon, lat: *lat, radius_m: *radius_m, k: *k as u64, columns }
            }
        })
    }

    /// The query itself, bound to a schema.
    pub(super) fn bind(self, schema: &Schema) -> Result<Question, WireError> {
        let read = |filter: &Value| Predicate::from_json(filter, schema);
        Ok(match self {
            WireQuestion::Items(items) => Question::Items(items.bind(schema)?),
            WireQuestion::Count { filter, tested_max } => {
                Question::Count(Count { predicate: read(&filter)?, tested_max })
            }
            WireQuestion::Aggregate(aggregate) => Question::Aggregate(aggregate.bind(schema)?),
            WireQuestion::Density { filter, bbox, width, height } => {
                let density = Density { predicate: read(&filter)?, bbox, width, height };
                // Checked here, so that a peer's query meets the same bounds as a client's parameters.
                density.cells()?;
                Question::Density(density)
            }
            WireQuestion::Tile(tile) => Question::Tile(tile.bind(schema)?),
            WireQuestion::Track { object, filter, simplify_m } => {
                Question::Track(Track { object, predicate: read(&filter)?, simplify_m })
            }
            WireQuestion::Passages { filter, after, limit: most } => {
                Question::Passages(Passages { predicate: read(&filter)?, after, limit: limit(most)? })
            }
            WireQuestion::Near { lon, lat, radius_m, k, columns } => {
                validate_position(lon, lat)?;
                if !(radius_m >= 0.0 && radius_m.is_finite()) {
                    return Err(refused("radius", format!("a radius of {radius_m} metres")));
                }
                let projection = projection(&columns, schema)?;
                Question::Near(NearCircle { lon, lat, radius_m, k: limit(k)?, projection })
            }
        })
    }
}

impl WireItems {
    fn of(items: &Items, schema: &Schema) -> Result<WireItems, WireError> {
        let order = match &items.order {
            Order::Natural => WireOrder::Natural,
            Order::Near { lon, lat, k } => WireOrder::Near { lon: *lon, lat: *lat, k: k.map(|k| k as u64) },
            Order::Fields(keys) => {
                let key = |key: &SortKey| {
                    let property = match key.target {
                        SortTarget::Field(field) => Some(field_name(field, schema)?),
                        SortTarget::Id => None,
                    };
                    Ok(WireSortKey { property, descending: key.descending })
                };
                WireOrder::Fields(keys.iter().map(key).collect::<Result<_, WireError>>()?)
            }
        };
        Ok(WireItems {
            filter: filter(&items.predicate)?,
            order,
            limit: items.limit.map(|limit| limit as u64),
            after: items.after.as_ref().map(|cursor| base64url(&cursor.to_bytes())),
            until: items.until.as_ref().map(|cursor| base64url(&cursor.to_bytes())),
            columns: columns(&items.projection, schema),
        })
    }

    fn bind(self, schema: &Schema) -> Result<Items, WireError> {
        let order = match self.order {
            WireOrder::Natural => Order::Natural,
            WireOrder::Near { lon, lat, k } => Order::Near { lon, lat, k: k.map(limit).transpose()? },
            WireOrder::Fields(keys) => {
                let key = |WireSortKey { property, descending }: WireSortKey| {
                    let field = property.map(|name| field_of(&name, schema)).transpose()?;
                    Ok(SortKey { target: field.map_or(SortTarget::Id, SortTarget::Field), descending })
                };
                Order::Fields(keys.into_iter().map(key).collect::<Result<_, WireError>>()?)
            }
        };
        let cursor = |text: String| {
            let cursor = base64url_decode(&text).and_then(|bytes| Cursor::from_bytes(&bytes));
            cursor.ok_or_else(|| malformed("its cursor cannot be read"))
        };
        Ok(Items {
            predicate: Predicate::from_json(&self.filter, schema)?,
            order,
            limit: self.limit.map(limit).transpose()?,
            after: self.after.map(cursor).transpose()?,
            until: self.until.map(cursor).transpose()?,
            projection: projection(&self.columns, schema)?,
        })
    }
}

impl WireAggregate {
    fn of(aggregate: &Aggregate, schema: &Schema) -> Result<WireAggregate, WireError> {
        let windows = aggregate.windows.as_ref().map(|windows| {
            let (duration, zone) = windows.text();
            WireWindows { duration: duration.to_owned(), zone: zone.to_owned() }
        });
        let mut by = aggregate.by.iter().map(|&by| field_name(by, schema)).collect::<Result<Vec<_>, _>>()?.into_iter();
        Ok(WireAggregate {
            filter: filter(&aggregate.predicate)?,
            functions: aggregate.functions.iter().map(|function| function.name(schema)).collect(),
            windows,
            by: by.next(),
            also_by: by.collect(),
            empty: aggregate.empty,
        })
    }

    fn bind(self, schema: &Schema) -> Result<Aggregate, WireError> {
        let functions =
            self.functions.iter().map(|name| Function::parse_one(name, schema)).collect::<Result<_, _>>()?;
        let aggregate = Aggregate {
            predicate: Predicate::from_json(&self.filter, schema)?,
            functions,
            windows: self.windows.map(|w| Windows::parse(&w.duration, &w.zone)).transpose()?,
            by: self.by.iter().chain(&self.also_by).map(|by| field_of(by, schema)).collect::<Result<_, _>>()?,
            empty: self.empty,
        };
        aggregate.check(schema)?;
        Ok(aggregate)
    }
}

impl WireTile {
    fn of(tile: &Tile, schema: &Schema) -> Result<WireTile, WireError> {
        let names = |fields: &Vec<usize>| fields.iter().map(|&field| field_name(field, schema)).collect();
        Ok(WireTile {
            filter: filter(&tile.predicate)?,
            z: tile.z,
            row: tile.row,
            column: tile.column,
            layer: tile.layer.clone(),
            properties: tile.fields.as_ref().map(names).transpose()?,
            density: tile.density,
            average: tile.average.map(|field| field_name(field, schema)).transpose()?,
        })
    }

    fn bind(self, schema: &Schema) -> Result<Tile, WireError> {
        let fields = |names: Vec<String>| names.iter().map(|name| field_of(name, schema)).collect();
        Ok(Tile {
            predicate: Predicate::from_json(&self.filter, schema)?,
            z: self.z,
            row: self.row,
            column: self.column,
            layer: self.layer,
            fields: self.properties.map(fields).transpose()?,
            density: self.density,
            average: self.average.map(|name| field_of(&name, schema)).transpose()?,
        })
    }
}
