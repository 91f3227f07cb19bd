//! Filters as CQL2 text and CQL2 JSON; the output parses back to the same filter.

use super::expr::{Expr, IntervalEnd, Operand};
use crate::time::format_instant;
use geo_types::{Coord, Geometry, LineString, Polygon};
use serde_json::{Value, json};
use std::fmt::Write;

/// Writes CQL2 text.
pub fn to_text(expr: &Expr) -> String {
    let mut text = String::new();
    write_expr(&mut text, expr);
    text
}

/// Whether an expression needs brackets inside AND, OR or NOT.
fn is_compound(expr: &Expr) -> bool {
    matches!(expr, Expr::And(_) | Expr::Or(_))
}

fn write_part(out: &mut String, expr: &Expr, brackets: bool) {
    if brackets {
        out.push('(');
        write_expr(out, expr);
        out.push(')');
    } else {
        write_expr(out, expr);
    }
}

fn write_expr(out: &mut String, expr: &Expr) {
    match expr {
        Expr::Bool(value) => out.push_str(if *value { "TRUE" } else { "FALSE" }),
        Expr::And(parts) | Expr::Or(parts) => {
            let word = if matches!(expr, Expr::And(_)) { " AND " } else { " OR " };
            // CQL2 has no empty AND or OR. These are their neutral elements.
            if parts.is_empty() {
                out.push_str(if matches!(expr, Expr::And(_)) { "TRUE" } else { "FALSE" });
            }
            for (i, part) in parts.iter().enumerate() {
                if i > 0 {
                    out.push_str(word);
                }
                write_part(out, part, is_compound(part));
            }
        }
        Expr::Not(inner) => match &**inner {
            Expr::Like { .. } | Expr::Between { .. } | Expr::In { .. } | Expr::IsNull(_) => {
                write_condition(out, inner, true);
            }
            inner => {
                out.push_str("NOT ");
                write_part(out, inner, is_compound(inner));
            }
        },
        _ => write_condition(out, expr, false),
    }
}

fn write_condition(out: &mut String, expr: &Expr, not: bool) {
    let not = if not { "NOT " } else { "" };
    // Writing to a String cannot fail.
    let _ = match expr {
        Expr::Compare { op, left, right } => write!(out, "{} {} {}", operand(left), op.text(), operand(right)),
        Expr::Like { value, pattern } => write!(out, "{} {not}LIKE {}", operand(value), operand(pattern)),
        Expr::Between { value, low, high } => {
            write!(out, "{} {not}BETWEEN {} AND {}", operand(value), operand(low), operand(high))
        }
        Expr::In { value, list } => write!(out, "{} {not}IN ({})", operand(value), operands(list)),
        Expr::IsNull(value) => write!(out, "{} IS {not}NULL", operand(value)),
        Expr::Spatial { op, left, right } => write!(out, "{}({}, {})", op.text(), operand(left), operand(right)),
        Expr::Temporal { op, left, right } => write!(out, "{}({}, {})", op.text(), operand(left), operand(right)),
        Expr::Array { op, left, right } => write!(out, "{}({}, {})", op.text(), operand(left), operand(right)),
        Expr::Bool(_) | Expr::And(_) | Expr::Or(_) | Expr::Not(_) => {
            write_expr(out, expr);
            Ok(())
        }
    };
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Names are always quoted, so that none is taken for a keyword.
fn name(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

fn operands(list: &[Operand]) -> String {
    list.iter().map(operand).collect::<Vec<_>>().join(", ")
}

fn operand(operand: &Operand) -> String {
    match operand {
        Operand::Property(property) => name(property),
        Operand::Text(text) => quote(text),
        Operand::Int(n) => n.to_string(),
        // Always with a point or an exponent, so that a whole float does not parse as an integer.
        Operand::Float(x) => format!("{x:?}"),
        Operand::Bool(value) => if *value { "TRUE" } else { "FALSE" }.to_owned(),
        Operand::Date(date) => format!("DATE('{date}')"),
        Operand::Timestamp(t) => format!("TIMESTAMP('{}')", format_instant(*t)),
        Operand::Interval(start, end) => format!("INTERVAL({}, {})", interval_end(start), interval_end(end)),
        Operand::Geometry(geometry) => wkt(geometry),
        Operand::Bbox([w, s, e, n]) => format!("BBOX({w}, {s}, {e}, {n})"),
        Operand::List(list) => format!("({})", operands(list)),
        Operand::Casei(inner) => format!("CASEI({})", self::operand(inner)),
    }
}

fn interval_end(end: &IntervalEnd) -> String {
    match end {
        IntervalEnd::Open => "'..'".to_owned(),
        IntervalEnd::Date(date) => format!("'{date}'"),
        IntervalEnd::Timestamp(t) => format!("'{}'", format_instant(*t)),
        IntervalEnd::Property(property) => name(property),
    }
}

fn join<T>(items: impl IntoIterator<Item = T>, item: impl Fn(T) -> String) -> String {
    format!("({})", items.into_iter().map(item).collect::<Vec<_>>().join(", "))
}

fn coord(c: &Coord<f64>) -> String {
    format!("{} {}", c.x, c.y)
}

fn line(line: &LineString<f64>) -> String {
    join(&line.0, coord)
}

fn rings(polygon: &Polygon<f64>) -> impl Iterator<Item = &LineString<f64>> {
    std::iter::once(polygon.exterior()).chain(polygon.interiors())
}

fn wkt(geometry: &Geometry<f64>) -> String {
    match geometry {
        Geometry::Point(p) => format!("POINT({})", coord(&p.0)),
        Geometry::Line(l) => format!("LINESTRING({}, {})", coord(&l.start), coord(&l.end)),
        Geometry::LineString(l) => format!("LINESTRING{}", line(l)),
        Geometry::Polygon(p) => format!("POLYGON{}", join(rings(p), line)),
        Geometry::MultiPoint(points) => format!("MULTIPOINT{}", join(points, |p| format!("({})", coord(&p.0)))),
        Geometry::MultiLineString(lines) => format!("MULTILINESTRING{}", join(lines, line)),
        Geometry::MultiPolygon(polygons) => {
            format!("MULTIPOLYGON{}", join(polygons, |p| join(rings(p), line)))
        }
        Geometry::GeometryCollection(members) => format!("GEOMETRYCOLLECTION{}", join(members, wkt)),
        Geometry::Rect(rect) => format!("POLYGON{}", join(rings(&rect.to_polygon()), line)),
        Geometry::Triangle(triangle) => format!("POLYGON{}", join(rings(&triangle.to_polygon()), line)),
    }
}

/// Writes CQL2 JSON.
pub fn to_json(expr: &Expr) -> Value {
    let call = |op: &str, args: Vec<Value>| json!({"op": op, "args": args});
    match expr {
        Expr::Bool(value) => json!(value),
        Expr::And(parts) if parts.is_empty() => json!(true),
        Expr::Or(parts) if parts.is_empty() => json!(false),
        Expr::And(parts) => call("and", parts.iter().map(to_json).collect()),
        Expr::Or(parts) => call("or", parts.iter().map(to_json).collect()),
        Expr::Not(inner) => call("not", vec![to_json(inner)]),
        Expr::Compare { op, left, right } => call(op.json(), vec![value(left), value(right)]),
        Expr::Like { value: v, pattern } => call("like", vec![value(v), value(pattern)]),
        Expr::Between { value: v, low, high } => call("between", vec![value(v), value(low), value(high)]),
        Expr::In { value: v, list } => call("in", vec![value(v), Value::Array(list.iter().map(value).collect())]),
        Expr::IsNull(v) => call("isNull", vec![value(v)]),
        Expr::Spatial { op, left, right } => call(op.json(), vec![value(left), value(right)]),
        Expr::Temporal { op, left, right } => call(op.json(), vec![value(left), value(right)]),
        Expr::Array { op, left, right } => call(op.json(), vec![value(left), value(right)]),
    }
}

fn value(operand: &Operand) -> Value {
    match operand {
        Operand::Property(name) => json!({"property": name}),
        Operand::Text(text) => json!(text),
        Operand::Int(n) => json!(n),
        Operand::Float(x) => json!(x),
        Operand::Bool(b) => json!(b),
        Operand::Date(date) => json!({"date": date.to_string()}),
        Operand::Timestamp(t) => json!({"timestamp": format_instant(*t)}),
        Operand::Interval(start, end) => json!({"interval": [end_value(start), end_value(end)]}),
        Operand::Geometry(geometry) => geojson(geometry),
        Operand::Bbox(sides) => json!({"bbox": sides}),
        Operand::List(list) => Value::Array(list.iter().map(value).collect()),
        Operand::Casei(inner) => json!({"op": "casei", "args": [value(inner)]}),
    }
}

fn end_value(end: &IntervalEnd) -> Value {
    match end {
        IntervalEnd::Open => json!(".."),
        IntervalEnd::Date(date) => json!(date.to_string()),
        IntervalEnd::Timestamp(t) => json!(format_instant(*t)),
        IntervalEnd::Property(name) => json!({"property": name}),
    }
}

fn position(c: &Coord<f64>) -> Value {
    json!([c.x, c.y])
}

fn positions(line: &LineString<f64>) -> Value {
    Value::Array(line.0.iter().map(position).collect())
}

fn polygon(polygon: &Polygon<f64>) -> Value {
    Value::Array(rings(polygon).map(positions).collect())
}

fn geojson(geometry: &Geometry<f64>) -> Value {
    let shape = |kind: &str, coordinates: Value| json!({"type": kind, "coordinates": coordinates});
    match geometry {
        Geometry::Point(p) => shape("Point", position(&p.0)),
        Geometry::Line(l) => shape("LineString", json!([position(&l.start), position(&l.end)])),
        Geometry::LineString(l) => shape("LineString", positions(l)),
        Geometry::Polygon(p) => shape("Polygon", polygon(p)),
        Geometry::MultiPoint(points) => shape("MultiPoint", points.iter().map(|p| position(&p.0)).collect()),
        Geometry::MultiLineString(lines) => shape("MultiLineString", lines.iter().map(positions).collect()),
        Geometry::MultiPolygon(polygons) => shape("MultiPolygon", polygons.iter().map(self::polygon).collect()),
        Geometry::GeometryCollection(members) => {
            json!({"type": "GeometryCollection", "geometries": members.iter().map(geojson).collect::<Vec<_>>()})
        }
        Geometry::Rect(rect) => shape("Polygon", polygon(&rect.to_polygon())),
        Geometry::Triangle(triangle) => shape("Polygon", polygon(&triangle.to_polygon())),
    }
}
