//! A partial result of any query except those for rows, which are streamed.

use super::{PartialCount, PartialGrid, PartialGroups, PartialPassages, PartialTile, PartialTrack};
use crate::control::{Control, Stats};
use crate::error::QueryError;
use crate::wire::{Question, WireError};
use arrow_array::RecordBatch;
use meridian_model::{Invalid, Schema};
use meridian_store::Snapshot;

/// The partial result of one partition.
pub enum Partial {
    /// A number of events.
    Count(PartialCount),
    /// An aggregate.
    Groups(Box<PartialGroups>),
    /// Counts on a grid.
    Grid(PartialGrid),
    /// A map tile.
    Tile(PartialTile),
    /// The track of an object.
    Track(PartialTrack),
    /// Passages of objects.
    Passages(PartialPassages),
}

impl Partial {
    /// Runs a query on one snapshot.
    ///
    /// # Errors
    /// Those of the query. Queries for rows are invalid here.
    pub fn of(snapshot: &Snapshot, question: &Question, control: &Control) -> Result<Partial, QueryError> {
        Ok(match question {
            Question::Count(q) => Partial::Count(PartialCount::of(snapshot, &q.predicate, q.tested_max, control)?),
            Question::Aggregate(q) => Partial::Groups(Box::new(PartialGroups::of(snapshot, q, control)?)),
            Question::Density(q) => Partial::Grid(PartialGrid::of(snapshot, q, control)?),
            Question::Tile(q) => Partial::Tile(PartialTile::of(snapshot, q, control)?),
            Question::Track(q) => Partial::Track(PartialTrack::of(snapshot, q, control)?),
            Question::Passages(q) => Partial::Passages(PartialPassages::of(snapshot, q, control)?),
            Question::Items(_) | Question::Near(_) => return Err(rows().into()),
        })
    }

    /// Merges the partial results of all partitions, in partition order. `None` if they must be queried again for the
    /// counts of a tile: see [`PartialTile::merge`].
    ///
    /// # Errors
    /// Results of different queries, and too many groups or places together.
    pub fn merge(parts: Vec<Partial>, question: &Question) -> Result<Option<Partial>, WireError> {
        if let Question::Tile(tile) = question {
            let tiles =
                parts.into_iter().map(|part| if let Partial::Tile(part) = part { Ok(part) } else { Err(other()) });
            return Ok(PartialTile::merge(tiles.collect::<Result<_, _>>()?, tile)?.map(Partial::Tile));
        }
        let mut parts = parts.into_iter();
        let mut all = parts.next().ok_or_else(other)?;
        for part in parts {
            match (&mut all, part) {
                (Partial::Count(all), Partial::Count(part)) => all.merge(&part),
                (Partial::Groups(all), Partial::Groups(part)) => all.merge(*part)?,
                (Partial::Grid(all), Partial::Grid(part)) => all.merge(&part)?,
                (Partial::Track(all), Partial::Track(part)) => all.merge(part)?,
                (Partial::Passages(all), Partial::Passages(part)) => all.merge(part),
                _ => return Err(other()),
            }
        }
        Ok(Some(all))
    }

    /// The cost of the query.
    pub fn stats(&self) -> Stats {
        match self {
            Partial::Count(part) => part.stats,
            Partial::Groups(part) => part.stats,
            Partial::Grid(part) => part.stats,
            Partial::Tile(part) => part.stats(),
            Partial::Track(part) => part.stats,
            Partial::Passages(part) => part.stats,
        }
    }

    /// Encodes as an Arrow record batch; `schema` is that of the collection.
    ///
    /// # Errors
    /// Values that Arrow cannot hold.
    pub fn to_arrow(&self, schema: &Schema) -> Result<RecordBatch, WireError> {
        match self {
            Partial::Count(part) => part.to_arrow(),
            Partial::Groups(part) => part.to_arrow(schema),
            Partial::Grid(part) => part.to_arrow(),
            Partial::Tile(part) => part.to_arrow(),
            Partial::Track(part) => part.to_arrow(),
            Partial::Passages(part) => part.to_arrow(schema),
        }
    }

    /// Decodes the output of [`Partial::to_arrow`] for this query.
    ///
    /// # Errors
    /// Another kind or version, and any content that does not fit the query.
    pub fn from_arrow(
        batch: &RecordBatch,
        question: &Question,
        schema: &Schema,
        control: &Control,
    ) -> Result<Partial, WireError> {
        Ok(match question {
            Question::Count(_) => Partial::Count(PartialCount::from_arrow(batch)?),
            Question::Aggregate(q) => Partial::Groups(Box::new(PartialGroups::from_arrow(batch, q, schema, control)?)),
            Question::Density(q) => Partial::Grid(PartialGrid::from_arrow(batch, q.cells()?)?),
            Question::Tile(_) => Partial::Tile(PartialTile::from_arrow(batch)?),
            Question::Track(_) => Partial::Track(PartialTrack::from_arrow(batch, control)?),
            Question::Passages(_) => Partial::Passages(PartialPassages::from_arrow(batch, schema)?),
            Question::Items(_) | Question::Near(_) => return Err(rows().into()),
        })
    }
}

fn other() -> WireError {
    WireError::Refused(Invalid::new("the partitions answer different questions").into())
}

fn rows() -> Invalid {
    Invalid::new("a question for rows is answered by a stream")
}
