//! The columns of an Arrow response, by their role in the collection.

use crate::columns::Column;
use crate::write::WriteError;
use arrow_array::RecordBatch;
#[cfg(feature = "geopackage")]
use meridian_model::geometry::{from_wkb, sides};
use meridian_model::{FieldType, GeometryType, Schema};

/// The columns to write: all but the geometry, in order.
pub(super) struct Columns {
    pub(super) named: Vec<(String, FieldType)>,
    /// Their names in the response.
    sources: Vec<String>,
    pub(super) shape: GeometryType,
    geometry: String,
}

/// One batch, its columns looked up.
pub(super) struct Rows {
    pub(super) columns: Vec<Column>,
    pub(super) geometry: Column,
    pub(super) len: usize,
}

impl Columns {
    /// Returns the columns of events of a schema, which must have a geometry.
    pub(super) fn of(schema: &Schema) -> Result<Columns, WriteError> {
        let shape = schema.geometry.ok_or_else(|| {
            WriteError(
                "the collection has no geometry, which the format is made for: export .parquet or .csv".to_owned(),
            )
        })?;
        let id = std::iter::once((schema.id_column(), FieldType::Text));
        let fields = schema.fields.iter().map(|field| (field.name.clone(), field.kind));
        let named: Vec<(String, FieldType)> = id.chain(fields).collect();
        let sources = named.iter().map(|(name, _)| name.clone()).collect();
        Ok(Columns { named, sources, shape, geometry: schema.geometry_name.clone() })
    }

    /// Numbers names that differ from an earlier one only in case. Returns each with its new name.
    #[cfg(feature = "geopackage")]
    pub(super) fn tell_apart(&mut self) -> Vec<(String, String)> {
        let mut renamed = Vec::new();
        for at in 1..self.named.len() {
            let name = &self.sources[at];
            let same = |others: &[(String, FieldType)], name: &str| {
                others.iter().any(|(other, _)| other.eq_ignore_ascii_case(name))
            };
            if same(&self.named[..at], name) {
                // Must also differ from all later names, which may be numbered already.
                let new = (2..).map(|n| format!("{name}_{n}")).find(|new| !same(&self.named, new));
                if let Some(new) = new {
                    renamed.push((name.clone(), new.clone()));
                    self.named[at].0 = new;
                }
            }
        }
        renamed
    }

    /// Looks up the columns of a batch.
    pub(super) fn rows(&self, batch: &RecordBatch) -> Result<Rows, WriteError> {
        let column = |name: &str| {
            let array =
                batch.column_by_name(name).ok_or_else(|| WriteError(format!("the answer has no column {name:?}")))?;
            Column::of(array, name).map_err(WriteError::of)
        };
        Ok(Rows {
            columns: self.sources.iter().map(|name| column(name)).collect::<Result<_, _>>()?,
            geometry: column(&self.geometry)?,
            len: batch.num_rows(),
        })
    }
}

impl Rows {
    /// Returns the well-known binary of a row.
    pub(super) fn shape(&self, row: usize) -> Option<&[u8]> {
        match &self.geometry {
            Column::Binary(bytes) => bytes.get(row),
            _ => None,
        }
    }
}

/// West, south, east and north of the shapes so far.
#[derive(Default)]
#[cfg(feature = "geopackage")]
pub(super) struct Extent(pub(super) Option<[f64; 4]>);

#[cfg(feature = "geopackage")]
impl Extent {
    pub(super) fn add(&mut self, wkb: &[u8]) {
        let Some([west, south, east, north]) = from_wkb(wkb).ok().as_ref().and_then(sides) else { return };
        let [w, s, e, n] = self.0.unwrap_or([west, south, east, north]);
        self.0 = Some([w.min(west), s.min(south), e.max(east), n.max(north)]);
    }
}
