//! Service times from traces. The input is spans of a pipeline's workers, as written by the OpenTelemetry collector's
//! file exporter. Each export request is a line in the JSON form of OTLP 1.x.
//!
//! A stage's service time is the time of its spans minus that of their children, since a child is another stage or a
//! call. A source's call time is that of its client spans. A span belongs to the stage or source of the same name.
//! Queueing happens between spans, so it is not included.

use super::settings;
use serde::Deserialize;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// Mean and spread of the own time of spans of one name.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Service {
    /// Number of spans.
    pub count: usize,
    /// Mean, seconds.
    pub mean_s: f64,
    /// Standard deviation over the mean.
    pub cv: f64,
}

/// Max invalid lines that a file of spans may have: the last one, if the exporter was killed.
const BROKEN_MAX: usize = 1;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Export {
    #[serde(default)]
    resource_spans: Vec<ResourceSpans>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResourceSpans {
    #[serde(default)]
    scope_spans: Vec<ScopeSpans>,
}

#[derive(Deserialize)]
struct ScopeSpans {
    #[serde(default)]
    spans: Vec<Span>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Span {
    span_id: String,
    #[serde(default)]
    parent_span_id: String,
    name: String,
    start_time_unix_nano: Nanos,
    end_time_unix_nano: Nanos,
}

/// OTLP's JSON writes 64-bit numbers as text; some exporters write numbers.
#[derive(Deserialize)]
#[serde(untagged)]
enum Nanos {
    Text(String),
    Number(u64),
}

impl Nanos {
    fn get(&self) -> Option<u64> {
        match self {
            Nanos::Text(text) => text.parse().ok(),
            Nanos::Number(number) => Some(*number),
        }
    }
}

/// Returns the own time of spans of each name. The error is a sentence with the line at fault.
pub fn read(text: &str) -> Result<BTreeMap<String, Service>, String> {
    let (mut own, mut broken) = (SelfTimes::default(), Vec::new());
    for (i, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match serde_json::from_str::<Export>(line) {
            Ok(export) => own.add(export).map_err(|why| format!("line {}: {why}", i + 1))?,
            Err(error) => broken.push((i + 1, error)),
        }
    }
    let last = text.lines().count();
    match broken.first() {
        // Only the last line may be truncated, as the exporter may be stopped while writing. An invalid line in the
        // middle means another format.
        Some((line, error)) if broken.len() > BROKEN_MAX || *line != last => {
            Err(format!("line {line}: expected spans in OTLP's JSON form: {error}"))
        }
        _ if own.took.is_empty() => Err("there are no spans in it".to_owned()),
        _ => Ok(own.services()),
    }
}

/// Spans by their id, and the time of their children.
#[derive(Default)]
struct SelfTimes {
    took: BTreeMap<String, (String, f64)>,
    children: BTreeMap<String, f64>,
}

impl SelfTimes {
    fn add(&mut self, export: Export) -> Result<(), String> {
        let scopes = export.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
        for span in scopes.flat_map(|scope| scope.spans) {
            let times = span.start_time_unix_nano.get().zip(span.end_time_unix_nano.get());
            let Some((start, end)) = times.filter(|(start, end)| start <= end) else {
                return Err(format!(
                    "span {:?}: expected times in nanoseconds, the end not before the start",
                    span.name
                ));
            };
            let seconds = (end - start) as f64 / 1e9;
            if !span.parent_span_id.is_empty() {
                // By id, before the parent is known: exporters write children first, and a parent may come many lines
                // later.
                *self.children.entry(span.parent_span_id).or_default() += seconds;
            }
            self.took.insert(span.span_id, (span.name, seconds));
        }
        Ok(())
    }

    fn services(self) -> BTreeMap<String, Service> {
        let mut by_name: BTreeMap<String, Vec<f64>> = BTreeMap::new();
        for (id, (name, took)) in self.took {
            // Children that overlap, or outlive their parent, may take more time than it.
            let own = (took - self.children.get(&id).copied().unwrap_or(0.0)).max(0.0);
            by_name.entry(name).or_default().push(own);
        }
        let service = |times: Vec<f64>| {
            let n = times.len() as f64;
            let mean_s = times.iter().sum::<f64>() / n;
            let variance = times.iter().map(|t| (t - mean_s).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
            Service { count: times.len(), mean_s, cv: if mean_s > 0.0 { variance.sqrt() / mean_s } else { 0.0 } }
        };
        by_name.into_iter().map(|(name, times)| (name, service(times))).collect()
    }
}

/// Sets the service times of a pipeline's stages and sources from the spans of their name. Returns the numbers that
/// were set; none is an error.
pub fn lay(scenario: &mut Table, services: &BTreeMap<String, Service>) -> Result<Vec<(String, f64)>, String> {
    let mut set = Vec::new();
    for (list, what) in [("stage", "service"), ("source", "call")] {
        let names: Vec<String> = scenario
            .get(list)
            .and_then(Value::as_array)
            .map(|entries| entries.iter().filter_map(|entry| entry.get("name")?.as_str().map(str::to_owned)).collect())
            .unwrap_or_default();
        for name in names {
            let Some(service) = services.get(&name) else { continue };
            for (part, value) in [("mean_s", service.mean_s), ("cv", service.cv)] {
                let (key, value) = (format!("{list}.{name}.{what}.{part}"), super::calibrate::rounded(value));
                settings::set(scenario, &key, Value::Float(value))?;
                set.push((key, value));
            }
        }
    }
    if set.is_empty() {
        let names: Vec<&str> = services.keys().take(10).map(String::as_str).collect();
        return Err(format!(
            "no stage or source of the scenario bears the name of a span: there are {}",
            names.join(", ")
        ));
    }
    Ok(set)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn span(name: &str, id: &str, parent: &str, from_ms: u64, to_ms: u64) -> String {
        format!(
            r#"{{"traceId":"t","spanId":"{id}","parentSpanId":"{parent}","name":"{name}","kind":1,"startTimeUnixNano":"{}","endTimeUnixNano":"{}"}}"#,
            from_ms * 1_000_000,
            to_ms * 1_000_000
        )
    }

    fn line(spans: &[String]) -> String {
        format!(
            r#"{{"resourceSpans":[{{"resource":{{}},"scopeSpans":[{{"scope":{{"name":"x"}},"spans":[{}]}}]}}]}}"#,
            spans.join(",")
        )
    }

    #[test]
    fn a_stage_takes_its_spans_less_their_children_and_a_scenario_takes_it_over() {
        let text = [
            line(&[span("query", "a", "", 0, 100), span("slow", "b", "a", 10, 70)]),
            line(&[span("query", "c", "", 200, 260), span("slow", "d", "c", 210, 230), span("other", "e", "", 0, 5)]),
        ]
        .join("\n");
        let services = read(&text).unwrap();
        let query = services["query"];
        assert!((query.mean_s - 0.04).abs() < 1e-9 && query.cv < 1e-9, "{query:?}");
        let slow = services["slow"];
        assert!((slow.mean_s - 0.04).abs() < 1e-9 && (slow.cv - 0.02828 / 0.04).abs() < 1e-3, "{slow:?}");
        let mut scenario: Table = toml::from_str(
            "[[stage]]\nname = 'query'\nservice = { mean_s = 9.0 }\n[[source]]\nname = 'slow'\ncall = { mean_s = 9.0 }\n",
        )
        .unwrap();
        let set = lay(&mut scenario, &services).unwrap();
        assert_eq!(set.len(), 4);
        assert_eq!(settings::number(&scenario, "stage.query.service.mean_s"), Ok(0.04));
        assert_eq!(settings::number(&scenario, "source.slow.call.mean_s"), Ok(0.04));
        assert!(lay(&mut Table::new(), &services).unwrap_err().contains("there are other, query, slow"));
    }

    #[test]
    fn a_torn_last_line_is_forgiven_and_other_mistakes_are_sentences() {
        let good = line(&[span("a", "1", "", 0, 10)]);
        assert_eq!(read(&format!("{good}\n{{\"resourceSp")).unwrap()["a"].count, 1);
        assert!(
            read(&format!("nonsense\n{good}")).unwrap_err().starts_with("line 1: expected spans in OTLP's JSON form")
        );
        assert!(read(&line(&[span("a", "1", "", 20, 10)])).unwrap_err().contains("line 1: span \"a\": expected times"));
        assert!(read("\n").unwrap_err().contains("no spans"));
    }

    proptest! {
        /// A parent's own time excludes its children, whatever their number and order of export.
        #[test]
        fn own_time_is_what_children_leave(children in proptest::collection::vec(1_u64..1_000, 0..8), rest in 0_u64..1_000) {
            let mut from = 0;
            let mut spans: Vec<String> = Vec::new();
            for (n, ms) in children.iter().enumerate() {
                spans.push(span("child", &format!("c{n}"), "p", from, from + ms));
                from += ms;
            }
            spans.push(span("parent", "p", "", 0, from + rest));
            let text = spans.iter().map(|span| line(std::slice::from_ref(span)) + "\n").collect::<String>();
            let services = read(&text).unwrap();
            prop_assert!((services["parent"].mean_s - rest as f64 / 1e3).abs() < 1e-9);
            prop_assert_eq!(services.get("child").map_or(0, |child| child.count), children.len());
        }

        #[test]
        fn any_text_is_read_or_a_mistake(text in "(\\PC{0,30}\n){0,4}") {
            let _ = read(&text);
        }
    }
}
