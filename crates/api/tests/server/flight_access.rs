//! Access control over Arrow Flight, which matches that over HTTP.

use crate::flight_client::{Client, messages, refused, ticket};
use crate::kinds::{CANARY, Shared, ask, create};
use crate::support::point;
use arrow_array::{RecordBatch, StringArray};
use arrow_flight::{FlightDescriptor, Ticket};
use arrow_schema::{DataType, Field, Schema};
use serde_json::json;
use std::fmt::Debug;
use std::sync::Arc;
use tonic::{Code, Status};

fn names() -> Vec<RecordBatch> {
    let schema = Arc::new(Schema::new(vec![Field::new("name", DataType::Utf8, true)]));
    vec![RecordBatch::try_new(schema, vec![Arc::new(StringArray::from(vec!["one", "two"]))]).unwrap()]
}

#[test]
fn a_caller_without_a_valid_token_gets_nothing() {
    let shared = Shared::start();
    let question = json!({"collection": "ships"});
    let nobody = Client::new(&shared.server);
    let refused_to = |client: &Client| {
        refused(client.info(&question), Code::Unauthenticated, "token");
        refused(client.list(""), Code::Unauthenticated, "token");
        let (acks, ended) = client.put(messages(FlightDescriptor::new_path(vec!["ships".into()]), &names()));
        assert!(acks.is_empty());
        refused(ended, Code::Unauthenticated, "token");
    };
    refused_to(&nobody);
    for token in [&shared.forged, &shared.revoked, "x"] {
        refused_to(&Client::with_token(&shared.server, token));
    }
    // A session cookie has no effect here.
    let mut page = Client::new(&shared.server);
    page.headers.push(("cookie", "meridian-session=x".to_owned()));
    refused(page.info(&question), Code::Unauthenticated, "a token is needed");
    // The token as the password of Basic.
    let mut basic = Client::new(&shared.server);
    let pair = data_encoding::BASE64.encode(format!("me:{}", shared.reader).as_bytes());
    basic.headers.push(("authorization", format!("Basic {pair}")));
    assert!(basic.info(&question).is_ok());
}

#[test]
fn calls_that_become_no_request_are_counted_and_have_an_id() {
    let shared = Shared::start();
    // Requests over Flight that have no route, by status.
    let counted = |status: u16| {
        let metrics = shared.ask(&shared.operator, "GET", "/metrics").text();
        let labels = "http_request_method=\"POST\",http_route=\"\"";
        let name = "http_server_request_duration_seconds_count";
        let line = format!("{name}{{{labels},http_response_status_code=\"{status}\"}} ");
        metrics.lines().find_map(|found| found.strip_prefix(&line)?.parse().ok()).unwrap_or(0u64)
    };
    let mut reader = Client::with_token(&shared.server, &shared.reader);
    reader.headers.push(("x-request-id", "mine-1".to_owned()));
    assert_eq!(reader.handshake().unwrap().get("x-request-id").unwrap(), "mine-1");
    let wrong = Ticket { ticket: b"x".to_vec().into() };
    let refusal = refused(reader.get(wrong), Code::InvalidArgument, "ticket");
    assert_eq!(refusal.metadata().get("x-request-id").unwrap(), "mine-1");
    let nobody = Client::new(&shared.server);
    let refusal = refused(nobody.list(""), Code::Unauthenticated, "token");
    assert_eq!(refusal.metadata().get("x-request-id").unwrap().to_str().unwrap().len(), 16);
    let descriptor = FlightDescriptor::new_path(vec!["ships".into()]);
    refused(reader.put(messages(descriptor, &names())).1, Code::PermissionDenied, "reader");
    assert_eq!([200, 400, 401, 403].map(counted), [1; 4]);
    // Others count as their requests alone.
    assert!(reader.list("").is_ok());
    refused(reader.info(&json!({"collection": "nothing"})), Code::NotFound, "nothing");
    let writer = Client::with_token(&shared.server, &shared.writer);
    writer.put(messages(FlightDescriptor::new_path(vec!["ships".into()]), &names())).1.unwrap();
    assert_eq!([200, 400, 401, 403, 404].map(counted), [1, 1, 1, 1, 0]);
}

#[test]
fn what_a_caller_may_not_see_is_absent_for_it() {
    let shared = Shared::start();
    let reader = Client::with_token(&shared.server, &shared.reader);
    let foreign = Client::with_token(&shared.server, &shared.foreign);
    let absent = |client: &Client, name: &str| {
        let status = refused(client.info(&json!({"collection": name})), Code::NotFound, "there is no collection");
        status.message().replace(name, "NAME")
    };
    assert_eq!(absent(&reader, "vault"), absent(&reader, "nothing"));
    assert_eq!(absent(&foreign, "ships"), absent(&foreign, "nothing"));
    let listed = |client: &Client| -> Vec<String> {
        client.list("").unwrap().into_iter().flat_map(|info| info.flight_descriptor.unwrap().path).collect()
    };
    assert_eq!(listed(&reader), ["ships", "ships-2"]);
    assert!(listed(&foreign).is_empty());
}

/// Returns all that a refusal says, except for a name.
#[track_caller]
fn said<T: Debug>(result: Result<T, Status>, name: &str) -> (Code, String, String) {
    let status = result.unwrap_err();
    let problem = status.metadata().get_bin("meridian-problem-bin").map(|value| value.to_bytes().unwrap());
    let without = |text: &str| text.replace(name, "NAME");
    (status.code(), without(status.message()), without(&String::from_utf8_lossy(&problem.unwrap_or_default())))
}

#[test]
fn foreign_names_answer_as_absent_ones_in_commands_paths_tickets_and_actions() {
    let shared = Shared::start();
    let operator = Client::with_token(&shared.server, &shared.operator);
    let schema = json!({"type": "object", "properties": {"name": {"type": "string"}}}).to_string();
    let made = ask(&shared.server, Some(&shared.operator), "PUT", "/collections/absent", schema.as_bytes());
    assert_eq!(made.status, 201, "{}", made.text());
    let [of_vault, of_absent] =
        ["vault", "absent"].map(|name| ticket(&operator.info(&json!({"collection": name})).unwrap().endpoint[0]));
    assert_eq!(shared.ask(&shared.operator, "DELETE", "/collections/absent").status, 204);
    for token in [&shared.reader, &shared.writer, &shared.foreign] {
        let client = Client::with_token(&shared.server, token);
        for more in [
            json!({}),
            json!({"filter": format!("name = '{CANARY}'"), "parallel": 2}),
            json!({"kind": "near", "near": [1, 2]}),
            json!({"kind": "aggregate", "function": "count"}),
            json!({"kind": "density"}),
            json!({"kind": "track", "track": CANARY}),
        ] {
            let of = |name: &str| {
                let mut command = more.clone();
                command["collection"] = name.into();
                (said(client.info(&command), name), said(client.schema(&command), name))
            };
            assert_eq!(of("vault"), of("absent"), "{more}");
        }
        let of = |name: &str| {
            let path = || FlightDescriptor::new_path(vec![name.to_owned()]);
            let command = json!({"collection": name, "idempotency_key": CANARY}).to_string();
            let put = |to: FlightDescriptor| said(client.put(messages(to, &names())).1, name);
            assert!(client.list(name).unwrap().is_empty(), "{name}");
            let described = said(client.describe(path()), name);
            (described, put(path()), put(FlightDescriptor::new_cmd(command)), said(client.act(name, name), name))
        };
        assert_eq!(of("vault"), of("absent"));
        assert_eq!(said(client.get(of_vault.clone()), "vault"), said(client.get(of_absent.clone()), "absent"));
    }
    // The id of a foreign event, in a question to one's own collection.
    let reader = Client::with_token(&shared.server, &shared.reader);
    let outcome = |member: &str, id: &str| {
        let mut command = json!({"collection": "ships"});
        command[member] = if member == "filter" { format!("name = '{id}'").into() } else { id.into() };
        match reader.ask(&command) {
            Ok(response) => response.last["rows"].to_string(),
            Err(status) => status.message().replace(id, "ID"),
        }
    };
    let absent = CANARY.replace("canary", "absent");
    for member in ["filter", "fields", "sortby", "datetime", "bbox", "name", "parallel"] {
        assert_eq!(outcome(member, CANARY), outcome(member, &absent), "{member}");
    }
    assert!(!shared.ask(&shared.operator, "GET", "/metrics").text().contains(CANARY));
}

#[test]
fn calls_end_when_their_token_is_revoked_and_say_why() {
    let shared = Shared::start();
    let server = &shared.server;
    let made = create(server, Some(&shared.admin), json!({"role": "writer", "collections": "ships"}));
    let (id, token) = (made["id"].as_str().unwrap(), made["token"].as_str().unwrap());
    let bearer = format!("Bearer {token}");
    // More than the buffers of client and server hold.
    let (mut csv, filling) = (String::from("name,lon,lat\n"), "x".repeat(300));
    for n in 0..40_000 {
        csv.push_str(&format!("{n}{filling},{},{}\n", n % 180, n % 90));
    }
    let headers = [("content-type", "text/csv"), ("authorization", &*bearer)];
    let loaded = server.ask("POST", "/collections/ships/items", &headers, csv.as_bytes());
    assert_eq!(loaded.status, 201, "{}", loaded.text());
    let mut reader = Client::narrow(server);
    reader.headers.push(("authorization", bearer.clone()));
    let (_, rest) = reader.begin(ticket(&reader.info(&json!({"collection": "ships"})).unwrap().endpoint[0]));
    let writer = Client::with_token(server, token);
    let (ack, _open, results) = writer.open(messages(FlightDescriptor::new_path(vec!["ships".into()]), &names()));
    assert_eq!(ack["written"], 2);
    assert_eq!(shared.ask(&shared.admin, "DELETE", &format!("/tokens/{id}")).status, 204);
    refused(writer.end(results), Code::Unauthenticated, "revoked");
    // The credential of a call that writes is checked a second after its last message. That of an answer is checked
    // twice a second, so it is due now: the rest is not sent, however fast it is read.
    refused(reader.rest(rest), Code::Unauthenticated, "revoked");
}

#[test]
fn a_ticket_gives_no_right() {
    let shared = Shared::start();
    shared.server_load();
    let reader = Client::with_token(&shared.server, &shared.reader);
    let operator = Client::with_token(&shared.server, &shared.operator);
    let foreign = Client::with_token(&shared.server, &shared.foreign);
    let of_ships = ticket(&operator.info(&json!({"collection": "ships"})).unwrap().endpoint[0]);
    assert_eq!(reader.get(of_ships.clone()).unwrap().last["rows"], 1);
    let of_vault = ticket(&operator.info(&json!({"collection": "vault"})).unwrap().endpoint[0]);
    refused(reader.get(of_vault), Code::NotFound, "vault");
    refused(foreign.get(of_ships.clone()), Code::NotFound, "there is no collection");
    refused(Client::new(&shared.server).get(of_ships.clone()), Code::Unauthenticated, "token");
    // A collection of the same name in the bearer's tenant is a different one.
    let made = ask(
        &shared.server,
        Some(&shared.foreign),
        "PUT",
        "/collections/ships",
        json!({"type": "object", "properties": {"name": {"type": "string"}}}).to_string().as_bytes(),
    );
    assert_eq!(made.status, 201, "{}", made.text());
    refused(foreign.get(of_ships), Code::NotFound, "there is no collection \"ships\"");
}

#[test]
fn writes_need_the_right_to_write() {
    let shared = Shared::start();
    let descriptor = || FlightDescriptor::new_path(vec!["ships".into()]);
    let reader = Client::with_token(&shared.server, &shared.reader);
    let (acks, ended) = reader.put(messages(descriptor(), &names()));
    assert!(acks.is_empty());
    refused(ended, Code::PermissionDenied, "reader");
    // At once: nothing is kept open for a caller that cannot write.
    let (_, ended) = reader.put(messages(descriptor(), &names()).into_iter().take(1).collect());
    refused(ended, Code::PermissionDenied, "reader");
    let writer = Client::with_token(&shared.server, &shared.writer);
    let (acks, ended) = writer.put(messages(descriptor(), &names()));
    ended.unwrap();
    assert_eq!(acks.last().unwrap()["written"], 2);
    let (_, ended) = writer.put(messages(FlightDescriptor::new_path(vec!["vault".into()]), &names()));
    refused(ended, Code::NotFound, "vault");
}

#[test]
fn over_a_quota_a_caller_is_told_when_to_come_back() {
    let shared = Shared::start();
    let body = json!({"quotas": {"requests_per_second": 1}}).to_string();
    let limited = ask(&shared.server, Some(&shared.operator), "PATCH", "/tenants/other", body.as_bytes());
    assert_eq!(limited.status, 200, "{}", limited.text());
    let foreign = Client::with_token(&shared.server, &shared.foreign);
    // No server handles a hundred of them in the time that a quota of one per second requires.
    let refusal = (0..100).find_map(|_| foreign.list("").err()).expect("no call was refused");
    assert_eq!(refusal.code(), Code::ResourceExhausted);
    let said = |name: &str| refusal.metadata().get(name).unwrap().to_str().unwrap().to_owned();
    assert!(said("retry-after").parse::<u64>().unwrap() > 0);
    assert!(said("ratelimit").starts_with("\"requests_per_second\";r=0"), "{}", said("ratelimit"));
    assert!(Client::with_token(&shared.server, &shared.reader).list("").is_ok(), "another tenant");
}

impl Shared {
    fn server_load(&self) {
        let body = json!({"type": "FeatureCollection", "features": [point("", 1.0, 2.0, json!({"name": "one"}))]});
        let path = "/collections/ships/items";
        let written = ask(&self.server, Some(&self.operator), "POST", path, body.to_string().as_bytes());
        assert_eq!(written.status, 201, "{}", written.text());
    }
}
