//! Decodes the bytes of a response: JSON as is, XML and CSV converted to JSON, in the declared charset.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};
use serde::Deserialize;
use serde_json::{Map, Value};

/// Max nesting of XML.
const DEPTH_MAX: usize = 64;
/// Max bytes of a column's name in CSV.
const COLUMN_BYTES_MAX: usize = 256;
/// Max bytes of an entity in text, including `&` and `;`.
const ENTITY_BYTES_MAX: usize = 11;

/// The format of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ResponseFormat {
    /// RFC 8259.
    Json,
    /// XML. An element becomes an object of its attributes (`@name`), its children by name (a list if repeated) and
    /// its text (`$`). An element with text only becomes that text. This covers RSS and Atom.
    Xml,
    /// RFC 4180 with a header: a list of objects.
    Csv,
}

/// Decodes a response. The error is a sentence about the source.
pub fn decode(format: ResponseFormat, content_type: &str, bytes: &[u8]) -> Result<Value, String> {
    let text = text(content_type, bytes)?;
    let start = text.trim_start();
    let is_page = is_html(content_type, start);
    match format {
        ResponseFormat::Json if is_page => Err("expected JSON, received an HTML page".to_owned()),
        ResponseFormat::Xml if is_page => Err("expected XML, received an HTML page".to_owned()),
        ResponseFormat::Csv if is_page => Err("expected CSV, received an HTML page".to_owned()),
        ResponseFormat::Json => serde_json::from_str(start).map_err(|e| format!("the response is not JSON: {e}")),
        ResponseFormat::Xml => xml(start).map_err(|e| format!("the response is not XML: {e}")),
        ResponseFormat::Csv => csv(start).map_err(|e| format!("the response is not CSV: {e}")),
    }
}

fn is_html(content_type: &str, start: &str) -> bool {
    let head: String = start.chars().take(15).collect::<String>().to_ascii_lowercase();
    head.starts_with("<!doctype html")
        || head.starts_with("<html")
        || content_type.starts_with("text/html") && head.starts_with('<')
}

/// Decodes the text of a response. The charset is that of the byte order mark, else of the content type, else of the
/// XML declaration, else UTF-8. Invalid UTF-8 is decoded as Windows-1252, which such sources use in practice.
fn text(content_type: &str, bytes: &[u8]) -> Result<String, String> {
    let named = charset(content_type).or_else(|| declared(bytes));
    let encoding = match &named {
        Some(label) => {
            Encoding::for_label(label.as_bytes()).ok_or_else(|| format!("the charset {label:?} is not known"))?
        }
        None => UTF_8,
    };
    let (text, used, broken) = encoding.decode(bytes);
    // A common mistake is to declare UTF-8 and send Windows-1252, which can decode any bytes.
    if broken && used == UTF_8 {
        return Ok(WINDOWS_1252.decode(bytes).0.into_owned());
    }
    Ok(text.into_owned())
}

fn charset(content_type: &str) -> Option<String> {
    let lower = content_type.to_ascii_lowercase();
    let after = lower.split_once("charset=")?.1;
    let label = after.split(';').next()?.trim().trim_matches('"');
    (!label.is_empty()).then(|| label.to_owned())
}

/// `<?xml … encoding="…"?>`
fn declared(bytes: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(200)]).into_owned();
    let declaration = head.strip_prefix("<?xml")?.split_once("?>")?.0.to_owned();
    let after = declaration.split_once("encoding=")?.1;
    let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    Some(after[1..].split_once(quote)?.0.to_owned())
}

/// An element that is still open.
struct OpenElement {
    name: String,
    members: Map<String, Value>,
    text: String,
}

impl OpenElement {
    fn add(&mut self, name: String, value: Value) {
        match self.members.get_mut(&name) {
            None => drop(self.members.insert(name, value)),
            Some(Value::Array(list)) => list.push(value),
            // XML does not mark lists: the second element of a name makes one. Paths therefore accept both forms.
            Some(one) => *one = Value::Array(vec![one.take(), value]),
        }
    }

    fn close(mut self) -> Value {
        let text = self.text.trim();
        if self.members.is_empty() {
            return Value::String(text.to_owned());
        }
        if !text.is_empty() {
            self.members.insert("$".to_owned(), text.into());
        }
        Value::Object(self.members)
    }
}

fn xml(text: &str) -> Result<Value, String> {
    let mut reader = Reader::from_str(text);
    let mut open = vec![OpenElement { name: String::new(), members: Map::new(), text: String::new() }];
    loop {
        let event = reader.read_event().map_err(|e| format!("at byte {}: {e}", reader.error_position()))?;
        let depth = open.len();
        let Some(here) = open.last_mut() else { return Err("an element is closed that was not opened".to_owned()) };
        match event {
            // A limit, since the mapping walks the result recursively, and the bytes come from outside.
            Event::Start(start) if depth <= DEPTH_MAX => open.push(element(&start)?),
            Event::Start(_) => return Err(format!("elements are nested more than {DEPTH_MAX} deep")),
            Event::Empty(start) => {
                let element = element(&start)?;
                here.add(element.name.clone(), element.close());
            }
            Event::End(_) => {
                let closed = open.pop();
                if let (Some(closed), Some(parent)) = (closed, open.last_mut()) {
                    parent.add(closed.name.clone(), closed.close());
                }
            }
            Event::Text(text) => here.text.push_str(&text.decode().map_err(|e| e.to_string())?),
            Event::CData(text) => here.text.push_str(&text.decode().map_err(|e| e.to_string())?),
            Event::GeneralRef(reference) => {
                // No entity is ever declared here, so none can expand. Unknown ones stay as written.
                let name = reference.decode().map_err(|e| e.to_string())?;
                match (reference.resolve_char_ref(), quick_xml::escape::resolve_predefined_entity(&name)) {
                    (Ok(Some(sign)), _) => here.text.push(sign),
                    (_, Some(known)) => here.text.push_str(known),
                    _ => here.text.push_str(&format!("&{name};")),
                }
            }
            Event::Eof => break,
            _ => {}
        }
    }
    match (open.pop(), open.is_empty()) {
        (Some(root), true) if !root.members.is_empty() => Ok(root.close()),
        (Some(_), true) => Err("it has no element".to_owned()),
        _ => Err("it ends before its last element is closed".to_owned()),
    }
}

fn element(start: &BytesStart<'_>) -> Result<OpenElement, String> {
    let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let mut members = Map::new();
    // The parser compares each name with all earlier ones, which is quadratic. The map detects duplicates as well.
    for attribute in start.attributes().with_checks(false) {
        let attribute = attribute.map_err(|e| e.to_string())?;
        let value = attribute.unescape_value().map_or_else(|_| name(&attribute.value), |text| text.into_owned());
        let key = format!("@{}", name(attribute.key.as_ref()));
        if members.insert(key, value.into()).is_some() {
            return Err("an element has two attributes of one name".to_owned());
        }
    }
    Ok(OpenElement { name: name(start.name().as_ref()), members, text: String::new() })
}

fn csv(text: &str) -> Result<Value, String> {
    // Rows of other lengths are tolerated: one bad row must not cost the whole response.
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text.as_bytes());
    let header = reader.headers().map_err(|e| e.to_string())?.clone();
    // Each row has a copy of each name, so a name of a megabyte would cost a megabyte per row.
    if header.iter().any(|name| name.len() > COLUMN_BYTES_MAX) {
        return Err(format!("the name of a column is longer than {COLUMN_BYTES_MAX} bytes"));
    }
    let mut rows = Vec::new();
    for record in reader.records() {
        let record = record.map_err(|e| e.to_string())?;
        let cells = header.iter().zip(record.iter());
        rows.push(Value::Object(cells.map(|(name, cell)| (name.trim().to_owned(), cell.into())).collect()));
    }
    Ok(Value::Array(rows))
}

/// Returns a text without its markup: tags removed, entities decoded, white space collapsed.
pub fn without_markup(text: &str) -> String {
    let marked = |text: &str| memchr::memchr2(b'<', b'&', text.as_bytes());
    if marked(text).is_none() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // Whether a `>` may follow. Checked once, since otherwise each `<` would scan the text to its end.
    let mut closes = true;
    while let Some(at) = marked(rest) {
        out.push_str(&rest[..at]);
        let tail = &rest[at..];
        // A bare `&` is common in text; only a short name followed by a semicolon is an entity.
        let is_tag = tail.starts_with('<');
        let end = match is_tag {
            true => closes.then(|| tail.find('>')).flatten(),
            false => tail.bytes().take(ENTITY_BYTES_MAX).position(|byte| byte == b';'),
        };
        let Some(end) = end else {
            closes &= !is_tag;
            out.push_str(&tail[..1]);
            rest = &tail[1..];
            continue;
        };
        if is_tag {
            out.push(' ');
        } else {
            match entity(&tail[1..end]) {
                Some(sign) => out.push(sign),
                None => out.push_str(&tail[..=end]),
            }
        }
        rest = &tail[end + 1..];
    }
    out.push_str(rest);
    out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn entity(name: &str) -> Option<char> {
    let code = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok()?,
            None => number.parse().ok()?,
        },
        None => match name {
            "amp" => 0x26,
            "lt" => 0x3c,
            "gt" => 0x3e,
            "quot" => 0x22,
            "apos" => 0x27,
            "nbsp" => 0x20,
            _ => return None,
        },
    };
    char::from_u32(code)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn xml_takes_the_shape_of_json() {
        let text = "<?xml version=\"1.0\"?><rss a=\"1&amp;2\"><item>x &lt;b&gt; <![CDATA[<i>]]></item><item k='v'>y</item><e/></rss>";
        let value = decode(ResponseFormat::Xml, "application/rss+xml", text.as_bytes()).expect("XML");
        assert_eq!(value, json!({"rss": {"@a": "1&2", "item": ["x <b> <i>", {"@k": "v", "$": "y"}], "e": ""}}));
        for broken in ["<a>", "<a></b>", "", "plain", &"<a>".repeat(100)] {
            assert!(decode(ResponseFormat::Xml, "", broken.as_bytes()).is_err(), "{broken}");
        }
    }

    #[test]
    fn pages_are_named_and_charsets_honoured() {
        let page = b"<!DOCTYPE html><html></html>";
        assert!(decode(ResponseFormat::Json, "application/json", page).expect_err("refused").contains("HTML page"));
        assert!(decode(ResponseFormat::Json, "", b"{").expect_err("refused").contains("not JSON"));
        let latin = b"{\"a\":\"caf\xe9\"}";
        for kind in ["application/json; charset=iso-8859-1", "application/json", "application/json;charset=\"utf-8\""] {
            assert_eq!(decode(ResponseFormat::Json, kind, latin).expect(kind), json!({"a": "café"}));
        }
        let xml = b"<?xml version=\"1.0\" encoding=\"windows-1251\"?><a>\xcc\xe8\xf0</a>";
        assert_eq!(decode(ResponseFormat::Xml, "text/xml", xml).expect("XML"), json!({"a": "Мир"}));
        assert!(
            decode(ResponseFormat::Json, "text/plain; charset=klingon", b"{}")
                .expect_err("refused")
                .contains("klingon")
        );
    }

    #[test]
    fn csv_is_a_list_of_objects() {
        let value = decode(ResponseFormat::Csv, "text/csv", b"a,b\r\n1,\"x, y\"\r\n").expect("CSV");
        assert_eq!(value, json!([{"a": "1", "b": "x, y"}]));
    }

    #[test]
    fn markup_is_taken_off() {
        assert_eq!(without_markup("<p>a &amp; b<br/>c&#39;s</p> 1 < 2 &c."), "a & b c's 1 < 2 &c.");
    }

    #[test]
    fn an_answer_takes_room_and_steps_in_proportion_to_its_bytes() {
        // Quadratic work on these would take minutes.
        for sign in ["<", "&"] {
            let text = sign.repeat(1 << 20);
            assert_eq!(without_markup(&text), text);
        }
        let attributes: String = (0..100_000).map(|n| format!(" a{n}=''")).collect();
        let value = decode(ResponseFormat::Xml, "", format!("<a><b{attributes}/></a>").as_bytes()).expect("XML");
        assert_eq!(value["a"]["b"].as_object().map(Map::len), Some(100_000));
        assert!(decode(ResponseFormat::Xml, "", b"<a><b c='1' c='2'/></a>").is_err());
        let table = |name: usize| format!("{}\n{}", "n".repeat(name), "x\n".repeat(3)).into_bytes();
        assert!(decode(ResponseFormat::Csv, "", &table(COLUMN_BYTES_MAX)).is_ok());
        assert!(decode(ResponseFormat::Csv, "", &table(COLUMN_BYTES_MAX + 1)).is_err());
    }

    proptest! {
        #[test]
        fn no_answer_makes_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200), text in "[<>&;a/#x0-9 =\"]{0,60}") {
            for format in [ResponseFormat::Json, ResponseFormat::Xml, ResponseFormat::Csv] {
                let _ = decode(format, "", &bytes);
                let _ = decode(format, "", text.as_bytes());
            }
            let _ = without_markup(&text);
        }
    }
}
