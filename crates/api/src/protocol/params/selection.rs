//! The selection of a request: `bbox`, `datetime`, `near`, `filter` and queryables become one predicate.

use super::cql_text;
use super::crs::{self, Crs};
use super::{Params, position};
use crate::protocol::problem::{Problem, Result};
use meridian_model::filter::{self, ArrayOp, Comparison, Expr, Operand, Predicate};
use meridian_model::unrepeated::Unrepeated;
use meridian_model::{FieldType, Interval, Invalid, Schema};

/// Max radius in metres: slightly more than half the earth's circumference.
const RADIUS_MAX_M: f64 = 20_100_000.0;

/// Which events a request selects, and the position to order them by.
#[derive(Debug, Clone)]
pub struct EventSelection {
    /// All conditions combined.
    pub predicate: Predicate,
    /// The position to order by, longitude and latitude in degrees.
    pub near: Option<(f64, f64)>,
    /// Whether to include events that a collection of mode `latest` does not show.
    pub history: bool,
    /// The parameters as written by the client; they bind a page token to one query.
    pub terms: Vec<String>,
}

impl EventSelection {
    /// Takes the selection parameters. Call it last, since queryables are taken after all fixed names.
    pub fn take(params: &mut Params, schema: &Schema) -> Result<EventSelection> {
        let mut terms = UsedParams::default();
        let mut parts = Vec::new();
        let bbox_crs = terms.take(params, "bbox-crs").map(|c| crs::parse("bbox-crs", &c)).transpose()?;
        match terms.take(params, "bbox") {
            Some(text) => {
                has_place(schema, "bbox")?;
                let [west, south, east, north] = crs::parse_bbox(&text, bbox_crs.unwrap_or_default())?;
                parts.push(Predicate::bbox(west, south, east, north));
            }
            None if bbox_crs.is_some() => return Err(Problem::parameter("bbox-crs", "given without a bbox")),
            None => {}
        }
        if let Some(text) = terms.take(params, "datetime") {
            has_time(schema, "datetime")?;
            parts.push(Predicate::interval(
                Interval::parse(&text).map_err(|e| Problem::invalid_parameter("datetime", e))?,
            ));
        }
        let near = terms.take(params, "near").map(|text| position("near", &text)).transpose()?;
        if near.is_some() {
            has_place(schema, "near")?;
        }
        match (near, terms.take(params, "radius")) {
            (_, None) => {}
            (None, Some(_)) => return Err(Problem::parameter("radius", "given without near=longitude,latitude")),
            (Some((lon, lat)), Some(text)) => {
                let radius_m = super::number("radius", &text)?;
                if radius_m < 0.0 {
                    return Err(Problem::parameter("radius", format!("{radius_m} metres: expected 0 or more")));
                }
                parts.push(Predicate::near(lon, lat, radius_m.min(RADIUS_MAX_M)));
            }
        }
        if let Some(expr) = take_filter(&mut terms, params, schema)? {
            parts.push(Predicate::bind(&expr, schema).map_err(|e| Problem::invalid_parameter("filter", e))?);
        }
        for expr in take_queryables(&mut terms, params, schema)? {
            parts.push(Predicate::bind(&expr.1, schema).map_err(|e| Problem::invalid_parameter(expr.0, e))?);
        }
        let history = match terms.take(params, "history").as_deref() {
            None | Some("false") => false,
            Some("true") => true,
            Some(other) => return Err(Problem::parameter("history", format!("{other:?}: expected true or false"))),
        };
        Ok(EventSelection { predicate: Predicate::and(parts), near, history, terms: terms.0 })
    }
}

/// Refuses a spatial query on a collection without geometries; `blamed` is the parameter that makes it spatial.
pub fn has_place(schema: &Schema, blamed: &'static str) -> Result<()> {
    match schema.geometry {
        Some(_) => Ok(()),
        None => Err(Problem::parameter(blamed, "this collection has no places: its events have no geometry")),
    }
}

/// Refuses a temporal query on a collection without times.
pub fn has_time(schema: &Schema, blamed: &'static str) -> Result<()> {
    match schema.has_time() {
        true => Ok(()),
        false => Err(Problem::parameter(blamed, "this collection has no times: none of its fields is a time")),
    }
}

/// Returns the names that [`EventSelection::take`] accepts in addition to its collection's.
pub fn queryable_names(schema: &Schema) -> Vec<&str> {
    let fields = schema.fields.iter().map(|f| f.name.as_str());
    // As in filters: the fixed name too, unless a field has it.
    let fixed = (schema.id_name != "id" && schema.field_index("id").is_none()).then_some("id");
    std::iter::once(schema.id_name.as_str()).chain(fixed).chain(fields).collect()
}

/// Records the parameters that were taken.
#[derive(Default)]
struct UsedParams(Vec<String>);

impl UsedParams {
    fn take(&mut self, params: &mut Params, name: &'static str) -> Option<String> {
        let value = params.take(name)?;
        self.0.push(format!("{name}={value}"));
        Some(value)
    }
}

fn take_filter(terms: &mut UsedParams, params: &mut Params, schema: &Schema) -> Result<Option<Expr>> {
    let lang = terms.take(params, "filter-lang");
    let system = terms.take(params, "filter-crs").map(|c| crs::parse("filter-crs", &c)).transpose()?;
    let Some(text) = terms.take(params, "filter") else {
        return match (lang, system) {
            (None, None) => Ok(None),
            (Some(_), _) => Err(Problem::parameter("filter-lang", "given without a filter")),
            (None, Some(_)) => Err(Problem::parameter("filter-crs", "given without a filter")),
        };
    };
    let wrong = |e: Invalid| Problem::invalid_parameter("filter", e);
    let expr = match lang.as_deref() {
        None | Some("cql2-text") => filter::parse_text(&text).map_err(wrong)?,
        Some("cql-text") => cql_text::as_cql2(filter::parse_text(&text).map_err(wrong)?, schema)?,
        Some("cql2-json") => {
            let Unrepeated(value) = serde_json::from_str(&text)
                .map_err(|e| Problem::parameter("filter", format!("the filter is not JSON: {e}")))?;
            filter::parse_json(&value).map_err(wrong)?
        }
        Some(other) => {
            return Err(Problem::parameter(
                "filter-lang",
                format!("{other:?}: expected cql2-text, cql2-json or cql-text"),
            ));
        }
    };
    Ok(Some(match system {
        None | Some(Crs::Crs84) => expr,
        Some(system) => to_lon_lat(expr, system),
    }))
}

/// Converts the geometries of a filter to longitude and latitude in degrees.
fn to_lon_lat(expr: Expr, crs: Crs) -> Expr {
    let each = |list: Vec<Expr>| list.into_iter().map(|e| to_lon_lat(e, crs)).collect();
    match expr {
        Expr::And(list) => Expr::And(each(list)),
        Expr::Or(list) => Expr::Or(each(list)),
        Expr::Not(inner) => Expr::Not(Box::new(to_lon_lat(*inner, crs))),
        Expr::Spatial { op, left, right } => {
            Expr::Spatial { op, left: place_to_lon_lat(left, crs), right: place_to_lon_lat(right, crs) }
        }
        // Geometries occur only in spatial functions.
        other => other,
    }
}

fn place_to_lon_lat(operand: Operand, crs: Crs) -> Operand {
    match operand {
        Operand::Geometry(shape) => Operand::Geometry(crs.geometry_to_lon_lat(&shape)),
        Operand::Bbox([x1, y1, x2, y2]) => {
            let ((west, south), (east, north)) = (crs.to_lon_lat(x1, y1), crs.to_lon_lat(x2, y2));
            Operand::Bbox([west, south, east, north])
        }
        other => other,
    }
}

/// Takes queryables given as parameters of their own name: equality, or membership in a list.
///
/// Each is returned with its name, for the error message.
fn take_queryables<'a>(
    terms: &mut UsedParams,
    params: &mut Params,
    schema: &'a Schema,
) -> Result<Vec<(&'a str, Expr)>> {
    let mut found = Vec::new();
    for name in queryable_names(schema) {
        let Some(text) = params.take_other(name) else { continue };
        // Part of the query's identity: a page token must not match a query with another value.
        terms.0.push(format!("{name}={text}"));
        let wrong = |expected: &str| Problem::parameter(name, format!("{text:?} is not {expected}"));
        let property = Operand::Property(name.to_owned());
        let kind = schema.field_index(name).map_or(FieldType::Text, |i| schema.fields[i].kind);
        let value = match kind {
            FieldType::Text => Operand::Text(text.clone()),
            FieldType::Int => Operand::Int(text.parse().map_err(|_| wrong("an integer"))?),
            FieldType::Float => Operand::Float(super::number(name, &text)?),
            FieldType::Bool => Operand::Bool(text.parse().map_err(|_| wrong("true or false"))?),
            // Like the text in a filter: an instant, or a date, which matches any instant of its day.
            FieldType::Time | FieldType::Date => Operand::Text(text.clone()),
            FieldType::TextList => {
                let right = Operand::List(vec![Operand::Text(text.clone())]);
                found.push((name, Expr::Array { op: ArrayOp::Contains, left: property, right }));
                continue;
            }
        };
        found.push((name, Expr::Compare { op: Comparison::Eq, left: property, right: value }));
    }
    Ok(found)
}
