//! Well-known binary of shapes from formats with their own representation.

/// A position, with an optional height.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Position {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) z: Option<f64>,
}

/// Positions of one part or ring.
pub(crate) type Path = Vec<Position>;

/// A shape as its parts.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Parts {
    Point(Position),
    Line(Path),
    Polygon(Vec<Path>),
    Points(Path),
    Lines(Vec<Path>),
    Polygons(Vec<Vec<Path>>),
}

impl Parts {
    /// Encodes the shape as well-known binary, little-endian; positions have a height if one of them has.
    pub(crate) fn wkb(&self) -> Vec<u8> {
        let mut out = Wkb { bytes: Vec::new(), heights: self.any_height() };
        match self {
            Parts::Point(at) => out.point(*at),
            Parts::Line(path) => out.line(path),
            Parts::Polygon(rings) => out.polygon(rings),
            Parts::Points(points) => {
                out.head(4, points.len());
                points.iter().for_each(|at| out.point(*at));
            }
            Parts::Lines(lines) => {
                out.head(5, lines.len());
                lines.iter().for_each(|line| out.line(line));
            }
            Parts::Polygons(polygons) => {
                out.head(6, polygons.len());
                polygons.iter().for_each(|rings| out.polygon(rings));
            }
        }
        out.bytes
    }

    fn any_height(&self) -> bool {
        let any = |path: &Path| path.iter().any(|at| at.z.is_some());
        match self {
            Parts::Point(at) => at.z.is_some(),
            Parts::Line(path) | Parts::Points(path) => any(path),
            Parts::Polygon(paths) | Parts::Lines(paths) => paths.iter().any(any),
            Parts::Polygons(polygons) => polygons.iter().flatten().any(any),
        }
    }
}

struct Wkb {
    bytes: Vec<u8>,
    heights: bool,
}

impl Wkb {
    fn kind(&mut self, kind: u32) {
        self.bytes.push(1);
        let kind = if self.heights { kind + 1000 } else { kind };
        self.bytes.extend_from_slice(&kind.to_le_bytes());
    }

    fn head(&mut self, kind: u32, count: usize) {
        self.kind(kind);
        self.count(count);
    }

    fn count(&mut self, count: usize) {
        // Counts are of positions that are in memory: 2^32 of them would be 64 GiB.
        self.bytes.extend_from_slice(&(count as u32).to_le_bytes());
    }

    fn position(&mut self, at: Position) {
        self.bytes.extend_from_slice(&at.x.to_le_bytes());
        self.bytes.extend_from_slice(&at.y.to_le_bytes());
        if self.heights {
            self.bytes.extend_from_slice(&at.z.unwrap_or(0.0).to_le_bytes());
        }
    }

    fn point(&mut self, at: Position) {
        self.kind(1);
        self.position(at);
    }

    fn path(&mut self, path: &[Position]) {
        self.count(path.len());
        path.iter().for_each(|at| self.position(*at));
    }

    fn line(&mut self, path: &[Position]) {
        self.kind(2);
        self.path(path);
    }

    fn polygon(&mut self, rings: &[Path]) {
        self.head(3, rings.len());
        rings.iter().for_each(|ring| self.path(ring));
    }
}
