//! Synthetic traffic on a machine, for profilers: nothing but the simulator runs.
//!
//! `cargo run --release --example traffic -- MACHINE.json EXPERIMENT.json SCHEME`

use std::time::Instant;

use fencepost_kernel::stats::StatsNode;
use fencepost_sim::config::Machine;
use fencepost_sim::traffic_experiment::Experiment;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, experiment, scheme] = &arguments[..] else {
        return Err("usage: traffic MACHINE.json EXPERIMENT.json SCHEME".into());
    };
    let machine = Machine::from_json(machine, &std::fs::read_to_string(machine)?)?;
    let experiment: Experiment = serde_json::from_str(&std::fs::read_to_string(experiment)?)?;
    let start = Instant::now();
    drop(experiment.system(&machine, scheme.parse()?)?);
    let building = start.elapsed();
    let start = Instant::now();
    let measurement = experiment.run(&machine, scheme.parse()?)?;
    let seconds = (start.elapsed() - building).as_secs_f64();
    let messages =
        |stats_path: &str| measurement.stats.get(&format!("{stats_path}.messages")).map_or(0, StatsNode::total);
    let messages: u64 = measurement.links.iter().map(|link| messages(&link.stats_path)).sum();
    let (rate, events) = (messages as f64 / seconds / 1e6, measurement.events as f64 / messages as f64);
    println!("{messages} messages, {events:.2} events each, in {seconds:.3} s: {rate:.3} million a second");
    Ok(())
}
