//! Hosts with other numbers of DRAM nodes than one: built from the topology alone, and reached through the bridge.

use super::{Stepped, System};
use crate::address_space::{Placement, Rule};
use crate::config::topology::HostId;
use crate::config::{Machine, SourceText};
use crate::core::persist::PersistMode;
use crate::error::SimulationError;
use crate::host::ThreadPlacement;
use crate::host::bench::assembler::{RAX, RBX, load};
use crate::host::bench::{DRAM, Script};
use crate::replay::simulation::{HostProgram, Options, Program, Progress, Simulation};
use crate::switch::Scheme;
use crate::traffic::{Pattern, SharedBy, StreamConfig};
use fencepost_kernel::stats::StatsNode;
use fencepost_record::MemoryMap;

const READS: u64 = 500;

fn machine(drams: u64) -> Machine {
    let text = include_str!("../../../../machines/pcs-table1.toml").to_owned();
    let source = SourceText { name: "pcs-table1".to_owned(), text };
    Machine::resolve(source, &|_| None, &[]).unwrap_or_else(|errors| panic!("{errors}")).with_drams(drams)
}

fn reads_of(memory: &str) -> StreamConfig {
    StreamConfig {
        memory: memory.to_owned(),
        pattern: Pattern::Random,
        footprint_bytes: 1 << 20,
        request_bytes: 64,
        reads: 1,
        writes: 0,
        outstanding: 4,
        lines_outstanding: None,
        inject_delay_ns: 0.0,
        inject_jitter_ns: 0.0,
        dependent: false,
        shared_by: SharedBy::Stream,
        caches: false,
        modifies: false,
        weight: 1.0,
        begin_ns: 0.0,
        end_ns: None,
        group: None,
        counted_part: 1.0,
        dies: false,
        requests: Some(READS),
    }
}

fn traffic(drams: u64, memories: &[&str]) -> Result<StatsNode, String> {
    let streams: Vec<_> = memories.iter().map(|memory| reads_of(memory)).collect();
    let mut system = System::with_traffic(&machine(drams), Scheme::Nopb, &[&streams], false, 1)?;
    system.start();
    while system.step() != Stepped::Nowhere {}
    assert!(system.is_finished() && system.is_idle());
    Ok(system.stats())
}

/// Replays loads of so many lines of a page each, all of which `rule` places.
fn replay(drams: u64, rule: &str, pages: u64) -> Result<StatsNode, SimulationError> {
    let machine = machine(drams);
    let mut script = Script::default();
    (0..pages).for_each(|page| script.run(0, &[load(RAX, RBX, DRAM + (page << 12) + page % 64 * 64)]));
    let rules: Vec<Rule> = vec![rule.parse().expect("it is a rule")];
    let (placement, _) = Placement::resolve(&rules, &MemoryMap::default(), &machine.nodes_of(HostId(0))).unwrap();
    let program = Program::new(script.record()).expect("it can be decoded");
    let program = HostProgram { program, placement, thread_limits: Vec::new() };
    let options = Options {
        threads: ThreadPlacement::default(),
        persist: PersistMode::Program,
        pm_writes_limit: None,
        instructions_limit: None,
        seed: 0,
        sample: None,
        transport: crate::transport::Transport::None,
    };
    let outcome = Simulation::new(&machine, Scheme::Nopb, &[program], options)?.run(&Progress::default())?;
    Ok(outcome.stats)
}

#[test]
fn a_host_reads_from_both_of_its_drams_through_its_bridge() {
    let stats = traffic(2, &["dram0", "dram1"]).unwrap();
    for dram in ["dram0", "dram1"] {
        assert_eq!(stats.counter(&format!("host0_{dram}.reads")), READS);
        assert_eq!(stats.counter(&format!("host0_bridge.nodes.{dram}.reads")), READS);
    }
    let both = traffic(2, &["dram"]).unwrap();
    let [first, second] = ["dram0", "dram1"].map(|dram| both.counter(&format!("host0_{dram}.reads")));
    assert_eq!(first + second, READS);
    assert!(first.abs_diff(second) < READS / 5, "{first} and {second}: the footprint lies in both in equal parts");
}

#[test]
fn pages_placed_in_a_second_dram_are_read_there_and_their_page_tables_in_the_first() {
    let stats = replay(2, "all=dram1", 100).unwrap();
    let [walks, code, data] = ["page_walk", "instruction_fetch", "demand_read"]
        .map(|cause| stats.counter(&format!("host0_bridge.requests.mem_rd.{cause}")));
    assert!(walks > 10 && data >= 100, "{walks} walks, {data} reads");
    assert_eq!(stats.counter("host0_dram0.reads"), walks);
    assert_eq!(stats.counter("host0_dram1.reads"), code + data);
    assert_eq!(stats.counter("host0.pages.by_node.dram0"), 0);
}

#[test]
fn a_host_without_dram_reads_pm_and_runs_no_program_that_needs_page_tables() {
    let stats = traffic(0, &["pm"]).unwrap();
    assert_eq!(stats.counter("pm0.reads"), READS);
    assert_eq!(traffic(0, &["dram"]).unwrap_err(), "host0 has no DRAM of its own");
    let error = replay(0, "all=pm0", 1).unwrap_err().to_string();
    assert!(error.contains("host0 has no DRAM of its own, where page tables lie"), "{error}");
}

#[test]
fn a_dram_that_does_not_fit_below_pm_is_refused() {
    // 1024 DRAMs leave 256 MiB for each but the first.
    let error = traffic(1025, &["pm"]).unwrap_err();
    assert_eq!(error, "dram1 of host0 is larger than its part of the address space");
}
