//! Closed-loop questions.
//!
//! Each of `--connections` connections sends its next question as soon as the response to the last one has arrived. So
//! the rates of different servers are compared at the same client cost. The questions come from a file, one per line,
//! and are filled into `--template` (`{1}`, `{2}`, … are the line's words, separated by tabs). `--dump N` instead asks
//! the first N questions once and prints each raw response as a line of hexadecimal. So a judge can compare the
//! responses of different servers.

use crate::tally::{Tally, cpu_seconds};
use crate::wire::{self, Connection, Protocol};
use std::time::{Duration, Instant};

/// What to ask, where and for how long.
#[derive(clap::Args, Clone)]
pub struct Options {
    /// How to speak: http, resp (Redis) or pg (PostgreSQL, one prepared statement).
    #[arg(long, value_enum)]
    protocol: Protocol,
    /// Address of the server.
    #[arg(long)]
    address: String,
    /// Connections, each with one request in flight.
    #[arg(long, default_value_t = 50)]
    connections: usize,
    /// Seconds to measure, after a warm-up of a fifth of it.
    #[arg(long, default_value_t = 10.0)]
    seconds: f64,
    /// File of questions: words separated by tabs, one question a line.
    #[arg(long)]
    questions: std::path::PathBuf,
    /// Request target (http), command (resp, split at spaces) or SQL (pg; words are bound as text parameters, answers
    /// are binary).
    #[arg(long)]
    template: String,
    /// Database (pg only).
    #[arg(long, default_value = "postgres")]
    database: String,
    /// Token to show (http only).
    #[arg(long)]
    token: Option<String>,
    /// Ask the first N questions once and print the raw answers.
    #[arg(long)]
    dump: Option<usize>,
}

/// Asks, and prints the results.
pub async fn run(options: Options) -> Result<(), String> {
    let text =
        std::fs::read_to_string(&options.questions).map_err(|e| format!("{}: {e}", options.questions.display()))?;
    let ask = |line: &str| {
        let words: Vec<_> = line.split('\t').collect();
        wire::request(options.protocol, &options.template, &words, &options.address, options.token.as_deref())
    };
    let questions: Vec<Vec<u8>> = text.lines().filter(|line| !line.is_empty()).map(ask).collect();
    if questions.is_empty() {
        return Err("the file of questions is empty".to_owned());
    }
    if let Some(count) = options.dump {
        let mut connection = connect(&options).await?;
        for question in questions.iter().take(count) {
            let answer = connection.ask(question).await.map_err(|e| e.to_string())?;
            println!("{}", answer.iter().map(|b| format!("{b:02x}")).collect::<String>());
        }
        return Ok(());
    }

    let report = measured(&options, questions).await?;
    println!("{report}");
    refused(&report)
}

/// An error reply is not a valid response: figures of a run that had one are shown, and the run is refused.
pub fn refused(report: &serde_json::Value) -> Result<(), String> {
    match (report["errors"].as_u64(), report["answers"].as_u64()) {
        (Some(0), Some(answers)) if answers > 0 => Ok(()),
        (Some(0), _) => Err("not one answer came".to_owned()),
        (errors, _) => {
            let first = report["first_error"].as_str().unwrap_or_default();
            Err(format!("{} replies were errors, the first: {first}", errors.unwrap_or_default()))
        }
    }
}

/// Keeps the questions going, and returns the results.
async fn measured(options: &Options, questions: Vec<Vec<u8>>) -> Result<serde_json::Value, String> {
    let warm_until = Instant::now() + Duration::from_secs_f64(options.seconds / 5.0);
    let end = warm_until + Duration::from_secs_f64(options.seconds);
    let questions: &'static [Vec<u8>] = Box::leak(questions.into_boxed_slice());
    let cpu = cpu_seconds();
    let handles: Vec<_> = (0..options.connections)
        .map(|i| i * questions.len() / options.connections)
        .map(|from| tokio::task::spawn_local(drive(options.clone(), questions, from, warm_until, end)))
        .collect();
    let mut all = Tally::default();
    for handle in handles {
        all.add(handle.await.map_err(|e| e.to_string())??);
    }
    // Responses that began in time are awaited: the rate counts the time that they took.
    let mut report = all.report(warm_until.elapsed());
    report["client_cpu_s"] = (cpu_seconds() - cpu).into();
    Ok(report)
}

async fn connect(options: &Options) -> Result<Connection, String> {
    Connection::open(options.protocol, &options.address, &options.database, &options.template).await
}

async fn drive(
    options: Options,
    questions: &'static [Vec<u8>],
    from: usize,
    warm_until: Instant,
    end: Instant,
) -> Result<Tally, String> {
    let mut connection = connect(&options).await?;
    let mut tally = Tally::default();
    for question in questions.iter().cycle().skip(from) {
        let sent = Instant::now();
        if sent >= end {
            break;
        }
        let outcome = connection.ask(question).await.map(|answer| answer.len());
        let done = Instant::now();
        match outcome {
            Ok(_) if done < warm_until => {}
            Ok(bytes) => {
                tally.latencies_us.push((done - sent).as_micros() as u32);
                tally.bytes += bytes as u64;
            }
            Err(e) => {
                // An error in the warm-up counts too. The rest of an error reply must not be taken for the next
                // response, so the connection is dropped.
                tally.fail(e);
                connection = connect(&options).await?;
            }
        }
    }
    Ok(tally)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    /// The reply, piece by piece.
    type Pieces = &'static [&'static [u8]];

    /// Runs a server that sends `hello`, if there is one, after the first input of a connection. It then sends `says`
    /// after all further input, piece by piece.
    fn server(hello: Pieces, says: Pieces) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let speak = |stream: &mut TcpStream, says: &[&[u8]]| {
            says.iter().all(|piece| {
                std::thread::sleep(Duration::from_millis(5));
                stream.write_all(piece).is_ok()
            })
        };
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut asked = [0; 4096];
                    let mut read = |stream: &mut TcpStream| stream.read(&mut asked).is_ok_and(|n| n > 0);
                    let hello = hello.iter().all(|one| read(&mut stream) && speak(&mut stream, &[one]));
                    while hello && read(&mut stream) && speak(&mut stream, says) {}
                });
            }
        });
        address
    }

    fn asked(protocol: Protocol, address: &str, seconds: f64) -> serde_json::Value {
        let options = Options {
            protocol,
            address: address.to_owned(),
            connections: 2,
            seconds,
            questions: std::path::PathBuf::new(),
            template: "GET {1}".to_owned(),
            database: "postgres".to_owned(),
            token: None,
            dump: None,
        };
        let questions = vec![wire::request(protocol, "GET {1}", &["x"], address, None)];
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        tokio::task::LocalSet::new().block_on(&runtime, measured(&options, questions)).expect("a report")
    }

    /// AuthenticationOk and ReadyForQuery, ParseComplete and ReadyForQuery.
    const PG_HELLO: Pieces = &[b"R\0\0\0\x08\0\0\0\0Z\0\0\0\x05I", b"1\0\0\0\x04Z\0\0\0\x05I"];

    #[test]
    fn an_error_reply_is_counted_as_an_error_and_never_as_an_answer() {
        let cases: [(Protocol, Pieces, Pieces, &str); 5] = [
            (Protocol::Resp, &[], &[b"-ERR invalid argument 'METERS'\r\n"], "invalid argument 'METERS'"),
            (Protocol::Resp, &[], &[b"*2\r\n:0\r\n-ERR no\r\n"], "ERR no"),
            (Protocol::Resp, &[], &[b"$32\r\n{\"ok\":false,\"err\":\"no such key\"}\r\n"], "no such key"),
            (Protocol::Http, &[], &[b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\n", b"gone"], "404 Not Found"),
            // The end of the error arrives separately: it must not be taken for the whole response to the next
            // question.
            (Protocol::Pg, PG_HELLO, &[b"E\0\0\0\x0cSERROR\0\0", b"Z\0\0\0\x05I"], "ERROR"),
        ];
        for (protocol, hello, says, why) in cases {
            let report = asked(protocol, &server(hello, says), 0.2);
            assert_eq!(report["answers"], 0, "{why}: {report}");
            let said = refused(&report).expect_err(why);
            assert!(said.contains("replies were errors") && said.contains(why), "{said}");
        }
    }

    #[test]
    fn whole_answers_are_taken_and_silence_is_refused() {
        let good: [(Protocol, Pieces, Pieces); 3] = [
            (Protocol::Resp, &[], &[b"*2\r\n:0\r\n*1\r\n$2\r\n", b"p1\r\n"]),
            (Protocol::Http, &[], &[b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", b"here"]),
            (Protocol::Pg, PG_HELLO, &[b"2\0\0\0\x04C\0\0\0\x0dSELECT 0\0", b"Z\0\0\0\x05I"]),
        ];
        for (protocol, hello, says) in good {
            let report = asked(protocol, &server(hello, says), 0.2);
            assert_eq!(refused(&report), Ok(()), "{report}");
        }
        assert!(
            refused(&Tally::default().report(Duration::from_secs(1))).expect_err("none").contains("not one answer")
        );
    }
}
