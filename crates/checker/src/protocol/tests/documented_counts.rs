//! The counts of docs/data/prove.csv: the small ones come out again; all do in `make slow-tests` (tests/test_prove.py).

use serde_json::{Map, Value, json};

use super::*;

/// Options of `fencepost prove`, the scheme, and the numbers of states, transitions and steps of depth. Options have no
/// commas, so neither has the file any quotes.
const DOCUMENTED: &str = include_str!("../../../../../docs/data/prove.csv");

/// With more transitions a row takes seconds in a debug build.
const QUICK: u64 = 40_000;

fn bounds(options: &str, scheme: &str) -> Bounds {
    let mut given = Map::from_iter([("scheme".to_owned(), json!(scheme))]);
    let mut words = options.split_whitespace().peekable();
    while let Some(option) = words.next() {
        let key = option.strip_prefix("--").expect("it is an option").replace('-', "_");
        let value = words
            .next_if(|word| !word.starts_with("--"))
            .map_or(json!(true), |value| value.parse::<u8>().map_or_else(|_| json!(value), |number| json!(number)));
        given.insert(key, value);
    }
    serde_json::from_value(Value::Object(given)).expect("these are bounds")
}

#[test]
fn the_quick_documented_counts_come_out_again() {
    let mut explored = 0;
    for row in DOCUMENTED.lines().skip(1) {
        let cells: Vec<&str> = row.split(',').collect();
        let [options, scheme, counts @ ..] = &cells[..] else { panic!("{row}") };
        let counts: Vec<u64> = counts.iter().map(|count| count.parse().expect("it is a number")).collect();
        if counts[1] <= QUICK {
            assert_eq!(proved(bounds(options, scheme))[..], counts, "{row}");
            explored += 1;
        }
    }
    assert!(explored >= 5, "only {explored} rows are quick");
}
