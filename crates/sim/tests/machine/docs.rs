//! No page names a key or shows a setting that does not exist.

use std::fs;

use super::{repository, resolve};

const PAGES: [&str; 24] = [
    "README.md",
    "ARCHITECTURE.md",
    "docs/design.md",
    "docs/rooms-simulator.md",
    "docs/machines.md",
    "docs/fabrics.md",
    "docs/placement.md",
    "docs/machine-models.md",
    "docs/results.md",
    "docs/results-reference.md",
    "docs/results-counters.md",
    "docs/results-provenance.md",
    "docs/latency.md",
    "docs/traffic.md",
    "docs/sampling.md",
    "docs/timeline.md",
    "docs/performance.md",
    "docs/persist-buffer.md",
    "docs/deadlocks.md",
    "docs/validation.md",
    "docs/validation-host.md",
    "docs/validation-persist.md",
    "docs/validation-clx.md",
    "docs/validation-loaded.md",
];
const MINE: &str = "extends = \"pcs-table1\"\ndescription = \"a test\"\n";

/// A file of the repository.
fn page(name: &str) -> String {
    fs::read_to_string(repository(name)).expect("the page exists")
}

/// Whether `path` is a key or a table of machine files.
fn exists(path: &str) -> bool {
    // No key takes this value, so that nothing but the value can be wrong.
    let errors = resolve(MINE, &[&format!("{path}=[[]]")]).expect_err("no key takes such a value");
    !errors.contains("there is no such key")
}

#[test]
fn keys_that_pages_name_exist() {
    let tables = [
        "core",
        "branch_predictor",
        "tlb",
        "cache",
        "host_bridge",
        "link",
        "switch",
        "dram",
        "pm",
        "fabric",
        "simulation",
    ];
    let mut named = 0;
    for name in PAGES {
        let text = page(name);
        let code = text.split('`').skip(1).step_by(2);
        let paths = code.filter(|code| code.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)));
        // `core.rs` is a file.
        let is_key =
            |path: &&str| path.split_once('.').is_some_and(|(table, key)| tables.contains(&table) && key != "rs");
        for path in paths.filter(is_key) {
            assert!(exists(path), "{name} names `{path}`, which is no key of a machine file");
            named += 1;
        }
    }
    assert!(named >= 5, "only {named} keys are named");
}

#[test]
fn settings_that_pages_show_can_be_made() {
    let mut shown = 0;
    for name in PAGES {
        let text = page(name);
        for rest in text.split("--set ").skip(1) {
            let set = match rest.strip_prefix('\'') {
                Some(quoted) => quoted.split('\'').next(),
                None => rest.split(['`', ' ', '\n', ')']).next(),
            };
            let set = set.unwrap_or_default();
            // An error message names a setting that cannot be made, with a colon behind it.
            if set.is_empty() || set.starts_with("PATH=") || set.ends_with(':') {
                continue;
            }
            resolve(MINE, &[set]).unwrap_or_else(|errors| panic!("{name} shows --set {set}\n{errors}"));
            shown += 1;
        }
    }
    assert!(shown >= 4, "only {shown} settings are shown");
}
