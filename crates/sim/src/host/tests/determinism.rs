//! 6xx: the same program gives the same result, from the start and from any snapshot; and random programs come to their
//! end with nothing lost.

use std::collections::HashMap;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use fencepost_kernel::Component;
use fencepost_kernel::line::LineAddress;

/// What happens next in a random program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Load {
        at: u64,
    },
    Store {
        at: u64,
    },
    Wide {
        at: u64,
    },
    Add {
        at: u64,
    },
    Locked {
        at: u64,
    },
    Flush {
        at: u64,
        which: usize,
    },
    Fence {
        which: usize,
    },
    NonTemporal {
        at: u64,
    },
    Copy {
        from: u64,
        to: u64,
        bytes: u64,
    },
    Gather {
        at: u64,
    },
    Prefetch {
        at: u64,
    },
    Branch {
        taken: bool,
    },
    Busy {
        cycles: usize,
    },
    Lock {
        number: u64,
    },
    SystemCall,
    Barrier,
    /// A region of interest begins or ends.
    Boundary {
        begins: bool,
    },
}

/// Addresses in a few lines of a few pages each of DRAM and PM, aligned or not; some accesses there cross into another
/// line, or another page.
fn address() -> impl Strategy<Value = u64> {
    (any::<bool>(), 0..3u64, 0..8u64, 0..64u64).prop_map(|(is_pm, page, line, offset)| {
        let memory = if is_pm { PM } else { DRAM };
        memory + 4096 * page + 576 * line + offset
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => address().prop_map(|at| Step::Load { at }),
        6 => address().prop_map(|at| Step::Store { at }),
        1 => address().prop_map(|at| Step::Wide { at }),
        1 => address().prop_map(|at| Step::Add { at }),
        2 => address().prop_map(|at| Step::Locked { at: at & !7 }),
        4 => (address(), 0..3usize).prop_map(|(at, which)| Step::Flush { at, which }),
        2 => (0..3usize).prop_map(|which| Step::Fence { which }),
        // Lines of their own: a combined store is one version, however many instructions made it.
        2 => (0..4u64, 0..8u64).prop_map(|(line, part)| Step::NonTemporal { at: PM + 0x8000 + 64 * line + 8 * part }),
        1 => (address(), address(), 0..300u64).prop_map(|(from, to, bytes)| Step::Copy { from, to, bytes }),
        1 => address().prop_map(|at| Step::Gather { at }),
        1 => address().prop_map(|at| Step::Prefetch { at }),
        2 => any::<bool>().prop_map(|taken| Step::Branch { taken }),
        2 => (1..80usize).prop_map(|cycles| Step::Busy { cycles }),
        1 => (0..2u64).prop_map(|number| Step::Lock { number }),
        1 => Just(Step::SystemCall),
        1 => Just(Step::Barrier),
    ]
}

/// A program, and how many stores each line (by virtual number) gets from its instructions.
struct Program {
    script: Script,
    stores: HashMap<u64, u32>,
}

impl Program {
    fn stores(&mut self, at: u64, bytes: u64) {
        (at / 64..=(at + bytes - 1) / 64).for_each(|line| *self.stores.entry(line).or_default() += 1);
    }

    fn add(&mut self, thread: u32, step: Step, threads: u64, generation: &mut u64) {
        let script = &mut self.script;
        match step {
            Step::Load { at } => script.run(thread, &[load(RAX, RCX, at)]),
            Step::Wide { at } => script.run(thread, &[load_32(RAX, at)]),
            Step::Store { at } => {
                script.run(thread, &[store(RBX, RAX, at)]);
                self.stores(at, 8);
            }
            Step::Add { at } => {
                script.run(thread, &[add_to_memory(RBX, RAX, at)]);
                self.stores(at, 8);
            }
            Step::Locked { at } => {
                script.run(thread, &[locked_add(RBX, RAX, at)]);
                self.stores(at, 8);
            }
            Step::Flush { at, which } => {
                script.run(thread, &[[clflush, clflushopt, clwb][which](RBX, at)]);
            }
            Step::Fence { which } => script.run(thread, &[[sfence, mfence, lfence][which]()]),
            Step::NonTemporal { at } => script.run(thread, &[movnti(RBX, RAX, at)]),
            Step::Copy { from, to, bytes } => {
                script.run(thread, &[rep_movs(from, to, bytes)]);
                let mut done = 0;
                while done < bytes {
                    let chunk = (64 - (to + done) % 64).min(bytes - done);
                    self.stores(to + done, chunk);
                    done += chunk;
                }
            }
            Step::Gather { at } => script.run(thread, &[gather([at, 0, at + 1024, at])]),
            Step::Prefetch { at } => script.run(thread, &[prefetch(RBX, at)]),
            Step::Branch { taken } => {
                script.run(thread, &[test(RAX), jump_if_not_zero()]);
                script.run(thread, &if taken { vec![nop()] } else { vec![nop(), nop()] });
            }
            Step::Busy { cycles } => is_busy(script, thread, cycles),
            Step::Lock { number } => {
                lock(script, thread, number);
                script.run(thread, &[store(RBX, RAX, PM + 512 * number)]);
                unlock(script, thread, number);
                self.stores(PM + 512 * number, 8);
            }
            Step::SystemCall => _ = script.event(thread, |_| Event::SystemCall { number: 1, result: 0 }),
            Step::Barrier if thread == 0 => {
                // All threads meet here.
                for other in 0..threads as u32 {
                    let generation = *generation;
                    script.event(other, |clock| Event::BarrierWait {
                        clock,
                        object: object(9),
                        participants: threads,
                        generation,
                    });
                }
                *generation += 1;
            }
            Step::Barrier => {}
            Step::Boundary { begins } => script.run(thread, &[nop(), marker(if begins { 1 } else { 2 }), nop()]),
        }
    }
}

fn program(steps: &[(u32, Step)], threads_in_all: u32) -> Program {
    let mut program = Program { script: threads(threads_in_all - 1), stores: HashMap::new() };
    let mut generation = 0;
    for &(thread, step) in steps {
        program.add(thread % threads_in_all, step, u64::from(threads_in_all), &mut generation);
    }
    (1..threads_in_all).for_each(|thread| program.script.join(0, thread));
    program
}

/// Everything that a run shows of itself.
fn account(bench: &Bench) -> (String, usize, Vec<u64>) {
    let sent = format!("{:?}", bench.sent());
    (
        bench.host().stats(fencepost_kernel::time::Time::NEVER).to_json().to_string() + &sent,
        bench.sent().len(),
        bench.host().positions(),
    )
}

/// Machines as different as tests can make them.
fn machine(number: usize) -> Vec<&'static str> {
    let all = [
        &["core.count=4"][..],
        &["core.count=2", "core.time_slice_us=1", "tlb.enabled=true"],
        &[
            "core.count=3",
            "core.rob_entries=16",
            "core.issue_queue_entries=8",
            "core.load_queue_entries=4",
            "core.store_queue_entries=4",
        ],
        &[
            "core.count=4",
            "cache.l1d.mshrs=1",
            "cache.l2.mshrs=1",
            "cache.l2.write_buffers=1",
            "core.flushes_in_flight=1",
        ],
        &[
            "core.count=4",
            "core.prefetch_for_ownership=false",
            "core.clflush_order=\"full_fence\"",
            "tlb.enabled=true",
            "tlb.entries=2",
            "tlb.ways=1",
        ],
        &[
            "core.count=2",
            "core.flush_acknowledged_by=\"memory_bus\"",
            "core.write_combining_buffers=1",
            "core.dispatch_width=1",
        ],
        &[
            "core.count=4",
            "cache.l1d.size_kib=1",
            "cache.l1d.ways=2",
            "cache.l1i.size_kib=1",
            "cache.l1i.ways=2",
            "cache.l2.size_kib=2",
            "cache.l2.ways=2",
        ],
        &["core.count=4", "cache.l1d.prefetcher=\"stride\"", "simulation.run_ahead_ns=2000"],
        &[
            "core.count=4",
            "sockets.count=2",
            "socket_link.bandwidth_gb_per_s=20",
            "socket_link.latency_ns=40",
            "socket_link.credits=4",
        ],
        &[
            "core.count=3",
            "sockets.count=3",
            "socket_link.bandwidth_gb_per_s=2",
            "socket_link.latency_ns=5",
            "socket_link.credits=1",
            "cache.l1d.size_kib=1",
            "cache.l1d.ways=2",
            "cache.l2.size_kib=2",
            "cache.l2.ways=2",
        ],
    ];
    all[number % all.len()].to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn h602_programs_with_regions_lose_no_store_to_pm_either(
        steps in vec(
            (0..3u32, prop_oneof![8 => step(), 1 => any::<bool>().prop_map(|begins| Step::Boundary { begins })]),
            1..150,
        ),
        which in 0..10usize,
        cold in any::<bool>(),
    ) {
        let setup = Setup::machine(&machine(which));
        let setup = if cold { setup.cold_code() } else { setup };
        let Program { script, stores } = program(&steps, 3);
        let mut bench = setup.run(script);
        let mut snapshot = bench.clone();
        prop_assert_eq!(bench.end(), snapshot.end());
        prop_assert_eq!(account(&bench), account(&snapshot));
        prop_assert_eq!(bench.host().forced_waits(), 0);
        prop_assert_eq!(bench.stale_reads(), 0);
        for (&line, &count) in stores.iter().filter(|(line, _)| **line >= PM / 64) {
            let line = bench.line(line * 64);
            prop_assert_eq!(bench.newest_version(line).0, u64::from(count), "{:?}", line);
        }
        let begins: Vec<bool> = bench.boundaries.iter().map(|(boundary, _)| boundary.begins).collect();
        prop_assert!(begins.iter().enumerate().all(|(index, begins)| *begins == index.is_multiple_of(2)), "{begins:?}");
        let times: Vec<u64> = bench.region_cycles().iter().map(|(_, cycle)| *cycle).collect();
        prop_assert!(times.is_sorted(), "{times:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 250, ..ProptestConfig::default() })]

    #[test]
    fn h601_random_programs_end_alike_each_time_and_from_any_snapshot_and_lose_no_store(
        steps in vec((0..4u32, step()), 1..150),
        threads_in_all in 1..5u32,
        which in 0..10usize,
        cold in any::<bool>(),
        cut in 0..4000u64,
    ) {
        let setup = || {
            let setup = Setup::machine(&machine(which));
            if cold { setup.cold_code() } else { setup }
        };
        let Program { script, stores } = program(&steps, threads_in_all);
        let mut bench = setup().run(script);
        let mut again = setup().run(program(&steps, threads_in_all).script);
        bench.run_until(cut);
        let mut snapshot = bench.clone();
        let ends = [bench.end(), again.end(), snapshot.end()];
        prop_assert!(ends.iter().all(|end| *end == ends[0]), "{ends:?}");
        prop_assert_eq!(account(&bench), account(&again));
        prop_assert_eq!(account(&bench), account(&snapshot));
        prop_assert_eq!(bench.host().forced_waits(), 0);
        prop_assert_eq!(bench.stale_reads(), 0);
        let lines: Vec<(LineAddress, u32)> =
            stores.iter().map(|(&line, &count)| (bench.line(line * 64), count)).collect();
        for (line, count) in lines {
            let in_memory = bench.memory.versions.get(&line).copied().unwrap_or_default();
            prop_assert_eq!(bench.newest_version(line).max(in_memory).0, u64::from(count), "{:?}", line);
        }
    }
}
