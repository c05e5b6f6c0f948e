//! docs/machines.md lists every key as the schema has it, and no page names a key that does not exist.

use std::fs;

use fencepost_sim::config::{key_paths, key_tables};

use super::repository;

const BEGIN: &str =
    "<!-- keys: made from the schema by `cargo test -p fencepost-sim --test machine` with FENCEPOST_WRITE_DOCS=1 -->\n";
const END: &str = "<!-- end of keys -->\n";

#[test]
fn the_page_lists_the_keys_of_the_schema() {
    let path = repository("docs").join("machines.md");
    let page = fs::read_to_string(&path).expect("the page exists");
    let (before, rest) = page.split_once(BEGIN).expect("the page says where the keys begin");
    let (listed, after) = rest.split_once(END).expect("the page says where the keys end");
    let keys = key_tables();
    if std::env::var_os("FENCEPOST_WRITE_DOCS").is_some() {
        fs::write(&path, format!("{before}{BEGIN}{keys}{END}{after}")).expect("the page can be written");
    } else {
        assert!(
            listed == keys,
            "docs/machines.md is not what the schema says; run this test with FENCEPOST_WRITE_DOCS=1"
        );
    }
}

/// Whether `path` is a key or a table of machine files.
fn exists(path: &str) -> bool {
    let is_level = |step: &str| matches!(step.as_bytes(), [b'l', b'1', b'i' | b'd'] | [b'l', b'2'..=b'9']);
    let steps: Vec<&str> = path.split('.').map(|step| if is_level(step) { "<level>" } else { step }).collect();
    let general = steps.join(".");
    key_paths().iter().any(|valid| *valid == general || valid.starts_with(&format!("{general}.")))
}

#[test]
fn keys_that_pages_name_exist() {
    let valid = key_paths();
    let tables: Vec<&str> = valid.iter().filter_map(|path| path.split_once('.').map(|(table, _)| table)).collect();
    let mut named = 0;
    for page in ["README.md", "docs/machines.md"] {
        let text = fs::read_to_string(repository(page)).expect("the page exists");
        let quoted = text.split('`').skip(1).step_by(2);
        let paths = quoted.filter(|code| code.chars().all(|c| c.is_ascii_alphanumeric() || "_.".contains(c)));
        for path in paths.filter(|path| path.split_once('.').is_some_and(|(table, _)| tables.contains(&table))) {
            assert!(exists(path), "{page} names `{path}`, which is no key of a machine file");
            named += 1;
        }
    }
    assert!(named >= 1, "only {named} keys are named");
}

#[test]
fn settings_that_pages_show_can_be_made() {
    let mut shown = 0;
    for page in ["README.md", "docs/machines.md", "docs/results.md"] {
        let text = fs::read_to_string(repository(page)).expect("the page exists");
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
            let text = "extends = \"pcs-table1\"\ndescription = \"a test\"\n";
            super::resolve(text, &[set]).unwrap_or_else(|errors| panic!("{page} shows --set {set}\n{errors}"));
            shown += 1;
        }
    }
    assert!(shown >= 4, "only {shown} settings are shown");
}
