//! A machine description as a tree of keys that remembers where each of them was written.

use std::collections::BTreeMap;

use serde_json::{Map, Number, Value as Json};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Where a key was written: which text, and its line there (0 where a text has no lines).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Origin {
    /// Which text: 0 is the one asked for, what it extends is below it (-1, -2, …), assignments are above it (1, 2, …).
    pub source: i32,
    /// From 1.
    pub line: u32,
}

/// A value and the place of its key.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub value: Value,
    pub origin: Origin,
}

/// What a key can hold.
#[derive(Clone, Debug)]
pub(super) enum Value {
    Table(BTreeMap<String, Node>),
    Array(Vec<Node>),
    Text(String),
    Integer(i128),
    Float(f64),
    Boolean(bool),
    /// A value that no key of a machine can have, as it was written.
    Foreign(String),
}

impl Node {
    /// The tree of a TOML document, or its syntax errors with their lines.
    pub fn from_toml(text: &str, source: i32) -> Result<Node, Vec<(u32, String)>> {
        let (document, errors) = DeTable::parse_recoverable(text);
        let lines = Lines::of(text, source);
        if errors.is_empty() {
            return Ok(Node { value: lines.table(document.get_ref()), origin: Origin { source, line: 1 } });
        }
        let describe = |error: toml::de::Error| {
            let line = error.span().map_or(1, |span| lines.line_at(span.start));
            (line, error.message().replace('\n', "; "))
        };
        let mut errors: Vec<_> = errors.into_iter().map(describe).collect();
        errors.sort();
        Err(errors)
    }

    /// The tree of a TOML value that stands in no document.
    pub fn from_toml_value(value: &DeValue<'_>, source: i32) -> Value {
        Lines::none(source).value(value)
    }

    /// The tree of a JSON document; every key has the line 0.
    pub fn from_json(json: &Json, source: i32) -> Node {
        let origin = Origin { source, line: 0 };
        let value = match json {
            Json::Object(members) => Value::Table(
                members.iter().map(|(key, member)| (key.clone(), Node::from_json(member, source))).collect(),
            ),
            Json::Array(elements) => {
                Value::Array(elements.iter().map(|element| Node::from_json(element, source)).collect())
            }
            Json::String(text) => Value::Text(text.clone()),
            Json::Bool(boolean) => Value::Boolean(*boolean),
            Json::Number(number) => match number.as_i128() {
                Some(integer) => Value::Integer(integer),
                None => Value::Float(number.as_f64().unwrap_or(f64::NAN)),
            },
            Json::Null => Value::Foreign("null".to_owned()),
        };
        Node { value, origin }
    }

    /// An empty table.
    pub fn empty(origin: Origin) -> Node {
        Node { value: Value::Table(BTreeMap::new()), origin }
    }

    /// As JSON, without the places.
    pub fn to_json(&self) -> Json {
        match &self.value {
            Value::Table(entries) => {
                Json::Object(entries.iter().map(|(key, node)| (key.clone(), node.to_json())).collect::<Map<_, _>>())
            }
            Value::Array(elements) => Json::Array(elements.iter().map(Node::to_json).collect()),
            Value::Text(text) | Value::Foreign(text) => Json::String(text.clone()),
            Value::Integer(integer) => Number::from_i128(*integer).map_or(Json::Null, Json::Number),
            Value::Float(float) => Number::from_f64(*float).map_or(Json::Null, Json::Number),
            Value::Boolean(boolean) => Json::Bool(*boolean),
        }
    }

    /// The entry `key`, if this is a table that has it.
    pub fn entry(&self, key: &str) -> Option<&Node> {
        match &self.value {
            Value::Table(entries) => entries.get(key),
            _ => None,
        }
    }

    /// The entries, if this is a table.
    pub fn entries(&self) -> impl Iterator<Item = (&String, &Node)> {
        let entries = match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        };
        entries.into_iter().flatten()
    }

    /// The text, if this is one.
    pub fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number, if this is a whole one.
    pub fn integer(&self) -> Option<i128> {
        match self.value {
            Value::Integer(value) => Some(value),
            _ => None,
        }
    }

    /// The place of the deepest node on the way along `path` that exists.
    pub fn origin_of(&self, path: &[&str]) -> Origin {
        self.at(path).origin
    }

    /// The deepest node on the way along `path` that exists.
    pub fn at(&self, path: &[&str]) -> &Node {
        let mut node = self;
        for step in path {
            let next = match &node.value {
                Value::Array(elements) => step.parse::<usize>().ok().and_then(|index| elements.get(index)),
                _ => node.entry(step),
            };
            match next {
                Some(next) => node = next,
                None => break,
            }
        }
        node
    }

    /// Lays `upper` over this tree: tables merge key by key, anything else is replaced.
    pub fn overlay(&mut self, upper: Node) {
        match (&mut self.value, upper.value) {
            (Value::Table(entries), Value::Table(upper_entries)) => {
                for (key, upper_node) in upper_entries {
                    match entries.get_mut(&key) {
                        Some(node) => node.overlay(upper_node),
                        None => {
                            entries.insert(key, upper_node);
                        }
                    }
                }
            }
            (value, upper_value) => *value = upper_value,
        }
        self.origin = upper.origin;
    }

    /// What is written here, for a message: the value if it is short, its kind if not.
    pub fn describe(&self) -> String {
        match &self.value {
            Value::Table(_) => "a table".to_owned(),
            Value::Array(_) => "a list".to_owned(),
            Value::Text(text) => format!("{text:?}"),
            Value::Integer(integer) => integer.to_string(),
            Value::Float(float) => shown(*float),
            Value::Boolean(boolean) => boolean.to_string(),
            Value::Foreign(text) => text.clone(),
        }
    }
}

/// A number as one would write it: not with hundreds of digits.
pub(super) fn shown(number: f64) -> String {
    let is_plain = number == 0.0 || (1e-6..1e16).contains(&number.abs()) || !number.is_finite();
    if is_plain { number.to_string() } else { format!("{number:e}") }
}

/// Turns spans of a text into lines.
struct Lines {
    /// Where each line begins, ascending; empty for a value that stands in no text.
    starts: Vec<usize>,
    source: i32,
}

impl Lines {
    fn of(text: &str, source: i32) -> Lines {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        Lines { starts: std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect(), source }
    }

    fn none(source: i32) -> Lines {
        Lines { starts: Vec::new(), source }
    }

    /// The line, from 1, of the byte at `offset`; 0 if there are no lines.
    fn line_at(&self, offset: usize) -> u32 {
        self.starts.partition_point(|start| *start <= offset) as u32
    }

    fn origin(&self, byte: usize) -> Origin {
        Origin { source: self.source, line: self.line_at(byte) }
    }

    fn table(&self, table: &DeTable<'_>) -> Value {
        let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
            let key: &Spanned<std::borrow::Cow<'_, str>> = key;
            (
                key.get_ref().to_string(),
                Node { value: self.value(value.get_ref()), origin: self.origin(key.span().start) },
            )
        };
        Value::Table(table.iter().map(entry).collect())
    }

    fn value(&self, value: &DeValue<'_>) -> Value {
        match value {
            DeValue::Table(table) => self.table(table),
            DeValue::Array(elements) => Value::Array(
                elements
                    .iter()
                    .map(|element| Node {
                        value: self.value(element.get_ref()),
                        origin: self.origin(element.span().start),
                    })
                    .collect(),
            ),
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Boolean(boolean) => Value::Boolean(*boolean),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(value) => Value::Integer(value),
                Err(_) => Value::Foreign(integer.to_string()),
            },
            DeValue::Float(float) => {
                float.as_str().parse().map_or_else(|_| Value::Foreign(float.to_string()), Value::Float)
            }
            DeValue::Datetime(date) => Value::Foreign(date.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n[b]\nc = [\n  true,\n  0x10,\n]\n[b.d]\ne.f = 'g'\n";

    fn tree(text: &str) -> Node {
        Node::from_toml(text, 0).expect("the text is TOML")
    }

    #[test]
    fn every_key_and_element_knows_its_line() {
        let tree = tree(TEXT);
        let lines = [
            (vec!["a"], 1),
            (vec!["b"], 2),
            (vec!["b", "c"], 3),
            (vec!["b", "c", "1"], 5),
            (vec!["b", "d"], 7),
            (vec!["b", "d", "e", "f"], 8),
            (vec!["b", "d", "e", "nothing"], 8),
        ];
        for (path, line) in lines {
            assert_eq!(tree.origin_of(&path).line, line, "{path:?}");
        }
    }

    #[test]
    fn values_come_out_as_json() {
        let expected = serde_json::json!({"a": 1, "b": {"c": [true, 16], "d": {"e": {"f": "g"}}}});
        assert_eq!(tree(TEXT).to_json(), expected);
        assert_eq!(Node::from_json(&expected, 0).to_json(), expected);
    }

    #[test]
    fn an_upper_layer_merges_tables_and_replaces_lists() {
        let mut base = tree(TEXT);
        base.overlay(Node::from_toml("[b]\nc = [1]\n\n[b.d]\nh = 2.5\n", 1).expect("the text is TOML"));
        let expected = serde_json::json!({"a": 1, "b": {"c": [1], "d": {"e": {"f": "g"}, "h": 2.5}}});
        assert_eq!(base.to_json(), expected);
        assert_eq!(base.origin_of(&["b", "c"]), Origin { source: 1, line: 2 });
        assert_eq!(base.origin_of(&["b", "d", "e"]), Origin { source: 0, line: 8 });
    }

    #[test]
    fn all_syntax_errors_are_found_with_their_lines() {
        let errors = Node::from_toml("a = \nb = 1\nb = 2\nc = [1\n", 0).expect_err("three lines are wrong");
        let lines: Vec<u32> = errors.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [1, 3, 4], "{errors:?}");
    }
}
