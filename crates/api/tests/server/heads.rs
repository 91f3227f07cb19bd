//! The limits of a request's head and of a message: what fits is read, and more is a problem.

use crate::events::Socket;
use crate::house::{house, raw, with};
use crate::support::read_response;
use serde_json::json;
use std::io::{BufReader, Read, Write};
use std::net::Shutdown;

#[test]
fn a_target_of_64_kib_is_read_and_a_longer_one_is_a_problem() {
    let server = house();
    // The longest filter that fits: a text with that many letters.
    let target = |length: usize| {
        let (start, end) = ("/collections/c/items?filter=n=1+OR+n+IN+(", "1)");
        let list = "1,".repeat((length - start.len() - end.len()) / 2);
        let gap = "+".repeat(length - start.len() - end.len() - list.len());
        format!("{start}{gap}{list}{end}")
    };
    let longest = target(65_534);
    assert_eq!(longest.len(), 65_534);
    let answer = with(&server, "GET", &longest, &["Host: localhost"]);
    assert_eq!((answer.status, answer.json()["numberReturned"].as_u64()), (200, Some(1)), "{}", answer.text());
    for length in [65_535, 90_000, 200_000, 900_000] {
        let answer = with(&server, "GET", &target(length), &["Host: localhost"]);
        assert_eq!(answer.problem(414)["limit_bytes"], 65_534, "{length}");
        assert_eq!(answer.header("connection"), "close");
    }
}

#[test]
fn a_head_too_large_or_malformed_is_a_problem() {
    let server = house();
    let field = |bytes: usize| format!("X-Long: {}", "x".repeat(bytes));
    assert_eq!(with(&server, "GET", "/", &["Host: localhost", &field(60 << 10)]).status, 200);
    for bytes in [100 << 10, 400 << 10] {
        let answer = with(&server, "GET", "/", &["Host: localhost", &field(bytes)]);
        assert!(answer.problem(431)["limit_bytes"].as_u64().is_some_and(|limit| limit > 65_534));
    }
    let many: Vec<String> = (0..120).map(|n| format!("X-{n}: 1")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).chain(["Host: localhost"]).collect();
    with(&server, "GET", "/", &many).problem(431);
    raw(&server, "no HTTP at all\r\n\r\n").problem(400);
    let detail = |head: &str| raw(&server, head).problem(400)["detail"].as_str().unwrap().to_owned();
    assert!(detail("GET / HTTP/1.1\r\nHost: localhost\r\nBad Name: 1\r\n\r\n").ends_with("is not HTTP/1.1"));
    for (filter, found) in
        [("mag>7", "'>': expected its escaped form, %3E"), ("mag = 7", "' ': expected its escaped form, %20")]
    {
        let head = format!("GET /collections/c/items?filter={filter} HTTP/1.1\r\nHost: localhost\r\n\r\n");
        assert!(detail(&head).ends_with(found), "{}", detail(&head));
    }
}

/// RFC 9110, 9.3.2
#[test]
fn the_refusal_of_a_malformed_head_request_has_no_body() {
    let server = house();
    let bytes_after_head = |method: &str| {
        let mut stream = server.connect();
        let head = format!("{method} / HTTP/1.1\r\nHost: localhost\r\nBad Name: 1\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
        answer.split_once("\r\n\r\n").unwrap().1.len()
    };
    assert_eq!((bytes_after_head("HEAD"), bytes_after_head("GET") > 100), (0, true));
}

#[test]
fn a_good_response_before_a_refusal_is_complete() {
    let server = house();
    let good = "GET /collections/c/items HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let long = format!("GET /{} HTTP/1.1\r\nHost: localhost\r\n\r\n", "x".repeat(70_000));
    // One after the other, and all at once.
    for at_once in [false, true] {
        let stream = server.connect();
        let mut reader = BufReader::new(stream.try_clone().unwrap());
        let mut stream = stream;
        if at_once {
            stream.write_all(format!("{good}{good}{long}").as_bytes()).unwrap();
        } else {
            stream.write_all(good.as_bytes()).unwrap();
        }
        assert_eq!(read_response(&mut reader).unwrap().json()["numberReturned"], 1);
        if !at_once {
            stream.write_all(format!("{good}{long}").as_bytes()).unwrap();
        }
        assert_eq!(read_response(&mut reader).unwrap().json()["numberReturned"], 1);
        read_response(&mut reader).unwrap().problem(414);
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert!(rest.is_empty(), "{}", String::from_utf8_lossy(&rest));
    }
}

#[test]
fn a_socket_takes_messages_of_64_kib() {
    let server = house();
    let question = json!({"name": "s", "question": {"keywords": "flood"}});
    let saved = server.post("/saved-searches", "application/json", question.to_string());
    assert_eq!(saved.status, 201, "{}", saved.text());
    let path = format!("/saved-searches/{}/packets", saved.json()["id"].as_str().unwrap());
    let mut socket = Socket::open(&server, &path);
    socket.say(&vec![b'x'; 64 << 10]);
    socket.ping();
    assert!(socket.answers(), "a message within the limit");
    let mut socket = Socket::open(&server, &path);
    socket.say(&vec![b'x'; (64 << 10) + 1]);
    socket.ping();
    assert!(!socket.answers(), "a message over the limit");
    // The same in pieces.
    let mut socket = Socket::open(&server, &path);
    socket.say_in_pieces(&vec![b'x'; 20 << 10], 4);
    socket.ping();
    assert!(!socket.answers(), "a message over the limit in frames within it");
}
