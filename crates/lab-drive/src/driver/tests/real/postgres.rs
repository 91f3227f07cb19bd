//! PostgreSQL: every authentication method, statements with parameters, errors by their SQLSTATE, TLS.

use super::*;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;

/// Roles and their authentication; a password is stored in the form of the setting at that time.
const SETUP: &str = "set password_encryption = 'md5'
create role old login password 'secret'
set password_encryption = 'scram-sha-256'
create role new login password 'secret'
create role plain login password 'secret'
create role secure login password 'secret'
create table place (id integer primary key, name text)
insert into place select n, 'place ' || n from generate_series(1, 1000) n
grant select on place to public
";

/// Authentication rules.
const DOORS: &str = "host all old 127.0.0.1/32 md5
host all new 127.0.0.1/32 scram-sha-256
host all plain 127.0.0.1/32 password
hostssl all secure 127.0.0.1/32 scram-sha-256
";

/// Returns Debian's folder of PostgreSQL programs, for the newest version.
fn programs() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("postgres").exists()).max();
    newest.expect("PostgreSQL is needed: apt-get install postgresql (make test does it)")
}

/// PostgreSQL refuses to run as root: it then runs as the user that its package created.
fn as_its_user(command: &mut Command) -> &mut Command {
    if std::fs::metadata("/proc/self").expect("a process").uid() != 0 {
        return command;
    }
    let id = |kind: &str| -> u32 {
        let said = Command::new("id").args([kind, "postgres"]).output().expect("id").stdout;
        String::from_utf8_lossy(&said).trim().parse().expect("the user postgres")
    };
    command.uid(id("-u")).gid(id("-g"))
}

fn done(command: &mut Command) {
    let ended = command.output().expect("starts");
    assert!(ended.status.success(), "{command:?}: {}", String::from_utf8_lossy(&ended.stderr));
}

/// Starts a server with a database of its own in `folder`, on a port.
fn server(folder: &Path, authority: &Authority) -> Running {
    let (bin, data) = (programs(), folder.join("data"));
    authority.write("127.0.0.1", folder);
    if std::fs::metadata(folder).expect("a folder").uid() == 0 {
        done(Command::new("chown").args(["-R", "postgres"]).arg(folder));
    }
    let options = ["--username=boss", "--auth=trust", "--no-sync", "--encoding=UTF8", "--locale=C", "-D"];
    done(as_its_user(Command::new(bin.join("initdb")).current_dir("/").args(options).arg(&data)));
    let mut single = Command::new(bin.join("postgres"));
    single.current_dir("/");
    let single = as_its_user(single.args(["--single", "-D"]).arg(&data).arg("postgres"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null());
    let mut single = single.stderr(Stdio::null()).spawn().expect("starts");
    single.stdin.take().expect("a pipe").write_all(SETUP.as_bytes()).expect("writes");
    assert!(single.wait().expect("ends").success());
    std::fs::write(data.join("pg_hba.conf"), DOORS).expect("writes");
    start(folder, 1, |ports| {
        let mut command = Command::new(bin.join("postgres"));
        as_its_user(command.current_dir("/"));
        let set = |name: &str, value: &str| ["-c".to_owned(), format!("{name}={value}")];
        command.arg("-D").arg(&data).args(["-p", &ports[0].to_string()]);
        command.args(set("listen_addresses", "127.0.0.1")).args(set("unix_socket_directories", ""));
        command.args(set("fsync", "off")).args(set("ssl", "on"));
        command.args(set("ssl_cert_file", &folder.join("server.crt").display().to_string()));
        command.args(set("ssl_key_file", &folder.join("server.key").display().to_string()));
        command
    })
}

#[test]
fn a_real_postgresql_lets_everybody_in_by_his_door_and_answers() {
    let (folder, authority) = (tempfile::tempdir().expect("a folder"), Authority::new());
    let server = server(folder.path(), &authority);
    let address = format!("127.0.0.1:{}", server.ports[0]);
    let request = |body: &str| format!("[[request]]\nname = \"{body}\"\nbody = \"{body}\"\nresult = \"row\"\n");
    let requests = [
        request("select id, name from place where id <= {n} order by id"),
        request("select name from place where id = {n} and name = {word}"),
        request("select * from missing"),
        request("select 1 / (id - 1) from place order by id"),
    ]
    .concat();
    let text = |user: &str, rest: &str, more: &str| {
        format!(
            "[target]\nurl = \"postgres://{user}@{address}/postgres{rest}\"\n{more}\n[arrival]\nkind = \"closed\"\nusers = 3\n[limits]\nrequests = 80\n\
             [generate.n]\nkind = \"choice\"\nvalues = [\"700\"]\n[generate.word]\nkind = \"choice\"\nvalues = [\"place 700\"]\n{requests}"
        )
    };
    let due = [
        (Came::Sound, 700, ""),
        (Came::Sound, 1, ""),
        (Came::Failed, 0, "SQLSTATE 42P01: relation"),
        (Came::Failed, 0, "SQLSTATE 22012: division by zero"),
    ];
    wait_ready(&text("plain:secret", "", ""));
    for (user, rest, more) in [
        ("old:secret", "", String::new()),
        ("new:secret", "", String::new()),
        ("plain:secret", "", String::new()),
        ("secure:secret", "?sslmode=verify-full", authority.trusted()),
    ] {
        let ran = drive(&text(user, rest, &more));
        assert_eq!(ran.records.len(), 80, "{user}");
        assert!(others(&ran, &due).is_empty(), "{user}: {:?}", others(&ran, &due));
    }
    let stranger = Authority::new();
    for (user, rest, more, words) in [
        ("old:guess", "", String::new(), "28P01"),
        ("new:guess", "", String::new(), "28P01"),
        // No user of this name may connect without TLS.
        ("secure:secret", "", String::new(), "28000"),
        ("new:secret", "?sslmode=verify-full", stranger.trusted(), "no trusted authority"),
    ] {
        let error = refusal(&text(user, rest, &more));
        assert!(matches!(&error, LabError::Target(text) if text.contains(words)), "{user}{rest}: {error}");
    }
}

/// Waits while the server accepts connections but reports that it is starting up (57P03).
fn wait_ready(text: &str) {
    let begun = Instant::now();
    let scenario = Scenario::parse(text, "test.toml", &["limits.requests=1".to_owned()]).expect("a scenario");
    loop {
        let dir = tempfile::tempdir().expect("a folder");
        let options = Options { out: dir.path().join("run"), ..Options::default() };
        match run(&scenario, &options, &mut |_| {}) {
            Ok(_) => return,
            Err(LabError::Target(why)) if why.contains("57P03") && begun.elapsed() < PATIENCE => {}
            Err(error) => panic!("{error}"),
        }
    }
}
