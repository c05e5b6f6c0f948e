//! The counts of docs/crash-consistency.md: the page has these, and the small ones come out again; all do in `make
//! slow-tests` (tests/test_prove.py).

use serde_json::{Map, Value, json};

use super::*;

/// Options of `fencepost prove`, the scheme, and how many states, how many transitions and what depth there are.
const DOCUMENTED: [(&str, &str, [u64; 3]); 57] = [
    ("", "nopb", [11_456_648, 94_874_782, 33]),
    ("", "pb", [69_544_533, 346_274_788, 76]),
    ("", "pb_rf", [64_347_526, 319_028_136, 79]),
    ("", "pb_adaptive", [94_620_472, 447_656_439, 72]),
    ("--writes 2", "pb", [12_389_957, 58_853_855, 61]),
    ("--hosts 2", "nopb", [54_471, 309_115, 22]),
    ("--hosts 2", "pb", [3_278_100, 14_101_585, 58]),
    ("--hosts 2", "pb_rf", [2_857_544, 12_150_809, 59]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "nopb", [8_779, 43_696, 16]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [337_041, 1_283_295, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_rf", [254_055, 941_787, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1", "pb_adaptive", [452_481, 1_622_028, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb", [344_430, 1_273_664, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_rf", [253_406, 914_244, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --reads-in-turn", "pb_adaptive", [472_568, 1_652_302, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "nopb", [17_558, 80_319, 17]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb", [886_921, 3_160_272, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_rf", [689_517, 2_408_517, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --failures 1", "pb_adaptive", [1_107_311, 3_863_340, 50]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb", [818_823, 2_980_585, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_rf", [610_728, 2_162_699, 47]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --inputs 2", "pb_adaptive", [1_111_299, 3_861_059, 49]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --acknowledgement-inputs 2", "pb", [413_163, 1_592_012, 48]),
    ("--entries 2 --hosts 2 --writes 2 --crashes 1 --acknowledgement-inputs 2", "pb_rf", [310_699, 1_171_625, 48]),
    (
        "--entries 2 --hosts 2 --writes 2 --crashes 1 --acknowledgement-inputs 2",
        "pb_adaptive",
        [536_568, 1_950_683, 49],
    ),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb", [18_350, 42_891, 28]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_rf", [12_164, 26_342, 29]),
    ("--entries 2 --hosts 1 --writes 2 --crashes 1 --partial-writes", "pb_adaptive", [21_698, 49_999, 28]),
    ("--hosts 2 --writes 2 --threshold 3 --preset 1", "pb_rf", [98_051, 316_922, 36]),
    ("--topology chain --hosts 1", "nopb", [865, 2_803, 15]),
    ("--topology chain --hosts 1", "pb", [2_909_940, 10_778_186, 81]),
    ("--topology chain --hosts 1", "pb_rf", [1_723_965, 6_122_629, 82]),
    ("--topology chain --hosts 1", "pb_adaptive", [4_210_055, 15_221_765, 81]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "nopb", [174, 366, 15]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb", [50_109, 155_258, 69]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1", "pb_rf", [491, 783, 26]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --failures 1", "pb", [107_476, 371_526, 70]),
    ("--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --partial-writes", "pb", [315_320, 997_371, 69]),
    (
        "--topology chain --entries 1 --addresses 1 --hosts 1 --crashes 1 --partial-writes",
        "pb_adaptive",
        [458_121, 1_381_338, 80],
    ),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [1_024_283, 4_045_392, 93]),
    ("--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [5_836, 13_802, 32]),
    (
        "--topology chain --entries 1 --addresses 1 --hosts 2 --writes 2 --crashes 1",
        "pb_adaptive",
        [866_950, 3_108_666, 81],
    ),
    ("--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb", [2_099_266, 8_427_163, 89]),
    ("--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1", "pb_rf", [5_836, 13_802, 32]),
    (
        "--topology chain --entries 2 --addresses 1 --hosts 2 --writes 2 --crashes 1",
        "pb_adaptive",
        [1_759_344, 6_592_298, 82],
    ),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb", [609_075, 2_378_421, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb_rf", [273_140, 1_074_222, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 1 --crashes 1", "pb_adaptive", [740_647, 2_764_669, 69]),
    ("--topology chain --entries 2 --hosts 2 --writes 2 --crashes 1", "pb", [48_027_758, 222_266_955, 97]),
    ("--topology shared --hosts 2", "nopb", [268_726, 1_580_968, 26]),
    ("--topology shared --hosts 2", "pb", [24_252_374, 113_253_970, 62]),
    ("--topology shared --hosts 2", "pb_rf", [21_027_947, 96_928_460, 63]),
    ("--topology shared --hosts 2", "pb_adaptive", [35_139_430, 158_310_156, 59]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "nopb", [8_286, 31_975, 19]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb", [342_390, 1_248_592, 50]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_rf", [71_163, 216_319, 34]),
    ("--topology shared --entries 2 --addresses 1 --hosts 2 --writes 2", "pb_adaptive", [365_550, 1_281_504, 43]),
];

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
    let rows = DOCUMENTED.iter().filter(|(_, _, [_, transitions, _])| *transitions <= QUICK);
    for (options, scheme, counts) in rows {
        assert_eq!(proved(bounds(options, scheme)), *counts, "{options} {scheme}");
    }
}
