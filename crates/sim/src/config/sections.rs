//! Turns the checked tree into the components' own config structs, table by table, so that a mistake in one hides none
//! in another.

use garde::Validate;
use serde::de::DeserializeOwned;

use super::check::Faults;
use super::schema::join;
use super::tree::Node;

/// The table at `path` as a config struct, if the tree has it and nothing in it is wrong. What its own validation finds
/// is noted.
pub(super) fn section<T>(machine: &Node, path: &str, faults: &mut Faults) -> Option<T>
where
    T: DeserializeOwned + Validate<Context = ()>,
{
    let table = machine.entry(path)?;
    if faults.concern(path) {
        return None;
    }
    typed(table, path, faults)
}

/// `table` as a config struct; messages speak of it as `path`.
pub(super) fn typed<T>(table: &Node, path: &str, faults: &mut Faults) -> Option<T>
where
    T: DeserializeOwned + Validate<Context = ()>,
{
    let config: T = match serde_json::from_value(table.to_json()) {
        Ok(config) => config,
        // What is wrong with single keys is known already, and missing keys are reported once, for the whole machine.
        Err(_) if !faults.is_empty() => return None,
        Err(error) => {
            faults.add(table.origin, path, error.to_string());
            return None;
        }
    };
    match config.validate() {
        Ok(()) => Some(config),
        Err(report) => {
            for (inner, error) in report.iter() {
                let inner = inner.to_string();
                let steps: Vec<&str> = inner.split('.').filter(|step| !step.is_empty()).collect();
                let key = steps.iter().fold(path.to_owned(), |key, step| join(&key, step));
                let message = message(table.at(&steps), error.message());
                faults.add(table.origin_of(&steps), key, message + &changed_above(table, &steps));
            }
            None
        }
    }
}

/// The words of the validation library for a limit that depends on another key, with the value that exceeds it.
fn message(node: &Node, words: &str) -> String {
    let limit = |kind: &str| words.strip_prefix(kind).map(str::trim);
    match (limit("greater than"), limit("lower than")) {
        (Some(limit), _) => format!("{} is out of range: at most {limit} is allowed", node.describe()),
        (_, Some(limit)) => format!("{} is out of range: at least {limit} is allowed", node.describe()),
        _ => words.to_owned(),
    }
}

/// Keys beside the one at `steps` that an upper layer has changed: it is they that made its value wrong.
fn changed_above(table: &Node, steps: &[&str]) -> String {
    let origin = table.origin_of(steps);
    let beside = table.at(&steps[..steps.len().saturating_sub(1)]);
    let changed = beside.entries().filter(|(_, node)| node.origin.source > origin.source);
    let changed: Vec<String> = changed.map(|(key, node)| format!("`{key}` is {}", node.describe())).collect();
    if changed.is_empty() { String::new() } else { format!(", now that {}", changed.join(" and ")) }
}
