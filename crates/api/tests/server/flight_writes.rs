//! Writes over Arrow Flight.

use crate::flight_client::{Client, messages, opening, over_http, refused};
use crate::support::Server;
use arrow_array::{ArrayRef, BinaryArray, DictionaryArray, Int64Array, RecordBatch, StringArray};
use arrow_flight::{FlightData, FlightDescriptor};
use arrow_schema::{DataType, Field, Schema};
use meridian_api::ServerConfig;
use serde_json::{Value, json};
use std::sync::Arc;
use tonic::Code;

fn server() -> Server {
    let server = Server::start();
    server.create("q", "n:Integer,note:String,*geom:Point");
    server
}

fn path() -> FlightDescriptor {
    FlightDescriptor::new_path(vec!["q".into()])
}

fn keyed(key: &str) -> FlightDescriptor {
    FlightDescriptor::new_cmd(json!({"collection": "q", "idempotency_key": key}).to_string())
}

fn batch(numbers: std::ops::Range<i64>) -> RecordBatch {
    let wkb: Vec<Vec<u8>> = numbers
        .clone()
        .map(|n| [&[1u8, 1, 0, 0, 0][..], &(n as f64 / 100.0).to_le_bytes(), &1.5f64.to_le_bytes()].concat())
        .collect();
    let notes: StringArray = numbers.clone().map(|n| Some(format!("note {n}"))).collect();
    let places = BinaryArray::from_iter_values(wkb);
    let columns: Vec<ArrayRef> =
        vec![Arc::new(Int64Array::from_iter_values(numbers)), Arc::new(notes), Arc::new(places)];
    let field = |name: &str, kind| Field::new(name, kind, true);
    let schema =
        Schema::new(vec![field("n", DataType::Int64), field("note", DataType::Utf8), field("geom", DataType::Binary)]);
    RecordBatch::try_new(Arc::new(schema), columns).unwrap()
}

fn count(server: &Server) -> Value {
    server.json("/collections/q/aggregate")["groups"][0]["count"].clone()
}

#[test]
fn what_is_acknowledged_is_there_for_the_next_query() {
    let server = server();
    let client = Client::new(&server);
    let batches: Vec<RecordBatch> = (0..5).map(|n| batch(n * 100..n * 100 + 100)).collect();
    let acks = client.put_each(messages(path(), &batches));
    let written: Vec<_> = acks.iter().map(|ack| ack["written"].as_u64().unwrap()).collect();
    assert_eq!(written, [100, 200, 300, 400, 500]);
    assert_eq!(acks[4]["batches"], 5);
    assert_eq!(count(&server), 500);
    // Sent all at once: batches that arrive together are written together.
    let (acks, ended) = client.put(messages(path(), &batches));
    ended.unwrap();
    assert_eq!((&acks.last().unwrap()["batches"], &acks.last().unwrap()["written"]), (&json!(5), &json!(500)));
    assert_eq!(count(&server), 1_000);
    let back = over_http(&server, "/collections/q/items?f=arrow&filter=n%3D7&properties=n,note");
    assert_eq!(back.iter().map(RecordBatch::num_rows).sum::<usize>(), 2);
}

#[test]
fn batches_sent_again_with_their_key_change_nothing() {
    let server = server();
    let client = Client::new(&server);
    let batches: Vec<RecordBatch> = (0..3).map(|n| batch(n * 10..n * 10 + 10)).collect();
    // Interrupted after two of them.
    let (acks, ended) = client.put(messages(keyed("load-1"), &batches[..2]));
    ended.unwrap();
    assert_eq!(acks.last().unwrap()["written"], 20);
    let (acks, ended) = client.put(messages(keyed("load-1"), &batches));
    ended.unwrap();
    assert_eq!(acks.last().unwrap()["batches"], 3);
    assert_eq!(count(&server), 30);
    let mut other = Client::new(&server);
    other.headers.push(("idempotency-key", "load-1".to_owned()));
    let (_, ended) = other.put(messages(path(), &batches));
    ended.unwrap();
    assert_eq!(count(&server), 30, "the key as metadata is the same key");
    let (acks, ended) = client.put(messages(keyed("load-1"), &[batch(500..510)]));
    assert!(acks.is_empty());
    refused(ended, Code::InvalidArgument, "Idempotency-Key");
    assert_eq!(count(&server), 30);
    // No key sent over HTTP equals a batch's key.
    let event =
        json!({"type": "Feature", "geometry": {"type": "Point", "coordinates": [1, 2]}, "properties": {"n": 9}});
    for key in ["load-1-0", "load-1"] {
        let headers = [("content-type", "application/geo+json"), ("idempotency-key", key)];
        let written = server.ask("POST", "/collections/q/items", &headers, event.to_string().as_bytes());
        assert_eq!(written.status, 201, "{key}: {}", written.text());
    }
}

#[test]
fn a_dictionary_is_that_of_its_own_batches() {
    let server = server();
    let client = Client::new(&server);
    let of = |texts: &[&str]| {
        let notes: DictionaryArray<arrow_array::types::Int32Type> = texts.iter().copied().collect();
        let field = Field::new("note", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8)), true);
        RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![Arc::new(notes)]).unwrap()
    };
    let (acks, ended) = client.put(messages(path(), &[of(&["a", "b", "a"]), of(&["c", "d"])]));
    ended.unwrap();
    assert_eq!(acks.last().unwrap()["written"], 5);
    let groups = server.json("/collections/q/aggregate?by=note")["groups"].clone();
    let found: Vec<_> = groups.as_array().unwrap().iter().map(|g| (g["by"].clone(), g["count"].clone())).collect();
    assert_eq!(found, [("a", 2), ("b", 1), ("c", 1), ("d", 1)].map(|(by, count)| (json!(by), json!(count))));
}

#[test]
fn what_is_no_batch_is_refused_and_writes_nothing() {
    let server = server();
    let client = Client::new(&server);
    let schema = batch(0..1).schema();
    let data =
        |header: &[u8], body: &[u8]| FlightData::new().with_data_header(header.to_vec()).with_data_body(body.to_vec());
    let good = messages(path(), &[batch(0..4)]);
    let cut = FlightData { data_body: good[1].data_body.slice(..8), ..good[1].clone() };
    let unknown = RecordBatch::try_new(
        Arc::new(Schema::new(vec![Field::new("colour", DataType::Int64, true)])),
        vec![Arc::new(Int64Array::from(vec![1]))],
    )
    .unwrap();
    let command = |value: Value| FlightDescriptor::new_cmd(value.to_string());
    for (sent, words) in [
        (vec![FlightData::new()], "descriptor"),
        (vec![opening(command(json!({"collection": 1})), &schema)], "string"),
        (vec![opening(command(json!({"collection": "q", "kind": "items"})), &schema)], "idempotency_key"),
        (vec![opening(FlightDescriptor::new_path(vec![]), &schema)], "segments"),
        (vec![FlightData { flight_descriptor: Some(path()), ..good[1].clone() }], "schema"),
        (vec![good[0].clone(), good[0].clone()], "second schema"),
        (vec![good[0].clone(), data(b"nonsense", b"")], "no Arrow"),
        (vec![good[0].clone(), data(&[0; 64], b"")], ""),
        (vec![good[0].clone(), cut], "bytes"),
        (messages(path(), &[unknown]), "colour"),
    ] {
        let (acks, ended) = client.put(sent);
        assert!(acks.is_empty(), "{words}");
        refused(ended, Code::InvalidArgument, words);
    }
    assert_eq!(count(&server), 0);
    refused(
        client.put(messages(FlightDescriptor::new_path(vec!["absent".into()]), &[batch(0..1)])).1,
        Code::NotFound,
        "absent",
    );
    client.put(good).1.unwrap();
    assert_eq!(count(&server), 4);
}

#[test]
fn batches_that_arrive_together_are_no_larger_body_than_one_may_be() {
    let server = Server::with(ServerConfig { body_bytes_max: 32 << 10, ..ServerConfig::default() });
    server.create("q", "n:Integer,note:String,*geom:Point");
    // About 11 KiB each: several arrive during a write, and three exceed the limit.
    let batches: Vec<RecordBatch> = (0..20).map(|n| batch(n * 250..n * 250 + 250)).collect();
    let (acks, ended) = Client::new(&server).put(messages(path(), &batches));
    ended.unwrap();
    assert_eq!((&acks.last().unwrap()["batches"], &acks.last().unwrap()["written"]), (&json!(20), &json!(5_000)));
    assert_eq!(count(&server), 5_000);
}

#[test]
fn a_call_that_pauses_ends_with_its_server() {
    let mut server = server();
    let client = Client::new(&server);
    let (ack, _open, results) = client.open(messages(path(), &[batch(0..10)]));
    assert_eq!(ack["written"], 10);
    server.stop();
    refused(client.end(results), Code::Unavailable, "stopping");
}

#[test]
fn messages_beyond_the_memory_for_bodies_are_refused() {
    let config = ServerConfig { body_bytes_max: 1 << 20, body_bytes_total: 1 << 20, ..ServerConfig::default() };
    let server = Server::with(config);
    server.create("q", "n:Integer,note:String,*geom:Point");
    let client = Client::new(&server);
    let (_, ended) = client.put(messages(path(), &[batch(0..40_000)]));
    let status = ended.unwrap_err();
    assert!(matches!(status.code(), Code::OutOfRange | Code::ResourceExhausted), "{status}");
    client.put(messages(path(), &[batch(0..100)])).1.unwrap();
    assert_eq!(count(&server), 100);
}
