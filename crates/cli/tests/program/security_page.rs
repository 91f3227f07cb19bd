//! Checks that the tests named in `docs/security.md` exist.

use crate::common;
use std::path::Path;

/// Appends the text of every Rust file under a folder.
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && path.file_name().is_some_and(|name| name != "target") {
            sources(&path, text);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            text.push_str(&std::fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_test_that_the_page_names_exists() {
    let page = std::fs::read_to_string(common::root().join("docs/security.md")).unwrap();
    let table = page.split("## What is covered").nth(1).unwrap().split("\n## ").next().unwrap();
    let (mut text, mut count) = (String::new(), 0);
    for folder in ["crates", "fuzz/targets"] {
        sources(&common::root().join(folder), &mut text);
    }
    // Every second piece between backticks is code; the last column only has names of tests.
    for row in table.lines().filter(|line| line.starts_with("| ") && line.contains('`')) {
        let tests = row.rsplit(" | ").next().unwrap();
        for name in tests.split('`').skip(1).step_by(2) {
            assert!(text.contains(&format!("fn {name}()")) || text.contains(&format!("fn {name}(\n")), "{name}");
            count += 1;
        }
    }
    assert!(count > 35, "{count}");
}

#[test]
fn secrets_are_compared_in_constant_time() {
    // By construction: only `subtle` and Argon2 compare digests and passwords.
    let folder = common::root().join("crates/admission/src/identity");
    let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
    let matches = read("secret.rs");
    let matches = matches.split("pub fn matches(").nth(1).unwrap().split("\n    }").next().unwrap();
    assert!(matches.contains(".ct_eq(digest)") && !matches.contains("=="), "{matches}");
    assert!(read("registry.rs").contains("parts.matches(&known.digest)"));
    let mut all = String::new();
    sources(&folder, &mut all);
    for plain in ["digest ==", "== digest", "secret ==", "== secret", "password =="] {
        assert!(!all.contains(plain), "{plain}");
    }
}
