//! One question about a collection in three languages, to copy and run: the number of its events, over time if they
//! have one.

use super::escape;
use crate::contract::links;
use meridian_backend::CollectionStats;
use meridian_model::{Bounds, Schema, TimeRole};
use std::fmt::Write;

/// Microseconds per day.
const DAY: i64 = 86_400 * 1_000_000;
/// Max events that DuckDB fetches; for larger collections it fetches the counts.
const FETCHED_MAX: u64 = 5_000_000;

/// The collection that the question is about.
pub struct Question<'a> {
    /// The server's base URL.
    pub base: &'a str,
    /// The name of the collection.
    pub name: &'a str,
    /// Its schema.
    pub schema: &'a Schema,
    /// Its size and extent.
    pub stats: &'a CollectionStats,
    /// Whether the viewer needs a token to ask it outside this page.
    pub needs_token: bool,
}

/// Renders the question in each language as HTML.
pub fn panel(question: &Question<'_>) -> String {
    let mut out = String::from("<div class=\"ask\" aria-label=\"Language\">");
    for (id, title, note, command) in [
        ("curl", "curl", "", curl(question)),
        (
            "python",
            "Python",
            "<p>The client is installed from the source: <code>pip install \"./clients/python[pandas]\"</code></p>",
            python(question),
        ),
        ("duckdb", "DuckDB", "<p>Its extension <code>httpfs</code> is loaded by itself.</p>", duckdb(question)),
    ] {
        let token = if question.needs_token && id == "python" {
            "<p>It reads the token from <code>MERIDIAN_TOKEN</code>.</p>"
        } else {
            ""
        };
        let _ = write!(
            out,
            "<section id=\"ask-{id}\"><h3>{title}</h3><div class=\"command\"><pre tabindex=\"0\" aria-label=\"{title}\">{}</pre>\
             <button type=\"button\" class=\"small\" data-copy hidden>Copy</button>{note}{token}</div></section>",
            escape(&command)
        );
    }
    out.push_str("</div>");
    out
}

/// Returns the length of the time windows, in ISO 8601 and in SQL, and the time field; `None` if events have no
/// instant.
fn windows<'a>(question: &Question<'a>) -> Option<(&'static str, &'static str, &'a str)> {
    let TimeRole::Instant(at) = question.schema.time else { return None };
    let Bounds { start, end, .. } = question.stats.bounds?;
    let (iso, part) = match end.saturating_sub(start) {
        span if span > 1_000 * DAY => ("P1Y", "year"),
        span if span > 60 * DAY => ("P1M", "month"),
        span if span > 3 * DAY => ("P1D", "day"),
        _ => ("PT1H", "hour"),
    };
    Some((iso, part, &question.schema.fields.get(at)?.name))
}

fn path(question: &Question<'_>) -> String {
    format!("{}/collections/{}", question.base, links::escape(question.name))
}

/// Returns the URL of the counts.
fn counts(question: &Question<'_>) -> String {
    let window = windows(question).map_or_else(String::new, |(iso, ..)| format!("&window={iso}"));
    format!("{}/aggregate?function=count{window}&f=csv", path(question))
}

fn curl(question: &Question<'_>) -> String {
    let token = if question.needs_token { "-H \"Authorization: Bearer $MERIDIAN_TOKEN\" " } else { "" };
    format!("curl {token}'{}'", counts(question))
}

fn python(question: &Question<'_>) -> String {
    // A JSON string is also a valid Python string.
    let name = serde_json::Value::from(question.name);
    let asked = match windows(question) {
        Some((iso, ..)) => format!("db[{name}].aggregate(\"count\", window=\"{iso}\").to_pandas()"),
        None => format!("db[{name}].query().count()"),
    };
    format!("import meridian\n\ndb = meridian.connect(\"{}\")\nprint({asked})", question.base)
}

fn duckdb(question: &Question<'_>) -> String {
    let mut sql = String::new();
    if question.needs_token {
        sql.push_str("CREATE SECRET (TYPE http, BEARER_TOKEN 'TOKEN');\n");
    }
    if question.stats.events > FETCHED_MAX {
        let _ = write!(sql, "FROM read_csv('{}');", counts(question));
        return sql;
    }
    let events = format!("FROM read_parquet('{}/items?f=parquet')", path(question));
    match windows(question) {
        Some((_, part, field)) => {
            let field = field.replace('"', "\"\"");
            // DuckDB truncates instants in the zone of its session, the server in UTC.
            let _ = write!(
                sql,
                "SET TimeZone = 'UTC';\nSELECT date_trunc('{part}', \"{field}\") AS {part}, count(*) AS count\n{events}\nGROUP BY ALL ORDER BY ALL;"
            );
        }
        None => _ = write!(sql, "SELECT count(*) AS count\n{events};"),
    }
    sql
}

#[cfg(test)]
mod tests {
    use super::*;
    use meridian_model::schema_spec;

    fn asked(spec: &str, events: u64, days: i64, needs_token: bool) -> [String; 3] {
        let schema = schema_spec::parse(spec).unwrap();
        let bounds = Bounds { west: 0.0, south: 0.0, east: 1.0, north: 1.0, start: 0, end: days * DAY };
        let stats = CollectionStats { events, bounds: Some(bounds), ..CollectionStats::default() };
        let question = Question { base: "http://h:1", name: "it's", schema: &schema, stats: &stats, needs_token };
        [curl(&question), python(&question), duckdb(&question)]
    }

    #[test]
    fn the_windows_follow_the_span_and_names_are_quoted() {
        let [curl, python, duckdb] = asked("t\"t:Date,*geom:Point", 9, 4_000, false);
        assert_eq!(curl, "curl 'http://h:1/collections/it%27s/aggregate?function=count&window=P1Y&f=csv'");
        assert!(python.ends_with("print(db[\"it's\"].aggregate(\"count\", window=\"P1Y\").to_pandas())"), "{python}");
        assert!(duckdb.starts_with("SET TimeZone = 'UTC';\nSELECT date_trunc('year', \"t\"\"t\") AS year"), "{duckdb}");
        assert!(asked("t:Date", 9, 1, false)[0].contains("window=PT1H"));
    }

    #[test]
    fn events_without_an_instant_are_counted_and_large_collections_are_not_fetched() {
        let [curl, python, duckdb] = asked("n:Integer,*geom:Point", 9, 4_000, true);
        assert!(
            curl.ends_with("/aggregate?function=count&f=csv'") && curl.contains("Bearer $MERIDIAN_TOKEN"),
            "{curl}"
        );
        assert!(python.ends_with("print(db[\"it's\"].query().count())"), "{python}");
        assert!(duckdb.starts_with("CREATE SECRET") && duckdb.contains("SELECT count(*)"), "{duckdb}");
        assert!(asked("t:Date", FETCHED_MAX + 1, 9, false)[2].starts_with("FROM read_csv('http://h:1/"));
    }

    #[test]
    fn the_panel_is_text() {
        let schema = schema_spec::parse("n:Integer").unwrap();
        let stats = CollectionStats::default();
        let question = Question { base: "http://h", name: "<b>", schema: &schema, stats: &stats, needs_token: false };
        assert!(!panel(&question).contains("<b>"));
    }
}
