//! Redis, with a password and a name.

use super::*;

fn server(folder: &Path) -> Running {
    let program = Path::new("redis-server");
    need(program, "redis-server");
    start(folder, 1, |ports| {
        let mut command = Command::new(program);
        command.args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--requirepass", "secret"]);
        command.args(["--user", "me", "on", ">p ss", "~*", "&*", "+@all", "--port", &ports[0].to_string(), "--dir"]);
        command.arg(folder);
        command
    })
}

#[test]
fn a_real_redis_lets_in_who_has_the_password_and_counts_what_it_finds() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = server(folder.path());
    let address = format!("127.0.0.1:{}", server.ports[0]);
    let of = |login: &str, arrival: &str, requests: &str| {
        format!("[target]\nurl = \"redis://{login}@{address}\"\n[arrival]\n{arrival}\n{requests}")
    };
    let closed = "kind = \"closed\"\nusers = 4\n[limits]\nrequests = 300";
    // A hundred places on a line, each of them stored three times.
    let put = drive(&of(
        ":secret",
        closed,
        "[generate.n]\nkind = \"id\"\nprefix = \"0.0\"\nto = 99\nsequence = true\n[request]\nbody = \"GEOADD places {n} 0 p{n}\"\n",
    ));
    assert_eq!(put.outcomes(), BTreeMap::from([("sound", 300)]), "{:?}", put.records.first());
    let found = drive(&of(
        "me:p%20ss",
        closed,
        "[[request]]\nname = \"all\"\nbody = \"ZRANGE places 0 -1\"\nresult = \"line\"\n\
         [[request]]\nname = \"far\"\nbody = \"GEOSEARCH places FROMLONLAT 10 10 BYRADIUS 1 km\"\nresult = \"line\"\n\
         [[request]]\nname = \"wrong\"\nbody = \"HGET places x\"\n",
    ));
    let due = [(Came::Sound, 100, ""), (Came::Sound, 0, ""), (Came::Failed, 0, "the server answered WRONGTYPE")];
    assert_eq!(found.records.len(), 300);
    assert!(others(&found, &due).is_empty(), "{:?}", others(&found, &due).first());
    for login in [":guess", "you:secret"] {
        let stranger = refusal(&of(login, "kind = \"burst\"\ncount = 1", "[request]\nbody = \"PING\"\n"));
        assert!(matches!(&stranger, LabError::Target(text) if text.contains("WRONGPASS")), "{stranger}");
    }
}
