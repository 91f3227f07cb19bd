//! Where a browser goes after signing in.

/// Max bytes of the path.
const BYTES_MAX: usize = 4096;
/// The default page.
const START: &str = "/";

/// Returns the requested path if it is on this server; otherwise the start page. Browsers read `\` as `/`, and ignore
/// tabs and line ends, so `/\evil.example` and `/<tab>/evil.example` would lead to another host.
pub fn local(asked: Option<&str>) -> String {
    let is_local = |path: &&str| {
        let mut bytes = path.bytes();
        bytes.next() == Some(b'/')
            && bytes.next() != Some(b'/')
            && path.len() <= BYTES_MAX
            && path.bytes().all(|b| b.is_ascii_graphic() && b != b'\\')
    };
    asked.filter(is_local).unwrap_or(START).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leads_to_another_host() {
        for good in ["/", "/map", "/map#c=a&z=3", "/collections/a%20b/items?f=html&filter=a%3D'x'", "/a//b", "/%5Cx"] {
            assert_eq!(local(Some(good)), good);
        }
        let long = format!("/{}", "a".repeat(BYTES_MAX));
        for bad in [
            "",
            "map",
            "//evil.example",
            "///evil.example",
            "/\\evil.example",
            "\\\\evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            " /map",
            "/ma p",
            "/map\r\nSet-Cookie: a=b",
            "http://evil.example",
            "https:evil.example",
            "javascript:alert(1)",
            "/ä",
            &long,
        ] {
            assert_eq!(local(Some(bad)), START, "{bad}");
        }
        assert_eq!(local(None), START);
    }
}
