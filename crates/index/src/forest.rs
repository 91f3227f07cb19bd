//! The trees of one sorted run, and their encoding.

use crate::codec::{Reader, write_array, write_u32};
use crate::error::IndexError;
use crate::nodes::{FieldNodes, Nodes, NumericField};
use crate::pieces::Pieces;
use crate::tree::{Tree, node_count};
use arrow_buffer::Buffer;
use meridian_model::Bounds;
use std::sync::Arc;

/// One tree per size class over the rows of a sorted run; cheap to clone.
///
/// The trees' rows are contiguous and ascend from 0.
#[derive(Debug, Clone, PartialEq)]
pub struct Forest {
    pub(crate) fields: Arc<[NumericField]>,
    /// The trees in order of class, and so of rows.
    pub trees: Vec<Tree>,
    /// The pieces of the long lines among the rows, if any.
    pub pieces: Option<Pieces>,
    /// First and last instant of the events that have a time; `None` if the boxes tell.
    pub(crate) times: Option<(i64, i64)>,
}

/// Magic of an encoded forest.
const MAGIC: [u8; 4] = *b"MFOR";
/// Version of the encoding without times, which is that of most forests.
const VERSION: u8 = 2;
/// Version of the encoding with times.
const VERSION_TIMES: u8 = 3;
/// Max number of trees: one per size class, which is a byte.
const TREES_MAX: usize = 256;
const FIELD_BYTES: usize = 8;
impl Forest {
    /// Total number of rows.
    pub fn rows(&self) -> u32 {
        self.trees.last().map_or(0, |tree| tree.rows.end)
    }

    /// The box of all trees.
    pub fn bounds(&self) -> Bounds {
        self.trees.iter().fold(Bounds::EMPTY, |all, tree| all.union(&tree.tree_bounds()))
    }

    /// First and last instant of the events that have a time. The boxes also hold those without one, as open at both
    /// ends. Forests of earlier versions have nothing but the boxes.
    pub fn times(&self) -> (i64, i64) {
        let Bounds { start, end, .. } = self.bounds();
        self.times.unwrap_or((start, end))
    }

    /// Bytes used by the nodes.
    pub fn bytes(&self) -> usize {
        self.trees.iter().map(Tree::bytes).sum::<usize>() + self.pieces.as_ref().map_or(0, Pieces::bytes)
    }

    /// Encodes the forest. `docs/format.md` has the layout, under "Trees and pieces of lines".
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 4096);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[self.times.map_or(VERSION, |_| VERSION_TIMES), 0, 0, 0]);
        write_u32(&mut bytes, self.fields.len() as u32);
        write_u32(&mut bytes, self.trees.len() as u32);
        for field in self.fields.iter() {
            write_u32(&mut bytes, field.field);
            write_u32(&mut bytes, field.float.into());
        }
        for tree in &self.trees {
            // Numbers of rows, not ranges: trees are consecutive, so a range could only be wrong.
            write_u32(&mut bytes, tree.rows.end - tree.rows.start);
            write_u32(&mut bytes, tree.class.into());
            write_u32(&mut bytes, tree.place_known.into());
        }
        write_u32(&mut bytes, self.pieces.as_ref().map_or(0, |pieces| pieces.len() as u32));
        if let Some((first, last)) = self.times {
            bytes.extend_from_slice(&first.to_le_bytes());
            bytes.extend_from_slice(&last.to_le_bytes());
        }
        for tree in &self.trees {
            write_nodes(&mut bytes, &tree.nodes);
        }
        if let Some(pieces) = &self.pieces {
            write_nodes(&mut bytes, pieces.nodes());
            pieces.encode(&mut bytes);
        }
        bytes
    }

    /// Decodes the output of [`Forest::encode`], copying it once.
    pub fn decode(bytes: &[u8]) -> Result<Forest, IndexError> {
        Forest::decode_shared(&Buffer::from_slice_ref(bytes))
    }

    /// Decodes the output of [`Forest::encode`] without copying, if the buffer is aligned to 16 bytes in memory.
    ///
    /// Every length is checked before anything of that length is allocated. The values are not checked. A damaged box
    /// is detected by the checksum of the file, not here; it leads to wrong results but never to a panic.
    pub fn decode_shared(bytes: &Buffer) -> Result<Forest, IndexError> {
        // Any other version is refused by name.
        let version = if bytes.get(4) == Some(&VERSION_TIMES) { VERSION_TIMES } else { VERSION };
        let mut reader = Reader::open("forest", bytes, MAGIC, version)?;
        let (field_count, tree_count) = (reader.u32()? as usize, reader.u32()? as usize);
        // Before any allocation: a damaged count would otherwise request gigabytes.
        if field_count.saturating_mul(FIELD_BYTES) > reader.left() || tree_count > TREES_MAX {
            return Err(reader.damaged(format!("{field_count} fields and {tree_count} trees are too many")));
        }
        let mut fields = Vec::with_capacity(field_count);
        for _ in 0..field_count {
            fields.push(read_field(&mut reader)?);
        }
        let fields: Arc<[NumericField]> = fields.into();
        let heads = (0..tree_count)
            .map(|_| Ok([reader.u32()?, reader.u32()?, reader.u32()?]))
            .collect::<Result<Vec<_>, _>>()?;
        let piece_count = reader.u32()?;
        let times = match version {
            VERSION_TIMES => Some((reader.u64()?.cast_signed(), reader.u64()?.cast_signed())),
            _ => None,
        };
        let mut trees: Vec<Tree> = Vec::with_capacity(tree_count);
        for [rows, class, place_known] in heads {
            let class = u8::try_from(class).map_err(|_| reader.damaged("a size class above 255"))?;
            // Classes ascend with the keys. In any other order the rows would not be where the trees expect them.
            if trees.last().is_some_and(|last| last.class >= class) {
                return Err(reader.damaged("the trees are not in order of class"));
            }
            let first = trees.last().map_or(0, |last| last.rows.end);
            let end = first.checked_add(rows).filter(|&end| end > first);
            let end = end.ok_or_else(|| reader.damaged("a tree of no rows, or of too many"))?;
            let nodes = read_nodes(&mut reader, rows, &fields)?;
            trees.push(Tree::new(class, first..end, place_known == 1, fields.clone(), nodes));
        }
        let rows = trees.last().map_or(0, |last| last.rows.end);
        let pieces = match piece_count {
            0 => None,
            count => {
                let nodes = read_nodes(&mut reader, count, &[])?;
                Some(Pieces::decode(&mut reader, count, rows, nodes)?)
            }
        };
        reader.finish()?;
        Ok(Forest { fields, trees, pieces, times })
    }
}

fn read_field(reader: &mut Reader<'_>) -> Result<NumericField, IndexError> {
    let field = reader.u32()?;
    match reader.u32()? {
        0 => Ok(NumericField { field, float: false }),
        1 => Ok(NumericField { field, float: true }),
        other => Err(reader.damaged(format!("a numeric field of type {other}"))),
    }
}

fn write_nodes(bytes: &mut Vec<u8>, nodes: &Nodes) {
    for side in [&nodes.west, &nodes.south, &nodes.east, &nodes.north] {
        write_array(bytes, side);
    }
    write_array(bytes, &nodes.start);
    write_array(bytes, &nodes.end);
    for field in &nodes.fields {
        match field {
            FieldNodes::Int { count, sum, min, max } => {
                write_array(bytes, count);
                write_array(bytes, sum);
                write_array(bytes, min);
                write_array(bytes, max);
            }
            FieldNodes::Float { count, sum, min, max } => {
                write_array(bytes, count);
                write_array(bytes, sum);
                write_array(bytes, min);
                write_array(bytes, max);
            }
        }
    }
}

/// Struct fields are read in declaration order, which is the order of writing.
fn read_nodes(reader: &mut Reader<'_>, rows: u32, fields: &[NumericField]) -> Result<Nodes, IndexError> {
    let len = node_count(rows);
    let mut nodes = Nodes {
        west: reader.array(len)?,
        south: reader.array(len)?,
        east: reader.array(len)?,
        north: reader.array(len)?,
        start: reader.array(len)?,
        end: reader.array(len)?,
        fields: Vec::new(),
    };
    for field in fields {
        nodes.fields.push(if field.float {
            FieldNodes::Float {
                count: reader.array(len)?,
                sum: reader.array(len)?,
                min: reader.array(len)?,
                max: reader.array(len)?,
            }
        } else {
            FieldNodes::Int {
                count: reader.array(len)?,
                sum: reader.array(len)?,
                min: reader.array(len)?,
                max: reader.array(len)?,
            }
        });
    }
    Ok(nodes)
}
