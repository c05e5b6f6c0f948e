//! A program to replay: its record, decoded, and what a host makes of it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::Options;
use crate::address_space::{PageTable, Placement};
use crate::config::Machine;
use crate::config::topology::HostId;
use crate::core::split::split;
use crate::host::Workload;
use crate::system::persist_policy;
use fencepost_isa::InstructionSet;
use fencepost_isa::micro_op::{DecodedBlock, MicroOp, WarmBlock};
use fencepost_record::{AddressRanges, Ended, Problem, Record, RecordError};

/// A program ready to be replayed: its record and its decoded code, shared by all its replays.
#[derive(Clone)]
pub struct Program {
    pub(super) record: Record,
    instruction_set: InstructionSet,
    blocks: Arc<[DecodedBlock]>,
}

impl Program {
    /// Decodes the code of `record`.
    ///
    /// # Errors
    /// If it is of an instruction set that cannot be decoded, or has no instructions.
    pub fn new(record: Record) -> Result<Program, RecordError> {
        let refused = |problem| RecordError { record: record.source().name().to_owned(), frame: None, problem };
        let found = &record.info().isa;
        let Some(instruction_set) = InstructionSet::from_name(found) else {
            let replayable = InstructionSet::NAMES;
            return Err(refused(Problem::OtherInstructionSet { found: found.clone(), replayable }));
        };
        if record.instructions() == 0 {
            let is_whole = matches!(record.ended(), Ended::Sealed { lost: 0, .. });
            return Err(refused(Problem::Empty(match (is_whole, record.info().options.warm) {
                (true, Some(_)) => ": its region of interest was never reached",
                (true, None) => "",
                (false, _) => ": it ended before any was written",
            })));
        }
        let blocks = instruction_set.decode(record.program()).into();
        Ok(Program { record, instruction_set, blocks })
    }

    /// Its instruction set, which names its flushes and fences.
    pub fn instruction_set(&self) -> InstructionSet {
        self.instruction_set
    }

    /// Its record.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Its decoded blocks, by id; that of 0 is empty.
    pub fn blocks(&self) -> &[DecodedBlock] {
        &self.blocks
    }

    /// The address of the instruction that micro-operation number `micro_op` of a block belongs to.
    pub fn instruction_of(&self, block: u32, micro_op: u32) -> Option<u64> {
        let before = self.blocks.get(block as usize)?.micro_ops.get(..micro_op as usize)?;
        let ended = before.iter().filter(|micro_op| micro_op.ends_instruction).count();
        self.record.program().block(block).instructions().nth(ended).map(|(address, _)| address)
    }

    /// The same program without the flushes at these addresses of its code: what its run would take without them.
    #[must_use]
    pub fn without_flushes(&self, addresses: &BTreeSet<u64>) -> Program {
        let mut blocks = self.blocks.to_vec();
        for (id, decoded) in blocks.iter_mut().enumerate().skip(1) {
            let mut instructions = self.record.program().block(id as u32).instructions();
            let mut address = instructions.next().map(|(address, _)| address);
            for micro_op in &mut decoded.micro_ops {
                let is_dropped = micro_op.operation.is_flush() && address.is_some_and(|at| addresses.contains(&at));
                let ends_instruction = micro_op.ends_instruction;
                if is_dropped {
                    *micro_op = MicroOp { ends_instruction, ..MicroOp::default() };
                }
                if ends_instruction {
                    address = instructions.next().map(|(address, _)| address);
                }
            }
            decoded.warm = WarmBlock::of(&decoded.micro_ops);
        }
        Program { blocks: blocks.into(), ..self.clone() }
    }
}

/// What one host replays.
#[derive(Clone)]
pub struct HostProgram {
    /// The program.
    pub program: Program,
    /// Where its memory lies.
    pub placement: Placement,
    /// Instructions after which each of its threads stops; empty if none does.
    pub thread_limits: Vec<u64>,
}

/// The workload of `host`, with frames of PM that no other host uses.
pub(super) fn workload(
    machine: &Machine,
    program: &HostProgram,
    host: HostId,
    options: &Options,
) -> Result<Workload, RecordError> {
    let HostProgram { program, placement, thread_limits } = program;
    let bytes =
        |ranges: &AddressRanges| ranges.as_slice().iter().map(|range| range.start..range.end).collect::<Vec<_>>();
    let mapped = program.record.memory_map()?.mappings().iter().map(|mapping| mapping.range);
    let mapped = bytes(&AddressRanges::union(mapped));
    let table = PageTable::new(placement, &mapped, machine.nodes_of(host))
        .with_vdso(bytes(&program.record.memory_map()?.vdso()));
    let is_alone = machine.topology().hosts.len() == 1;
    // Hosts with equal records are not to start alike.
    let seed = if options.seed == 0 { 0 } else { options.seed.wrapping_add(u64::from(host.0) << 48) };
    Ok(Workload {
        record: program.record.clone(),
        blocks: split(&program.blocks, &machine.core),
        table,
        persist: persist_policy(machine, program.instruction_set, options.persist),
        pins: options.threads.pins(usize::from(machine.core.count), usize::from(machine.sockets())),
        limits: thread_limits.clone(),
        pm_writes_limit: options.pm_writes_limit.filter(|_| is_alone),
        seed,
    })
}
