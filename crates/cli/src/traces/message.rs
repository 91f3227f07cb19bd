//! The OTLP 1 messages needed for spans, in protobuf (`opentelemetry/proto/trace/v1/trace.proto`; its field numbers are
//! stable since version 1.0).

use meridian_observe::{EndedSpan, Kind, Value};

/// The service name of spans.
const SERVICE: &str = "meridian";

/// Encodes an `ExportTraceServiceRequest` with these spans.
pub fn export(spans: &[EndedSpan]) -> Vec<u8> {
    let mut scope_spans = Vec::new();
    message(&mut scope_spans, 1, |scope| text(scope, 1, SERVICE));
    for span in spans {
        message(&mut scope_spans, 2, |out| put_span(out, span));
    }
    let mut resource_spans = Vec::new();
    message(&mut resource_spans, 1, |resource| {
        let version = Value::Name(env!("CARGO_PKG_VERSION"));
        for (name, value) in [("service.name", Value::Name(SERVICE)), ("service.version", version)] {
            message(resource, 1, |out| put_attribute(out, name, &value));
        }
    });
    bytes(&mut resource_spans, 2, &scope_spans);
    let mut request = Vec::with_capacity(resource_spans.len() + 8);
    bytes(&mut request, 1, &resource_spans);
    request
}

fn put_span(out: &mut Vec<u8>, span: &EndedSpan) {
    bytes(out, 1, &span.trace.to_be_bytes());
    bytes(out, 2, &span.span.to_be_bytes());
    if let Some(state) = &span.state {
        text(out, 3, state);
    }
    if span.parent != 0 {
        bytes(out, 4, &span.parent.to_be_bytes());
    }
    text(out, 5, &span.name);
    let kind = match span.kind {
        Kind::Internal => 1,
        Kind::Server => 2,
        Kind::Client => 3,
    };
    number(out, 6, kind);
    fixed64(out, 7, span.start);
    fixed64(out, 8, span.end);
    for (name, value) in &span.attributes {
        message(out, 9, |out| put_attribute(out, name, value));
    }
    if span.failed {
        // A `Status` of code `ERROR`.
        message(out, 15, |status| number(status, 3, 2));
    }
    // The flags: sampled, and whether the parent is remote, which is known.
    let flags: u32 = 0x101 | if span.parent_is_remote { 0x200 } else { 0 };
    varint(out, 16 << 3 | 5);
    out.extend_from_slice(&flags.to_le_bytes());
}

fn put_attribute(out: &mut Vec<u8>, name: &str, value: &Value) {
    text(out, 1, name);
    message(out, 2, |any| match value {
        Value::Int(n) => number(any, 3, *n as u64),
        Value::Text(value) => text(any, 1, value),
        Value::Name(value) => text(any, 1, value),
    });
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn number(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3);
    varint(out, value);
}

fn fixed64(out: &mut Vec<u8>, field: u64, value: u64) {
    varint(out, field << 3 | 1);
    out.extend_from_slice(&value.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(out, field << 3 | 2);
    varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

fn text(out: &mut Vec<u8>, field: u64, value: &str) {
    bytes(out, field, value.as_bytes());
}

fn message(out: &mut Vec<u8>, field: u64, put: impl FnOnce(&mut Vec<u8>)) {
    let mut inner = Vec::new();
    put(&mut inner);
    bytes(out, field, &inner);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_has_the_bytes_that_protoc_makes() {
        // `protoc --encode=opentelemetry.proto.trace.v1.Span` produces the same for these fields.
        let span = EndedSpan {
            trace: 1,
            span: 2,
            parent: 3,
            parent_is_remote: true,
            state: Some("v=1".into()),
            name: "scan".into(),
            kind: Kind::Server,
            start: 4,
            end: 5,
            attributes: vec![("n", Value::Int(300))],
            failed: true,
        };
        let mut out = Vec::new();
        put_span(&mut out, &span);
        let expected = "0a1000000000000000000000000000000001\
                        12080000000000000002\
                        1a03763d31\
                        22080000000000000003\
                        2a047363616e\
                        3002\
                        390400000000000000\
                        410500000000000000\
                        4a080a016e120318ac02\
                        7a021802\
                        850101030000";
        assert_eq!(out.iter().map(|byte| format!("{byte:02x}")).collect::<String>(), expected);
    }
}
