//! Walks a tree along the schema: unknown keys, wrong types, numbers out of range, missing keys.

use std::collections::BTreeSet;

use super::schema::{KeySchema, Shape, join};
use super::tree::{Node, Origin, Value};
use crate::nearest::nearest;

/// A mistake and its place, before the place has a name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Fault {
    pub origin: Origin,
    pub key: String,
    pub message: String,
    /// What could stand there instead, if that is a list to be told once.
    pub choices: Option<String>,
}

/// Nobody reads more mistakes than this at once, and a file of another kind can have millions.
const FAULTS_MAX: usize = 100;

/// Collects the faults of all layers.
#[derive(Default)]
pub(super) struct Faults {
    /// The first [`FAULTS_MAX`].
    found: BTreeSet<Fault>,
    /// How many more there were.
    left_out: usize,
    /// Paths that were offered for a mistyped key: they are not reported as missing besides.
    offered: BTreeSet<String>,
}

impl Faults {
    /// Notes a fault; the same one twice is one.
    pub fn add(&mut self, origin: Origin, key: impl Into<String>, message: impl Into<String>) {
        self.add_fault(Fault { origin, key: key.into(), message: message.into(), choices: None });
    }

    fn add_fault(&mut self, fault: Fault) {
        if self.is_full() && !self.found.contains(&fault) {
            self.left_out += 1;
        } else {
            self.found.insert(fault);
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() == FAULTS_MAX
    }

    /// How many faults there are beyond those that are kept.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Whether nothing is wrong so far.
    pub fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// Whether something is wrong at `path` or below it.
    pub fn concern(&self, path: &str) -> bool {
        let is_below = |key: &str| key.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        self.found.iter().any(|fault| is_below(&fault.key))
    }

    /// Those that are kept, by layer and line. Each list of choices is part of the first message that needs it.
    pub fn into_sorted(self) -> impl Iterator<Item = Fault> {
        let mut told = BTreeSet::new();
        self.found.into_iter().map(move |mut fault| {
            if let Some(choices) = fault.choices.take().filter(|choices| told.insert(choices.clone())) {
                fault.message = format!("{}; {choices}", fault.message);
            }
            fault
        })
    }

    /// Checks what one layer says, without asking whether it says everything. `machine` is what all layers together
    /// say.
    pub fn check_layer(&mut self, layer: &Node, machine: &Node) {
        self.check_value(layer, KeySchema::root(), "", machine);
    }

    /// Checks that all layers together say everything.
    pub fn check_complete(&mut self, machine: &Node) {
        self.check_required(machine, KeySchema::root(), "");
    }

    fn check_value(&mut self, node: &Node, schema: KeySchema, path: &str, machine: &Node) {
        let shape = schema.shape();
        match (&shape, &node.value) {
            (Shape::Table { known, other }, Value::Table(entries)) => {
                for (key, entry) in entries {
                    let entry_path = join(path, key);
                    match schema.entry(key) {
                        Some(entry_schema) => self.check_value(entry, entry_schema, &entry_path, machine),
                        None => {
                            debug_assert!(other.is_none(), "a map takes any key");
                            self.unknown_key(entry.origin, path, key, known.keys().map(String::as_str), machine);
                        }
                    }
                }
            }
            (Shape::List { element }, Value::Array(elements)) => {
                for (index, entry) in elements.iter().enumerate() {
                    self.check_value(entry, *element, &join(path, &index.to_string()), machine);
                }
            }
            (Shape::Integer { minimum, maximum }, Value::Integer(value)) => {
                if value < minimum || value > maximum {
                    let message = format!("{value} is out of range: {minimum} to {maximum} is allowed");
                    self.add(node.origin, path, message);
                }
            }
            (Shape::Number { minimum, maximum }, Value::Integer(_) | Value::Float(_)) => {
                let value = match node.value {
                    Value::Integer(value) => value as f64,
                    Value::Float(value) => value,
                    _ => unreachable!("the pattern says so"),
                };
                // Written this way, not-a-number is out of range too.
                if !(value >= *minimum && value <= *maximum) {
                    let message = format!("{} is out of range: {minimum} to {maximum} is allowed", node.describe());
                    self.add(node.origin, path, message);
                }
            }
            (Shape::Text { choices }, Value::Text(word)) => {
                let words = || choices.iter().map(|(word, _)| *word);
                if !choices.is_empty() && !words().any(|choice| choice == word) {
                    let offer =
                        nearest(word, words()).map_or_else(String::new, |near| format!("; the nearest is {near:?}"));
                    self.add(node.origin, path, format!("{word:?} is not {shape}{offer}"));
                }
            }
            (Shape::Boolean, Value::Boolean(_)) => {}
            (_, Value::Foreign(_) | Value::Table(_) | Value::Array(_)) => {
                self.add(node.origin, path, format!("{} cannot stand here: {shape} is expected", node.describe()));
            }
            (_, _) => self.add(node.origin, path, format!("{} is not {shape}", node.describe())),
        }
    }

    fn unknown_key<'a>(
        &mut self,
        origin: Origin,
        table: &str,
        key: &str,
        known: impl Iterator<Item = &'a str> + Clone,
        machine: &Node,
    ) {
        if self.is_full() {
            // What is looked for below is only words for a message.
            self.left_out += 1;
            return;
        }
        let mut choices = None;
        let message = if let Some(near) = nearest(key, known.clone()) {
            self.offered.insert(join(table, near));
            format!("there is no such key; the nearest is `{near}`")
        } else {
            let elsewhere: Vec<String> = KeySchema::root()
                .paths(machine)
                .into_iter()
                .filter(|path| path.rsplit('.').next() == Some(key))
                .map(|path| format!("`{path}`"))
                .collect();
            if elsewhere.is_empty() || elsewhere.len() > 3 {
                let known: Vec<String> = known.map(|key| format!("`{key}`")).collect();
                choices = Some(format!("the keys here are {}", known.join(", ")));
                "there is no such key".to_string()
            } else {
                format!("there is no such key here; there is {}", elsewhere.join(" and "))
            }
        };
        self.add_fault(Fault { origin, key: join(table, key), message, choices });
    }

    fn check_required(&mut self, node: &Node, schema: KeySchema, path: &str) {
        if !matches!(node.value, Value::Table(_)) {
            return;
        }
        for key in schema.required() {
            let entry_path = join(path, key);
            if node.entry(key).is_none() && !self.offered.contains(&entry_path) {
                let entry = schema.entry(key).expect("what is required is a key");
                self.add(node.origin, path, missing(key, &entry_path, entry));
            }
        }
        for (key, entry) in node.entries() {
            if let Some(entry_schema) = schema.entry(key) {
                self.check_required(entry, entry_schema, &join(path, key));
            }
        }
    }
}

fn missing(key: &str, path: &str, schema: KeySchema) -> String {
    let description = schema.summary();
    match schema.shape() {
        Shape::Table { .. } => format!("the table [{path}] is missing: {description}"),
        shape => format!("the key `{key}` is missing ({shape}): {description}"),
    }
}
