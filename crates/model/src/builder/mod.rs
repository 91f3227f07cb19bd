//! Builds a batch event by event and validates each event.

mod columns;

use crate::batch::Batch;
use crate::error::{Invalid, shorten};
use crate::layout::{GeometryColumns, Layout};
use crate::schema::{FieldType, IdRole, Schema, TimeRole};
use crate::{geometry, time};
use arrow_array::ArrayRef;
use arrow_array::builder::{
    BinaryBuilder, BooleanBuilder, Float64Builder, Int64Builder, ListBuilder, StringBuilder,
    TimestampMicrosecondBuilder,
};
use columns::{FIRST_BYTES, FIRST_ROWS, FieldBuilder, PendingValue, PlaceBuilder};
use geo_types::Geometry;
use std::sync::Arc;

/// Max bytes of one text value.
pub const TEXT_BYTES_MAX: usize = 1 << 20;

/// Collects events into a [`Batch`].
///
/// Call [`BatchBuilder::set_id`], the setters of geometry and fields in any order, each at most once, then
/// [`BatchBuilder::end_event`]; unset parts are null. If a call fails, discard the event with
/// [`BatchBuilder::abandon_event`]; earlier events are kept.
pub struct BatchBuilder {
    schema: Arc<Schema>,
    layout: Arc<Layout>,
    rows: usize,
    bytes: usize,
    id: StringBuilder,
    id_pending: Option<String>,
    place: PlaceBuilder,
    fields: Vec<FieldBuilder>,
    /// Values of the current event, by field.
    pending: Vec<PendingValue>,
    /// Texts of the current event, concatenated: one buffer for all events instead of a string per text.
    texts: String,
    /// The first number of the current event that its field has as another one.
    rounded: Option<Invalid>,
}

/// One value of a field.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// No value.
    Null,
    /// Text.
    Text(String),
    /// Integer.
    Int(i64),
    /// Float.
    Float(f64),
    /// Boolean.
    Bool(bool),
    /// Microseconds since 1970.
    Time(i64),
    /// List of texts.
    TextList(Vec<String>),
}

impl BatchBuilder {
    /// A builder for events of this schema.
    pub fn new(schema: Arc<Schema>) -> Self {
        let layout = Arc::new(Layout::of(&schema));
        let place = match layout.geometry {
            None => PlaceBuilder::None,
            Some(GeometryColumns::Points { .. }) => PlaceBuilder::Points {
                lon: Float64Builder::with_capacity(FIRST_ROWS),
                lat: Float64Builder::with_capacity(FIRST_ROWS),
                pending: None,
            },
            Some(GeometryColumns::Shapes { .. }) => PlaceBuilder::Shapes {
                wkb: BinaryBuilder::with_capacity(FIRST_ROWS, FIRST_BYTES),
                sides: Box::new(std::array::from_fn(|_| Float64Builder::with_capacity(FIRST_ROWS))),
                pending: None,
            },
        };
        let fields = schema
            .fields
            .iter()
            .map(|f| match f.kind {
                FieldType::Text => FieldBuilder::Text(StringBuilder::with_capacity(FIRST_ROWS, FIRST_BYTES)),
                FieldType::Int => FieldBuilder::Int(Int64Builder::with_capacity(FIRST_ROWS)),
                FieldType::Float => FieldBuilder::Float(Float64Builder::with_capacity(FIRST_ROWS)),
                FieldType::Bool => FieldBuilder::Bool(BooleanBuilder::with_capacity(FIRST_ROWS)),
                FieldType::Time | FieldType::Date => {
                    FieldBuilder::Time(TimestampMicrosecondBuilder::with_capacity(FIRST_ROWS).with_timezone("UTC"))
                }
                FieldType::TextList => {
                    FieldBuilder::TextList(ListBuilder::new(StringBuilder::with_capacity(FIRST_ROWS, FIRST_BYTES)))
                }
            })
            .collect();
        // Values are staged here until the event is complete: columns cannot roll back an invalid event.
        let pending = vec![PendingValue::Null; schema.fields.len()];
        let id = match schema.id {
            IdRole::Given => StringBuilder::with_capacity(FIRST_ROWS, FIRST_BYTES),
            IdRole::Made => StringBuilder::with_capacity(0, 0),
        };
        BatchBuilder {
            schema,
            layout,
            rows: 0,
            bytes: 0,
            id,
            id_pending: None,
            place,
            fields,
            pending,
            texts: String::new(),
            rounded: None,
        }
    }

    /// The schema that events are checked against.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// Number of completed events.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Approximate size of the completed events in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Sets the id of the current event; ignored if ids are generated.
    pub fn set_id(&mut self, id: impl Into<String>) -> Result<(), Invalid> {
        if self.schema.id == IdRole::Made {
            return Ok(());
        }
        let id = id.into();
        if !id_fits(&id) {
            return Err(Invalid::field(
                &self.schema.id_name,
                "an id must be 1 to 1024 bytes without control characters",
            ));
        }
        self.id_pending = Some(id);
        Ok(())
    }

    /// Whether the current event has an id; always false if ids are generated.
    pub fn has_id(&self) -> bool {
        self.id_pending.is_some()
    }

    /// Sets a point in degrees.
    pub fn set_point(&mut self, lon: f64, lat: f64) -> Result<(), Invalid> {
        let named = |e: Invalid| Invalid { field: Some(self.schema.geometry_name.clone()), ..e };
        geometry::validate_position(lon, lat).map_err(named)?;
        match &mut self.place {
            PlaceBuilder::Points { pending, .. } => {
                *pending = Some((lon, lat));
                Ok(())
            }
            // A collection of mixed geometries stores points as shapes too.
            _ => self.set_geometry(&geo_types::Point::new(lon, lat).into()),
        }
    }

    /// Sets a geometry of any type that the schema accepts.
    pub fn set_geometry(&mut self, shape: &Geometry<f64>) -> Result<(), Invalid> {
        let field = || self.schema.geometry_name.clone();
        let expected =
            self.schema.geometry.ok_or_else(|| Invalid::field(field(), "this collection has no geometry"))?;
        geometry::validate(shape).map_err(|e| Invalid { field: Some(field()), ..e })?;
        match geometry::kind(shape) {
            Some(kind) if expected.takes(kind) => {}
            kind => {
                let found = kind.map_or("GeometryCollection", |k| k.word());
                return Err(Invalid::field(
                    field(),
                    format!("a {found} where this collection holds {}", expected.word()),
                ));
            }
        }
        match (&mut self.place, shape) {
            (PlaceBuilder::Points { pending, .. }, Geometry::Point(p)) => *pending = Some((p.x(), p.y())),
            (PlaceBuilder::Shapes { pending, .. }, _) => {
                let sides = geometry::sides(shape)
                    .ok_or_else(|| Invalid::field("geometry", "the geometry has no positions"))?;
                *pending = Some((geometry::to_wkb(shape), sides));
            }
            _ => return Err(Invalid::field(field(), "expected a Point")),
        }
        Ok(())
    }

    /// Sets a field by index. Float fields accept integers, and integer fields accept whole floats.
    pub fn set(&mut self, field: usize, value: Value) -> Result<(), Invalid> {
        let spec = &self.schema.fields[field];
        let wrong =
            |found: &str| Invalid::field(&spec.name, format!("{found} where {} was expected", spec.kind.noun()));
        self.pending[field] = match (spec.kind, value) {
            (_, Value::Null) => PendingValue::Null,
            (FieldType::Text, Value::Text(text)) => return self.set_text(field, &text),
            (FieldType::Int, Value::Int(n)) => PendingValue::Int(n),
            // Below 2^53 every whole float is exactly one integer.
            (FieldType::Int, Value::Float(x)) if x.fract() == 0.0 && x.abs() < 9.0e15 => PendingValue::Int(x as i64),
            (FieldType::Float, Value::Int(n)) => {
                // Beyond 2^53 a float holds only some integers; 128 bits hold every float that an integer of 64 gives.
                if n as f64 as i128 != i128::from(n) {
                    self.note_rounded(field, &n.to_string(), n as f64);
                }
                PendingValue::Float(n as f64)
            }
            (FieldType::Float, Value::Float(x)) if x.is_finite() => PendingValue::Float(x),
            (FieldType::Float, Value::Float(x)) => return Err(wrong(&format!("{x}"))),
            (FieldType::Bool, Value::Bool(b)) => PendingValue::Bool(b),
            (FieldType::Time, Value::Time(t)) => {
                PendingValue::Time(time::in_range(t, &t).map_err(|e| Invalid { field: Some(spec.name.clone()), ..e })?)
            }
            (FieldType::Date, Value::Time(t)) => {
                PendingValue::Time(time::day(t).map_err(|e| Invalid { field: Some(spec.name.clone()), ..e })?)
            }
            (FieldType::TextList, Value::TextList(list)) => PendingValue::TextList(list),
            (_, Value::Text(text)) => return Err(wrong(&format!("the text {:?}", shorten(&text)))),
            (_, Value::Int(n)) => return Err(wrong(&format!("the integer {n}"))),
            // Parsers read an integer beyond 64 bits as a float, whose digits are not those of the input.
            (FieldType::Int, Value::Float(x)) if x.fract() == 0.0 && x.is_finite() => {
                return Err(Invalid::field(
                    &spec.name,
                    format!(
                        "the number {x:e} is too large: expected an integer of 64 bits, without fraction or exponent"
                    ),
                ));
            }
            (_, Value::Float(x)) => return Err(wrong(&format!("the number {x}"))),
            (_, Value::Bool(b)) => return Err(wrong(&format!("{b}"))),
            (_, Value::Time(t)) => return Err(wrong(&format!("the time {}", time::format_instant(t)))),
            (_, Value::TextList(_)) => return Err(wrong("a list")),
        };
        Ok(())
    }

    /// Like [`BatchBuilder::set`] for a text, without taking ownership.
    pub fn set_text(&mut self, field: usize, text: &str) -> Result<(), Invalid> {
        let spec = &self.schema.fields[field];
        if spec.kind != FieldType::Text {
            let detail = format!("the text {:?} where {} was expected", shorten(text), spec.kind.noun());
            return Err(Invalid::field(&spec.name, detail));
        }
        if text.len() > TEXT_BYTES_MAX {
            return Err(Invalid::field(
                &spec.name,
                format!("a text of {} bytes is too long: at most {TEXT_BYTES_MAX}", text.len()),
            ));
        }
        let from = self.texts.len();
        self.texts.push_str(text);
        self.pending[field] = PendingValue::Text(from, self.texts.len());
        Ok(())
    }

    /// Notes that a field of the current event has this float for another number that was given.
    pub fn note_rounded(&mut self, field: usize, given: &str, float: f64) {
        let name = &self.schema.fields[field].name;
        let what = || match given.contains('.') {
            true => format!("the decimal {} was rounded to {float}", shorten(given)),
            false => format!("the integer {} was rounded to {float:.0}", shorten(given)),
        };
        self.rounded.get_or_insert_with(|| Invalid::field(name, what()));
    }

    /// Takes the first of these notes, which stays when the event ends.
    pub fn take_rounded(&mut self) -> Option<Invalid> {
        self.rounded.take()
    }

    /// Checks the current event for required values and appends it.
    pub fn end_event(&mut self) -> Result<(), Invalid> {
        if self.schema.id == IdRole::Given && self.id_pending.is_none() {
            return Err(Invalid::field(&self.schema.id_name, "the event has no id, which this collection requires"));
        }
        for (spec, value) in self.schema.fields.iter().zip(&self.pending) {
            if spec.required && *value == PendingValue::Null {
                return Err(Invalid::field(
                    &spec.name,
                    format!("no value where this collection requires {}", spec.kind.noun()),
                ));
            }
        }
        if let TimeRole::Interval { start, end } = self.schema.time
            && let (PendingValue::Time(from), PendingValue::Time(to)) = (&self.pending[start], &self.pending[end])
            && from > to
        {
            return Err(Invalid::field(
                &self.schema.fields[end].name,
                format!(
                    "the event ends at {} before it starts at {}",
                    time::format_instant(*to),
                    time::format_instant(*from)
                ),
            ));
        }
        // Nothing fails from here on: either all columns get this row or none does.
        if let Some(id) = self.id_pending.take() {
            self.bytes += id.len() + 4;
            self.id.append_value(id);
        }
        self.bytes += self.place.end_event();
        for (builder, value) in self.fields.iter_mut().zip(&mut self.pending) {
            self.bytes += builder.append(std::mem::replace(value, PendingValue::Null), &self.texts);
        }
        self.texts.clear();
        self.rows += 1;
        Ok(())
    }

    /// Discards the current event.
    pub fn abandon_event(&mut self) {
        self.id_pending = None;
        self.rounded = None;
        self.pending.fill(PendingValue::Null);
        self.texts.clear();
        match &mut self.place {
            PlaceBuilder::None => {}
            PlaceBuilder::Points { pending, .. } => *pending = None,
            PlaceBuilder::Shapes { pending, .. } => *pending = None,
        }
    }

    /// Returns the completed events and resets the builder.
    pub fn finish(&mut self) -> Result<Batch, Invalid> {
        let mut columns: Vec<Option<ArrayRef>> = Vec::with_capacity(self.layout.columns.len());
        if self.layout.id.is_some() {
            columns.push(Some(Arc::new(self.id.finish())));
        }
        match &mut self.place {
            PlaceBuilder::None => {}
            PlaceBuilder::Points { lon, lat, .. } => {
                columns.push(Some(Arc::new(lon.finish())));
                columns.push(Some(Arc::new(lat.finish())));
            }
            PlaceBuilder::Shapes { wkb, sides, .. } => {
                columns.push(Some(Arc::new(wkb.finish())));
                for side in sides.iter_mut() {
                    columns.push(Some(Arc::new(side.finish())));
                }
            }
        }
        columns.extend(self.fields.iter_mut().map(|f| Some(f.finish())));
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        Batch::new(self.schema.clone(), self.layout.clone(), rows, columns)
    }
}

/// Whether a text is a valid id.
pub fn id_fits(id: &str) -> bool {
    (1..=1024).contains(&id.len()) && !id.chars().any(char::is_control)
}
