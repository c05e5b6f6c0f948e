//! `--set PATH=VALUE`: one key of the machine, whatever the files say.

use std::collections::BTreeMap;

use toml::de::DeValue;

use super::check::Faults;
use super::schema::{KeySchema, Shape};
use super::tree::{Node, Origin, Value};
use crate::nearest::nearest_path;

/// The tree of one assignment, which holds one key; nothing, with the reason in `faults`, if its path leads nowhere.
///
/// The schema says what the value is: a text needs no quotes. `source` is the index of the assignment's own source
/// name.
pub(super) fn parse(assignment: &str, source: i32, machine: &Node, faults: &mut Faults) -> Option<Node> {
    let origin = Origin { source, line: 0 };
    let Some((path, value)) = split(assignment) else {
        faults.add(origin, "", "this is not PATH=VALUE, for example core.rob_entries=224");
        return None;
    };
    let Some(steps) = steps_of(path) else {
        faults.add(origin, "", format!("`{path}` is not a dotted path of keys"));
        return None;
    };
    if steps == ["extends"] {
        faults.add(origin, "extends", "only a machine file can extend a machine");
        return None;
    }
    let Some(schema) = steps.iter().try_fold(KeySchema::root(), |schema, step| schema.entry(step)) else {
        let paths = KeySchema::root().paths(machine);
        let near = nearest_path(path, paths.iter().map(String::as_str)).unwrap_or_default();
        faults.add(origin, path, format!("there is no such key; the nearest is `{near}`"));
        return None;
    };
    let leaf = Node { value: parse_value(value.trim(), schema, source), origin };
    let enclose = |inner, step: &String| Node { value: Value::Table(BTreeMap::from([(step.clone(), inner)])), origin };
    Some(steps.iter().rev().fold(leaf, enclose))
}

/// The parts before and after the first `=` outside of quotes.
fn split(assignment: &str) -> Option<(&str, &str)> {
    let mut is_quoted = false;
    let position = assignment.char_indices().find_map(|(position, c)| {
        is_quoted ^= c == '"';
        (c == '=' && !is_quoted).then_some(position)
    })?;
    let path = assignment[..position].trim();
    (!path.is_empty()).then_some((path, &assignment[position + 1..]))
}

/// The steps of a dotted path; steps may be quoted as in TOML.
fn steps_of(path: &str) -> Option<Vec<String>> {
    let document = format!("{path} = 0");
    let mut node = &Node::from_toml(&document, 0).ok()?;
    let mut steps = Vec::new();
    while let Some((step, entry)) = node.entries().next() {
        steps.push(step.clone());
        node = entry;
    }
    Some(steps)
}

fn parse_value(text: &str, schema: KeySchema, source: i32) -> Value {
    let is_text = matches!(schema.shape(), Shape::Text { .. });
    match DeValue::parse(text) {
        Ok(value) if !is_text || value.get_ref().is_str() => Node::from_toml_value(value.get_ref(), source),
        _ => Value::Text(text.to_owned()),
    }
}

/// How an assignment is called in messages.
pub(super) fn source_name(assignment: &str) -> String {
    format!("--set {assignment}")
}

#[cfg(test)]
mod tests {
    use super::super::schema::join;
    use super::*;

    #[test]
    fn the_first_equals_sign_outside_of_quotes_divides() {
        assert_eq!(split("a.b=c=d"), Some(("a.b", "c=d")));
        assert_eq!(split("a.\"b=c\".d = 1"), Some(("a.\"b=c\".d", " 1")));
        assert_eq!(split("a.b"), None);
        assert_eq!(split("=1"), None);
    }

    #[test]
    fn paths_may_have_quoted_steps() {
        let steps = steps_of("fabric.link.\"host0 -> switch0\".latency_ns").expect("it is a path");
        assert_eq!(steps, ["fabric", "link", "host0 -> switch0", "latency_ns"]);
        assert_eq!(join("fabric.link", &steps[2]), "fabric.link.\"host0 -> switch0\"");
        assert_eq!(steps_of("a..b"), None);
    }
}
