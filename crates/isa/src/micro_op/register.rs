//! Register names, as the core's scoreboard knows them.
//!
//! One numbering serves every instruction set: a decoder maps its registers to it, and the core only compares and
//! indexes. Each class has as many numbers as the largest instruction set needs.

/// An architectural register, or a temporary that carries a value from one micro-operation of an instruction to the
/// next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Register(u8);

const GENERAL: u8 = 1;
const VECTOR: u8 = GENERAL + Register::GENERAL_COUNT;
const MASK: u8 = VECTOR + Register::VECTOR_COUNT;
const SPECIAL: u8 = MASK + Register::MASK_COUNT;
/// Temporaries follow: the result, then the loaded values.
const TEMPORARY: u8 = SPECIAL + Register::SPECIAL_COUNT;
const TEMPORARY_COUNT: u8 = 1 + Register::LOADED;
/// Upper parts of vector registers, then of temporaries.
const UPPER: u8 = TEMPORARY + TEMPORARY_COUNT;

impl Register {
    /// No register.
    pub const NONE: Register = Register(0);
    /// The flags, renamed as one.
    pub const FLAGS: Register = Register(SPECIAL);
    /// Written by fences, atomics and load-acquires and read by every load, so that loads wait for them.
    pub const BARRIER: Register = Register(SPECIAL + 1);
    /// The result of an instruction whose own stores write it to memory.
    pub const RESULT: Register = Register(TEMPORARY);
    /// The value of an instruction's first load; the following loads use the following numbers.
    pub const FIRST_LOADED: Register = Register(TEMPORARY + 1);
    /// How many loads of an instruction have a temporary of their own; further loads share the last.
    pub const LOADED: u8 = 3;

    /// General-purpose registers, the stack pointer included: AArch64 has 31 and `sp`.
    pub const GENERAL_COUNT: u8 = 32;
    /// Vector registers: AVX-512 and AArch64 have 32.
    pub const VECTOR_COUNT: u8 = 32;
    /// Mask registers: AVX-512 has 8, SVE 16.
    pub const MASK_COUNT: u8 = 16;
    /// Flags, barrier, and one for a register file that is renamed as one.
    const SPECIAL_COUNT: u8 = 3;

    /// Size of an array that is indexed by register; a power of two.
    pub const COUNT: usize = 128;

    /// General-purpose register `number`, below [`Register::GENERAL_COUNT`].
    #[inline]
    pub const fn general(number: u8) -> Register {
        assert!(number < Self::GENERAL_COUNT);
        Register(GENERAL + number)
    }

    /// Vector register `number`, below [`Register::VECTOR_COUNT`].
    #[inline]
    pub const fn vector(number: u8) -> Register {
        assert!(number < Self::VECTOR_COUNT);
        Register(VECTOR + number)
    }

    /// Mask register `number`, below [`Register::MASK_COUNT`].
    pub const fn mask(number: u8) -> Register {
        assert!(number < Self::MASK_COUNT);
        Register(MASK + number)
    }

    /// A register file that is renamed as one register, such as the x87 stack.
    pub const fn whole_file() -> Register {
        Register(SPECIAL + 2)
    }

    /// The temporary of an instruction's load `number`.
    #[inline]
    pub fn loaded(number: usize) -> Register {
        Register(Self::FIRST_LOADED.0 + (number as u8).min(Self::LOADED - 1))
    }

    /// The part above the lowest one of a split value, which has a name of its own for vector registers and
    /// temporaries. Other registers are never split.
    #[inline]
    pub fn upper(self) -> Register {
        match self.0 {
            VECTOR..MASK => Register(UPPER + (self.0 - VECTOR)),
            TEMPORARY..UPPER => Register(UPPER + Self::VECTOR_COUNT + (self.0 - TEMPORARY)),
            _ => self,
        }
    }

    /// Whether it is a vector register.
    #[inline]
    pub fn is_vector(self) -> bool {
        (VECTOR..MASK).contains(&self.0)
    }

    /// Whether it carries a value within one instruction.
    #[inline]
    pub fn is_temporary(self) -> bool {
        (TEMPORARY..UPPER).contains(&self.0)
    }

    /// Index into an array of [`Register::COUNT`].
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

const _: () = assert!((UPPER + Register::VECTOR_COUNT + TEMPORARY_COUNT) as usize <= Register::COUNT);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_register_of_both_instruction_sets_has_an_index_of_its_own() {
        let general = (0..Register::GENERAL_COUNT).map(Register::general);
        let vector = (0..Register::VECTOR_COUNT).map(Register::vector);
        let mask = (0..Register::MASK_COUNT).map(Register::mask);
        let special = [Register::NONE, Register::FLAGS, Register::BARRIER, Register::whole_file(), Register::RESULT];
        let loaded = (0..usize::from(Register::LOADED)).map(Register::loaded);
        let all: Vec<Register> = general.chain(vector).chain(mask).chain(special).chain(loaded).collect();
        let uppers = all.iter().map(|register| register.upper()).filter(|upper| !all.contains(upper));
        let indices: BTreeSet<usize> = all.iter().copied().chain(uppers).map(Register::index).collect();
        let splittable = usize::from(Register::VECTOR_COUNT + Register::LOADED) + 1;
        assert_eq!(indices.len(), all.len() + splittable);
        assert!(indices.iter().all(|&index| index < Register::COUNT));
    }
}
