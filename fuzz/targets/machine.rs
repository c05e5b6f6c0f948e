//! A machine file: whatever it says, the answer is a machine or a list of errors; a machine that is taken can be
//! written and read again.
#![no_main]

use std::path::Path;

use fencepost_sim::config::{Machine, SourceText};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let file = SourceText { name: "input.toml".to_owned(), text: text.to_owned() };
    match Machine::resolve(file, &shipped, &[]) {
        Ok(machine) => {
            let json = machine.to_json().to_string();
            let again = Machine::from_json("input.json", &json).expect("what was taken is taken again");
            assert_eq!(again.to_json().to_string(), json);
        }
        Err(errors) => assert!(!errors.to_string().is_empty()),
    }
});

/// A machine of the repository, by name: what files inherit from.
fn shipped(name: &str) -> Option<SourceText> {
    if !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return None;
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../machines").join(format!("{name}.toml"));
    let text = std::fs::read_to_string(path).ok()?;
    Some(SourceText { name: format!("{name}.toml"), text })
}
