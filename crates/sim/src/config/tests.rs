//! What the schema promises, the structs keep.

use serde_json::{Value as Json, json};

use super::schema::{KeySchema, Shape};
use super::{Machine, SourceText};

fn table_one() -> Machine {
    let text = SourceText {
        name: "pcs-table1".to_owned(),
        text: include_str!("../../../../machines/pcs-table1.toml").to_owned(),
    };
    Machine::resolve(text, &|_| None, &[]).unwrap_or_else(|errors| panic!("{errors}"))
}

/// Calls `act` with the JSON pointer and shape of every value of `machine`.
fn for_each_key(schema: KeySchema, node: &Json, pointer: &str, act: &mut impl FnMut(&str, Shape)) {
    match schema.shape() {
        Shape::Table { .. } => {
            for (key, entry) in node.as_object().expect("it has been checked") {
                let entry_schema = schema.entry(key).unwrap_or_else(|| panic!("{key} has been checked"));
                for_each_key(entry_schema, entry, &format!("{pointer}/{key}"), act);
            }
        }
        shape => act(pointer, shape),
    }
}

/// Whether the structs alone, without the schema, take this machine.
fn is_valid(machine: &Json) -> bool {
    fn table<T: serde::de::DeserializeOwned + garde::Validate<Context = ()>>(table: &Json) -> bool {
        serde_json::from_value::<T>(table.clone()).is_ok_and(|config| config.validate().is_ok())
    }
    let caches = machine["cache"].as_object().expect("it has caches");
    table::<crate::core::config::CoreConfig>(&machine["core"])
        && table::<crate::core::config::BranchPredictorConfig>(&machine["branch_predictor"])
        && table::<crate::core::config::TlbConfig>(&machine["tlb"])
        && table::<crate::core::config::SimulationConfig>(&machine["simulation"])
        && caches.values().all(table::<crate::cache::config::CacheConfig>)
        && table::<crate::host_bridge::HostBridgeConfig>(&machine["host_bridge"])
        && table::<crate::device::DramConfig>(&machine["dram"])
        && table::<crate::device::PmConfig>(&machine["pm"])
        && table::<fencepost_kernel::link::LinkConfig>(&machine["link"])
        && table::<crate::switch::SwitchConfig>(&machine["switch"])
        && table::<super::FabricConfig>(&machine["fabric"])
        && table::<crate::transport::TransportConfig>(&machine["transport"])
}

#[test]
fn the_structs_refuse_what_the_schema_says_is_out_of_range() {
    let machine = table_one().to_json();
    assert!(is_valid(&machine));
    let mut numbers = 0;
    for_each_key(KeySchema::root(), &machine, "", &mut |pointer, shape| {
        let outside = match shape {
            Shape::Integer { minimum, maximum } => {
                [json!((minimum - 1) as i64), json!(i64::try_from(maximum + 1).expect("ranges of integers fit"))]
            }
            Shape::Number { minimum, maximum } => [json!(minimum - 1.0), json!(maximum * 1.01 + 1.0)],
            _ => return,
        };
        numbers += 1;
        for value in outside {
            let mut changed = machine.clone();
            *changed.pointer_mut(pointer).expect("it was just visited") = value.clone();
            assert!(!is_valid(&changed), "{pointer} may be {value}");
        }
    });
    assert!(numbers > 100, "only {numbers} numbers were tried");
}

#[test]
fn every_key_has_a_description_and_every_number_a_range() {
    let machine = table_one().to_json();
    let root = KeySchema::root();
    for_each_key(root, &machine, "", &mut |pointer, shape| {
        let steps = pointer.split('/').skip(1);
        let schema = steps.fold(root, |schema, step| schema.entry(step).expect("it was just visited"));
        assert!(schema.description().ends_with(['.', ')']), "{pointer}: {:?}", schema.description());
        match shape {
            Shape::Integer { minimum, maximum } => assert!(minimum >= 0 && maximum < i128::from(i64::MAX), "{pointer}"),
            Shape::Number { minimum, maximum } => assert!(minimum >= 0.0 && maximum < 1e12, "{pointer}"),
            _ => {}
        }
    });
}

#[test]
fn a_machine_comes_back_from_json_unchanged() {
    let machine = table_one();
    let json = machine.to_json().to_string();
    let again = Machine::from_json("result.json", &json).unwrap_or_else(|errors| panic!("{errors}"));
    assert_eq!(machine, again);
    assert_eq!(again.to_json().to_string(), json);
}

#[test]
fn what_is_wrong_with_json_has_no_line_but_a_key() {
    let mut json = table_one().to_json();
    json["core"]["rob_entries"] = json!(8);
    json["pm"]["reed_ns"] = json!(100);
    let errors = Machine::from_json("result.json", &json.to_string()).expect_err("two keys are wrong");
    assert_eq!(
        errors.to_string(),
        "result.json: core.rob_entries: 8 is out of range: 16 to 4096 is allowed\n\
         result.json: pm.reed_ns: there is no such key; the nearest is `read_ns`"
    );
}
