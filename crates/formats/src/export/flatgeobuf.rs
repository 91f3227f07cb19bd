//! FlatGeobuf, with its spatial index.

use crate::write::WriteError;
use crate::write::flatgeobuf::{Builder, Layer, Whole};
use crate::write::table::Columns;
use arrow_array::RecordBatch;
use flatgeobuf::packed_r_tree::{NodeItem, PackedRTree, calc_extent, hilbert_sort};
use meridian_model::Schema;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Writes events as FlatGeobuf. Features go to a temporary file first, since the index precedes them and orders them
/// along a curve; memory holds a box for each.
pub struct FlatGeobufWriter {
    layer: Layer,
    features: BufWriter<File>,
    /// Where each feature is in the temporary file.
    places: Vec<Range<u64>>,
    /// The box of each feature, with its number in place of an offset.
    boxes: Vec<NodeItem>,
}

impl FlatGeobufWriter {
    /// Begins a file of one layer that is to be at this path, which [`FlatGeobufWriter::finish`] does not open.
    pub fn new(path: &Path, name: &str, schema: &Schema) -> Result<FlatGeobufWriter, WriteError> {
        // Beside the file, where there is room for as much: the folder for temporary files may be missing, or memory. It
        // is used where the target's folder cannot be written, but the target can.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        Ok(FlatGeobufWriter {
            layer: Layer::new(name, Columns::of_places(schema)?),
            features: BufWriter::new(
                tempfile::tempfile_in(folder).or_else(|_| tempfile::tempfile()).map_err(WriteError::of)?,
            ),
            places: Vec::new(),
            boxes: Vec::new(),
        })
    }

    /// Adds the events of a batch.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<(), WriteError> {
        let rows = self.layer.rows(batch)?;
        let (mut builder, mut feature) = (Builder::new(), Vec::new());
        for row in 0..rows.len {
            feature.clear();
            let sides = self.layer.feature(&rows, row, &mut builder, &mut feature)?;
            self.features.write_all(&feature).map_err(WriteError::of)?;
            let start = self.places.last().map_or(0, |place| place.end);
            // A feature without a place has an empty box, which no search finds.
            let empty = NodeItem::create(0);
            let around = sides.map_or(empty, |[west, south, east, north]| NodeItem::bounds(west, south, east, north));
            self.boxes.push(NodeItem { offset: self.places.len() as u64, ..around });
            self.places.push(start..start + feature.len() as u64);
        }
        Ok(())
    }

    /// Writes the file.
    pub fn finish(mut self, mut out: impl Write) -> Result<(), WriteError> {
        let extent = calc_extent(&self.boxes);
        let sides = [extent.min_x, extent.min_y, extent.max_x, extent.max_y];
        let mut header = Vec::new();
        let whole = Whole {
            features: self.places.len() as u64,
            sides: sides.iter().all(|side| side.is_finite()).then_some(sides),
            node_size: PackedRTree::DEFAULT_NODE_SIZE,
        };
        self.layer.header(whole, &mut header);
        out.write_all(&header).map_err(WriteError::of)?;
        hilbert_sort(&mut self.boxes, &extent);
        let order: Vec<Range<u64>> =
            self.boxes.iter().filter_map(|node| self.places.get(node.offset as usize).cloned()).collect();
        let mut offset = 0;
        for (node, place) in self.boxes.iter_mut().zip(&order) {
            node.offset = offset;
            offset += place.end - place.start;
        }
        // The library refuses to build an empty index.
        if !self.boxes.is_empty() {
            let index = PackedRTree::build(&self.boxes, &extent, PackedRTree::DEFAULT_NODE_SIZE);
            index.map_err(WriteError::of)?.stream_write(&mut out).map_err(WriteError::of)?;
        }
        let features = self.features.into_inner().map_err(|e| WriteError::of(e.error()))?;
        copy(&features, &order, out).map_err(WriteError::of)
    }
}

/// Copies parts of a file in an order.
fn copy(file: &File, order: &[Range<u64>], mut out: impl Write) -> std::io::Result<()> {
    let mut feature = Vec::new();
    for place in order {
        feature.resize((place.end - place.start) as usize, 0);
        // Read where it is: the parts are in no order, so a buffer would be filled anew for each.
        file.read_exact_at(&mut feature, place.start)?;
        out.write_all(&feature)?;
    }
    Ok(())
}
