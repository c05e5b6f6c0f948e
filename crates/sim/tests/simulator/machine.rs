//! Machines for these tests: those that ship, with changes.

use std::fs;
use std::path::Path;

use fencepost_sim::config::{Machine, SourceText};

/// A machine that ships, by name.
fn shipped(name: &str) -> Option<SourceText> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../machines").join(format!("{name}.toml"));
    Some(SourceText { name: format!("machines/{name}.toml"), text: fs::read_to_string(path).ok()? })
}

/// The machine `name` with each `PATH=VALUE` of `sets` on top.
pub fn machine(name: &str, sets: &[&str]) -> Machine {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let text = shipped(name).unwrap_or_else(|| panic!("there is no machine {name}"));
    Machine::resolve(text, &shipped, &sets).unwrap_or_else(|errors| panic!("{errors}"))
}
