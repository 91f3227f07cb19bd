//! The trees of one sorted run, and their bytes.

use crate::error::IndexError;
use crate::nodes::{FieldNodes, Nodes, NumericField};
use crate::tree::{Tree, levels};
use arrow_buffer::{ArrowNativeType, Buffer, ScalarBuffer};
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
}

/// First bytes of an encoded forest.
const MAGIC: [u8; 4] = *b"MFOR";
/// Version of the encoding.
const VERSION: u8 = 1;
/// Each array starts at a multiple of this, so that it is read where it lies.
const ALIGNMENT: usize = 64;
const HEADER_BYTES: usize = 16;
const FIELD_BYTES: usize = 8;
const TREE_BYTES: usize = 12;
/// Bytes of a node's box, and of its summary of one integer or float field.
const BOX_BYTES: usize = 48;
const INT_BYTES: usize = 4 + 16 + 8 + 8;
const FLOAT_BYTES: usize = 4 + 8 + 8 + 8;

#[cfg(target_endian = "big")]
compile_error!("the arrays of a forest are read where they lie and are little-endian");

/// Bytes of one node.
pub(crate) fn node_bytes(fields: &[NumericField]) -> usize {
    BOX_BYTES + fields.iter().map(|f| if f.float { FLOAT_BYTES } else { INT_BYTES }).sum::<usize>()
}

impl Forest {
    /// Rows of all trees.
    pub fn rows(&self) -> u32 {
        self.trees.last().map_or(0, |tree| tree.rows.end)
    }

    /// The box of all trees.
    pub fn bounds(&self) -> Bounds {
        self.trees.iter().fold(Bounds::EMPTY, |all, tree| all.union(&tree.tree_bounds()))
    }

    /// Bytes that the nodes take.
    pub fn bytes(&self) -> usize {
        self.trees.iter().map(Tree::bytes).sum()
    }

    /// Writes the forest.
    ///
    /// Little-endian. A header of 16 bytes (magic `MFOR`, version, 3 zero bytes, number of fields and of
    /// trees as `u32`); per field its index in the schema and 1 for floats or 0 for integers, as `u32`;
    /// per tree its number of rows, its class, and 1 if it knows places or 0, as `u32`. Then tree by tree
    /// the arrays west, south, east, north (`f64`), start, end (`i64`), and per field count (`u32`), sum
    /// (`i128` or `f64`), least and greatest (`i64` or `f64`), each array starting at a multiple of 64
    /// bytes and holding the leaves first, then each level above. Lengths follow from the numbers of rows.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.bytes() + 4096);
        bytes.extend_from_slice(&MAGIC);
        bytes.extend_from_slice(&[VERSION, 0, 0, 0]);
        let mut number = |n: u32| bytes.extend_from_slice(&n.to_le_bytes());
        number(self.fields.len() as u32);
        number(self.trees.len() as u32);
        for field in self.fields.iter() {
            number(field.field);
            number(field.float.into());
        }
        for tree in &self.trees {
            number(tree.rows.end - tree.rows.start);
            number(tree.class.into());
            number(tree.place_known.into());
        }
        for tree in &self.trees {
            let nodes = &*tree.nodes;
            for sides in [&nodes.west, &nodes.south, &nodes.east, &nodes.north] {
                write_array(&mut bytes, sides);
            }
            write_array(&mut bytes, &nodes.start);
            write_array(&mut bytes, &nodes.end);
            for field in &nodes.fields {
                match field {
                    FieldNodes::Int { count, sum, min, max } => {
                        write_array(&mut bytes, count);
                        write_array(&mut bytes, sum);
                        write_array(&mut bytes, min);
                        write_array(&mut bytes, max);
                    }
                    FieldNodes::Float { count, sum, min, max } => {
                        write_array(&mut bytes, count);
                        write_array(&mut bytes, sum);
                        write_array(&mut bytes, min);
                        write_array(&mut bytes, max);
                    }
                }
            }
        }
        bytes
    }

    /// Reads what [`Forest::encode`] wrote, copying it once.
    pub fn decode(bytes: &[u8]) -> Result<Forest, IndexError> {
        Forest::decode_shared(&Buffer::from_slice_ref(bytes))
    }

    /// Reads what [`Forest::encode`] wrote without copying, if the buffer starts at a multiple of 16 bytes in memory.
    ///
    /// Every length is checked before anything of that length is made. The values are not: a damaged box is
    /// found by the checksum of the file, not here, and leads to wrong answers but never to a panic.
    pub fn decode_shared(bytes: &Buffer) -> Result<Forest, IndexError> {
        let mut reader = Reader { bytes, at: 0 };
        let header = reader.take(HEADER_BYTES)?;
        if header[..4] != MAGIC {
            return Err(damaged("it does not begin with the mark of a forest"));
        }
        if header[4] != VERSION {
            return Err(damaged(format!("version {}: expected {VERSION}", header[4])));
        }
        let (field_count, tree_count) = (number(header, 8) as usize, number(header, 12) as usize);
        let tables = field_count.checked_mul(FIELD_BYTES).zip(tree_count.checked_mul(TREE_BYTES));
        let (field_bytes, tree_bytes) = tables.ok_or_else(|| damaged("too many fields or trees"))?;
        let fields: Arc<[NumericField]> =
            reader.take(field_bytes)?.chunks_exact(FIELD_BYTES).map(read_field).collect::<Result<_, _>>()?;
        let heads = reader.take(tree_bytes)?;
        let mut trees: Vec<Tree> = Vec::with_capacity(tree_count);
        for head in heads.chunks_exact(TREE_BYTES) {
            let (rows, place_known) = (number(head, 0), number(head, 8) == 1);
            let class = u8::try_from(number(head, 4)).map_err(|_| damaged("a size class above 255"))?;
            if trees.last().is_some_and(|last| last.class >= class) {
                return Err(damaged("the trees are not in order of class"));
            }
            let first = trees.last().map_or(0, |last| last.rows.end);
            let end = first.checked_add(rows).filter(|&end| end > first);
            let end = end.ok_or_else(|| damaged("a tree of no rows or of too many"))?;
            let nodes = reader.nodes(rows, &fields)?;
            trees.push(Tree::new(class, first..end, place_known, fields.clone(), nodes));
        }
        if reader.at != bytes.len() {
            return Err(damaged(format!("{} bytes where {} were expected", bytes.len(), reader.at)));
        }
        Ok(Forest { fields, trees })
    }
}

fn damaged(detail: impl Into<String>) -> IndexError {
    IndexError::Damaged { what: "forest", detail: detail.into() }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |n, &b| n << 8 | u32::from(b))
}

fn read_field(bytes: &[u8]) -> Result<NumericField, IndexError> {
    let float = match number(bytes, 4) {
        0 => false,
        1 => true,
        other => return Err(damaged(format!("a numeric field of type {other}"))),
    };
    Ok(NumericField { field: number(bytes, 0), float })
}

fn write_array<T: ArrowNativeType>(bytes: &mut Vec<u8>, values: &ScalarBuffer<T>) {
    bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
    bytes.extend_from_slice(values.inner().as_slice());
}

/// Takes pieces off the front of a buffer.
struct Reader<'a> {
    bytes: &'a Buffer,
    at: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], IndexError> {
        let end = self.at.checked_add(len).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| damaged(format!("it ends after {} bytes", self.bytes.len())))?;
        let piece = &self.bytes.as_slice()[self.at..end];
        self.at = end;
        Ok(piece)
    }

    fn array<T: ArrowNativeType>(&mut self, len: usize) -> Result<ScalarBuffer<T>, IndexError> {
        let padding = self.at.next_multiple_of(ALIGNMENT) - self.at;
        self.take(padding)?;
        let from = self.at;
        let len_bytes = len.checked_mul(size_of::<T>()).ok_or_else(|| damaged("an array is too long"))?;
        let piece = self.take(len_bytes)?;
        let buffer = if piece.as_ptr().align_offset(align_of::<T>()) == 0 {
            self.bytes.slice_with_length(from, len_bytes)
        } else {
            Buffer::from_slice_ref(piece)
        };
        Ok(ScalarBuffer::new(buffer, 0, len))
    }

    fn nodes(&mut self, rows: u32, fields: &[NumericField]) -> Result<Nodes, IndexError> {
        let len = levels(rows).last().map_or(0, |&n| n as usize);
        let mut nodes = Nodes {
            west: self.array(len)?,
            south: self.array(len)?,
            east: self.array(len)?,
            north: self.array(len)?,
            start: self.array(len)?,
            end: self.array(len)?,
            fields: Vec::with_capacity(fields.len()),
        };
        for field in fields {
            nodes.fields.push(if field.float {
                FieldNodes::Float {
                    count: self.array(len)?,
                    sum: self.array(len)?,
                    min: self.array(len)?,
                    max: self.array(len)?,
                }
            } else {
                FieldNodes::Int {
                    count: self.array(len)?,
                    sum: self.array(len)?,
                    min: self.array(len)?,
                    max: self.array(len)?,
                }
            });
        }
        Ok(nodes)
    }
}
