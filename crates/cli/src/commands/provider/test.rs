//! `meridian provider test`: checks a declaration, and shows what it finds in a response.

use crate::failure::Failure;
use crate::output::{say, unwritable, with_stdout};
use crate::table::Table;
use clap::Args;
use meridian_federation::declaration::ProviderCheck;
use meridian_federation::fetch::{Http, RawResponse};
use meridian_federation::provider::{RemoteProvider, shipped};
use meridian_federation::{Fault, Location, Question, Settings, SourceDeclaration};
use meridian_store::seams::{read_named_once, read_named_text};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Check a declaration, and what it finds in a recorded answer or in the source's own
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian provider test flood-warnings.toml
  meridian provider test flood-warnings.toml --answer recorded.xml
  meridian provider test wikipedia --question '{\"keywords\":\"flood\"}' --ask

Exit code 0: all is well; 1: the answer cannot be read, or a field of the mapping finds nothing
in it; 2: the declaration or the question is wrong; 3: the source does not answer.")]
pub struct TestArgs {
    /// A declaration, or the name of one that ships with Meridian
    #[arg(value_name = "FILE.toml|NAME")]
    pub provider: String,
    /// Read this recorded answer, as the source sent it
    #[arg(long, value_name = "FILE", conflicts_with = "ask")]
    pub answer: Option<PathBuf>,
    /// The question, as in POST /searches; reports whether the source accepts it
    #[arg(long, value_name = "JSON")]
    pub question: Option<String>,
    /// Really ask the source, once, for the first page
    #[arg(long, requires = "question")]
    pub ask: bool,
}

/// Runs the command.
pub fn run(args: &TestArgs) -> Result<(), Failure> {
    let declared = Arc::new(declaration(&args.provider)?);
    say(&format!("{}: {}", declared.name, declared.title));
    if let Some(missing) = declared.missing_credential() {
        say(&format!("not in the environment, so a server would skip it: {missing}"));
    }
    // The server's own client, so that a test meets the same limits and refusals.
    let source = RemoteProvider::new(declared.clone(), Arc::new(Http::new(Settings::default().answer_bytes_total)));
    let question = args.question.as_deref().map(question).transpose()?;
    if let Some(question) = &question {
        match source.accepts(question) {
            Ok(()) => say("it accepts the question"),
            Err(why) => say(&format!("it does not accept the question: {why}")),
        }
    }
    let answer = match (&args.answer, &question) {
        // Without a type: a recorded answer is read in the declared format.
        (Some(file), _) => RawResponse::apart(String::new(), read(file)?.into()),
        (None, Some(question)) if args.ask => ask(&source, question)?,
        _ => return Ok(()),
    };
    let check = declared
        .check_response(&answer.content_type, &answer.bytes)
        .map_err(|e| Failure::Bad(format!("the answer cannot be read: {e}")))?;
    show(&check)?;
    match check.warnings.is_empty() {
        true => Ok(()),
        false => Err(Failure::Bad(check.warnings.join("\nmeridian: "))),
    }
}

/// The declaration in a file, or a shipped one. Any mistake in it counts as wrong usage.
fn declaration(named: &str) -> Result<SourceDeclaration, Failure> {
    let path = Path::new(named);
    let text = match shipped::text(named) {
        // A local file wins, so that a changed copy of a shipped declaration can be tested.
        Some(text) if !path.exists() => text,
        _ => read_named_text(path).map_err(|e| {
            let known: Vec<&str> = shipped::all().collect();
            Failure::Usage(format!(
                "{named}: {e}; expected a file, or the name of one that ships: {}",
                known.join(", ")
            ))
        })?,
    };
    SourceDeclaration::parse(&text, &shipped::text).map_err(|e| Failure::Usage(format!("{named}: {e}")))
}

fn read(file: &Path) -> Result<Vec<u8>, Failure> {
    read_named_once(file).map_err(|e| Failure::Usage(format!("--answer: {}: {e}", file.display())))
}

fn question(text: &str) -> Result<Question, Failure> {
    let wrong = |e: String| Failure::Usage(format!("--question: {e}"));
    let value = serde_json::from_str(text)
        .map_err(|e| wrong(format!("not JSON ({e}): expected a question such as {{\"keywords\":\"flood\"}}")))?;
    let question = Question::read(&value, &Settings::default()).map_err(|e| wrong(e.to_string()))?;
    match question.place {
        Some(Location::Address { .. }) => Err(wrong("only a server can look an address up: expected near".to_owned())),
        _ => Ok(question),
    }
}

fn ask(source: &RemoteProvider, question: &Question) -> Result<RawResponse, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Failure::Refused(format!("cannot start: {e}")))?;
    runtime.block_on(source.try_once(question)).map_err(|fault| {
        let (Fault::Error(why) | Fault::Refused(why) | Fault::Timeout(why)) = fault;
        Failure::Refused(format!("the source gave no answer: {why}"))
    })
}

/// Prints what each field found, and the whole first result.
fn show(check: &ProviderCheck) -> Result<(), Failure> {
    say(&format!("{} items, {} results", check.items, check.found.len()));
    let mut table = Table::new(["field", "found in", "first"]);
    for field in &check.fields {
        table.push(vec![field.key.clone(), field.items.to_string(), field.example.clone().unwrap_or_default()]);
    }
    with_stdout(|out| table.print(&mut { out }).map_err(|e| unwritable(&e)))?;
    if let Some(first) = check.found.first() {
        say(&format!("the first result:\n{:#}", first.feature()));
    }
    Ok(())
}
