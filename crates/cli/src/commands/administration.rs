//! Shared parts of the commands for tokens, users and tenants.

use crate::args::{OwnerArgs, OwnerTarget, Target, bucket_exists, folder_exists};
use crate::commands::client::Client;
use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use serde_json::{Value, json};

/// The rights of a new token or user.
#[derive(Args, Debug)]
pub struct GrantArgs {
    /// Its role: reader, writer, admin or operator
    #[arg(long, value_name = "ROLE")]
    role: String,
    /// Tenant that it is for [default: default; operators belong to none]
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
    /// Collections that it covers: names, separated by commas; a name may end in * [default: *]
    #[arg(long, value_name = "PATTERN")]
    collections: Option<String>,
}

impl GrantArgs {
    /// Returns the request for it.
    pub fn document(&self) -> Value {
        let mut document = json!({ "role": self.role });
        for (name, given) in [("tenant", &self.tenant), ("collections", &self.collections)] {
            if let Some(text) = given {
                document[name] = json!(text);
            }
        }
        document
    }

    /// The granted rights, as an answer states them.
    pub fn given(answer: &Value) -> String {
        let text = |name: &str| answer[name].as_str().unwrap_or_default();
        let tenant = answer["tenant"].as_str().map_or(String::new(), |tenant| format!(" of tenant {tenant}"));
        format!("{}{tenant} over {}", text("role"), text("collections"))
    }
}

/// Runs `ask` with a client for the owner of a data folder or of a bucket, or for the holder of `MERIDIAN_TOKEN`. It
/// acts in a tenant if an operator names one.
pub fn as_owner<T>(
    target: &OwnerArgs,
    tenant: Option<&str>,
    ask: impl FnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let target = target.resolve();
    match &target {
        // A mistyped folder must not be created, only to report that it is empty.
        OwnerTarget::Target(Target::Folder(folder)) => folder_exists(folder, ", or a server with --url")?,
        OwnerTarget::Target(Target::Server(_)) => {}
        OwnerTarget::Bucket { address, .. } => bucket_exists(address)?,
    }
    ask_of(&target, tenant, ask)
}

/// Creates a resource of a kind, such as `tokens`. The folder or bucket may be new: the first token comes before the
/// server.
pub fn create(kind: &str, document: &Value, target: &OwnerArgs) -> Result<Value, Failure> {
    ask_of(&target.resolve(), None, |client| client.ask(&[kind], document))
}

fn ask_of<T>(
    target: &OwnerTarget,
    tenant: Option<&str>,
    ask: impl FnOnce(&Client) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let client = Client::for_owner(target)?.within(tenant)?;
    let answer = ask(&client);
    // The folder is closed before an error is returned, so that its log is synced.
    client.close()?;
    answer
}

/// Lists all resources of a kind, such as `tokens`.
pub fn list(kind: &str, target: &OwnerArgs) -> Result<Vec<Value>, Failure> {
    match as_owner(target, None, |client| client.json(&[kind], &[]))?[kind].take() {
        Value::Array(all) => Ok(all),
        _ => Ok(Vec::new()),
    }
}

/// Prints a table with a row for each resource. Scripts get whole cells.
pub fn print<const N: usize>(
    head: [&str; N],
    things: &[Value],
    row: impl Fn(&Value) -> [String; N],
) -> Result<(), Failure> {
    let mut table = Table::new(head).whole_unless_shown();
    things.iter().for_each(|thing| table.push(row(thing).to_vec()));
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))
}

/// A member as text; empty where it is absent.
pub fn text(thing: &Value, name: &str) -> String {
    thing[name].as_str().unwrap_or_default().to_owned()
}

/// Removes a resource of this kind, such as `token`, and reports it.
pub fn remove(kind: &str, name: &str, done: &str, (target, tenant): (&OwnerArgs, Option<&str>)) -> Result<(), Failure> {
    match as_owner(target, tenant, |client| client.delete(&[&format!("{kind}s"), name]))? {
        true => say(&format!("{kind} {name} is {done}")),
        false => {
            let of =
                if kind == "user" { format!(" in the tenant {}", tenant.unwrap_or("default")) } else { String::new() };
            return Err(Failure::Bad(format!("there is no {kind} {name}{of}: `meridian {kind} list` shows them")));
        }
    }
    Ok(())
}
