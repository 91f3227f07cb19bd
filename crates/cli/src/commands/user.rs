//! `meridian user`: people who sign in with a name and a password.

use crate::args::OwnerArgs;
use crate::commands::administration::{self, GrantArgs, as_owner, text};
use crate::failure::Failure;
use crate::output::say;
use clap::{Args, Subcommand};
use meridian_store::seams::open_named_once;
use serde_json::json;
use std::io::{BufRead as _, IsTerminal as _};
use std::path::PathBuf;

/// Max bytes read of a password; servers accept only shorter ones.
const PASSWORD_BYTES_MAX: u64 = 64 << 10;

/// Create, list, change and delete users
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian user create anna --role writer --collections 'ships*' --password-file password.txt
  meridian user passwd anna --password-file password.txt
  meridian user list
  meridian user delete anna

A user signs in at /login, with the name, or with TENANT/NAME in another tenant than the default one. Without
--password-file the password is asked for and not shown, or read from standard input: its first line. Once there is a user, every request
needs a session or a token. On a data folder no token is needed, whether or not a server serves it.")]
pub struct UserArgs {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    Create(CreateArgs),
    Passwd(PasswdArgs),
    /// List the users
    List(OwnerArgs),
    /// Delete a user; its sessions end
    Delete(NameArgs),
}

/// Create a user
#[derive(Args, Debug)]
struct CreateArgs {
    /// Its name: small letters, digits, - _ . + @
    name: String,
    #[command(flatten)]
    grant: GrantArgs,
    #[command(flatten)]
    password: PasswordArgs,
    #[command(flatten)]
    target: OwnerArgs,
}

/// Give a user another password; its sessions end
#[derive(Args, Debug)]
struct PasswdArgs {
    #[command(flatten)]
    user: NameArgs,
    #[command(flatten)]
    password: PasswordArgs,
}

#[derive(Args, Debug)]
struct NameArgs {
    /// Its name
    name: String,
    /// Its tenant; operators belong to none [default: default]
    #[arg(long, value_name = "T")]
    tenant: Option<String>,
    #[command(flatten)]
    target: OwnerArgs,
}

#[derive(Args, Debug)]
struct PasswordArgs {
    /// File with the password in its first line [default: asked for, or read from standard input]
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
}

/// Runs the command.
pub fn run(args: &UserArgs) -> Result<(), Failure> {
    match &args.command {
        Command::Create(args) => create(args),
        Command::Passwd(args) => passwd(&args.user, &args.password),
        Command::List(target) => list(target),
        Command::Delete(user) => {
            administration::remove("user", &user.name, "deleted", (&user.target, user.tenant.as_deref()))
        }
    }
}

fn create(args: &CreateArgs) -> Result<(), Failure> {
    let mut asked = args.grant.document();
    asked["name"] = json!(args.name);
    asked["password"] = json!(args.password.read()?);
    let made = administration::create("users", &asked, &args.target)?;
    say(&format!("user {}: {}; signs in at /login", text(&made, "login"), GrantArgs::given(&made)));
    Ok(())
}

fn passwd(user: &NameArgs, password: &PasswordArgs) -> Result<(), Failure> {
    let (name, change) = (&user.name, json!({ "password": password.read()? }));
    as_owner(&user.target, user.tenant.as_deref(), |client| client.patch(&["users", name], &change))?;
    say(&format!("user {name} has another password"));
    Ok(())
}

fn list(target: &OwnerArgs) -> Result<(), Failure> {
    let users = administration::list("users", target)?;
    if users.is_empty() {
        say("there are no users: `meridian user create` makes one");
        return Ok(());
    }
    administration::print(["name", "tenant", "role", "collections", "created", "signs in as"], &users, |user| {
        let mut row = ["name", "tenant", "role", "collections", "created", "login"].map(|name| text(user, name));
        if user["disabled"] == true {
            row[5] = "may not sign in".to_owned();
        }
        row
    })
}

impl PasswordArgs {
    /// Reads a new password; never from the command line, which other users of the machine can read.
    fn read(&self) -> Result<String, Failure> {
        if let Some(file) = &self.password_file {
            let failed = |e| Failure::Usage(format!("--password-file: {} cannot be read: {e}", file.display()));
            // The line may come from a terminal or a pipe, which has no end yet.
            let line = open_named_once(file).and_then(first_line).map_err(failed)?;
            return there(line, &format!("--password-file: {}", file.display()));
        }
        let failed = |e| Failure::Refused(format!("the password cannot be read: {e}"));
        // A pipe cannot answer a prompt.
        if !std::io::stdin().is_terminal() {
            return there(first_line(std::io::stdin()).map_err(failed)?, "standard input");
        }
        let password = rpassword::prompt_password("password: ").map_err(failed)?;
        // Asked twice, because the terminal does not show the input.
        match rpassword::prompt_password("again: ").map_err(failed)? == password {
            true => Ok(password),
            false => Err(Failure::Usage("the two passwords differ".to_owned())),
        }
    }
}

fn there(line: String, from: &str) -> Result<String, Failure> {
    match line.is_empty() {
        true => Err(Failure::Usage(format!("{from}: its first line is empty: expected the password"))),
        false => Ok(line),
    }
}

fn first_line(from: impl std::io::Read) -> std::io::Result<String> {
    let mut line = String::new();
    // Bounded, since the file may be an endless device.
    std::io::BufReader::new(from.take(PASSWORD_BYTES_MAX)).read_line(&mut line)?;
    if line.len() as u64 == PASSWORD_BYTES_MAX {
        let detail = format!("expected a first line of less than {} KiB", PASSWORD_BYTES_MAX >> 10);
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidData, detail));
    }
    // Other white space belongs to the password.
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_the_first_line_with_its_blanks() {
        for (text, expected) in [("a b \r\nc", "a b "), ("abc", "abc"), ("", ""), ("\n", "")] {
            assert_eq!(first_line(text.as_bytes()).unwrap(), expected, "{text:?}");
        }
    }
}
