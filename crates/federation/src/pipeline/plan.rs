//! Plan: selects the providers for a question. It runs at admission, so that a request that no provider takes is
//! refused before it queues.

use crate::provider::Provider;
use crate::question::Question;
use meridian_backend::View;
use meridian_model::Invalid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The selected providers, and those skipped with the reason.
pub struct Plan {
    /// The selected providers.
    pub asked: Vec<Arc<dyn Provider>>,
    /// Names and reasons of the others.
    pub skipped: Vec<(String, String)>,
}

/// Selects among the providers that the question names, or among all.
pub fn plan(
    question: &Question,
    view: &View,
    providers: &BTreeMap<String, Arc<dyn Provider>>,
) -> Result<Plan, Invalid> {
    let mut plan = Plan { asked: Vec::new(), skipped: Vec::new() };
    let mut consider = |provider: &Arc<dyn Provider>| match provider.takes(question, view) {
        Ok(()) => plan.asked.push(provider.clone()),
        // Reported in the search rather than refused: other providers may take the question.
        Err(why) => plan.skipped.push((provider.name().to_owned(), why)),
    };
    match &question.providers {
        None => providers.values().for_each(&mut consider),
        Some(names) => {
            for name in names {
                let provider = providers.get(name).ok_or_else(|| {
                    let known: Vec<&str> = providers.keys().map(String::as_str).collect();
                    Invalid::field(
                        "providers",
                        format!("{name:?} is not enabled here: expected some of {}", known.join(", ")),
                    )
                })?;
                consider(provider);
            }
        }
    }
    Ok(plan)
}
