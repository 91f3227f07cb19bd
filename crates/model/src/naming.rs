//! Permitted names of new collections and tenants: their folders must be distinct on any file system.

use crate::Invalid;

/// Names that Windows reserves for devices, in any case and with any extension.
const DEVICES: [&str; 4] = ["con", "prn", "aux", "nul"];
/// Device names that take a digit as suffix.
const PORTS: [&str; 2] = ["com", "lpt"];

/// Checks the name of a new collection or tenant (`what`) against the existing ones. Existing names are not checked.
pub fn check<'a>(what: &str, name: &str, there: impl IntoIterator<Item = &'a str>) -> Result<(), Invalid> {
    let refuse = |why: &str| Err(Invalid::field(what, format!("{name:?} {why}: choose another name")));
    if is_device(name) {
        return refuse("is the name of a device on Windows");
    }
    if name.ends_with('.') {
        return refuse("ends with a dot, which Windows drops from names");
    }
    match there.into_iter().any(|there| there != name && there.eq_ignore_ascii_case(name)) {
        // Does not name the other: the caller may not be allowed to see it.
        true => {
            refuse("differs only in case from the name of another one, and some file systems take both for the same")
        }
        false => Ok(()),
    }
}

fn is_device(name: &str) -> bool {
    // Windows ignores the extension: `con.txt` is the device too.
    let stem = name.split('.').next().unwrap_or(name).to_ascii_lowercase();
    let digit = |rest: &str| rest.len() == 1 && rest.as_bytes()[0].is_ascii_digit();
    DEVICES.contains(&stem.as_str()) || PORTS.iter().any(|port| stem.strip_prefix(port).is_some_and(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_and_names_that_differ_in_case_are_refused() {
        let there = ["ships", "Nul"];
        for name in ["CON", "nul", "Com1", "lpt9.log", "aux.2026.csv", "Ships", "SHIPS", "ports."] {
            let error = check("collection", name, there).unwrap_err();
            assert!(error.detail.contains(&format!("{name:?}")), "{error}");
        }
        for name in ["ships", "ship", "console", "com", "com10", "nullable", "a.con", "lpt"] {
            assert_eq!(check("collection", name, there), Ok(()), "{name}");
        }
    }
}
