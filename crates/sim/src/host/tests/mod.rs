//! Threads on the cores of a host, between programs written by hand and a memory of fixed latency.
//!
//! Each test is one sentence of the specification; chapters are files.

mod determinism;
mod latency;
mod limits;
mod observations;
mod recorded_order;
mod regions;
mod run_ahead;
mod scheduling;
mod second_instruction_set;
mod sockets;
mod spinning;
mod synchronisation;

use crate::host::bench::assembler::*;
use crate::host::bench::{Bench, DRAM, MISS, PM, READ, Script, Setup, WAY_OUT, WRITE};
use fencepost_record::{Clock, Event};

/// A line of DRAM that no other line shares a set of L1 with.
fn line(number: u64) -> u64 {
    DRAM + 64 * number
}

/// A synchronisation object.
fn object(number: u64) -> u64 {
    DRAM + 0x10_0000 + 64 * number
}

/// A thread reads a line that nobody has: memory sees when.
fn reads(script: &mut Script, thread: u32, number: u64) {
    script.run(thread, &[load(RAX, RBX, line(number))]);
}

/// A thread is busy for that many cycles.
fn is_busy(script: &mut Script, thread: u32, cycles: usize) {
    script.run(thread, &repeated(cycles, &add(RDX, RDX)));
}

fn lock(script: &mut Script, thread: u32, number: u64) {
    script.event(thread, |clock| Event::MutexLock { clock, object: object(number) });
}

fn unlock(script: &mut Script, thread: u32, number: u64) {
    script.event(thread, |clock| Event::MutexUnlock { clock, object: object(number) });
}

/// A program whose first thread has created so many others.
fn threads(others: u32) -> Script {
    let mut script = Script::default();
    (1..=others).for_each(|thread| script.create(0, thread));
    script
}

/// Runs a program on so many cores to its end.
fn on_cores(cores: usize, script: Script) -> Bench {
    let mut bench = Setup::machine(&[&format!("core.count={cores}")]).run(script);
    bench.end();
    bench
}
