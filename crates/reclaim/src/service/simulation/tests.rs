use rustc_hash::FxHashMap;

use super::task::KSWAPD;
use super::*;
use crate::linux::memory::Limit;
use crate::linux::preset::LINUX_6_2;
use crate::page::{CLASSES, Class, Facts, LINES};
use crate::recorded::{Operation, Touch};
use crate::service::caches::Size;
use crate::service::costs::{Costs, Step};

const PAGES: u32 = 500;

fn costs(device_ns: f64) -> Costs {
    let step = Step { core_ns: 1000.0, device_ns, link_bytes: 100 };
    let by_class: FxHashMap<Class, Step> = CLASSES.iter().map(|&class| (class, step)).collect();
    Costs {
        compress: by_class.clone(),
        decompress: by_class,
        hash: step,
        compare_line: step,
        compare_page: step,
        copy: step,
        further_job_ns: 10.0,
        fault_ns: 100.0,
        reclaim_page_ns: 200.0,
        switch_ns: 0.0,
        swap_read_ns: 50_000.0,
        swap_write_ns: 100.0,
        scratch_lines: 10,
        on_core: device_ns == 0.0,
    }
}

struct World {
    costs: Costs,
    operations: Vec<Operation>,
    sequence: Vec<Vec<u32>>,
    memory_pages: u32,
    has_zswap: bool,
    pool_in_limit: bool,
    has_ksm: bool,
    shares_core: bool,
    arrivals_per_second: Option<f64>,
}

impl World {
    /// Operation `n` writes to page `n` and executes 1,000 instructions.
    fn new(device_ns: f64) -> Self {
        let operation = |page| Operation {
            instructions: 1000,
            touches: vec![Touch::new(page * LINES, true)],
            ..Operation::default()
        };
        Self {
            costs: costs(device_ns),
            operations: (0..PAGES).map(operation).collect(),
            sequence: (0..PAGES).map(|number| vec![number]).collect(),
            memory_pages: 10 * PAGES,
            has_zswap: true,
            pool_in_limit: device_ns == 0.0,
            has_ksm: false,
            shares_core: true,
            arrivals_per_second: None,
        }
    }

    fn run(&self) -> (Outcome, Memory) {
        let limit = Limit {
            pages: self.memory_pages,
            has_zswap: self.has_zswap,
            keeps_whole: false,
            pool_in_limit: self.pool_in_limit,
        };
        let facts = Facts { same_filled: None, compressed: 1000, class: Class::Quarter, checksum: 0 };
        let addresses = (0..u64::from(PAGES)).map(|page| 10 * page).collect();
        let memory = Memory::new(&LINUX_6_2, limit, addresses, vec![Some(facts); PAGES as usize], |_| true);
        let contents: Vec<_> =
            (0..PAGES).map(|page| Box::new(std::array::from_fn(|place| (page >> (place % 2 * 8)) as u8))).collect();
        let contents: Vec<_> = contents.iter().map(|bytes| Some(&**bytes)).collect();
        let setting = Setting {
            preset: &LINUX_6_2,
            costs: &self.costs,
            operations: &self.operations,
            sequence: &self.sequence,
            is_anonymous: &[true; PAGES as usize],
            contents: &contents,
            instruction_ns: 0.5,
            miss_ns: 80.0,
            arrivals_per_second: self.arrivals_per_second,
            operations_counted: (100, 3100),
            has_ksm: self.has_ksm,
            shares_core: self.shares_core,
            pollutes: true,
            seed: 1,
        };
        let size = Size { size_kib: 1, ways: 4 };
        Simulation::new(setting, memory, |cores| Caches::new(cores, size, size)).run()
    }
}

#[test]
fn an_operation_takes_its_instructions_and_its_misses() {
    let (outcome, memory) = World::new(0.0).run();
    // 500 lines in turn never hit in 32.
    assert!(outcome.latencies.iter().all(|&(latency, stack)| latency == 580 && stack[Cause::Memory as usize] == 580));
    assert_eq!((outcome.latencies.len(), outcome.elapsed), (3000, 3000 * 580));
    // The next one has begun.
    assert_eq!((outcome.last_level, outcome.busy), ((3001, 3001), [3000 * 580, 0, 0]));
    assert_eq!(memory.counts, Default::default());
}

#[test]
fn a_fault_waits_for_hand_over_and_device() {
    let mut world = World::new(3000.0);
    world.memory_pages = 400;
    let (outcome, memory) = world.run();
    let loaded = |stack: &Stack| stack[Cause::Decompression as usize] > 0;
    let faulting = outcome.latencies.iter().find(|(_, stack)| loaded(stack)).expect("some fault").1;
    assert_eq!(faulting[Cause::Fault as usize], 100);
    assert!(faulting[Cause::Decompression as usize] >= 4000, "{faulting:?}");
    assert!(memory.counts.zswap_loads > 0 && outcome.link_bytes > 0);
}

#[test]
fn what_goes_to_the_swap_device_is_waited_for_without_the_core() {
    let mut world = World::new(0.0);
    (world.memory_pages, world.has_zswap) = (400, false);
    let (outcome, memory) = world.run();
    assert!(memory.counts.swap_loads > 0);
    assert!(outcome.latencies.iter().any(|(_, stack)| stack[Cause::Swap as usize] == 50_000));
    assert!(outcome.busy[0] < outcome.elapsed / 2, "the core is free meanwhile");
}

#[test]
fn on_cores_of_their_own_nobody_takes_the_servers() {
    let mut world = World::new(0.0);
    (world.memory_pages, world.has_ksm, world.arrivals_per_second) = (460, true, Some(1e5));
    world.pool_in_limit = false; // So that all that does not fit finds room there.
    let waits = |(outcome, _): &(Outcome, Memory)| -> Nanoseconds {
        outcome.latencies.iter().map(|(_, stack)| stack[Cause::Core as usize]).sum()
    };
    let shared = world.run();
    world.shares_core = false;
    let apart = world.run();
    assert!(waits(&shared) > 0);
    assert_eq!(waits(&apart), 0);
    assert!(apart.0.busy[KSWAPD] > 0 && apart.0.busy[KSMD] > 0);
}

#[test]
fn a_server_that_slept_is_switched_to_first() {
    let mut world = World::new(0.0);
    // Operations of 580 ns: nearly each finds the server asleep.
    world.arrivals_per_second = Some(1000.0);
    let of = |(outcome, _): (Outcome, Memory)| outcome.latencies[1500];
    assert_eq!(of(world.run()).0, 580);
    world.costs.switch_ns = 1000.0;
    let (latency, stack) = of(world.run());
    assert_eq!((latency, stack[Cause::Queue as usize], stack[Cause::Switch as usize]), (1580, 1000, 0));
}

#[test]
fn each_page_that_sleeps_on_the_device_costs_two_switches() {
    let mut world = World::new(3000.0);
    (world.memory_pages, world.arrivals_per_second) = (460, Some(1e6));
    world.costs.switch_ns = 500.0;
    let (outcome, memory) = world.run();
    // Of these kswapd has one, beside what it unmaps and hands over: the other is the server's.
    let pages = memory.counts.reclaimed_by_kswapd as f64;
    let switches = (outcome.busy[KSWAPD] as f64 - 1200.0 * pages) / 500.0;
    assert!(pages > 100.0 && (0.9..1.1).contains(&(switches / pages)), "{switches} switches for {pages} pages");
    assert!(outcome.latencies.iter().any(|(_, stack)| stack[Cause::Switch as usize] > 0));
}

#[test]
fn ksmd_hands_a_batch_over_by_rounds_and_sleeps_once_for_each() {
    let mut world = World::new(3000.0);
    (world.has_ksm, world.arrivals_per_second) = (true, Some(1e5));
    world.costs.switch_ns = 500.0;
    let (outcome, _) = world.run();
    // In 30 ms there is one batch of 100 pages. Each is written meanwhile: it is compared with none, and hashed.
    let one_round = 500.0 + 1000.0 + 99.0 * 10.0;
    let rounds = outcome.busy[KSMD] as f64 / one_round;
    assert!((0.9..2.6).contains(&rounds), "{rounds}");
    assert!(outcome.link_bytes >= 100 * 100, "all pages are looked at");
}

#[test]
fn reclaim_takes_what_the_kernel_takes_beside_the_work_on_the_page() {
    let mut world = World::new(0.0);
    (world.memory_pages, world.shares_core) = (450, false);
    let busy = |world: &World| {
        let (outcome, memory) = world.run();
        (outcome.busy[KSWAPD], memory.counts.reclaimed_by_kswapd)
    };
    let (dear, pages) = busy(&world);
    world.costs.reclaim_page_ns = 0.0;
    let (cheap, _) = busy(&world);
    assert!(pages > 0 && dear > cheap, "{dear} {cheap} {pages}");
}

#[test]
fn stacks_add_up_to_latencies_whatever_happens() {
    for device_ns in [0.0, 3000.0] {
        for rate in [None, Some(3e5), Some(2e6)] {
            let mut world = World::new(device_ns);
            world.costs.switch_ns = 300.0;
            (world.memory_pages, world.has_ksm, world.arrivals_per_second) = (450, true, rate);
            let (outcome, memory) = world.run();
            for (latency, stack) in &outcome.latencies {
                assert_eq!(*latency, stack.iter().sum::<Nanoseconds>(), "{device_ns} {rate:?} {stack:?}");
            }
            assert!(outcome.busy.iter().sum::<Nanoseconds>() <= outcome.elapsed, "one core");
            assert!(memory.is_consistent());
        }
    }
}

#[test]
fn arrivals_come_at_their_rate() {
    let mut world = World::new(0.0);
    world.arrivals_per_second = Some(5e5);
    let (outcome, _) = world.run();
    let rate = 3000.0 / outcome.elapsed as f64 * 1e9;
    assert!((rate / 5e5 - 1.0).abs() < 0.06, "{rate}");
}
