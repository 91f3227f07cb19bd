//! NATS with JetStream, in plain text and over TLS.

use super::*;

fn server(folder: &Path, tls: bool) -> Running {
    let program = Path::new("nats-server");
    need(program, "nats-server");
    start(folder, 1, |ports| {
        let mut command = Command::new(program);
        command.args([
            "-a",
            "127.0.0.1",
            "-p",
            &ports[0].to_string(),
            "--user",
            "me",
            "--pass",
            "secret",
            "-js",
            "-sd",
        ]);
        command.arg(folder.join("js"));
        if tls {
            command
                .arg("--tls")
                .arg("--tlscert")
                .arg(folder.join("server.crt"))
                .arg("--tlskey")
                .arg(folder.join("server.key"));
        }
        command
    })
}

#[test]
fn a_real_nats_takes_what_is_published_and_says_when_nobody_answers() {
    let authority = Authority::new();
    for (scheme, more) in [("nats", String::new()), ("tls", authority.trusted())] {
        let folder = tempfile::tempdir().expect("a folder");
        authority.write("127.0.0.1", folder.path());
        let server = server(folder.path(), scheme == "tls");
        let address = format!("127.0.0.1:{}", server.ports[0]);
        let of = |login: &str, arrival: &str, requests: &str| {
            format!("[target]\nurl = \"{scheme}://{login}@{address}\"\n{more}\n[arrival]\n{arrival}\n{requests}")
        };
        let once = "kind = \"burst\"\ncount = 1";
        let made = drive(&of(
            "me:secret",
            once,
            "[request]\npath = \"/$JS.API.STREAM.CREATE.orders\"\nbody = '{\"name\":\"orders\",\"subjects\":[\"orders.>\"],\"storage\":\"memory\"}'\n[request.check]\nfields = [\"/config/name=string\"]\n",
        ));
        assert_eq!(made.outcomes(), BTreeMap::from([("sound", 1)]), "{scheme}: {:?}", made.records);
        let closed = "kind = \"closed\"\nusers = 4\n[limits]\nrequests = 200";
        let ran = drive(&of(
            "me:secret",
            closed,
            "[[request]]\nmethod = \"PUT\"\npath = \"/orders.new\"\nbody = '{\"n\":1}'\n[[request]]\npath = \"/nobody\"\n[[request]]\nmethod = \"PUT\"\npath = \"/elsewhere\"\n",
        ));
        let due = [
            (Came::Sound, 1, ""),
            (Came::Failed, 0, "no responder listens to this subject"),
            (Came::Failed, 0, "no responder listens to this subject"),
        ];
        assert_eq!(ran.records.len(), 200);
        assert!(others(&ran, &due).is_empty(), "{scheme}: {:?}", others(&ran, &due));
        // Acknowledged messages are stored.
        let kept = ran.records.iter().filter(|record| record.request == 0).count();
        let check = format!(
            "[request]\npath = \"/$JS.API.STREAM.INFO.orders\"\n[request.check]\ncount = \"/state/messages\"\nresults_at_least = {kept}\nresults_at_most = {kept}\n"
        );
        let seen = drive(&of("me:secret", once, &check));
        assert_eq!(seen.outcomes(), BTreeMap::from([("sound", 1)]), "{scheme}: {:?}", seen.records);
        let stranger = refusal(&of("me:guess", once, "[request]\npath = \"/x\"\n"));
        assert!(
            matches!(&stranger, LabError::Target(text) if text.to_lowercase().contains("authorization")),
            "{stranger}"
        );
    }
}
