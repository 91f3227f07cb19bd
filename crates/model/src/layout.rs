//! Column positions of the parts of an event in a batch.

use crate::schema::{FieldType, GeometryType, IdRole, Schema};
use arrow_schema::{DataType, Field as ArrowField, TimeUnit};
use std::sync::Arc;

/// The physical columns of a schema, in order: id (if given), geometry, then the fields.
///
/// Points are two nullable `Float64` columns `lon`, `lat`. Other geometries are one nullable `Binary` column of WKB
/// (`wkb`) and its box in four `Float64` columns, so that boxes are tested without decoding shapes. Fields follow in
/// schema order, so that a field added later becomes the last column.
#[derive(Debug, Clone, PartialEq)]
pub struct Layout {
    /// Arrow name, type and nullability of each column.
    pub columns: Vec<Arc<ArrowField>>,
    /// Column of the id, where ids are given.
    pub id: Option<usize>,
    /// First column of the geometry, if any.
    pub geometry: Option<GeometryColumns>,
    /// Column of the first field.
    pub first_field: usize,
}

/// Position of the geometry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GeometryColumns {
    /// Points: columns of longitude and latitude.
    Points {
        /// Column of longitudes in degrees.
        lon: usize,
        /// Column of latitudes in degrees.
        lat: usize,
    },
    /// Other shapes: column of WKB, followed by west, south, east and north.
    Shapes {
        /// Column of WKB; the next four are its box.
        wkb: usize,
    },
}

/// The Arrow type of a field type.
pub fn arrow_type(kind: FieldType) -> DataType {
    match kind {
        FieldType::Text => DataType::Utf8,
        FieldType::Int => DataType::Int64,
        FieldType::Float => DataType::Float64,
        FieldType::Bool => DataType::Boolean,
        FieldType::Time | FieldType::Date => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
        FieldType::TextList => DataType::List(Arc::new(ArrowField::new("item", DataType::Utf8, true))),
    }
}

impl Layout {
    /// The layout of a schema. Physical names begin with `@`, repeated as often as needed to differ from field names.
    pub fn of(schema: &Schema) -> Layout {
        let mut columns = Vec::with_capacity(schema.fields.len() + 6);
        let mut push = |name: &str, kind: DataType, nullable: bool| {
            let mut name = name.to_owned();
            // Batches sent between nodes are addressed by name.
            while schema.field_index(&name).is_some() {
                name.insert(0, '@');
            }
            columns.push(Arc::new(ArrowField::new(name, kind, nullable)));
            columns.len() - 1
        };
        let id = (schema.id == IdRole::Given).then(|| push("@id", DataType::Utf8, false));
        let geometry = schema.geometry.map(|kind| match kind {
            GeometryType::Point => GeometryColumns::Points {
                lon: push("@lon", DataType::Float64, true),
                lat: push("@lat", DataType::Float64, true),
            },
            _ => {
                // The sides directly follow the shape: `add_boxes` and the file reader address them as `wkb + 1..wkb
                // + 5`.
                let wkb = push("@wkb", DataType::Binary, true);
                for side in ["@west", "@south", "@east", "@north"] {
                    push(side, DataType::Float64, true);
                }
                GeometryColumns::Shapes { wkb }
            }
        });
        let first_field = id.map_or(0, |_| 1)
            + match geometry {
                None => 0,
                Some(GeometryColumns::Points { .. }) => 2,
                Some(GeometryColumns::Shapes { .. }) => 5,
            };
        for field in &schema.fields {
            columns.push(Arc::new(ArrowField::new(&field.name, arrow_type(field.kind), true)));
        }
        Layout { columns, id, geometry, first_field }
    }

    /// Column of a field.
    pub fn field(&self, field: usize) -> usize {
        self.first_field + field
    }

    /// The Arrow schema of a full batch.
    pub fn arrow_schema(&self) -> arrow_schema::SchemaRef {
        Arc::new(arrow_schema::Schema::new(self.columns.iter().map(|c| c.as_ref().clone()).collect::<Vec<_>>()))
    }
}

/// A selection of the columns of a layout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Projection(Vec<bool>);

impl Projection {
    /// Selects every column.
    pub fn all(layout: &Layout) -> Projection {
        Projection(vec![true; layout.columns.len()])
    }

    /// Selects no column.
    pub fn none(layout: &Layout) -> Projection {
        Projection(vec![false; layout.columns.len()])
    }

    /// Adds one column.
    pub fn add(&mut self, column: usize) {
        self.0[column] = true;
    }

    /// Adds the id column, if there is one.
    pub fn add_id(&mut self, layout: &Layout) {
        if let Some(id) = layout.id {
            self.add(id);
        }
    }

    /// Adds the geometry columns that [`crate::Batch::bounds`] reads: the point, or the four sides.
    pub fn add_boxes(&mut self, layout: &Layout) {
        match layout.geometry {
            None => {}
            Some(GeometryColumns::Points { lon, lat }) => {
                self.add(lon);
                self.add(lat);
            }
            Some(GeometryColumns::Shapes { wkb }) => (wkb + 1..wkb + 5).for_each(|c| self.add(c)),
        }
    }

    /// Adds the whole geometry: boxes and shapes.
    pub fn add_geometry(&mut self, layout: &Layout) {
        self.add_boxes(layout);
        if let Some(GeometryColumns::Shapes { wkb }) = layout.geometry {
            self.add(wkb);
        }
    }

    /// Adds the columns of the primary time.
    pub fn add_time(&mut self, layout: &Layout, schema: &Schema) {
        match schema.time {
            crate::TimeRole::None => {}
            crate::TimeRole::Instant(i) => self.add(layout.field(i)),
            crate::TimeRole::Interval { start, end } => {
                self.add(layout.field(start));
                self.add(layout.field(end));
            }
        }
    }

    /// The columns of this selection that `other` lacks.
    pub fn without(&self, other: &Projection) -> Projection {
        Projection(self.0.iter().zip(&other.0).map(|(mine, theirs)| *mine && !theirs).collect())
    }

    /// Adds every column of `other`.
    pub fn union(&mut self, other: &Projection) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine |= theirs;
        }
    }

    /// Whether no column is selected.
    pub fn is_none(&self) -> bool {
        !self.0.contains(&true)
    }

    /// Whether a column is selected.
    pub fn has(&self, column: usize) -> bool {
        self.0.get(column).copied().unwrap_or(false)
    }

    /// The selected columns in order.
    pub fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().filter(|(_, wanted)| **wanted).map(|(i, _)| i)
    }
}
