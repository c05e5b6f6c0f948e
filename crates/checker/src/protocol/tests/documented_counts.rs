//! The counts of docs/crash-consistency.md: the page has these, and they come out again. What takes minutes is asked for by name:
//! `cargo test --release -p fencepost-checker documented -- --ignored`.

use serde_json::{Map, Value, json};

use super::*;

/// Options of `fencepost prove`, the scheme, and how many states, how many transitions and what depth there are.
const DOCUMENTED: [(&str, &str, [u64; 3]); 32] = [
    ("", "nopb", [8_021_341, 62_204_069, 33]),
    ("", "pb", [75_962_531, 374_636_285, 76]),
    ("", "pb_rf", [70_264_829, 345_175_103, 79]),
    ("", "pb_adaptive", [103_421_861, 487_028_194, 72]),
    ("--writes 2", "pb", [13_363_666, 62_800_758, 61]),
    ("--hosts 2", "nopb", [48_185, 255_271, 22]),
    ("--hosts 2", "pb", [3_380_530, 14_387_936, 58]),
    ("--hosts 2", "pb_rf", [2_949_396, 12_410_379, 59]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "nopb", [8_088, 37_472, 16]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [336_231, 1_273_664, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_rf", [253_612, 936_063, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_adaptive", [451_723, 1_604_390, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb", [344_527, 1_266_688, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_rf", [253_549, 910_724, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_adaptive", [473_054, 1_638_027, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "nopb", [16_176, 68_441, 17]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb", [884_810, 3_131_847, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_rf", [688_347, 2_390_760, 49]),
    ("--topology chain --entries 2 --hosts 1", "nopb", [865, 2_656, 15]),
    ("--topology chain --entries 2 --hosts 1", "pb", [1_905_895, 7_147_321, 77]),
    ("--topology chain --entries 2 --hosts 1", "pb_rf", [1_155_484, 4_132_449, 77]),
    ("--topology chain --entries 2 --hosts 1", "pb_adaptive", [3_079_078, 11_024_547, 81]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "nopb", [174, 344, 15]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb", [43_362, 134_315, 69]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb_rf", [611, 939, 37]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --failures 1", "pb", [93_107, 320_950, 70]),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [991_590, 3_923_178, 93]),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [6_838, 15_685, 43]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "nopb", [7_476, 26_877, 19]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb", [329_931, 1_179_263, 50]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_rf", [75_448, 215_916, 36]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_adaptive", [350_014, 1_200_557, 43]),
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
