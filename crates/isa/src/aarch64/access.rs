//! Which operands an instruction reads and which it writes, by its opcode.

use yaxpeax_arm::armv8::a64::{Instruction, Opcode, Operand};

use super::operands::registers_of;

/// The condition flags as a system register: `op0`, `op1`, `CRn`, `CRm` and `op2` of `NZCV` as the decoder packs them.
const NZCV: u16 = 0x5a10;
/// The random numbers `RNDR` and `RNDRRS`: reading one sets the flags.
const RANDOM: [u16; 2] = [0x5920, 0x5921];

/// What becomes of the first two operands of an instruction. All others are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Both are read.
    Read,
    /// The first one is written.
    FirstWritten,
    /// The first one is read and written: a part of it stays, or it is an operand as well.
    FirstModified,
    /// The second one is written.
    SecondWritten,
    /// Both are written.
    BothWritten,
}

impl Access {
    /// Whether operand `place` is read.
    pub fn reads(self, place: usize) -> bool {
        !self.writes(place) || self == Access::FirstModified
    }

    /// Whether operand `place` is written.
    pub fn writes(self, place: usize) -> bool {
        match self {
            Access::Read => false,
            Access::FirstWritten | Access::FirstModified => place == 0,
            Access::SecondWritten => place == 1,
            Access::BothWritten => place <= 1,
        }
    }
}

/// What becomes of the first operands of `instruction`.
pub(super) fn of(instruction: &Instruction) -> Access {
    use Opcode as O;
    let opcode = instruction.opcode;
    let [first, second, ..] = &instruction.operands;
    match opcode {
        _ if is_plain_store(opcode) || only_reads(opcode) => Access::Read,
        O::LDP | O::LDPSW | O::LDNP | O::LDXP | O::LDAXP => Access::BothWritten,
        _ if fetches(opcode) => Access::SecondWritten,
        // `orr v0.4s, #1` and `bic v0.4s, #1`.
        O::ORR | O::BIC if is_vector(first) && registers_of(second).is_empty() => Access::FirstModified,
        _ if is_lane(first) || keeps_first(opcode) => Access::FirstModified,
        _ => Access::FirstWritten,
    }
}

fn is_vector(operand: &Operand) -> bool {
    matches!(operand, Operand::SIMDRegisterElements(..))
}

fn is_lane(operand: &Operand) -> bool {
    matches!(operand, Operand::SIMDRegisterElementsLane(..) | Operand::SIMDRegisterGroupLane(..))
}

/// Whether all operands of `opcode` are sources, and it stores no register.
fn only_reads(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::CBZ
            | O::CBNZ
            | O::TBZ
            | O::TBNZ
            | O::BR
            | O::BRAA
            | O::BRAAZ
            | O::BRAB
            | O::BRABZ
            | O::BLR
            | O::BLRAA
            | O::BLRAAZ
            | O::BLRAB
            | O::BLRABZ
            | O::RET
            | O::CCMP
            | O::CCMN
            | O::FCMP
            | O::FCMPE
            | O::FCCMP
            | O::FCCMPE
            | O::RMIF
            | O::SETF8
            | O::SETF16
            | O::MSR
            | O::SYS(_)
    )
}

/// Whether `opcode` stores registers and writes none: unlike an exclusive store, which reports its success.
pub(super) fn is_plain_store(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::STR
            | O::STRB
            | O::STRH
            | O::STUR
            | O::STURB
            | O::STURH
            | O::STTR
            | O::STTRB
            | O::STTRH
            | O::STP
            | O::STNP
            | O::STLR
            | O::STLRB
            | O::STLRH
            | O::STLLR
            | O::STLLRB
            | O::STLLRH
            | O::STLUR
            | O::STLURB
            | O::STLURH
            | O::ST1
            | O::ST2
            | O::ST3
            | O::ST4
            | O::STG
            | O::STZG
            | O::ST2G
            | O::STZ2G
            | O::STGM
            | O::STZGM
    )
}

/// How an atomic read-modify-write (LSE) is ordered: the decoder's bits 1 (acquire) and 0 (release).
pub(super) fn atomic_order(opcode: Opcode) -> Option<u8> {
    use Opcode as O;
    match opcode {
        O::CAS(order) | O::CASB(order) | O::CASH(order) | O::CASP(order) => Some(order),
        _ => fetch_order(opcode),
    }
}

/// Whether `opcode` is an atomic read-modify-write whose second register receives the old value.
fn fetches(opcode: Opcode) -> bool {
    fetch_order(opcode).is_some()
}

fn fetch_order(opcode: Opcode) -> Option<u8> {
    use Opcode as O;
    match opcode {
        O::SWP(order)
        | O::SWPB(order)
        | O::SWPH(order)
        | O::LDADD(order)
        | O::LDADDB(order)
        | O::LDADDH(order)
        | O::LDCLR(order)
        | O::LDCLRB(order)
        | O::LDCLRH(order)
        | O::LDEOR(order)
        | O::LDEORB(order)
        | O::LDEORH(order)
        | O::LDSET(order)
        | O::LDSETB(order)
        | O::LDSETH(order)
        | O::LDSMAX(order)
        | O::LDSMAXB(order)
        | O::LDSMAXH(order)
        | O::LDSMIN(order)
        | O::LDSMINB(order)
        | O::LDSMINH(order)
        | O::LDUMAX(order)
        | O::LDUMAXB(order)
        | O::LDUMAXH(order)
        | O::LDUMIN(order)
        | O::LDUMINB(order)
        | O::LDUMINH(order) => Some(order),
        _ => None,
    }
}

/// Whether `opcode` is a load-acquire, behind which younger loads wait.
pub(super) fn acquires(opcode: Opcode) -> bool {
    use Opcode as O;
    matches!(
        opcode,
        O::LDAR
            | O::LDARB
            | O::LDARH
            | O::LDLAR
            | O::LDLARB
            | O::LDLARH
            | O::LDAXR
            | O::LDAXRB
            | O::LDAXRH
            | O::LDAXP
            | O::LDAPR
            | O::LDAPRB
            | O::LDAPRH
            | O::LDAPUR
            | O::LDAPURB
            | O::LDAPURH
            | O::LDAPURSB
            | O::LDAPURSH
            | O::LDAPURSW
    )
}

/// Whether `opcode` reads its first register as well as it writes it.
fn keeps_first(opcode: Opcode) -> bool {
    use Opcode as O;
    match opcode {
        // General registers.
        O::MOVK | O::BFM | O::CAS(_) | O::CASB(_) | O::CASH(_) | O::CASP(_) | O::LDG => true,
        O::PACIA | O::PACIB | O::PACDA | O::PACDB | O::AUTIA | O::AUTIB | O::AUTDA | O::AUTDB => true,
        O::PACIZA | O::PACIZB | O::PACDZA | O::PACDZB | O::AUTIZA | O::AUTIZB | O::AUTDZA | O::AUTDZB => true,
        O::XPACI | O::XPACD => true,
        // Selects and inserts.
        O::BSL | O::BIT | O::BIF | O::TBX | O::SRI | O::SLI => true,
        // Multiplies and accumulates.
        O::MLA | O::MLS | O::FMLA | O::FMLS | O::FMLAL | O::FMLAL2 | O::FMLSL | O::FMLSL2 | O::FCMLA => true,
        O::SMLAL | O::SMLAL2 | O::SMLSL | O::SMLSL2 | O::UMLAL | O::UMLAL2 | O::UMLSL | O::UMLSL2 => true,
        O::SQDMLAL | O::SQDMLAL2 | O::SQDMLSL | O::SQDMLSL2 | O::SQRDMLAH | O::SQRDMLSH => true,
        O::SDOT | O::UDOT => true,
        // Accumulates.
        O::SSRA | O::USRA | O::SRSRA | O::URSRA | O::SABA | O::UABA | O::SADALP | O::UADALP => true,
        O::SABAL | O::SABAL2 | O::UABAL | O::UABAL2 | O::SUQADD | O::USQADD => true,
        // Narrows into the upper half.
        O::XTN2 | O::SQXTN2 | O::UQXTN2 | O::SQXTUN2 | O::FCVTN2 | O::FCVTXN2 => true,
        O::ADDHN2 | O::SUBHN2 | O::RADDHN2 | O::RSUBHN2 => true,
        O::SHRN2 | O::RSHRN2 | O::SQSHRN2 | O::SQRSHRN2 | O::UQSHRN2 | O::UQRSHRN2 | O::SQSHRUN2 | O::SQRSHRUN2 => true,
        // Rounds of ciphers and hashes.
        O::AESE | O::AESD | O::SHA1C | O::SHA1P | O::SHA1M | O::SHA1SU0 | O::SHA1SU1 => true,
        O::SHA256H | O::SHA256H2 | O::SHA256SU0 | O::SHA256SU1 => true,
        O::SHA512H | O::SHA512H2 | O::SHA512SU0 | O::SHA512SU1 => true,
        O::SM3PARTW1 | O::SM3PARTW2 | O::SM3TT1A | O::SM3TT1B | O::SM3TT2A | O::SM3TT2B | O::SM4E => true,
        _ => false,
    }
}

/// Whether the instruction reads the condition flags.
pub(super) fn reads_flags(instruction: &Instruction) -> bool {
    use Opcode as O;
    match instruction.opcode {
        O::ADC | O::ADCS | O::SBC | O::SBCS | O::CSEL | O::CSINC | O::CSINV | O::CSNEG | O::CCMP | O::CCMN => true,
        O::FCSEL | O::FCCMP | O::FCCMPE | O::Bcc(_) | O::BCcc(_) => true,
        // These leave some of the flags as they are.
        O::RMIF | O::SETF8 | O::SETF16 => true,
        O::MRS => system_register(&instruction.operands[1]) == Some(NZCV),
        O::MSR => changes_flags_in_place(instruction),
        _ => false,
    }
}

/// Whether the instruction writes the condition flags.
pub(super) fn writes_flags(instruction: &Instruction) -> bool {
    use Opcode as O;
    match instruction.opcode {
        O::ADDS | O::SUBS | O::ADCS | O::SBCS | O::ANDS | O::BICS | O::CCMP | O::CCMN | O::SUBPS => true,
        O::FCMP | O::FCMPE | O::FCCMP | O::FCCMPE | O::RMIF | O::SETF8 | O::SETF16 => true,
        O::MRS => system_register(&instruction.operands[1]).is_some_and(|register| RANDOM.contains(&register)),
        O::MSR => system_register(&instruction.operands[0]) == Some(NZCV) || changes_flags_in_place(instruction),
        _ => false,
    }
}

fn system_register(operand: &Operand) -> Option<u16> {
    match operand {
        Operand::SystemReg(register) => Some(*register),
        _ => None,
    }
}

/// Whether it is `cfinv`, `xaflag` or `axflag`: of the writes to the processor state those with `op1` 0 and `op2` 0 to
/// 2.
fn changes_flags_in_place(instruction: &Instruction) -> bool {
    matches!(instruction.operands[0], Operand::PstateField(0..=2))
}
