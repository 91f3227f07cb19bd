//! Geometries as well-known text.

use super::Parser;
use crate::error::Invalid;
use crate::filter::lexer::{Token, wrong};
use crate::filter::literal;
use geo_types::{Coord, Geometry, GeometryCollection, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon};

pub(super) const GEOMETRIES: [&str; 7] =
    ["POINT", "LINESTRING", "POLYGON", "MULTIPOINT", "MULTILINESTRING", "MULTIPOLYGON", "GEOMETRYCOLLECTION"];

impl Parser {
    /// Parses well-known text after its keyword.
    pub(super) fn geometry(&mut self, kind: &str, at: usize) -> Result<Geometry<f64>, Invalid> {
        // The tag is ignored: each position shows how many numbers it has.
        for tag in ["Z", "M", "ZM"] {
            if self.take_word(tag) {
                break;
            }
        }
        if self.peek().is_word("EMPTY") {
            return Err(self.unexpected("positions: an empty geometry has no place"));
        }
        let made = match kind {
            "POINT" => {
                self.expect("(", "an opening bracket")?;
                let position = self.position()?;
                self.expect(")", "a closing bracket")?;
                Ok(Geometry::Point(Point(position)))
            }
            "LINESTRING" => literal::line(self.positions()?).map(Geometry::LineString),
            "POLYGON" => self.rings()?.map(Geometry::Polygon),
            "MULTIPOINT" => {
                // Both (0 0, 1 1) and ((0 0), (1 1)) are in use.
                let points = self.bracketed(|p| {
                    let bracket = p.take("(");
                    let position = p.position()?;
                    if bracket {
                        p.expect(")", "a closing bracket")?;
                    }
                    Ok(Point(position))
                })?;
                Ok(Geometry::MultiPoint(MultiPoint(points)))
            }
            "MULTILINESTRING" => {
                let lines = self.bracketed(Self::positions)?;
                lines
                    .into_iter()
                    .map(literal::line)
                    .collect::<Result<_, _>>()
                    .map(|l| Geometry::MultiLineString(MultiLineString(l)))
            }
            "MULTIPOLYGON" => {
                let polygons = self.bracketed(Self::rings)?;
                polygons.into_iter().collect::<Result<_, _>>().map(|p| Geometry::MultiPolygon(MultiPolygon(p)))
            }
            _ => {
                let members = self.bracketed(|p| {
                    let at = p.at();
                    match p.peek().clone() {
                        Token::Word(word) if GEOMETRIES.iter().any(|g| g.eq_ignore_ascii_case(&word)) => {
                            p.next += 1;
                            p.nested(|p| p.geometry(&word.to_ascii_uppercase(), at))
                        }
                        _ => Err(p.unexpected("a geometry such as POINT(0 0)")),
                    }
                })?;
                Ok(Geometry::GeometryCollection(GeometryCollection(members)))
            }
        };
        made.map_err(|e| wrong(at, e))
    }

    /// Parses one or more items in brackets, separated by commas.
    fn bracketed<T>(&mut self, mut rule: impl FnMut(&mut Self) -> Result<T, Invalid>) -> Result<Vec<T>, Invalid> {
        self.expect("(", "an opening bracket")?;
        let mut items = vec![rule(self)?];
        while self.take(",") {
            items.push(rule(self)?);
        }
        self.expect(")", "a comma or a closing bracket")?;
        Ok(items)
    }

    fn positions(&mut self) -> Result<Vec<Coord<f64>>, Invalid> {
        self.bracketed(Self::position)
    }

    /// Parses the rings of a polygon; an invalid ring is reported at the start of the geometry.
    fn rings(&mut self) -> Result<Result<Polygon<f64>, String>, Invalid> {
        self.bracketed(Self::positions).map(literal::polygon)
    }

    /// Parses longitude, latitude, and up to two more numbers, which are dropped.
    fn position(&mut self) -> Result<Coord<f64>, Invalid> {
        let (x, y) = (self.coordinate()?, self.coordinate()?);
        for _ in 0..2 {
            if matches!(self.peek(), Token::Number(_) | Token::Symbol("-" | "+")) {
                self.coordinate()?;
            }
        }
        Ok(Coord { x, y })
    }
}
