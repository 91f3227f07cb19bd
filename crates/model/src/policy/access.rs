//! Access control: roles, patterns of collections, and the decision about one action.
//!
//! The decision is a fixed matrix, so that it can be read and tested as a whole:
//!
//! | | reader | writer | admin | operator |
//! |---|---|---|---|---|
//! | read a collection, run searches, read saved searches | yes | yes | yes | yes |
//! | write events, save searches | no | yes | yes | yes |
//! | create, change and remove collections; tokens of the tenant, its audit log | no | no | yes | yes |
//! | the server's state, backups, tenants | no | no | no | yes |
//!
//! A collection outside the pattern of a grant does not exist for its holder. The decision is [`Decision::Hidden`],
//! and the caller gets the same response as for an absent collection.

use crate::Invalid;
use std::fmt;
use std::str::FromStr;

/// A role. Each includes the rights of the preceding ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Reads.
    Reader,
    /// Reads and writes events.
    Writer,
    /// Also manages the collections and tokens of its tenant.
    Admin,
    /// Manages the server and its tenants; belongs to no tenant.
    Operator,
}

impl Role {
    /// All roles, in ascending order of rights.
    pub const ALL: [Role; 4] = [Role::Reader, Role::Writer, Role::Admin, Role::Operator];

    /// Its name on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Reader => "reader",
            Role::Writer => "writer",
            Role::Admin => "admin",
            Role::Operator => "operator",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Role, Invalid> {
        Role::ALL.into_iter().find(|role| role.name() == text).ok_or_else(|| {
            Invalid::field("role", format_args!("{text:?} is not a role: expected reader, writer, admin or operator"))
        })
    }
}

/// An action by a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// Reads data.
    Read,
    /// Adds, changes or deletes data.
    Write,
    /// Creates, changes or removes a container of data.
    Manage,
}

/// The object of the action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<'a> {
    /// A collection, by name.
    Collection(&'a str),
    /// The list of collections, restricted to the names that the caller's pattern covers.
    Collections,
    /// A running search, visible only to its owner.
    Search,
    /// A saved search of the tenant.
    SavedSearch,
    /// The tokens of the tenant.
    Tokens,
    /// The tenant's log of administrative actions.
    Audit,
    /// The server itself: its state, its backups, its tenants.
    Server,
}

/// The outcome for one action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// The caller may do it.
    Allowed,
    /// The caller may see the target but not act on it: 403.
    Forbidden,
    /// The caller must not learn whether the target exists: 404, byte for byte the same as for an absent one.
    Hidden,
}

/// The collections that a grant covers: comma-separated names, each of which may end in `*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern(Vec<Name>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Name {
    text: Box<str>,
    /// Whether the text is a prefix rather than a full name.
    prefix: bool,
}

/// Max length of a pattern in bytes.
const PATTERN_BYTES_MAX: usize = 1024;

impl Pattern {
    /// The pattern `*`.
    pub fn all() -> Pattern {
        Pattern(vec![Name { text: "".into(), prefix: true }])
    }

    /// A pattern that covers nothing.
    pub fn none() -> Pattern {
        Pattern(Vec::new())
    }

    /// Whether a collection of this name is covered.
    pub fn covers(&self, collection: &str) -> bool {
        self.0.iter().any(|name| match name.prefix {
            // First: the pattern `*` is by far the most frequent, and every request checks it.
            true => name.text.is_empty() || collection.starts_with(&*name.text),
            false => collection == &*name.text,
        })
    }

    /// Whether a single name of this pattern covers everything that `other` covers.
    pub fn includes(&self, other: &Pattern) -> bool {
        other.0.iter().all(|theirs| {
            // One name must cover it alone. Joint coverage by two is not detected, which errs on the safe side.
            let covered = |ours: &Name| match ours.prefix {
                true => theirs.text.starts_with(&*ours.text),
                false => !theirs.prefix && theirs.text == ours.text,
            };
            self.0.iter().any(covered)
        })
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            let star = if name.prefix { "*" } else { "" };
            write!(f, "{comma}{}{star}", name.text)?;
        }
        Ok(())
    }
}

impl FromStr for Pattern {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<Pattern, Invalid> {
        let expected = "expected names of collections, separated by commas; a name may end in *";
        let wrong = |what: String| Invalid::field("collections", format_args!("{what}: {expected}"));
        if text.len() > PATTERN_BYTES_MAX {
            return Err(wrong(format!("the pattern has more than {PATTERN_BYTES_MAX} bytes")));
        }
        let names = text.split(',').map(|part| {
            let (name, prefix) = part.strip_suffix('*').map_or((part, false), |name| (name, true));
            let plain = name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
            match plain && (prefix || !name.is_empty()) {
                true => Ok(Name { text: name.into(), prefix }),
                false => Err(wrong(format!("{part:?} in the pattern {text:?} is not a name"))),
            }
        });
        names.collect::<Result<_, _>>().map(Pattern)
    }
}

/// The rights of a caller: a role over the collections of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Grant {
    /// The role.
    pub role: Role,
    /// The covered collections.
    pub collections: Pattern,
}

impl Grant {
    /// A role over every collection.
    pub fn over_all(role: Role) -> Grant {
        Grant { role, collections: Pattern::all() }
    }

    /// Whether the holder may do `action` to `target`.
    pub fn decide(&self, action: Action, target: Target<'_>) -> Decision {
        if let Target::Collection(name) = target
            && !self.collections.covers(name)
        {
            // Before the role check: a refusal that depends on the role would reveal that the name exists.
            return Decision::Hidden;
        }
        let needed = match (target, action) {
            (Target::Server, _) => Role::Operator,
            (Target::Tokens | Target::Audit, _) | (_, Action::Manage) => Role::Admin,
            // A search changes nothing that another caller sees.
            (Target::Search, _) | (_, Action::Read) => Role::Reader,
            (_, Action::Write) => Role::Writer,
        };
        if self.role >= needed { Decision::Allowed } else { Decision::Forbidden }
    }

    /// Checks that the pattern is an effective boundary for the role.
    ///
    /// # Errors
    /// For an operator over some collections only: tokens, tenants and backups would give it access to the others.
    pub fn check(&self) -> Result<(), Invalid> {
        if self.role < Role::Operator || self.collections.includes(&Pattern::all()) {
            return Ok(());
        }
        let detail = format!("{:?}: an operator covers every collection, expected *", self.collections.to_string());
        Err(Invalid::field("collections", detail))
    }

    /// Whether the holder may grant `other` to someone else: no caller grants more rights than its own.
    pub fn may_give(&self, other: &Grant) -> bool {
        self.role >= Role::Admin && self.role >= other.role && self.collections.includes(&other.collections)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().unwrap()
    }

    #[test]
    fn a_pattern_covers_the_names_it_lists_and_those_with_its_prefixes() {
        let some = pattern("ships,port-*");
        for (name, covered) in [("ships", true), ("ships2", false), ("port-", true), ("port-a", true), ("por", false)] {
            assert_eq!(some.covers(name), covered, "{name}");
        }
        assert!(Pattern::all().covers("") && Pattern::all().covers("any"));
        assert_eq!(some.to_string(), "ships,port-*");
        for wrong in ["", "a,", "*a", "a*b", "a b", "ä", "a/b", &"a".repeat(1025)] {
            assert!(wrong.parse::<Pattern>().is_err(), "{wrong}");
        }
        let refused = "ships,**".parse::<Pattern>().unwrap_err().to_string();
        assert!(refused.contains(r#""**" in the pattern "ships,**""#), "{refused}");
    }

    #[test]
    fn the_matrix_is_that_of_the_docs() {
        use Decision::{Allowed, Forbidden, Hidden};
        let targets = [
            (Action::Read, Target::Collection("a"), [Allowed; 4]),
            (Action::Read, Target::Collections, [Allowed; 4]),
            (Action::Read, Target::Collection("b"), [Hidden; 4]),
            (Action::Manage, Target::Collection("b"), [Hidden; 4]),
            (Action::Read, Target::Search, [Allowed; 4]),
            (Action::Write, Target::Search, [Allowed; 4]),
            (Action::Read, Target::SavedSearch, [Allowed; 4]),
            (Action::Write, Target::Collection("a"), [Forbidden, Allowed, Allowed, Allowed]),
            (Action::Write, Target::SavedSearch, [Forbidden, Allowed, Allowed, Allowed]),
            (Action::Manage, Target::Collection("a"), [Forbidden, Forbidden, Allowed, Allowed]),
            (Action::Read, Target::Tokens, [Forbidden, Forbidden, Allowed, Allowed]),
            (Action::Manage, Target::Tokens, [Forbidden, Forbidden, Allowed, Allowed]),
            (Action::Read, Target::Audit, [Forbidden, Forbidden, Allowed, Allowed]),
            (Action::Read, Target::Server, [Forbidden, Forbidden, Forbidden, Allowed]),
            (Action::Manage, Target::Server, [Forbidden, Forbidden, Forbidden, Allowed]),
        ];
        for (action, target, expected) in targets {
            for (role, expected) in Role::ALL.into_iter().zip(expected) {
                let grant = Grant { role, collections: pattern("a") };
                assert_eq!(grant.decide(action, target), expected, "{role} {action:?} {target:?}");
            }
        }
    }

    #[test]
    fn nobody_gives_away_more_than_they_have() {
        let admin = Grant { role: Role::Admin, collections: pattern("ships*") };
        let gives = |role, collections| admin.may_give(&Grant { role, collections: pattern(collections) });
        assert!(gives(Role::Admin, "ships*") && gives(Role::Reader, "ships,ships-2*"));
        assert!(!gives(Role::Operator, "ships") && !gives(Role::Reader, "*") && !gives(Role::Reader, "ships,planes"));
        assert!(!Grant::over_all(Role::Writer).may_give(&Grant::over_all(Role::Reader)));
        for (role, collections, good) in
            [(Role::Operator, "ships*", false), (Role::Operator, "ships,*", true), (Role::Admin, "ships*", true)]
        {
            assert_eq!(Grant { role, collections: pattern(collections) }.check().is_ok(), good, "{role} {collections}");
        }
    }

    proptest! {
        #[test]
        fn an_included_pattern_covers_nothing_else(ours in "[ab*]{1,3}(,[ab]{1,2}\\*?)?", theirs in "[ab]{1,3}\\*?", name in "[ab]{0,4}") {
            if let (Ok(ours), Ok(theirs)) = (ours.parse::<Pattern>(), theirs.parse::<Pattern>()) {
                prop_assert!(!ours.includes(&theirs) || !theirs.covers(&name) || ours.covers(&name));
                prop_assert_eq!(ours.to_string().parse::<Pattern>().unwrap(), ours);
            }
        }

        #[test]
        fn a_higher_role_may_whatever_a_lower_one_may(lower in 0usize..4, higher in 0usize..4, action in 0usize..3, target in 0usize..7) {
            let action = [Action::Read, Action::Write, Action::Manage][action];
            let target = [Target::Collection("a"), Target::Collections, Target::Search, Target::SavedSearch, Target::Tokens, Target::Audit, Target::Server][target];
            let may = |role: usize| Grant::over_all(Role::ALL[role]).decide(action, target) == Decision::Allowed;
            prop_assert!(lower > higher || !may(lower) || may(higher));
        }
    }
}
