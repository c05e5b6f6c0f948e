//! TOML of other documents than machine files, such as plans of sweeps, with the line of each key.

use serde_json::{Value as Json, json};

use super::tree::{Node, Value};

/// The tree of a TOML document as JSON: a node has its `line` and one of `table` (nodes by key), `array` (nodes) and
/// `value`. Dates are texts. Or all syntax errors, each with its line.
pub fn located_toml(text: &str) -> Result<Json, Vec<(u32, String)>> {
    Node::from_toml(text, 0).map(|node| located(&node))
}

fn located(node: &Node) -> Json {
    let line = node.origin.line;
    match &node.value {
        Value::Table(entries) => {
            let entries: serde_json::Map<String, Json> =
                entries.iter().map(|(key, entry)| (key.clone(), located(entry))).collect();
            json!({"line": line, "table": entries})
        }
        Value::Array(elements) => json!({"line": line, "array": elements.iter().map(located).collect::<Vec<_>>()}),
        Value::Text(text) | Value::Foreign(text) => json!({"line": line, "value": text}),
        Value::Integer(integer) => match i64::try_from(*integer) {
            Ok(integer) => json!({"line": line, "value": integer}),
            Err(_) => json!({"line": line, "value": integer.to_string()}),
        },
        Value::Float(float) => json!({"line": line, "value": float}),
        Value::Boolean(boolean) => json!({"line": line, "value": boolean}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_has_its_line_and_what_it_holds() {
        let tree = located_toml("a = 1\n[b]\n\"c.d\" = [1.5,\n  'x']\n").expect("it is TOML");
        assert_eq!(tree["table"]["a"], json!({"line": 1, "value": 1}));
        let array = &tree["table"]["b"]["table"]["c.d"];
        assert_eq!(array["line"], 3);
        assert_eq!(array["array"], json!([{"line": 3, "value": 1.5}, {"line": 4, "value": "x"}]));
    }

    #[test]
    fn a_syntax_error_has_its_line() {
        let errors = located_toml("a = 1\nb = \n").expect_err("b has no value");
        assert_eq!(errors[0].0, 2);
    }
}
