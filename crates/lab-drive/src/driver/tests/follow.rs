//! Requests that start a stream, which their response names.

use super::*;

const PACKET: &str = "data: {\"kind\":\"results\",\"features\":[1,2]}\n\n";
const WHOLE: &str = "data: {\"kind\":\"complete\",\"state\":\"complete\"}\n\n";

#[test]
fn a_stream_that_an_answer_names_is_followed_and_what_it_brings_is_the_answer() {
    let server = serve(|path, _, stream| {
        let (status, body) = match path {
            "/whole" | "/part" | "/lost" => {
                ("202 Accepted", format!("{{\"at\":{{\"packets\":\"http://elsewhere:9/streams{path}?after=0\"}}}}"))
            }
            "/nameless" => ("202 Accepted", "{\"id\":7}".to_owned()),
            "/busy" => ("429 Busy", "{\"at\":{\"packets\":\"/streams/whole?after=0\"}}".to_owned()),
            "/streams/whole?after=0" => ("200 OK", format!("{PACKET}{PACKET}{WHOLE}")),
            "/streams/part?after=0" => ("200 OK", PACKET.to_owned()),
            _ => ("404 Not Found", String::new()),
        };
        say(stream, &format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len()))
    });
    let requests: String = ["/whole", "/part", "/lost", "/nameless", "/busy"]
        .map(|path| {
            format!(
                "[[request]]\nmethod = \"POST\"\npath = \"{path}\"\nbody = '{{\"q\":1}}'\nresult = \"packet\"\nfollow = \"/at/packets\"\n"
            )
        })
        .concat();
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"closed\"\nusers = 4\n[limits]\nrequests = 100\n{requests}",
        server.url
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 100);
    for record in &ran.records {
        let came = (record.outcome, record.status, record.packets, record.results);
        let due = [
            (Came::Sound, 200, 2, 4),
            (Came::Partial, 200, 1, 2),
            (Came::Failed, 404, 0, 0),
            (Came::Unsound, 202, 0, 0),
            (Came::Refused, 429, 0, 0),
        ];
        assert_eq!(came, due[usize::from(record.request)], "{record:?}");
        assert!(record.sent <= record.first_byte && record.first_byte <= record.done, "{record:?}");
        if record.results > 0 {
            assert!(
                record.first_byte <= record.first_result && record.first_result <= record.last_result,
                "{record:?}"
            );
        }
    }
    let nameless = ran.records.iter().find(|record| record.request == 3).expect("one of a hundred");
    assert_eq!(nameless.detail.as_deref(), Some("the answer names no stream at /at/packets"));
    // Each stream is requested once, and a refused one never.
    let asked = server.asked.lock().expect("a log").clone();
    let count = |path: &str| asked.iter().filter(|one| *one == path).count();
    let sent = |request: u16| ran.records.iter().filter(|record| record.request == request).count();
    assert_eq!(count("/streams/whole?after=0"), sent(0));
    assert_eq!(count("/streams/part?after=0"), sent(1));
    assert_eq!(count("/streams/lost?after=0"), sent(2));
}

#[test]
fn what_cannot_be_followed_is_a_mistake_of_the_scenario() {
    let mistake = |text: &str| Scenario::parse(text, "t", &[]).expect_err("refused").to_string();
    let of = |url: &str, request: &str| {
        format!("[target]\nurl = \"{url}\"\n[arrival]\nkind = \"burst\"\ncount = 1\n[request]\n{request}\n")
    };
    let pointer = mistake(&of("http://127.0.0.1:1", "follow = \"packets\""));
    assert!(pointer.contains("expected a JSON pointer such as /packets"), "{pointer}");
    let same = mistake(&of("http://127.0.0.1:1", "follow = \"/packets\"\ncheck = { same_as = \"target\" }"));
    assert!(same.contains("a followed stream cannot be compared"), "{same}");
    let wire = refusal(&of("ws://127.0.0.1:1", "follow = \"/packets\""));
    assert!(matches!(&wire, LabError::Scenario(text) if text.contains("follow is for http://")), "{wire}");
}
