//! Follows `docs/lab-guide.md` literally: every file and every command, except for shorter runs and a free port.

use crate::common::{MERIDIAN, Mock, Run, root};
use std::path::Path;
use std::process::{Command, Stdio};

/// Settings that shorten the guide's runs, and let them pass on a busy machine: its waits are not tested.
const SHORT: &str =
    "\n[phases]\nmeasured_s = 0.4\n[trials]\npause_s = 0.1\n[limits]\nlate_ms = 1e6\nother_load = 1e3\n";

/// Returns the indented blocks of a page, in order.
fn blocks(page: &str) -> Vec<String> {
    let mut blocks = vec![String::new()];
    for line in page.lines() {
        match (line.strip_prefix("    "), blocks.last_mut()) {
            (Some(code), Some(block)) => *block += &format!("{code}\n"),
            (None, Some(block)) if line.is_empty() => block.push('\n'),
            _ => blocks.push(String::new()),
        }
    }
    blocks.into_iter().filter(|block| !block.trim().is_empty()).collect()
}

/// Runs a line of the guide as its reader types it.
fn typed(line: &str, folder: &Path) -> Run {
    let program = Path::new(MERIDIAN).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", path).stdin(Stdio::null());
    shell.output().unwrap().into()
}

#[test]
fn the_guide_leads_from_a_url_to_a_report_a_breakpoint_and_a_price() {
    let folder = tempfile::tempdir().unwrap();
    let page = std::fs::read_to_string(root().join("docs/lab-guide.md")).unwrap();
    let blocks = blocks(&page);
    let [shop, mock, first, run, report, edge, users, each, plan, price] = blocks.as_slice() else {
        panic!("expected ten blocks: {blocks:#?}");
    };
    let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    put("shop.toml", shop);
    assert_eq!(mock.trim(), "meridian lab mock shop.toml --listen 127.0.0.1:7118");
    let shop = Mock::start(&[folder.path().join("shop.toml").to_str().unwrap()]);
    let here = |text: &str| text.replace("http://127.0.0.1:7118", &shop.1) + SHORT;
    put("first.toml", &here(first));
    put("users.toml", &here(users));

    // Whether the objectives hold depends on the machine.
    let ran = typed(run, folder.path());
    assert!(matches!(ran.code, 0 | 1) && ran.out.contains("p95_ms at most 100"), "{}\n{}", ran.out, ran.err);
    let shown = typed(report, folder.path()).ended(0);
    assert!(shown.out.contains("results/first/report.html"), "{}", shown.out);
    let found = typed(&format!("{} --within 0.3 --steps 12", edge.trim()), folder.path());
    assert!(matches!(found.code, 0 | 1) && found.out.contains("results: results/edge"), "{}\n{}", found.out, found.err);
    typed(each, folder.path()).ended(0);
    put("plan/cost.toml", plan);
    let priced = typed(price, folder.path());
    assert!(matches!(priced.code, 0 | 1) && priced.out.contains("Measured at up to 16 users"), "{}", priced.out);
    for made in ["results/first/report.html", "results/edge/report.html", "plan/cost.png"] {
        assert!(page.contains(made) && folder.path().join(made).is_file(), "{made}");
    }
}
