//! Aggregates: several fields, functions of values, and their formats.

use crate::support::{Response, Server, point};
use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::StreamReader;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const KINDS: [&str; 3] = ["cargo", "tanker", "a \"quoted\", one"];

/// Loads events with a kind, a port, a speed and a name.
fn filled(partitions: u16, count: usize) -> Server {
    let server = Server::start();
    server.create_of(
        "q",
        "kind:String,port:Integer,speed:Double,name:String,dtg:Date,*geom:Point:srid=4326",
        partitions,
    );
    let all: Vec<Value> = (0..count).map(event).collect();
    all.chunks(4_000).for_each(|some| server.load("q", some));
    server
}

fn event(n: usize) -> Value {
    let (kind, port, speed) = of(n);
    let properties = json!({
        "kind": kind, "port": port, "speed": speed, "name": format!("ship {}", n % 977), "dtg": format!("2024-01-{:02}T00:00:00Z", 1 + n % 9),
    });
    point("", (n % 170) as f64, (n % 80) as f64, properties)
}

fn of(n: usize) -> (Option<&'static str>, i64, f64) {
    let kind = if n.is_multiple_of(7) { None } else { Some(KINDS[n % 3]) };
    (kind, (n % 4) as i64, (n * 37 % 1_000) as f64 / 10.0)
}

fn groups(answer: &Value) -> &Vec<Value> {
    answer["groups"].as_array().unwrap()
}

fn batch(answer: &Response) -> RecordBatch {
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "application/vnd.apache.arrow.stream"),
        "{}",
        answer.text()
    );
    let mut batches: Vec<_> = StreamReader::try_new(&answer.body[..], None).unwrap().map(Result::unwrap).collect();
    assert_eq!(batches.len(), 1);
    batches.remove(0)
}

const FUNCTIONS: &str = "count,median(speed),percentile(speed,99.9),distinct(name),top(name,2),avg(speed)";

#[test]
fn combinations_of_values_and_functions_of_values_are_those_of_lists() {
    const COUNT: usize = 3_000;
    let mut expected: BTreeMap<(Option<&str>, i64), Vec<usize>> = BTreeMap::new();
    (0..COUNT).for_each(|n| expected.entry((of(n).0, of(n).1)).or_default().push(n));
    for partitions in [1, 3] {
        let server = filled(partitions, COUNT);
        let answer = server.json(&format!("/collections/q/aggregate?function={FUNCTIONS}&by=kind,port"));
        let found = groups(&answer);
        assert_eq!(found.len(), expected.len());
        for group in found {
            let key = (group["by"]["kind"].as_str(), group["by"]["port"].as_i64().unwrap());
            let events = &expected[&key];
            assert_eq!(group["count"], events.len(), "{key:?}");
            let mut speeds: Vec<f64> = events.iter().map(|n| of(*n).2).collect();
            speeds.sort_unstable_by(f64::total_cmp);
            let rank = |percent: f64| ((speeds.len() as f64 * percent / 100.0 - 1e-9).ceil().max(1.0)) as usize - 1;
            assert_eq!(group["percentile(speed,50)"], speeds[rank(50.0)], "{key:?}");
            assert_eq!(group["percentile(speed,99.9)"], speeds[rank(99.9)], "{key:?}");
            let mut names: BTreeMap<String, u64> = BTreeMap::new();
            events.iter().for_each(|n| *names.entry(format!("ship {}", n % 977)).or_default() += 1);
            assert_eq!(group["distinct(name)"], names.len(), "{key:?}");
            let mut top: Vec<(String, u64)> = names.into_iter().collect();
            top.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            let top: Vec<Value> =
                top.iter().take(2).map(|(name, count)| json!({ "value": name, "count": count })).collect();
            assert_eq!(group["top(name,2)"], json!(top), "{key:?}");
            for name in ["percentile(speed,50)", "distinct(name)", "top(name,2)"] {
                assert_eq!(group[format!("error({name})")], json!(0), "{name}");
            }
            assert!(group.get("error(avg(speed))").is_none());
        }
    }
}

#[test]
fn every_format_has_the_same_groups() {
    let server = filled(crate::support::partitions(), 600);
    let path = format!("/collections/q/aggregate?function={FUNCTIONS}&by=kind,port&window=P1D");
    let answer = server.json(&path);
    let batch = batch(&server.ask("GET", &path, &[("accept", "application/vnd.apache.arrow.stream")], b""));
    let csv = server.get(&format!("{path}&f=csv"));
    let text = csv.text();
    let mut lines = text.lines();
    let head = lines.next().unwrap();
    let columns = "window,by(kind),by(port),count,\"percentile(speed,50)\",\"error(percentile(speed,50))\",\"percentile(speed,99.9)\",\
                   \"error(percentile(speed,99.9))\",distinct(name),error(distinct(name)),\"top(name,2)\",\"error(top(name,2))\",avg(speed)";
    assert_eq!(head, columns);
    let found = groups(&answer);
    assert_eq!((batch.num_rows(), lines.count()), (found.len(), found.len()));
    let names: Vec<&str> = batch.schema_ref().fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(&names[..5], ["window_start", "window_end", "by(kind)", "by(port)", "count"]);
    let column = |name: &str| batch.column_by_name(name).unwrap_or_else(|| panic!("{name} of {names:?}"));
    for (row, group) in found.iter().enumerate() {
        let kind = column("by(kind)").as_string::<i32>();
        assert_eq!(kind.is_valid(row).then(|| kind.value(row)), group["by"]["kind"].as_str());
        assert_eq!(column("by(port)").as_primitive::<Int64Type>().value(row), group["by"]["port"]);
        assert_eq!(
            column("percentile(speed,50)").as_primitive::<Float64Type>().value(row),
            group["percentile(speed,50)"]
        );
        assert_eq!(column("error(distinct(name))").as_primitive::<Float64Type>().value(row), 0.0);
        let top = column("top(name,2)").as_list::<i32>().value(row);
        let top = top.as_struct();
        let values = top.column(0).as_string::<i32>();
        let listed: Vec<_> = (0..top.len()).map(|at| values.value(at)).collect();
        let expected: Vec<_> =
            group["top(name,2)"].as_array().unwrap().iter().map(|one| one["value"].as_str().unwrap()).collect();
        assert_eq!(listed, expected);
    }
    // A single field keeps its plain name.
    let one = server.get("/collections/q/aggregate?by=port&f=csv").text();
    assert_eq!(one.lines().next(), Some("by,count"));
    assert_eq!(groups(&server.json("/collections/q/aggregate?by=port"))[3], json!({ "by": 3, "count": 150 }));
}

#[test]
fn beyond_the_bounds_values_are_estimates_and_say_so() {
    const COUNT: usize = 12_000;
    let server = Server::start();
    server.create_of("many", "x:Double,n:Integer,*geom:Point:srid=4326", 3);
    let events: Vec<Value> =
        (0..COUNT).map(|n| point("", (n % 170) as f64, 1.0, json!({ "x": 1.5 * (n + 1) as f64, "n": n }))).collect();
    events.chunks(4_000).for_each(|some| server.load("many", some));
    let answer = server.json("/collections/many/aggregate?function=percentile(x,25),distinct(n),percentile(n,100)");
    let group = &groups(&answer)[0];
    let close = |name: &str, expected: f64| {
        let (value, error) = (group[name].as_f64().unwrap(), group[format!("error({name})")].as_f64().unwrap());
        assert!(error > 0.0 && error < 0.05, "{name}: {error}");
        assert!((value - expected).abs() <= error * expected, "{name}: {value} is not {expected}, within {error}");
    };
    close("percentile(x,25)", 1.5 * 3_000.0);
    close("distinct(n)", COUNT as f64);
    close("percentile(n,100)", (COUNT - 1) as f64);
}

#[test]
fn empty_windows_are_those_of_the_datetime() {
    let server = filled(1, 9);
    let windows = |query: &str| {
        let answer = server.json(&format!("/collections/q/aggregate?empty=true&{query}"));
        let of = |group: &Value| (group["window"].as_str().unwrap()[..10].to_owned(), group["count"].as_u64().unwrap());
        groups(&answer).iter().map(of).collect::<Vec<_>>()
    };
    let months = windows("window=P1M&datetime=2030-01-01/2030-06-30");
    assert_eq!(months.len(), 6);
    assert_eq!((&months[0], &months[5]), (&("2030-01-01".to_owned(), 0), &("2030-06-01".to_owned(), 0)));
    // The events are of the nine days from 2024-01-01. An open end is that of the events.
    let days = windows("window=P1D&datetime=2024-01-08/2024-01-12");
    assert_eq!(days.iter().map(|day| day.1).collect::<Vec<_>>(), [1, 1, 0, 0, 0]);
    assert_eq!(windows("window=P1D&datetime=../2024-01-12").len(), 12);
    assert_eq!(windows("window=P1D&datetime=2023-12-31/..").len(), 10);
    assert_eq!(windows("window=P1D").len(), 9);
    // The ends of a filter that is no simple interval are as exact.
    let filter = "dtg%3E=TIMESTAMP('2030-01-02T00:00:00Z')%20AND%20dtg%3CTIMESTAMP('2030-01-04T00:00:00Z')";
    assert_eq!(windows(&format!("window=P1D&filter={filter}")).len(), 2);
    assert_eq!(windows("window=P1D&by=kind&datetime=2030-01-01/2030-01-02").len(), 0);
    let many = "/collections/q/aggregate?empty=true&window=PT1S&datetime=2000-01-01/2030-01-01";
    assert_eq!(server.get(many).problem(400)["field"], "window");
}

#[test]
fn a_filter_that_is_always_false_has_the_windows_of_its_time() {
    for partitions in [1, 3] {
        let server = filled(partitions, 9);
        let path = |query: &str| format!("/collections/q/aggregate?window=P1D&empty=true&{query}");
        let datetime = "datetime=2024-01-01T00:00:00Z/2024-01-02T12:00:00Z";
        let within = "dtg%3E=TIMESTAMP('2024-01-01T00:00:00Z')%20AND%20dtg%3CTIMESTAMP('2024-01-03T00:00:00Z')";
        // The first matches nothing either, which only the events show.
        for never in ["speed%3C-99", "FALSE", "1=2", "NOT%20TRUE"] {
            for query in [format!("{datetime}&filter={never}"), format!("filter={within}%20AND%20{never}")] {
                let answer = server.json(&path(&query));
                let expected = json!([
                    {"window": "2024-01-01T00:00:00Z/2024-01-02T00:00:00Z", "count": 0},
                    {"window": "2024-01-02T00:00:00Z/2024-01-03T00:00:00Z", "count": 0},
                ]);
                assert_eq!(answer["groups"], expected, "{query}");
                assert_eq!(server.get(&path(&format!("{query}&f=csv"))).text().lines().count(), 3, "{query}");
                assert_eq!(groups(&server.json(&path(&format!("{query}&by=kind")))).len(), 0, "{query}");
            }
        }
    }
}

#[test]
fn what_cannot_be_asked_is_refused_by_name() {
    let server = filled(1, 10);
    for (query, field) in [
        ("function=percentile(speed)", "function"),
        ("function=percentile(speed,101)", "function"),
        ("function=median(kind)", "function"),
        ("function=top(speed,3)", "function"),
        ("function=top(kind,0)", "function"),
        ("function=mode(kind)", "function"),
        ("by=kind,nothing", "by"),
        ("by=kind,kind", "by"),
        ("by=speed", "by"),
        ("f=arrow&explain=true", "explain"),
        ("f=parquet", "f"),
    ] {
        assert_eq!(server.get(&format!("/collections/q/aggregate?{query}")).problem(400)["field"], field, "{query}");
    }
    let names: BTreeSet<usize> = (0..10).map(|n| n % 977).collect();
    assert_eq!(
        groups(&server.json("/collections/q/aggregate?function=distinct(name)"))[0]["distinct(name)"],
        names.len()
    );
}
