//! Finds the route of a request.

use crate::protocol::problem::{Kind, Problem, Result};
use crate::request::route::{Handler, Route};
use axum::http::{HeaderValue, Method, header};
use matchit::{InsertError, Params, Router};

/// All routes, indexed by path.
pub struct Table {
    paths: Router<usize>,
    rows: Vec<PathRows>,
}

/// The rows of one path.
struct PathRows {
    path: &'static str,
    rows: Vec<Row>,
    /// The value of `Allow`.
    allow: HeaderValue,
}

/// A row with its handler.
pub struct Row {
    /// The route as listed in the table.
    pub route: &'static Route,
    /// Its handler.
    pub handler: Handler,
}

/// The rows at a path.
pub struct PathMatch<'t, 'p> {
    /// Number of the path among [`Table::paths`].
    pub number: usize,
    /// The variable segments, as they appear in the URL.
    pub segments: Params<'t, 'p>,
    path: &'t PathRows,
}

impl Table {
    /// Builds a table of these routes.
    ///
    /// # Errors
    /// Two paths that are ambiguous.
    pub fn new(routes: &'static [Route]) -> std::result::Result<Table, InsertError> {
        let mut table = Table { paths: Router::new(), rows: Vec::new() };
        for route in routes {
            let row = Row { route, handler: (route.handler)() };
            // The matcher holds one entry per path. Methods are distinguished below it, so that a wrong one yields 405
            // and not 404.
            match table.rows.iter_mut().find(|at| at.path == route.path) {
                Some(at) => at.rows.push(row),
                None => {
                    table.paths.insert(route.path, table.rows.len())?;
                    let allow = HeaderValue::from_static("OPTIONS");
                    table.rows.push(PathRows { path: route.path, rows: vec![row], allow });
                }
            }
        }
        for at in &mut table.rows {
            at.allow = allowed(&at.rows);
        }
        Ok(table)
    }

    /// Iterates over the paths in order of their numbers.
    pub fn paths(&self) -> impl Iterator<Item = &'static str> {
        self.rows.iter().map(|at| at.path)
    }

    /// Finds the rows at a path of a URL.
    pub fn find<'t, 'p>(&'t self, path: &'p str) -> Option<PathMatch<'t, 'p>> {
        let found = self.paths.at(path).ok()?;
        let number = *found.value;
        // The matcher accepts an empty segment between two slashes; no route does.
        let filled = found.params.iter().all(|(_, segment)| !segment.is_empty());
        filled.then(|| PathMatch { number, segments: found.params, path: &self.rows[number] })
    }
}

impl<'t> PathMatch<'t, '_> {
    /// Returns the row for a method; 405 if there is none.
    pub fn row(&self, method: &Method) -> Result<&'t Row> {
        let wanted = if *method == Method::HEAD { &Method::GET } else { method };
        self.path.rows.iter().find(|row| row.route.method == *wanted).ok_or_else(|| {
            let detail = format!("{method} is not served at {}", self.path.path);
            Problem::new(Kind::MethodNotAllowed, detail).header(header::ALLOW, self.path.allow.clone())
        })
    }

    /// Returns the methods of the path, as listed in `Allow`.
    pub fn allow(&self) -> HeaderValue {
        self.path.allow.clone()
    }
}

fn allowed(rows: &[Row]) -> HeaderValue {
    let mut methods = String::from("OPTIONS");
    for row in rows {
        methods.push_str(", ");
        methods.push_str(row.route.method.as_str());
        if row.route.method == Method::GET {
            methods.push_str(", HEAD");
        }
    }
    HeaderValue::from_str(&methods).unwrap_or(HeaderValue::from_static("OPTIONS"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routes::ROUTES;
    use std::collections::HashSet;

    #[test]
    fn every_route_is_found_by_its_own_path_and_no_other() {
        let table = Table::new(ROUTES).unwrap();
        let mut seen = HashSet::new();
        for route in ROUTES {
            assert!(seen.insert((route.method.clone(), route.path)), "{} {} is listed twice", route.method, route.path);
            let path = route.path.replace('{', "a-").replace('}', "");
            let found = table.find(&path).unwrap();
            let row = found.row(&route.method).unwrap();
            assert_eq!((row.route.id, table.paths().nth(found.number)), (route.id, Some(route.path)), "{path}");
            assert!(found.allow().to_str().unwrap().contains(route.method.as_str()));
            assert!(path == "/" || table.find(&format!("{path}/")).is_none(), "{path}/");
        }
    }

    #[test]
    fn segments_are_as_they_are_in_the_url() {
        let table = Table::new(ROUTES).unwrap();
        let found = table.find("/collections/a%2Fb/items/%C3%A9").unwrap();
        let segments: Vec<_> = found.segments.iter().collect();
        assert_eq!(segments, [("c", "a%2Fb"), ("id", "%C3%A9")]);
        for nowhere in ["", "*", "collections", "/collections/", "/collections//items", "/Collections"] {
            assert!(table.find(nowhere).is_none(), "{nowhere}");
        }
    }

    #[test]
    fn head_is_served_wherever_get_is() {
        let table = Table::new(ROUTES).unwrap();
        for route in ROUTES.iter().filter(|route| route.method == Method::GET) {
            let path = route.path.replace(['{', '}'], "");
            assert_eq!(table.find(&path).unwrap().row(&Method::HEAD).unwrap().route.id, route.id);
        }
        let refused = table.find("/backup").unwrap().row(&Method::HEAD).err().unwrap();
        assert_eq!(refused.kind(), Kind::MethodNotAllowed);
    }
}
