//! The JSON Schema of machine files, generated from the config structs, and the view of it that the checks walk along.
//!
//! The schema is the only list of keys there is: unknown keys, types, ranges, missing keys, `--set` and the tables in
//! the docs all come from it, so none of them can disagree with the structs.

use std::fmt;
use std::sync::OnceLock;

use serde_json::{Map, Value as Json, json};

use super::tree::Node;

/// The JSON Schema of a machine: every key with its meaning and range, and which of them a machine must have.
pub fn json_schema() -> &'static Json {
    static SCHEMA: OnceLock<Json> = OnceLock::new();
    SCHEMA.get_or_init(|| {
        let mut schema = schemars::schema_for!(super::Machine).to_value();
        schema["title"] = json!("Fencepost machine");
        schema["properties"]["extends"] = json!({
            "type": "string",
            "description": "The machine that this one inherits from: every key that is not given here has its value there.",
        });
        let required = schema["required"].as_array_mut().expect("a machine has keys");
        // With `extends`, any of them may be inherited; a machine without it lacks them after all layers are laid over
        // each other.
        let inherited = std::mem::replace(required, vec![json!("description")]);
        schema["anyOf"] = json!([{ "required": ["extends"] }, { "required": inherited }]);
        schema
    })
}

/// The JSON Schema of a machine file, for editors: keys that another machine gives (`extends`) may be left out, in
/// every table.
pub fn file_schema() -> Json {
    let mut schema = json_schema().clone();
    make_optional(&mut schema);
    schema["required"] = json!(["description"]);
    schema["if"] = json!({ "not": { "required": ["extends"] } });
    schema["then"] = KeySchema::root().required_skeleton();
    schema
}

/// Makes every key of every table in `schema` optional.
pub(super) fn make_optional(schema: &mut Json) {
    if let Json::Object(members) = schema {
        if members.contains_key("properties") {
            members.remove("required");
            members.remove("anyOf");
        }
        members.values_mut().for_each(make_optional);
    } else if let Json::Array(elements) = schema {
        elements.iter_mut().for_each(make_optional);
    }
}

/// The schema of one key.
#[derive(Clone, Copy)]
pub(super) struct KeySchema {
    /// As written at the key: it may refer to a definition, and describe the key better than the definition can.
    site: &'static Json,
}

/// What a key holds.
pub(super) enum Shape {
    /// Keys that are known, and the schema of any other key if there may be some.
    Table { known: &'static Map<String, Json>, other: Option<KeySchema> },
    /// A list of elements alike.
    List { element: KeySchema },
    /// A whole number within a range, its ends included.
    Integer { minimum: i128, maximum: i128 },
    /// A number within a range, its ends included.
    Number { minimum: f64, maximum: f64 },
    /// One of some words with what they mean; any text if there are none.
    Text { choices: Vec<(&'static str, &'static str)> },
    /// True or false.
    Boolean,
}

impl KeySchema {
    /// The whole machine file.
    pub fn root() -> KeySchema {
        KeySchema { site: json_schema() }
    }

    /// The definition behind references and `null` alternatives.
    fn definition(self) -> &'static Json {
        let mut node = self.site;
        loop {
            if let Some(reference) = node["$ref"].as_str() {
                let pointer = reference.strip_prefix('#').expect("references stay inside the schema");
                node = json_schema().pointer(pointer).expect("references point at something");
            } else if let Some(option) = node["anyOf"].as_array().filter(|_| node["properties"].is_null()) {
                node = option.iter().find(|choice| choice["type"] != "null").expect("an option holds something");
            } else {
                return node;
            }
        }
    }

    /// What the key means: the doc comment of its field.
    pub fn description(self) -> &'static str {
        let own = self.site["description"].as_str();
        own.or_else(|| self.definition()["description"].as_str()).unwrap_or_default()
    }

    /// The first sentence of what it means, in one line.
    pub fn summary(self) -> String {
        let description = self.description();
        let sentence = description.find(['.', ';', ':']).map_or(description, |end| &description[..end]);
        sentence.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Keys that must be there.
    pub fn required(self) -> impl Iterator<Item = &'static str> {
        let definition = self.definition();
        // The root lists them as the alternative to `extends`.
        let required = definition.pointer("/anyOf/1/required").or_else(|| definition.get("required"));
        required.and_then(Json::as_array).into_iter().flatten().filter_map(Json::as_str)
    }

    /// A schema that says which keys must be there, and nothing else.
    fn required_skeleton(self) -> Json {
        let Shape::Table { known, other } = self.shape() else { return json!({}) };
        let entries = known.iter().map(|(key, site)| (key.clone(), KeySchema { site }.required_skeleton()));
        let tables: Map<String, Json> = entries.filter(|(_, skeleton)| *skeleton != json!({})).collect();
        let required: Vec<&str> = self.required().collect();
        let mut skeleton = Map::new();
        if !required.is_empty() {
            skeleton.insert("required".to_owned(), json!(required));
        }
        if !tables.is_empty() {
            skeleton.insert("properties".to_owned(), Json::Object(tables));
        }
        if let Some(other) = other.map(KeySchema::required_skeleton).filter(|skeleton| *skeleton != json!({})) {
            skeleton.insert("additionalProperties".to_owned(), other);
        }
        Json::Object(skeleton)
    }

    /// What the key holds.
    ///
    /// # Panics
    /// If a config struct uses a construct that the checks do not know: a bug, found by the test that visits every key.
    pub fn shape(self) -> Shape {
        let definition = self.definition();
        if let Some(choices) = choices(definition) {
            return Shape::Text { choices };
        }
        let bound = |name: &str, absent: f64| definition.get(name).and_then(Json::as_f64).unwrap_or(absent);
        match type_name(definition) {
            "object" => {
                static NO_KEYS: OnceLock<Map<String, Json>> = OnceLock::new();
                let known = definition["properties"].as_object();
                let other = definition.get("additionalProperties").filter(|other| other.is_object());
                Shape::Table {
                    known: known.unwrap_or_else(|| NO_KEYS.get_or_init(Map::new)),
                    other: other.map(|site| KeySchema { site }),
                }
            }
            "array" => Shape::List { element: KeySchema { site: &definition["items"] } },
            "integer" => Shape::Integer {
                minimum: bound("minimum", i64::MIN as f64) as i128,
                maximum: bound("maximum", u64::MAX as f64) as i128,
            },
            "number" => Shape::Number { minimum: bound("minimum", f64::MIN), maximum: bound("maximum", f64::MAX) },
            "string" => Shape::Text { choices: Vec::new() },
            "boolean" => Shape::Boolean,
            other => panic!("the checks do not know what a key of type {other:?} holds: {definition}"),
        }
    }

    /// The schema of the entry `key`, if this is a table that may have it.
    pub fn entry(self, key: &str) -> Option<KeySchema> {
        match self.shape() {
            Shape::Table { known, other } => known.get(key).map(|site| KeySchema { site }).or(other),
            _ => None,
        }
    }

    /// Every path below this key, dotted: known keys, and of maps those keys that `machine` has.
    pub fn paths(self, machine: &Node) -> Vec<String> {
        let mut paths = Vec::new();
        self.collect_paths(Some(machine), "", &mut paths);
        paths
    }

    fn collect_paths(self, node: Option<&Node>, prefix: &str, paths: &mut Vec<String>) {
        let Shape::Table { known, other } = self.shape() else {
            paths.push(prefix.to_owned());
            return;
        };
        for (key, site) in known {
            let path = join(prefix, key);
            KeySchema { site }.collect_paths(node.and_then(|node| node.entry(key)), &path, paths);
        }
        if let (Some(other), Some(node)) = (other, node) {
            for (key, entry) in node.entries().filter(|(key, _)| !known.contains_key(*key)) {
                other.collect_paths(Some(entry), &join(prefix, key), paths);
            }
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shape::Table { .. } => write!(formatter, "a table"),
            Shape::List { element } => match element.shape() {
                Shape::Text { choices } if choices.is_empty() => write!(formatter, "a list of texts"),
                Shape::Table { .. } => write!(formatter, "a list of tables"),
                element => write!(formatter, "a list, each element {element}"),
            },
            Shape::Integer { minimum, maximum } => write!(formatter, "an integer from {minimum} to {maximum}"),
            Shape::Number { minimum, maximum } => write!(formatter, "a number from {minimum} to {maximum}"),
            Shape::Text { choices } if choices.is_empty() => write!(formatter, "a text"),
            Shape::Text { choices } => {
                let words: Vec<String> = choices.iter().map(|(word, _)| format!("{word:?}")).collect();
                write!(formatter, "{}", words.join(" or "))
            }
            Shape::Boolean => write!(formatter, "true or false"),
        }
    }
}

/// The words of an enumeration, if this is one.
fn choices(definition: &'static Json) -> Option<Vec<(&'static str, &'static str)>> {
    if let Some(words) = definition["enum"].as_array() {
        return Some(words.iter().filter_map(Json::as_str).map(|word| (word, "")).collect());
    }
    let variants = definition["oneOf"].as_array()?;
    let mut choices = Vec::new();
    for variant in variants {
        let description = variant["description"].as_str().unwrap_or_default();
        match (variant["const"].as_str(), variant["enum"].as_array()) {
            (Some(word), _) => choices.push((word, description)),
            (None, Some(words)) => choices.extend(words.iter().filter_map(Json::as_str).map(|word| (word, ""))),
            (None, None) => panic!("the checks know enumerations of words only: {definition}"),
        }
    }
    Some(choices)
}

/// The type, `null` alternatives apart.
fn type_name(definition: &'static Json) -> &'static str {
    let alternatives = definition["type"].as_array().into_iter().flatten().filter_map(Json::as_str);
    definition["type"].as_str().or_else(|| alternatives.clone().find(|name| *name != "null")).unwrap_or_default()
}

/// A dotted path; a step that is no bare TOML key is quoted.
pub(super) fn join(prefix: &str, key: &str) -> String {
    let is_bare = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
    let step = if is_bare { key.to_owned() } else { format!("{key:?}") };
    if prefix.is_empty() { step } else { format!("{prefix}.{step}") }
}
