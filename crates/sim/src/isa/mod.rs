//! Instruction sets: from the bytes that a record has of an instruction to micro-operations, which is all that cores know.

pub mod micro_op;
pub mod x86_64;
