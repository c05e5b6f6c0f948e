//! Which records can be replayed.

use std::sync::Arc;

use fencepost_isa::InstructionSet;
use fencepost_record::{Bytes, CutPolicy, ISA_X86_64, Info, Problem, Record, RecordError, Writer, WriterOptions};
use fencepost_sim::replay::simulation::Program;

fn program(isa: &str) -> Result<Program, RecordError> {
    let info = Info { isa: isa.into(), ..Info::default() };
    let writer = Writer::new(Vec::new(), &info, WriterOptions::default()).expect("memory takes everything");
    let bytes = writer.seal("exit 0").expect("memory takes everything");
    Program::new(Record::open(Arc::new(Bytes::new("foreign.fencepost", bytes)), CutPolicy::Refuse)?)
}

#[test]
fn a_record_of_another_instruction_set_is_refused() {
    let error = program("riscv64").err().expect("its code cannot be decoded");
    let problem = Problem::OtherInstructionSet { found: "riscv64".into(), replayable: InstructionSet::NAMES };
    assert_eq!((&error.problem, error.frame), (&problem, None));
    let message = "foreign.fencepost: its instruction set is `riscv64`, and this version replays x86-64, aarch64";
    assert_eq!(error.to_string(), message);
}

#[test]
fn a_record_without_instructions_is_refused() {
    let error = program(ISA_X86_64).err().expect("there is nothing to replay");
    assert_eq!((&error.problem, error.frame), (&Problem::Empty(""), None));
    assert_eq!(error.to_string(), "foreign.fencepost: no instruction of the program is in the record");
}
