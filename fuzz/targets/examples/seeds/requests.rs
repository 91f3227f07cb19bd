//! Requests: their heads, and the credentials in them.

use crate::corpus::{put, put_all};
use fuzz_targets::{connections, records_of_people, records_of_searches, signed};

pub fn issuers() {
    let head = r#"{"alg":"HS256","typ":"JWT"}"#;
    let claims = r#"{"iss":"a","sub":"mary","aud":["b","meridian"],"exp":1700000000.5,"nbf":0,"scope":"read write","realm":{"roles":["gis"]}}"#;
    put("jwt", "whole", signed(head, claims));
    put("jwt", "operator", signed(head, r#"{"iss":"a","sub":"mary","aud":"meridian","exp":9,"operator":true}"#));
    put("jwt", "none", signed(r#"{"alg":"none"}"#, claims));
    put(
        "jwt",
        "critical",
        signed(r#"{"alg":"HS256","crit":["b64"],"b64":false,"jwk":{"kty":"oct","k":"AA"}}"#, claims),
    );
    put_all(
        "key_set",
        [
            r#"{"keys":[{"kid":"a","kty":"OKP","crv":"Ed25519","alg":"EdDSA","use":"sig","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}]}"#,
            r#"{"keys":[{"kty":"EC","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM","kid":"1"}]}"#,
            r#"{"keys":[{"kty":"RSA","n":"u1SU1LfVLPHCozMxH2Mo4lgOEePzNm0tRgeLezV6ffAt0gunVTLw7onLRnrq0_IzW7yWR7QkrmBL7jTKEn5u","e":"AQAB"},{"kty":"oct","k":"AAAA"},{"kty":"new"}]}"#,
        ],
    );
}

pub fn callers() {
    let token = format!("mrd_0123456789abcdef_{}", "0".repeat(64));
    put("credential", "bearer", format!("Bearer {token}"));
    put("credential", "basic", format!("Basic {}", data_encoding::BASE64.encode(format!("a:{token}").as_bytes())));
    put("credential", "digest", "Digest username=\"a\"");
    put(
        "token_record",
        "token",
        r#"{"id":"0123456789abcdef","tenant":"default","role":"reader","collections":"ships*,ports","created":0,"expires":1700000000000000,"digest":"60e05bd1b195af2f94112fa7197a5c88289058840ce7c6df9693756bc6250f55"}"#,
    );
    let tenant = serde_json::to_string(&meridian_admission::identity::Tenant::new("harbour")).unwrap();
    put("token_record", "tenant", tenant);
    put(
        "flight_command",
        "items",
        r#"{"collection":"quakes","bbox":[1,-2.5,3,4],"filter":{"op":"isNull","args":[{"property":"n"}]},"fields":["n","m"],"parallel":4}"#,
    );
    put(
        "flight_command",
        "aggregate",
        r#"{"collection":"a b","kind":"aggregate","function":"count,max(mag)","window":"P1M","datetime":"../2020-01-01T00:00:00Z"}"#,
    );
    put(
        "flight_command",
        "track",
        r#"{"collection":"ships","kind":"track","track":"ship-3","near":"1,2","radius":500.5}"#,
    );
    put(
        "flight_ticket",
        "whole",
        r#"{"tenant":"default","question":{"collection":"quakes","kind":"items","query":"limit=3"},"snapshot":null,"part":[null,null],"expires":1700000000000000}"#,
    );
    put("cookie", "one", format!("meridian-session=mrs_0123456789abcdef_{}", "0".repeat(64)));
    put("cookie", "several", "theme=dark; meridian-session=one\n__Host-meridian-session=two;a");
    put(
        "forwarded",
        "common",
        "x-forwarded-for: 198.51.100.1, 192.0.2.7:4711\nx-forwarded-for: 10.0.0.9\nx-forwarded-proto: https, http",
    );
    put(
        "forwarded",
        "standard",
        "forwarded: for=192.0.2.7;proto=http, For=\"[2001:db8::7]:99\" ; Proto=https\nforwarded: for=_hidden;by=\"a\\\"b, c\"",
    );
    put("forwarded", "both", "forwarded: for=198.51.100.1\nx-forwarded-for: 192.0.2.7");
}

pub fn heads() {
    put_all(
        "conditions",
        [
            "range: bytes=2-5\nif-range: \"3f\"\naccept-encoding: gzip;q=0.5, zstd, *;q=0",
            "if-none-match: W/\"3f\", \"4a\"\nif-modified-since: Tue, 15 Nov 1994 12:45:26 GMT",
            "if-match: \"3f\", *\nrange: bytes=-3\npriority: u=6, i\nmeridian-timeout: 1500\naccept: text/html;q=0.9, */*\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\ntracestate: a=b",
            "if-modified-since: Wed, 16 Nov 1994 12:45:26 GMT\nrange: Bytes = 30-99\ncookie: a=b\nsec-fetch-site: same-origin",
        ],
    );
    put_all(
        "origin",
        [
            "POST /collections/c/items\nhost: 127.0.0.1:7117\norigin: https://app.example\nsec-fetch-site: cross-site",
            "GET http://meridian.example/map\nhost: meridian.example:443\nupgrade: websocket\norigin: http://127.0.0.1:7117",
            "OPTIONS /\nhost: [::1]:7117\norigin: null",
        ],
    );
    put_all(
        "query_string",
        [
            "limit=3&filter=n%20%3E%205+AND+a%3D'%C3%A9'&bbox=1,2,3,4&x",
            "login=anna&password=correct%20horse&next=%2Fmap",
            "/map#c=a&z=3",
            "0000000000001-0000000000002",
            "7-0-3",
        ],
    );
    put_all(
        "discovery",
        [
            r#"{"issuer":"https://login.example.org/","jwks_uri":"https://login.example.org/keys","authorization_endpoint":"https://login.example.org/authorize","token_endpoint":"https://login.example.org/token","authorization_response_iss_parameter_supported":true}"#,
            r#"{"issuer":"https://login.example.org/","jwks_uri":"https://login.example.org/keys"}"#,
        ],
    );
    for (name, bytes) in connections() {
        put("connection", name, bytes);
    }
    for (name, bytes) in records_of_people() {
        put("user_record", name, bytes);
    }
    for (name, bytes) in records_of_searches() {
        put("saved_record", name, bytes);
    }
}
