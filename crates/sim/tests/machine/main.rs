//! Machine files as a user meets them: those that ship, mistakes and what is said of them, fabrics of every shape, and
//! the page in docs/.

mod accelerators;
mod docs;
mod errors;
mod expanders;
mod fabrics;
mod files;
mod mutations;

use std::fs;
use std::path::{Path, PathBuf};

use fencepost_sim::config::{Machine, SourceText};

/// The repository's folder of that name.
fn repository(folder: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder)
}

/// A machine that ships, by name.
fn shipped(name: &str) -> Option<SourceText> {
    let text = fs::read_to_string(repository("machines").join(format!("{name}.toml"))).ok()?;
    Some(SourceText { name: format!("machines/{name}.toml"), text })
}

/// The machine of `text`, called `mine.toml`, which may extend those that ship; or every error, one to a line.
fn resolve(text: &str, sets: &[&str]) -> Result<Machine, String> {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let source = SourceText { name: "mine.toml".to_owned(), text: text.to_owned() };
    Machine::resolve(source, &shipped, &sets).map_err(|errors| errors.to_string())
}

/// `pcs-table1` with `changes` on top; the first line of `changes` is line 3.
fn changed(changes: &str) -> Result<Machine, String> {
    resolve(&format!("extends = \"pcs-table1\"\ndescription = \"a test\"\n{changes}\n"), &[])
}
