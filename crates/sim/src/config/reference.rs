//! The keys of machine files as documentation: the tables in docs/machines.md, made from the schema.

use std::fmt::Write;

use super::schema::{KeySchema, Shape};

/// Every key, dotted; `<level>`, `<name>` and `"<from> -> <to>"` stand for names that a machine chooses. What a single switch, link or PM
/// device may have is not listed again.
pub fn key_paths() -> Vec<String> {
    let mut paths = Vec::new();
    visit("", KeySchema::root(), &mut |_, path, schema| {
        if !matches!(schema.shape(), Shape::Table { .. }) {
            paths.push(path.to_owned());
        }
    });
    paths
}

/// One Markdown table for each table of a machine file: key, values, what the key means.
pub fn key_tables() -> String {
    let mut text = String::new();
    let mut table = None;
    visit("", KeySchema::root(), &mut |parent, path, schema| {
        if matches!(schema.shape(), Shape::Table { .. }) {
            return;
        }
        if table.as_deref() != Some(parent) {
            table = Some(parent.to_owned());
            heading(parent, &mut text);
        }
        let key = path.strip_prefix(parent).unwrap_or(path).trim_start_matches('.');
        let line = format!("| `{key}` | {} | {} |", values(schema), meaning(schema));
        writeln!(text, "{line}").expect("a string takes everything");
    });
    text
}

/// Calls `act` with the enclosing table, the path and the schema of every key: of each table first its values, then the tables in it.
fn visit(table: &str, schema: KeySchema, act: &mut impl FnMut(&str, &str, KeySchema)) {
    let Shape::Table { known, other } = schema.shape() else { return };
    let path_of = |key: &str| if table.is_empty() { key.to_owned() } else { format!("{table}.{key}") };
    let entries = || known.keys().map(|key| (path_of(key), schema.entry(key).expect("it is known")));
    for (path, entry) in entries() {
        act(table, &path, entry);
    }
    for (path, entry) in entries() {
        visit(&path, entry, act);
    }
    if let Some(other) = other.filter(|other| !other.is_override()) {
        visit(&path_of(placeholder(table)), other, act);
    }
}

/// What stands for the keys of a map.
fn placeholder(table: &str) -> &'static str {
    match table {
        "cache" => "<level>",
        "fabric.link" => "\"<from> -> <to>\"",
        _ => "<name>",
    }
}

fn heading(table: &str, text: &mut String) {
    let schema =
        table.split('.').filter(|step| !step.is_empty()).try_fold(KeySchema::root(), |schema, step| schema.entry(step));
    let name = if table.is_empty() { "At the top".to_owned() } else { format!("`[{table}]`") };
    let description = schema.filter(|_| !table.is_empty()).map_or("", KeySchema::description);
    let blank = if text.is_empty() { "" } else { "\n" };
    writeln!(text, "{blank}### {name}\n").expect("a string takes everything");
    if !description.is_empty() {
        writeln!(text, "{}\n", one_line(description)).expect("a string takes everything");
    }
    writeln!(text, "| key | value | meaning |\n|---|---|---|").expect("a string takes everything");
}

fn values(schema: KeySchema) -> String {
    let values = match schema.shape() {
        Shape::Text { choices } if !choices.is_empty() => {
            choices.iter().map(|(word, _)| format!("`\"{word}\"`")).collect::<Vec<_>>().join(", ")
        }
        Shape::Integer { minimum, maximum } => format!("integer, {minimum} to {maximum}"),
        Shape::Number { minimum, maximum } => format!("number, {minimum} to {maximum}"),
        shape => shape.to_string(),
    };
    match schema.default() {
        Some(default) => format!("{values}; `{default}` if left out"),
        None => values,
    }
}

fn meaning(schema: KeySchema) -> String {
    let mut meaning = one_line(schema.description());
    if let Shape::Text { choices } = schema.shape() {
        for (word, description) in choices.iter().filter(|(_, description)| !description.is_empty()) {
            write!(meaning, " `\"{word}\"`: {}", one_line(description)).expect("a string takes everything");
        }
    }
    meaning.replace('|', "\\|")
}

/// Line breaks of a doc comment mean nothing.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
