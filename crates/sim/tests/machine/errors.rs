//! Every mistake is reported with its file, line and key, and with what would be right.

use super::{changed, resolve};

/// What is said of `pcs-table1` with these changes, whose first line is line 3.
fn errors(changes: &str) -> String {
    changed(changes).expect_err("something is wrong with it")
}

#[test]
fn unknown_keys_are_answered_with_the_nearest_one() {
    let cases = [
        ("[core]\nrob_size = 224", "mine.toml:4: core.rob_size: there is no such key; the nearest is `rob_entries`"),
        (
            "[switch.persist_buffer]\nentrys = 32",
            "mine.toml:4: switch.persist_buffer.entrys: there is no such key; the nearest is `entries`",
        ),
        ("[swich]\npipeline_stage_ns = 1.0", "mine.toml:3: swich: there is no such key; the nearest is `switch`"),
        (
            "[persist]\nvoltage = 1",
            "mine.toml:4: persist.voltage: there is no such key; the keys here are `aarch64_flush`, `fence`, `flush`",
        ),
    ];
    for (changes, expected) in cases {
        assert_eq!(errors(changes), expected);
    }
}

#[test]
fn the_keys_of_a_table_are_listed_once() {
    assert_eq!(
        errors("[persist]\nvoltage = 1\nzebra = 1\nampere = 2"),
        "mine.toml:4: persist.voltage: there is no such key; the keys here are `aarch64_flush`, `fence`, `flush`\n\
         mine.toml:5: persist.zebra: there is no such key\n\
         mine.toml:6: persist.ampere: there is no such key"
    );
}

#[test]
fn a_key_in_the_wrong_table_is_sent_to_its_own() {
    assert_eq!(
        errors("[switch]\ndrain_preset = 0.5"),
        "mine.toml:4: switch.drain_preset: there is no such key here; there is `switch.persist_buffer.drain_preset`"
    );
    assert_eq!(
        errors("[link]\nack_at = \"media\""),
        "mine.toml:4: link.ack_at: there is no such key here; there is `pm.ack_at`"
    );
}

#[test]
fn wrong_types_say_what_is_expected() {
    let cases = [
        ("[core]\nrob_entries = \"many\"", "mine.toml:4: core.rob_entries: \"many\" is not an integer from 16 to 4096"),
        ("[core]\nrob_entries = 192.5", "mine.toml:4: core.rob_entries: 192.5 is not an integer from 16 to 4096"),
        ("[tlb]\nenabled = 1", "mine.toml:4: tlb.enabled: 1 is not true or false"),
        (
            "[link]\nlatency_ns = [1.0]",
            "mine.toml:4: link.latency_ns: a list cannot stand here: a number from 0 to 100000 is expected",
        ),
        (
            "[pm]\nread_ns = 1979-05-27",
            "mine.toml:4: pm.read_ns: 1979-05-27 cannot stand here: a number from 0.001 to 1000000 is expected",
        ),
        ("pm = 3", "mine.toml:3: pm: 3 is not a table"),
        ("[fabric]\nedges = \"host0 -> pm0\"", "mine.toml:4: fabric.edges: \"host0 -> pm0\" is not a list of texts"),
    ];
    for (changes, expected) in cases {
        assert_eq!(errors(changes), expected);
    }
}

#[test]
fn numbers_out_of_range_say_the_range() {
    let cases = [
        ("[core]\nrob_entries = 8", "mine.toml:4: core.rob_entries: 8 is out of range: 16 to 4096 is allowed"),
        ("[core]\nclock_ghz = 40", "mine.toml:4: core.clock_ghz: 40 is out of range: 0.1 to 10 is allowed"),
        ("[link]\nlatency_ns = -1.0", "mine.toml:4: link.latency_ns: -1 is out of range: 0 to 100000 is allowed"),
        ("[link]\nlatency_ns = nan", "mine.toml:4: link.latency_ns: NaN is out of range: 0 to 100000 is allowed"),
        ("[link]\nlatency_ns = 1e308", "mine.toml:4: link.latency_ns: 1e308 is out of range: 0 to 100000 is allowed"),
        ("[core]\nrob_entries = 1e308", "mine.toml:4: core.rob_entries: 1e308 is not an integer from 16 to 4096"),
        ("[pm]\nread_ns = inf", "mine.toml:4: pm.read_ns: inf is out of range: 0.001 to 1000000 is allowed"),
        (
            "[pm]\nbanks = 99999999999999999999",
            "mine.toml:4: pm.banks: 99999999999999999999 is out of range: 1 to 1024 is allowed",
        ),
    ];
    for (changes, expected) in cases {
        assert_eq!(errors(changes), expected);
    }
}

#[test]
fn words_are_answered_with_those_there_are() {
    assert_eq!(
        errors("[pm]\nack_at = \"que\""),
        "mine.toml:4: pm.ack_at: \"que\" is not \"queue\" or \"media\"; the nearest is \"queue\""
    );
    assert_eq!(
        errors("[persist]\nflush = \"wbinvd\""),
        "mine.toml:4: persist.flush: \"wbinvd\" is not \"clflush\" or \"clflushopt\" or \"clwb\""
    );
}

#[test]
fn missing_keys_and_tables_are_named_where_they_belong() {
    assert_eq!(
        resolve(
            "description = \"alone\"\n\n[host_bridge]\n\n[fabric]\nhosts = [\"host0\"]\nswitches = []\ndevices = []\n",
            &[]
        )
        .unwrap_err(),
        "mine.toml:1: the table [branch_predictor] is missing: Their branch predictors\n\
         mine.toml:1: the table [cache] is missing: The caches of each host by level\n\
         mine.toml:1: the table [core] is missing: The cores of each host\n\
         mine.toml:1: the table [dram] is missing: The DRAM of each host\n\
         mine.toml:1: the table [simulation] is missing: How the simulation itself is run\n\
         mine.toml:1: the table [tlb] is missing: Their translation look-aside buffers\n\
         mine.toml:3: host_bridge: the key `latency_ns` is missing (a number from 0 to 10000): One way through the on-chip fabric, from the \
         last-level cache to the port that a request leaves by, and again as much for the answer on its way back, in ns\n\
         mine.toml:5: fabric: the key `edges` is missing (a list of texts): CXL links, each written `\"FROM -> TO\"` in the direction from \
         hosts to devices"
    );
    assert_eq!(
        resolve("extends = \"pcs-table1\"", &[]).unwrap_err(),
        "mine.toml:1: the key `description` is missing: what this machine is, in one line"
    );
}

/// A level of cache like `pcs-table1`'s l2, under another name.
fn level_like_l2(name: &str) -> String {
    let base = super::shipped("pcs-table1").expect("it is shipped").text;
    let from_header = base.split_once("[cache.l2]\n").expect("it has one").1;
    let keys = from_header.split("\n\n").next().expect("a table ends");
    format!("[cache.{name}]\n{keys}\n")
}

#[test]
fn a_mistyped_key_is_not_reported_as_missing_besides() {
    assert_eq!(
        errors(&level_like_l2("l3").replace("size_kib", "size_kb")),
        "mine.toml:4: cache.l3.size_kb: there is no such key; the nearest is `size_kib`"
    );
}

#[test]
fn impossible_combinations_are_refused() {
    let cases = [
        ("[cache.l2]\nways = 7", "mine.toml:4: cache.l2.ways: 4096 lines cannot be divided into sets of 7"),
        (
            "[cache.l1d]\nsize_kib = 24",
            "mine.toml:4: cache.l1d.size_kib: 384 lines in sets of 8 are 48 sets, not a power of two",
        ),
        ("[tlb]\nentries = 62", "mine.toml:4: tlb.entries: 62 entries cannot be divided into sets of 4"),
        (
            "[cache.l1d]\nsize_kib = 1048576",
            "mine.toml:4: cache.l1d.size_kib: 1048576 is out of range: a first level has at most 2048 KiB",
        ),
        (
            "[cache.l1d]\nshared = true",
            "mine.toml:4: cache.l1d.shared: true cannot be: first levels are private to their core",
        ),
        (
            "[cache.l2]\ninclusive = false",
            "mine.toml:4: cache.l2.inclusive: false cannot be: it would hold what leaves the level above, for which it is shared and all levels above are private",
        ),
        (
            "[cache.l2]\nshared = false",
            "mine.toml:4: cache.l2.shared: false cannot be: with several cores (core.count) the last level is shared, since coherence is kept there",
        ),
        (
            "[switch.persist_buffer]\ndrain_preset = 0.9",
            "mine.toml:4: switch.persist_buffer.drain_preset: 0.9 is more than drain_threshold (0.8)",
        ),
        (
            "[pm]\nwrite_high_watermark = 200",
            "mine.toml:4: pm.write_high_watermark: 200 is out of range: at most 128 is allowed",
        ),
        (
            "[pm]\ncapacity_mib = 1000",
            "mine.toml:4: pm.capacity_mib: 1000 is not a multiple of 256, which address decoders need",
        ),
        (
            "[dram]\ncapacity_mib = 2097152",
            "mine.toml:4: dram.capacity_mib: 2097152 is out of range: 256 to 1048576 is allowed; above that address PM begins",
        ),
        ("[dram]\nchannel_bits = 32", "mine.toml:4: dram.channel_bits: 32 bits in bursts of 8 are 32 bytes, not 64"),
    ];
    for (changes, expected) in cases {
        assert_eq!(errors(changes), expected);
    }
}

#[test]
fn a_value_that_another_layer_made_wrong_says_which_key_did() {
    let base = super::shipped("pcs-table1").expect("it is shipped").text;
    let line = 1 + base.lines().position(|line| line.starts_with("write_high_watermark = 108")).expect("it is there");
    assert_eq!(
        set_errors(&["pm.write_queue_entries=64"]),
        format!(
            "machines/pcs-table1.toml:{line}: pm.write_high_watermark: 108 is out of range: at most 64 is allowed, now that \
             `write_queue_entries` is 64"
        )
    );
}

#[test]
fn cache_levels_follow_each_other() {
    assert!(changed(&level_like_l2("l3")).is_ok());
    assert_eq!(
        errors(&level_like_l2("l4")),
        "mine.toml:3: cache.l4: there is no l3 between this level and those above"
    );
    assert_eq!(
        errors(&level_like_l2("llc")),
        "mine.toml:3: cache.llc: \"llc\" is no level; levels are l1i, l1d, then l2, l3 and so on up to l9"
    );
    let private = level_like_l2("l3").replace("shared = true", "shared = false");
    let line = 3 + private.lines().position(|line| line.starts_with("shared")).expect("it is there");
    assert_eq!(
        errors(&private),
        format!(
            "mine.toml:{line}: cache.l3.shared: false cannot be: l2 above it is shared\n\
             mine.toml:{line}: cache.l3.shared: false cannot be: with several cores (core.count) the last level is shared, since coherence \
             is kept there"
        )
    );
}

#[test]
fn a_last_level_is_inclusive_or_has_a_snoop_filter() {
    let private = "[cache.l2]\nshared = false\n\n";
    let last = |keys: &str| level_like_l2("l3").replace("inclusive = true", keys);
    let with_filter = |entries: u32| {
        format!("{}\n[cache.l3.snoop_filter]\nentries = {entries}\nways = 12\n{private}", last("inclusive = false"))
    };
    assert!(changed(&with_filter(12 * 5)).is_ok(), "sets of what all share need not be a power of two");
    assert!(errors(&with_filter(100)).ends_with("100 lines cannot be divided into sets of 12"));
    let without = errors(&format!("{}\n{private}", last("inclusive = false")));
    assert!(
        without.ends_with("false cannot be without a snoop_filter: the coherence directory lies in the last level")
    );
    let inclusive = with_filter(120).replace("inclusive = false", "inclusive = true");
    assert!(errors(&inclusive).ends_with("only a last level that is not inclusive has a snoop filter"));
}

#[test]
fn only_first_level_data_caches_and_private_levels_above_the_last_prefetch() {
    for (level, may) in [("l1i", false), ("l1d", true), ("l2", false)] {
        let text = format!("[cache.{level}]\nprefetcher = \"stream\"\n");
        assert_eq!(changed(&text).is_ok(), may, "{level}");
    }
    let private = level_like_l2("l3") + "\n[cache.l2]\nshared = false\nprefetcher = \"next_line\"\n";
    assert!(changed(&private).is_ok());
}

#[test]
fn all_errors_of_a_file_are_reported_together_in_the_order_of_lines() {
    let text = "[core]\nrob_entries = 8\nrob_size = 1\n\n[pm]\nack_at = 3\n\n[cache.l2]\nways = 7\n\n[fabric]\n\
                edges = [\"host0 -> switch0\", \"switch0 -> switch0\", \"switch0 -> pm0\"]\n";
    assert_eq!(
        errors(text),
        "mine.toml:4: core.rob_entries: 8 is out of range: 16 to 4096 is allowed\n\
         mine.toml:5: core.rob_size: there is no such key; the nearest is `rob_entries`\n\
         mine.toml:8: pm.ack_at: 3 is not \"queue\" or \"media\"\n\
         mine.toml:11: cache.l2.ways: 4096 lines cannot be divided into sets of 7\n\
         mine.toml:14: fabric.edges: `switch0 -> switch0` cannot be: nothing is connected to itself"
    );
}

#[test]
fn what_is_not_toml_says_so_with_its_line() {
    assert_eq!(
        errors("[core]\nrob_entries = \n\n[core]\n"),
        "mine.toml:4: this is not TOML: string values must be quoted, expected literal string\n\
         mine.toml:6: this is not TOML: duplicate key"
    );
}

#[test]
fn what_a_machine_extends_must_exist_and_not_extend_it() {
    assert_eq!(
        resolve("extends = \"pcs-tabel1\"\ndescription = \"a test\"", &[]).unwrap_err(),
        "mine.toml:1: extends: there is no machine \"pcs-tabel1\", neither pcs-tabel1.toml beside this file nor among those that ship"
    );
    for path in ["pcs-table1.toml", "./pcs-table1.toml"] {
        assert_eq!(
            resolve(&format!("extends = \"{path}\""), &[]).unwrap_err(),
            format!("mine.toml:1: extends: \"{path}\" is not the name of a machine; type: extends = \"pcs-table1\"")
        );
    }
    assert_eq!(resolve("extends = 3", &[]).unwrap_err(), "mine.toml:1: extends: 3 is not the name of a machine");
    let source = |name: &str, extends: &str| fencepost_sim::config::SourceText {
        name: format!("{name}.toml"),
        text: format!("# {name}\nextends = \"{extends}\"\n"),
    };
    let lookup = |name: &str| match name {
        "one" => Some(source("one", "two")),
        "two" => Some(source("two", "one")),
        _ => None,
    };
    let errors = fencepost_sim::config::Machine::resolve(source("one", "two"), &lookup, &[]).unwrap_err();
    assert_eq!(errors.to_string(), "two.toml:2: extends: machines extend each other in a loop: one.toml → two → one");
}

#[test]
fn of_a_file_that_is_wrong_in_every_line_only_the_first_mistakes_are_shown() {
    let keys: String = (0..200_000).map(|number| format!("k{number:06} = 1\n")).collect();
    let errors = resolve(&format!("extends = \"pcs-table1\"\ndescription = \"a test\"\n{keys}"), &[]).unwrap_err();
    let lines: Vec<&str> = errors.lines().collect();
    assert_eq!(lines.len(), 101);
    assert!(lines[0].starts_with("mine.toml:3: k000000: there is no such key"), "{}", lines[0]);
    assert!(lines[99].starts_with("mine.toml:102: k000099: there is no such key"), "{}", lines[99]);
    assert_eq!(lines[100], "199900 more mistakes are not shown");
}

#[test]
fn a_long_file_without_mistakes_is_read_like_a_short_one() {
    let hosts: String =
        (0..30_000).map(|number| format!("# {number}\n\"a{number}\" = {{ latency_ns = 1 }}\n")).collect();
    let errors = resolve(&format!("extends = \"pcs-table1\"\ndescription = \"a test\"\n[fabric.link]\n{hosts}"), &[]);
    let errors = errors.unwrap_err();
    assert!(errors.starts_with("mine.toml:5: fabric.link.a0: \"a0\" is not in fabric.edges"), "{}", &errors[..100]);
    let comments = "# nothing\n".repeat(300_000);
    assert!(resolve(&format!("extends = \"pcs-table1\"\ndescription = \"a test\"\n{comments}"), &[]).is_ok());
}

#[test]
fn a_fabric_has_no_more_names_and_edges_than_can_be_told_apart() {
    let list = |name: &str, number: usize| (0..number).map(|index| format!("\"{name}{index}\",\n")).collect::<String>();
    let error = changed(&format!("[fabric]\nhosts = [\n{}]", list("h", 100_000))).unwrap_err();
    assert_eq!(error, "mine.toml:4: fabric.hosts: 100002 hosts, switches and devices in all: at most 4096 can be");
    let edges = "\"host0 -> pm0\",\n".repeat(50_000);
    let error = changed(&format!("[fabric]\nedges = [\n{edges}]")).unwrap_err();
    assert_eq!(error, "mine.toml:4: fabric.edges: 50000 edges: at most 16384 can be");
}

#[test]
fn an_error_in_a_base_names_the_base() {
    let base =
        super::shipped("pcs-table1").expect("it is shipped").text.replace("rob_entries = 192", "rob_entries = 9");
    let line = 1 + base.lines().position(|line| line.starts_with("rob_entries")).expect("it is there");
    let lookup = |_: &str| Some(fencepost_sim::config::SourceText { name: "base.toml".to_owned(), text: base.clone() });
    let text = "extends = \"base\"\ndescription = \"a test\"\n[pm]\nbanks = 0\n".to_owned();
    let source = fencepost_sim::config::SourceText { name: "mine.toml".to_owned(), text };
    let errors = fencepost_sim::config::Machine::resolve(source, &lookup, &[]).unwrap_err().to_string();
    let expected = format!(
        "base.toml:{line}: core.rob_entries: 9 is out of range: 16 to 4096 is allowed\n\
         mine.toml:4: pm.banks: 0 is out of range: 1 to 1024 is allowed"
    );
    assert_eq!(errors, expected);
}

/// What is said of `pcs-table1` with these `--set`.
fn set_errors(sets: &[&str]) -> String {
    resolve("extends = \"pcs-table1\"\ndescription = \"a test\"", sets).expect_err("something is wrong with it")
}

#[test]
fn any_key_can_be_set_and_the_schema_says_what_its_value_is() {
    let sets = [
        "switch.persist_buffer.entries=32",
        "pm.ack_at=media",
        "link.latency_ns = 30",
        "tlb.enabled=false",
        "cache.l2.size_kib=512",
        "fabric.link.\"host0 -> switch0\".latency_ns=40",
        "fabric.switch.switch0.persist_buffer.entries=64",
        "description=set, without quotes",
    ];
    let machine = resolve("extends = \"pcs-table1\"\ndescription = \"a test\"", &sets)
        .unwrap_or_else(|errors| panic!("{errors}"));
    let json = machine.to_json();
    assert_eq!(json["switch"]["persist_buffer"]["entries"], 32);
    assert_eq!(json["pm"]["ack_at"], "media");
    assert_eq!(json["link"]["latency_ns"], 30.0);
    assert_eq!(json["tlb"]["enabled"], false);
    assert_eq!(json["cache"]["l2"]["size_kib"], 512);
    assert_eq!(json["fabric"]["link"]["host0 -> switch0"]["latency_ns"], 40);
    assert_eq!(machine.description, "set, without quotes");
    let topology = machine.topology();
    use fencepost_sim::config::topology::{EdgeId, SwitchId};
    assert_eq!(topology.link_config(EdgeId(0)).map(|link| link.latency_ns), Some(40.0));
    assert_eq!(topology.link_config(EdgeId(1)).map(|link| link.latency_ns), Some(30.0));
    let buffer = topology.switch_config(SwitchId(0)).persist_buffer.as_ref().expect("it has one");
    assert_eq!(buffer.entries, 64);
}

#[test]
fn the_last_assignment_wins() {
    let machine = resolve("extends = \"pcs-table1\"\ndescription = \"a test\"", &["pm.banks=4", "pm.banks=8"]);
    assert_eq!(machine.map(|machine| machine.to_json()["pm"]["banks"].clone()), Ok(8.into()));
}

#[test]
fn a_set_that_leads_nowhere_is_answered_with_the_nearest_path() {
    let cases = [
        ("switch.entries=32", "switch.entries: there is no such key; the nearest is `switch.persist_buffer.entries`"),
        ("core.rob=224", "core.rob: there is no such key; the nearest is `core.rob_entries`"),
        (
            "swich.pipeline_stage_ns=1",
            "swich.pipeline_stage_ns: there is no such key; the nearest is `switch.pipeline_stage_ns`",
        ),
        ("cache.l2.size=512", "cache.l2.size: there is no such key; the nearest is `cache.l2.size_kib`"),
        ("pm.ack_at=quue", "pm.ack_at: \"quue\" is not \"queue\" or \"media\"; the nearest is \"queue\""),
        ("pm.banks=many", "pm.banks: \"many\" is not an integer from 1 to 1024"),
        ("pm.banks=0", "pm.banks: 0 is out of range: 1 to 1024 is allowed"),
        ("pm.banks", "this is not PATH=VALUE, for example core.rob_entries=224"),
        ("pm..banks=2", "`pm..banks` is not a dotted path of keys"),
        ("extends=pcs-table1-0sw", "extends: only a machine file can extend a machine"),
        ("cache.l2.ways=7", "cache.l2.ways: 4096 lines cannot be divided into sets of 7"),
    ];
    for (set, expected) in cases {
        assert_eq!(set_errors(&[set]), format!("--set {set}: {expected}"));
    }
}
