//! The counts of docs/crash-consistency.md: the page has these, and they come out again. What takes minutes is asked for by name:
//! `cargo test --release -p fencepost-checker documented -- --ignored`.

use serde_json::{Map, Value, json};

use super::*;

/// Options of `fencepost prove`, the scheme, and how many states, how many transitions and what depth there are.
const DOCUMENTED: [(&str, &str, [u64; 3]); 54] = [
    ("", "nopb", [7_987_683, 61_970_483, 33]),
    ("", "pb", [67_666_278, 336_689_864, 76]),
    ("", "pb_rf", [62_668_300, 310_422_786, 79]),
    ("", "pb_adaptive", [92_052_978, 435_377_976, 72]),
    ("--writes 2", "pb", [12_001_004, 56_918_704, 61]),
    ("--hosts 2", "nopb", [47_930, 254_078, 22]),
    ("--hosts 2", "pb", [3_163_214, 13_625_194, 58]),
    ("--hosts 2", "pb_rf", [2_762_879, 11_757_559, 59]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "nopb", [8_034, 37_242, 16]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [321_077, 1_224_588, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_rf", [242_649, 899_906, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_adaptive", [428_356, 1_536_555, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb", [328_655, 1_217_268, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_rf", [242_320, 874_719, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_adaptive", [448_301, 1_568_017, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "nopb", [16_068, 68_037, 17]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb", [845_857, 3_008_950, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_rf", [659_219, 2_296_717, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_adaptive", [1_049_568, 3_654_187, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb", [642_841, 2_383_228, 47]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_rf", [483_684, 1_743_119, 47]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_adaptive", [860_805, 3_045_825, 45]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb", [15_308, 36_177, 28]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_rf", [9_827, 21_330, 29]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_adaptive", [17_586, 41_042, 28]),
    ("--hosts 2 --writes 2 --threshold 3 --preset 1", "pb_rf", [92_739, 299_070, 36]),
    ("--topology chain --hosts 1", "nopb", [865, 2_656, 15]),
    ("--topology chain --hosts 1", "pb", [2_621_709, 9_683_909, 81]),
    ("--topology chain --hosts 1", "pb_rf", [1_583_215, 5_607_260, 82]),
    ("--topology chain --hosts 1", "pb_adaptive", [3_712_678, 13_395_650, 81]),
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
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [978_915, 3_869_868, 93]),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [5_398, 12_703, 32]),
    (
        "--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1",
        "pb_adaptive",
        [816_534, 2_923_969, 81],
    ),
    ("--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [2_019_086, 8_088_022, 89]),
    ("--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [5_398, 12_703, 32]),
    (
        "--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1",
        "pb_adaptive",
        [1_669_433, 6_227_671, 82],
    ),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb", [601_617, 2_347_434, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb_rf", [272_948, 1_073_651, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb_adaptive", [732_015, 2_729_408, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [46_708_176, 216_006_389, 97]),
    ("--topology shared --hosts 2", "nopb", [238_379, 1_328_135, 26]),
    ("--topology shared --hosts 2", "pb", [23_681_302, 108_839_528, 62]),
    ("--topology shared --hosts 2", "pb_rf", [20_569_303, 93_325_562, 63]),
    ("--topology shared --hosts 2", "pb_adaptive", [34_179_888, 151_392_778, 59]),
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
