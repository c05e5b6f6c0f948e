//! The counts of docs/crash-consistency.md: the page has these, and they come out again. What takes minutes is asked for by name:
//! `cargo test --release -p fencepost-checker documented -- --ignored`.

use serde_json::{Map, Value, json};

use super::*;

/// Options of `fencepost prove`, the scheme, and how many states, how many transitions and what depth there are.
const DOCUMENTED: [(&str, &str, [u64; 3]); 42] = [
    ("", "nopb", [8_021_341, 62_204_069, 33]),
    ("", "pb", [75_725_057, 373_992_968, 76]),
    ("", "pb_rf", [70_015_424, 344_509_631, 79]),
    ("", "pb_adaptive", [103_184_307, 486_379_874, 72]),
    ("--writes 2", "pb", [13_319_673, 62_683_037, 61]),
    ("--hosts 2", "nopb", [48_185, 255_271, 22]),
    ("--hosts 2", "pb", [3_357_948, 14_327_225, 58]),
    ("--hosts 2", "pb_rf", [2_925_255, 12_347_118, 59]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "nopb", [8_088, 37_472, 16]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [335_859, 1_273_049, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_rf", [253_325, 935_620, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_adaptive", [446_885, 1_595_328, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb", [344_155, 1_266_073, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_rf", [253_262, 910_281, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_adaptive", [468_216, 1_628_965, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "nopb", [16_176, 68_441, 17]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb", [884_036, 3_130_236, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_rf", [687_759, 2_389_599, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_adaptive", [1_094_568, 3_795_959, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb", [679_512, 2_491_225, 47]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_rf", [509_179, 1_818_206, 47]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_adaptive", [905_388, 3_173_564, 45]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb", [15_422, 36_394, 28]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_rf", [9_907, 21_483, 29]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_adaptive", [17_700, 41_255, 28]),
    ("--hosts 2 --writes 2 --threshold 3 --preset 1", "pb_rf", [97_965, 311_664, 36]),
    ("--topology chain --entries 2 --hosts 1", "nopb", [865, 2_656, 15]),
    ("--topology chain --entries 2 --hosts 1", "pb", [1_897_605, 7_123_492, 77]),
    ("--topology chain --entries 2 --hosts 1", "pb_rf", [1_149_262, 4_117_688, 77]),
    ("--topology chain --entries 2 --hosts 1", "pb_adaptive", [2_674_268, 9_759_514, 81]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "nopb", [174, 344, 15]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb", [43_362, 134_315, 69]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb_rf", [431, 676, 26]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --failures 1", "pb", [93_107, 320_950, 70]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --partial-writes", "pb", [273_448, 871_698, 69]),
    (
        "--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --partial-writes",
        "pb_adaptive",
        [378_104, 1_147_339, 80],
    ),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [991_590, 3_923_178, 93]),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [5_511, 12_926, 32]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "nopb", [7_476, 26_877, 19]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb", [328_059, 1_174_195, 50]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_rf", [67_258, 197_150, 34]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_adaptive", [348_202, 1_195_465, 43]),
];

/// With more transitions a row takes seconds in a debug build, and minutes with far more.
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

fn check(is_meant: impl Fn(u64) -> bool) {
    let rows = DOCUMENTED.iter().filter(|(_, _, [_, transitions, _])| is_meant(*transitions));
    for (options, scheme, counts) in rows {
        assert_eq!(proved(bounds(options, scheme)), *counts, "{options} {scheme}");
    }
}

#[test]
fn the_page_has_the_documented_counts() {
    let page = include_str!("../../../../../docs/crash-consistency.md");
    let table = page.split("| options | scheme | states | transitions | depth |\n").nth(1).expect("it has the table");
    let rows = table.lines().skip(1).take_while(|line| line.starts_with('|'));
    let rows: Vec<Vec<String>> =
        rows.map(|row| row.trim_matches('|').split('|').map(|cell| cell.trim().replace(',', "")).collect()).collect();
    assert_eq!(rows.len(), DOCUMENTED.len());
    for (row, (options, scheme, counts)) in rows.iter().zip(DOCUMENTED) {
        let options = if options.is_empty() { "(none: the default bounds)".into() } else { format!("`{options}`") };
        let counts = counts.map(|count| count.to_string());
        assert_eq!(row[..], [&[options, scheme.to_owned()][..], &counts[..]].concat());
    }
}

#[test]
fn the_quick_documented_counts_come_out_again() {
    check(|transitions| transitions <= QUICK);
}

#[test]
#[ignore = "takes minutes, and 4 GiB of memory"]
fn all_documented_counts_come_out_again() {
    check(|transitions| transitions > QUICK);
}
