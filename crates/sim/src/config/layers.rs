//! Lays a machine file over those it inherits from (`extends`).

use std::collections::BTreeMap;

use super::check::Faults;
use super::tree::{Node, Origin, Value};

/// A text and the name under which messages speak of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceText {
    /// A path or a machine's name.
    pub name: String,
    /// The TOML document.
    pub text: String,
}

/// The texts of a machine.
#[derive(Default)]
pub(super) struct Layers {
    /// The name of each text and assignment, by the number that origins use.
    pub sources: BTreeMap<i32, String>,
    /// The trees of the texts, without their `extends`: the asked one first, then what it extends, and so on.
    pub trees: Vec<Node>,
}

impl Layers {
    /// Reads `text` and everything it extends; `lookup` finds a machine by name. What cannot be read is noted in
    /// `faults`.
    pub fn read(text: SourceText, lookup: &dyn Fn(&str) -> Option<SourceText>, faults: &mut Faults) -> Layers {
        let mut layers = Layers::default();
        let mut names = vec![text.name.clone()];
        let mut next = Some(text);
        while let Some(text) = next.take() {
            let source = -(layers.sources.len() as i32);
            layers.sources.insert(source, text.name.clone());
            let mut tree = match Node::from_toml(&text.text, source) {
                Ok(tree) => tree,
                Err(errors) => {
                    for (line, message) in errors {
                        faults.add(Origin { source, line }, "", format!("this is not TOML: {message}"));
                    }
                    break;
                }
            };
            next = take_extends(&mut tree, faults).and_then(|(origin, name)| {
                // A machine may be asked for by path and extended by name, so both are compared.
                let base = lookup(&name);
                let is_loop = names.contains(&name)
                    || base.as_ref().is_some_and(|base| layers.sources.values().any(|source| *source == base.name));
                names.push(name.clone());
                if is_loop {
                    faults.add(
                        origin,
                        "extends",
                        format!("machines extend each other in a loop: {}", names.join(" → ")),
                    );
                    return None;
                }
                if base.is_none() {
                    faults.add(origin, "extends", missing(&name, lookup));
                }
                base
            });
            layers.trees.push(tree);
        }
        layers
    }

    /// Names one more source, which has a tree of its own above all others.
    pub fn add_source(&mut self, name: String) -> i32 {
        let source = 1 + self.sources.last_key_value().map_or(0, |(source, _)| *source);
        self.sources.insert(source, name);
        source
    }

    /// Everything the texts say together.
    pub fn merged(&self) -> Node {
        let mut merged = Node::empty(Origin { source: 0, line: 1 });
        for tree in self.trees.iter().rev() {
            merged.overlay(tree.clone());
        }
        merged
    }
}

/// What is said of a machine that is not found under `name`: files are named without their suffix.
fn missing(name: &str, lookup: &dyn Fn(&str) -> Option<SourceText>) -> String {
    let stem = name.strip_suffix(".toml").unwrap_or(name).trim_start_matches("./");
    if stem != name && lookup(stem).is_some() {
        return format!("{name:?} is not the name of a machine; type: extends = {stem:?}");
    }
    format!("there is no machine {name:?}, neither {stem}.toml beside this file nor among those that ship")
}

/// Takes the `extends` key out of a tree, if there is a sound one.
fn take_extends(tree: &mut Node, faults: &mut Faults) -> Option<(Origin, String)> {
    let Value::Table(entries) = &mut tree.value else { return None };
    let node = entries.remove("extends")?;
    match node.value {
        Value::Text(name) => Some((node.origin, name)),
        _ => {
            faults.add(node.origin, "extends", format!("{} is not the name of a machine", node.describe()));
            None
        }
    }
}
