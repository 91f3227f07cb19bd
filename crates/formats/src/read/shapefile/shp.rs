//! The shapes of a Shapefile.

use crate::error::Fault;
use crate::input::Input;
use crate::reference::convert;
use crate::wkb_out::{Parts, Path, Position};
use meridian_model::Invalid;

/// Bytes of the file's header and of a record's header.
const HEADER_BYTES: usize = 100;
const RECORD_BYTES: usize = 8;
/// Measures below this mean no value.
const NO_DATA: f64 = -1e38;

/// Shapes, one record at a time.
pub(super) struct Shp {
    input: Input,
    /// Remaining bytes announced by the header.
    left: u64,
    ordinal: u64,
}

/// A shape; `None` for a record without one.
type Shape = Option<Parts>;

impl Shp {
    pub(super) fn open(mut input: Input) -> Result<Shp, Fault> {
        let header = input.needed(HEADER_BYTES, 1, "the header of the .shp file")?;
        let header = input.bytes(header);
        if header[..4] != 9994u32.to_be_bytes() || header[28..32] != 1000u32.to_le_bytes() {
            return Err(Fault::stop(Invalid::new("not a .shp file: its header is not one of a Shapefile").at_line(1)));
        }
        let words = u32::from_be_bytes([header[24], header[25], header[26], header[27]]);
        let left = (u64::from(words) * 2).saturating_sub(HEADER_BYTES as u64);
        Ok(Shp { input, left, ordinal: 0 })
    }

    /// Returns the next record: a shape, or its fault; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<Result<Shape, Invalid>>, Fault> {
        if self.left == 0 {
            return Ok(None);
        }
        self.ordinal += 1;
        let head = self.input.needed(RECORD_BYTES, self.ordinal, "a record of the .shp file")?;
        let head = self.input.bytes(head);
        let bytes = u32::from_be_bytes([head[4], head[5], head[6], head[7]]) as usize * 2;
        let content = self.input.needed(bytes, self.ordinal, "a record of the .shp file")?;
        self.left = self.left.saturating_sub((RECORD_BYTES + bytes) as u64);
        Ok(Some(shape(&mut Bytes(self.input.bytes(content)))))
    }
}

/// Unread bytes of a record.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Invalid> {
        let (head, rest) = self.0.split_first_chunk().ok_or_else(cut)?;
        self.0 = rest;
        Ok(*head)
    }

    fn int(&mut self) -> Result<usize, Invalid> {
        Ok(u32::from_le_bytes(self.take()?) as usize)
    }

    fn float(&mut self) -> Result<f64, Invalid> {
        Ok(f64::from_le_bytes(self.take()?))
    }

    /// Reads a count of items of this size.
    fn count(&mut self, bytes: usize) -> Result<usize, Invalid> {
        let count = self.int()?;
        if count > self.0.len() / bytes { Err(cut()) } else { Ok(count) }
    }

    fn positions(&mut self, count: usize) -> Result<Path, Invalid> {
        if count > self.0.len() / 16 {
            return Err(cut());
        }
        (0..count).map(|_| Ok(Position { x: self.float()?, y: self.float()?, z: None })).collect()
    }

    /// Reads the third numbers of positions, which follow them in some types.
    fn third(&mut self, path: &mut Path, dimension: Dimension) -> Result<(), Invalid> {
        // Preceded by their min and max. Measures may be left out at the end.
        if dimension == Dimension::None || dimension == Dimension::Measure && self.0.len() < 16 + 8 * path.len() {
            return Ok(());
        }
        self.take::<16>()?;
        for at in path {
            let value = self.float()?;
            at.z = (value > NO_DATA).then_some(value);
        }
        Ok(())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dimension {
    None,
    Height,
    Measure,
}

fn cut() -> Invalid {
    Invalid::field("geometry", "the shape ends before it is complete")
}

fn shape(bytes: &mut Bytes<'_>) -> Result<Shape, Invalid> {
    let kind = bytes.int()?;
    let dimension = match kind / 10 {
        0 => Dimension::None,
        1 => Dimension::Height,
        2 => Dimension::Measure,
        _ => return Err(unsupported(kind)),
    };
    match kind % 10 {
        0 if kind == 0 => Ok(None),
        1 => {
            let mut path = bytes.positions(1)?;
            if dimension != Dimension::None {
                path[0].z = bytes.float().ok().filter(|z| *z > NO_DATA);
            }
            Ok(Some(Parts::Point(path[0])))
        }
        8 => {
            bytes.take::<32>()?;
            let count = bytes.count(16)?;
            let mut path = bytes.positions(count)?;
            bytes.third(&mut path, dimension)?;
            Ok((!path.is_empty()).then_some(Parts::Points(path)))
        }
        3 | 5 => {
            bytes.take::<32>()?;
            let (parts, points) = (bytes.int()?, bytes.int()?);
            if parts > bytes.0.len() / 4 {
                return Err(cut());
            }
            let starts = (0..parts).map(|_| bytes.int()).collect::<Result<Vec<_>, _>>()?;
            let mut path = bytes.positions(points)?;
            bytes.third(&mut path, dimension)?;
            let paths = split(&path, &starts)?;
            Ok(if kind % 10 == 3 { lines(paths) } else { polygons(paths) })
        }
        _ => Err(unsupported(kind)),
    }
}

fn unsupported(kind: usize) -> Invalid {
    Invalid::field("geometry", format!("a shape of type {kind} (a multipatch is 31) is not supported: {}", convert()))
}

fn split(path: &Path, starts: &[usize]) -> Result<Vec<Path>, Invalid> {
    if starts.first().copied().unwrap_or(path.len()) > 0 {
        return Err(Invalid::field("geometry", "its first positions are in no part"));
    }
    let ends = starts.iter().skip(1).copied().chain([path.len()]);
    let part = |(from, to): (&usize, usize)| {
        path.get(*from..to)
            .map(<[Position]>::to_vec)
            .ok_or_else(|| Invalid::field("geometry", "its parts overlap or pass its end"))
    };
    starts.iter().zip(ends).map(part).collect()
}

fn lines(mut paths: Vec<Path>) -> Shape {
    match paths.len() {
        0 => None,
        1 => Some(Parts::Line(paths.remove(0))),
        _ => Some(Parts::Lines(paths)),
    }
}

/// Groups rings into polygons: clockwise rings are outer, and each other ring is a hole of the outer ring around it.
fn polygons(rings: Vec<Path>) -> Shape {
    let (outer, holes): (Vec<Path>, Vec<Path>) = rings.into_iter().partition(|ring| twice_area(ring) <= 0.0);
    let mut polygons: Vec<Vec<Path>> = outer.into_iter().map(|ring| vec![ring]).collect();
    for hole in holes {
        // Takes the smallest ring around it. Writers that orient rings wrongly produce holes around nothing, which are
        // outer rings.
        let around = polygons.iter_mut().filter(|polygon| hole.first().is_some_and(|at| contains(&polygon[0], *at)));
        match around.min_by(|a, b| twice_area(&a[0]).abs().total_cmp(&twice_area(&b[0]).abs())) {
            Some(polygon) => polygon.push(hole),
            None => polygons.push(vec![hole]),
        }
    }
    match polygons.len() {
        0 => None,
        1 => Some(Parts::Polygon(polygons.remove(0))),
        _ => Some(Parts::Polygons(polygons)),
    }
}

/// Returns twice the area of a ring, positive if it runs counterclockwise.
fn twice_area(ring: &[Position]) -> f64 {
    ring.windows(2).map(|pair| pair[0].x * pair[1].y - pair[1].x * pair[0].y).sum()
}

/// Returns whether a ring encloses a position, by the even-odd rule.
fn contains(ring: &[Position], at: Position) -> bool {
    let crosses = |pair: &&[Position]| {
        let (a, b) = (pair[0], pair[1]);
        (a.y > at.y) != (b.y > at.y) && at.x < (b.x - a.x) * (at.y - a.y) / (b.y - a.y) + a.x
    };
    ring.windows(2).filter(crosses).count() % 2 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_position_is_in_a_part() {
        let path = [0.0, 1.0, 2.0].map(|x| Position { x, y: 0.0, z: None }).to_vec();
        let sizes = |starts: &[usize]| {
            split(&path, starts).map(|parts| parts.iter().map(Vec::len).collect::<Vec<_>>()).map_err(|e| e.detail)
        };
        assert_eq!(sizes(&[0, 2]), Ok(vec![2, 1]));
        for starts in [&[][..], &[1], &[0, 4], &[0, 2, 1]] {
            assert!(sizes(starts).is_err(), "{starts:?}");
        }
        assert_eq!(split(&Path::new(), &[]).map(|parts| parts.len()).ok(), Some(0));
    }
}
