//! HTTP/2 as implemented by nginx: with prior knowledge and by ALPN, more users than allowed streams, connections that
//! nginx ends.

use super::*;

const LINES: usize = 20_000;

fn server(folder: &Path, authority: &Authority) -> Running {
    let program = Path::new("nginx");
    need(program, "nginx-light");
    authority.write("127.0.0.1", folder);
    let lines: String = (0..LINES).map(|n| format!("line {n}\n")).collect();
    std::fs::write(folder.join("lines"), lines).expect("writes");
    start(folder, 3, |ports| {
        let here = folder.display();
        let places: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|kind| format!("{kind}_temp_path {here}/{kind};\n"))
            .concat();
        let text = format!(
            "daemon off;\nmaster_process off;\npid {here}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{places}\
             server {{\nlisten 127.0.0.1:{} http2;\nlisten 127.0.0.1:{} ssl http2;\nroot {here};\n\
             ssl_certificate {here}/server.crt;\nssl_certificate_key {here}/server.key;\n\
             http2_max_concurrent_streams 8;\nkeepalive_requests 100000;\nlocation = /busy {{ return 503; }}\n}}\n\
             server {{\nlisten 127.0.0.1:{} http2;\nroot {here};\nkeepalive_requests 10;\n}}\n}}\n",
            ports[0], ports[1], ports[2]
        );
        std::fs::write(folder.join("nginx.conf"), text).expect("writes");
        let mut command = Command::new(program);
        command.args(["-e", "stderr", "-p"]).arg(folder).arg("-c").arg(folder.join("nginx.conf"));
        command
    })
}

#[test]
fn a_real_nginx_speaks_http2_as_the_lab_does() {
    let (folder, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let server = server(folder.path(), &authority);
    let requests: String = ["/lines", "/busy", "/missing"]
        .map(|path| format!("[[request]]\npath = \"{path}\"\nresult = \"line\"\n"))
        .concat();
    for (url, more) in [
        (format!("http://127.0.0.1:{}", server.ports[0]), String::new()),
        (format!("https://127.0.0.1:{}", server.ports[1]), authority.trusted()),
    ] {
        let ran = drive(&format!(
            "[target]\nurl = \"{url}\"\nhttp2 = true\nstreams = 20\n{more}\n[arrival]\nkind = \"closed\"\nusers = 60\n[limits]\nrequests = 300\n{requests}"
        ));
        assert_eq!(ran.records.len(), 300, "{url}");
        let due = [(Came::Sound, LINES as u64, ""), (Came::Refused, 0, "status 503"), (Came::Failed, 0, "status 404")];
        assert!(others(&ran, &due).is_empty(), "{url}: {:?}", others(&ran, &due));
    }
    let plain = refusal(&format!(
        "[target]\nurl = \"https://127.0.0.1:{}\"\nhttp2 = true\n{}\n[arrival]\nkind = \"burst\"\ncount = 1\n[request]\npath = \"/\"\n",
        server.ports[0],
        authority.trusted()
    ));
    assert!(matches!(&plain, LabError::Target(text) if text.contains("TLS")), "{plain}");
}

#[test]
fn a_real_nginx_that_ends_its_connections_again_and_again_loses_nothing() {
    let (folder, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let server = server(folder.path(), &authority);
    // Twenty users per connection, which takes ten streams.
    let ran = drive(&format!(
        "[target]\nurl = \"http://127.0.0.1:{}\"\nhttp2 = true\nstreams = 20\n[arrival]\nkind = \"closed\"\nusers = 60\n\
         [limits]\nrequests = 300\n[request]\npath = \"/lines\"\nresult = \"line\"\n",
        server.ports[2]
    ));
    assert_eq!(ran.records.len(), 300);
    assert!(
        others(&ran, &[(Came::Sound, LINES as u64, "")]).is_empty(),
        "{:?}",
        others(&ran, &[(Came::Sound, LINES as u64, "")])
    );
}
