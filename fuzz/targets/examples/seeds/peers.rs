//! What other processes send: the roles of a cluster, and servers under load.

use crate::corpus::{put, put_all, root};
use fuzz_targets::{SCENARIO, objects_of_cluster, results_of_lab, wire_of_roles};
use std::path::{Path, PathBuf};

pub fn cluster() {
    for (target, name, bytes) in objects_of_cluster() {
        put(target, &name, bytes);
    }
    let fixture = std::fs::read(root().join("crates/remote/tests/fixtures/wire-1.json")).unwrap();
    for (target, name, bytes) in wire_of_roles(&serde_json::from_slice(&fixture).unwrap()) {
        put(target, &name, bytes);
    }
    let faults = [
        r#"{"fault":{"corrupt":{"path":"a","detail":"b"}}}"#,
        r#"{"fault":{"partly":[3,{"full":"no room"}]}}"#,
        r#"{"fault":{"io":{"action":"read","path":"a","source":"b","full":true}},"done":true}"#,
        r#"{"value":{"seq":[7],"paths":["/a"],"kept_until":5}}"#,
        r#"{"value":{"deleted":3,"position":[7],"stopped":[5,true,"deadline"]}}"#,
    ];
    put_all("wire_answer", faults);
    put_all(
        "nats_monitor",
        [
            r#"{"server_id":"A","config":{"sync_always":true},"meta_cluster":{"cluster_size":1}}"#,
            r#"{"server_id":"D","config":{"sync_interval":120000000000}}"#,
        ],
    );
}

pub fn lab() {
    put_all(
        "lab_resp",
        ["*2\r\n$1\r\n0\r\n*3\r\n:1\r\n$-1\r\n+OK\r\n", "%1\r\n+a\r\n=5\r\ntxt:b\r\n", "-WRONGTYPE Operation\r\n"],
    );
    put_all(
        "lab_nats",
        [
            "INFO {\"server_id\":\"A\"}\r\nPING\r\n+OK\r\nMSG a.b 1 7\r\npayload\r\n",
            "HMSG a.b 1 to 16 18\r\nNATS/1.0 503\r\n\r\nab\r\n-ERR 'x'\r\n",
            "MSG a 1 25\r\n{\"stream\":\"S\",\"seq\":7    }\r\n",
        ],
    );
    put("lab_postgres", "rows", b"D\0\0\0\x14\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0\0\0Z\0\0\0\x05I");
    put("lab_postgres", "error", b"E\0\0\0\x13C53300\0Mno room\0\0");
    put("lab_websocket", "texts", b"\x81\x05hello\x01\x02ab\x80\x7e\0\x01c\x89\0\x88\x02\x03\xe8");
    put_all(
        "lab_http",
        [
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nx: y\r\n\r\n",
            "HTTP/1.1 503 No\r\ncontent-length: 4\r\nretry-after: 7\r\nconnection: close\r\n\r\nabcd",
            "data: {\"kind\":\"results\",\"features\":[1,2]}\n\n: ping\n\ndata: {\"kind\":\"complete\",\"state\":\"partial\"}\n\n",
            "{\"type\":\"Feature\"}\n\u{1e}{\"type\":\"Feature\"}\n",
        ],
    );
    put("lab_file", "first", SCENARIO);
    for folder in ["bench", "crates/lab-plan", "docs"] {
        for path in files(&root().join(folder)) {
            let is_small = std::fs::metadata(&path).unwrap().len() <= 6 << 10;
            if is_small && path.extension().is_some_and(|end| end == "toml") && !path.ends_with("Cargo.toml") {
                put("lab_file", &path.file_name().unwrap().to_string_lossy(), std::fs::read(&path).unwrap());
            }
        }
    }
    for (name, bytes) in results_of_lab() {
        put("lab_results", &name, bytes);
    }
}

/// All files below a folder.
fn files(folder: &Path) -> Vec<PathBuf> {
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}
