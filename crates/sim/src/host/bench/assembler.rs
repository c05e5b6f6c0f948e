//! A few x86-64 instructions as bytes, each with the slots it fills and the addresses of this execution.

use fencepost_record::SlotKind;

/// A general-purpose register that can be a base without a displacement (not `rsp`, `rbp`, `r12`, `r13`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reg(u8);

pub const RAX: Reg = Reg(0);
pub const RCX: Reg = Reg(1);
pub const RDX: Reg = Reg(2);
pub const RBX: Reg = Reg(3);
pub const RSI: Reg = Reg(6);
pub const RDI: Reg = Reg(7);
pub const R8: Reg = Reg(8);
pub const R9: Reg = Reg(9);

/// One execution of an instruction.
#[derive(Clone, Debug)]
pub struct Instruction {
    /// Its bytes.
    pub bytes: Vec<u8>,
    /// The slots that each execution fills.
    pub slots: Vec<(SlotKind, u16)>,
    /// What this execution fills them with.
    pub values: Vec<u64>,
}

fn plain(bytes: &[u8]) -> Instruction {
    Instruction { bytes: bytes.to_vec(), slots: Vec::new(), values: Vec::new() }
}

/// `prefix REX opcode modrm`, with a register operand and `[base]`.
fn with_memory(
    prefix: &[u8],
    opcode: &[u8],
    reg: u8,
    base: Reg,
    is_wide: bool,
    kind: SlotKind,
    access: (u16, u64),
) -> Instruction {
    assert!(!matches!(base.0 & 7, 4 | 5), "this base needs more bytes");
    let rex = 0x40 | u8::from(is_wide) << 3 | (reg >> 3) << 2 | base.0 >> 3;
    let mut bytes = prefix.to_vec();
    if rex != 0x40 {
        bytes.push(rex);
    }
    bytes.extend_from_slice(opcode);
    bytes.push((reg & 7) << 3 | base.0 & 7);
    Instruction { bytes, slots: vec![(kind, access.0)], values: vec![access.1] }
}

fn with_registers(opcode: &[u8], reg: Reg, rm: Reg) -> Instruction {
    let mut bytes = vec![0x48 | (reg.0 >> 3) << 2 | rm.0 >> 3];
    bytes.extend_from_slice(opcode);
    bytes.push(0xc0 | (reg.0 & 7) << 3 | rm.0 & 7);
    plain(&bytes)
}

/// `nop`
pub fn nop() -> Instruction {
    plain(&[0x90])
}

/// `mov to, [base]`
pub fn load(to: Reg, base: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x8b], to.0, base, true, SlotKind::Load, (8, address))
}

/// `mov to, dword [base]`
pub fn load_4(to: Reg, base: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x8b], to.0, base, false, SlotKind::Load, (4, address))
}

/// `vmovdqu ymm0, [base]`
pub fn load_32(base: Reg, address: u64) -> Instruction {
    assert!(base.0 < 8, "this base needs more bytes");
    Instruction { bytes: vec![0xc5, 0xfe, 0x6f, base.0], slots: vec![(SlotKind::Load, 32)], values: vec![address] }
}

/// `movapd xmm0, [base]`
pub fn load_16(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0x28], 0, base, false, SlotKind::Load, (16, address))
}

/// `movapd [base], xmm0`
pub fn store_16(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0x29], 0, base, false, SlotKind::Store, (16, address))
}

/// `movsd xmm0, [base]`
pub fn load_scalar(base: Reg, address: u64) -> Instruction {
    with_memory(&[0xf2], &[0x0f, 0x10], 0, base, false, SlotKind::Load, (8, address))
}

/// `movsd [base], xmm0`
pub fn store_scalar(base: Reg, address: u64) -> Instruction {
    with_memory(&[0xf2], &[0x0f, 0x11], 0, base, false, SlotKind::Store, (8, address))
}

/// `addpd xmm0, xmm1`
pub fn add_packed() -> Instruction {
    plain(&[0x66, 0x0f, 0x58, 0xc1])
}

/// `addsd xmm0, xmm1`
pub fn add_scalar() -> Instruction {
    plain(&[0xf2, 0x0f, 0x58, 0xc1])
}

/// `addpd xmm0, [base]`
pub fn add_packed_from(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0x58], 0, base, false, SlotKind::Load, (16, address))
}

/// `mov [base], from`
pub fn store(base: Reg, from: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x89], from.0, base, true, SlotKind::Store, (8, address))
}

/// `mov dword [base], from`
pub fn store_4(base: Reg, from: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x89], from.0, base, false, SlotKind::Store, (4, address))
}

/// `add [base], from`
pub fn add_to_memory(base: Reg, from: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x01], from.0, base, true, SlotKind::Update, (8, address))
}

/// `lock xadd [base], from`
pub fn locked_add(base: Reg, from: Reg, address: u64) -> Instruction {
    with_memory(&[0xf0], &[0x0f, 0xc1], from.0, base, true, SlotKind::Update, (8, address))
}

/// `movnti [base], from`
pub fn movnti(base: Reg, from: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x0f, 0xc3], from.0, base, true, SlotKind::Store, (8, address))
}

/// `movntdq [base], xmm0`
pub fn movntdq(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0xe7], 0, base, false, SlotKind::Store, (16, address))
}

/// `vmovntdq [rax], zmm0`
pub fn movntdq_64(address: u64) -> Instruction {
    let bytes = vec![0x62, 0xf1, 0x7d, 0x48, 0xe7, 0x00];
    Instruction { bytes, slots: vec![(SlotKind::Store, 64)], values: vec![address] }
}

/// `clflush [base]`
pub fn clflush(base: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x0f, 0xae], 7, base, false, SlotKind::Flush, (64, address))
}

/// `clflushopt [base]`
pub fn clflushopt(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0xae], 7, base, false, SlotKind::Flush, (64, address))
}

/// `clwb [base]`
pub fn clwb(base: Reg, address: u64) -> Instruction {
    with_memory(&[0x66], &[0x0f, 0xae], 6, base, false, SlotKind::Flush, (64, address))
}

/// `prefetcht0 [base]`
pub fn prefetch(base: Reg, address: u64) -> Instruction {
    with_memory(&[], &[0x0f, 0x18], 1, base, false, SlotKind::Prefetch, (1, address))
}

/// `sfence`
pub fn sfence() -> Instruction {
    plain(&[0x0f, 0xae, 0xf8])
}

/// `mfence`
pub fn mfence() -> Instruction {
    plain(&[0x0f, 0xae, 0xf0])
}

/// `lfence`
pub fn lfence() -> Instruction {
    plain(&[0x0f, 0xae, 0xe8])
}

/// `add to, from`
pub fn add(to: Reg, from: Reg) -> Instruction {
    with_registers(&[0x01], from, to)
}

/// `add to, 1`
pub fn add_immediate(to: Reg) -> Instruction {
    assert!(to.0 < 8, "this register needs more bits");
    plain(&[0x48, 0x83, 0xc0 | to.0, 1])
}

/// `imul to, from`
pub fn multiply(to: Reg, from: Reg) -> Instruction {
    with_registers(&[0x0f, 0xaf], to, from)
}

/// `div rsi`: `rdx:rax` by `rsi`.
pub fn divide() -> Instruction {
    Instruction { bytes: vec![0x48, 0xf7, 0xf6], slots: Vec::new(), values: Vec::new() }
}

/// `xor register, register`: depends on nothing
pub fn zero(register: Reg) -> Instruction {
    with_registers(&[0x31], register, register)
}

/// `test register, register`
pub fn test(register: Reg) -> Instruction {
    with_registers(&[0x85], register, register)
}

/// `lea to, [base]`
pub fn lea(to: Reg, base: Reg) -> Instruction {
    let mut instruction = with_memory(&[], &[0x8d], to.0, base, true, SlotKind::Load, (0, 0));
    instruction.slots.clear();
    instruction.values.clear();
    instruction
}

/// `jnz` over nothing
pub fn jump_if_not_zero() -> Instruction {
    plain(&[0x75, 0x00])
}

/// `call` of what follows
pub fn call(stack: u64) -> Instruction {
    Instruction { bytes: vec![0xe8, 0, 0, 0, 0], slots: vec![(SlotKind::Store, 8)], values: vec![stack] }
}

/// `ret`
pub fn ret(stack: u64) -> Instruction {
    Instruction { bytes: vec![0xc3], slots: vec![(SlotKind::Load, 8)], values: vec![stack] }
}

/// `jmp [rip]`, as in a stub of a procedure linkage table
pub fn jump_through(pointer: u64) -> Instruction {
    Instruction { bytes: vec![0xff, 0x25, 0, 0, 0, 0], slots: vec![(SlotKind::Load, 8)], values: vec![pointer] }
}

/// `rep movsb` of `bytes` bytes upwards
pub fn rep_movs(from: u64, to: u64, bytes: u64) -> Instruction {
    let (source, destination) = ((SlotKind::StringSource, 1), (SlotKind::StringDestination, 1));
    Instruction {
        bytes: vec![0xf3, 0xa4],
        slots: vec![source, source, destination, destination],
        values: vec![from, from + bytes, to, to + bytes],
    }
}

/// `rep stosb` of `bytes` bytes upwards
pub fn rep_stos(to: u64, bytes: u64) -> Instruction {
    let slots = vec![(SlotKind::StringDestination, 1); 2];
    Instruction { bytes: vec![0xf3, 0xaa], slots, values: vec![to, to + bytes] }
}

/// `vpgatherqq ymm0, [rax+ymm1*8], ymm2`; an address of 0 is masked off
pub fn gather(addresses: [u64; 4]) -> Instruction {
    let bytes = vec![0xc4, 0xe2, 0xed, 0x91, 0x04, 0xc8];
    Instruction { bytes, slots: vec![(SlotKind::Gather, 8); 4], values: addresses.to_vec() }
}

/// The marker `code`.
pub fn marker(code: u8) -> Instruction {
    plain(&[0x0f, 0x1f, 0x84, 0x00, code, 0x00, 0x43, 0x50])
}

/// `how_many` times the same instruction.
pub fn repeated(how_many: usize, instruction: &Instruction) -> Vec<Instruction> {
    vec![instruction.clone(); how_many]
}

#[cfg(test)]
mod tests {
    use iced_x86::{Decoder, DecoderOptions, Mnemonic};

    use super::*;

    #[test]
    fn every_instruction_is_what_it_is_called() {
        let all = [
            (nop(), Mnemonic::Nop),
            (load(RAX, R8, 0), Mnemonic::Mov),
            (load_4(R9, RBX, 0), Mnemonic::Mov),
            (load_32(RAX, 0), Mnemonic::Vmovdqu),
            (store(R8, RCX, 0), Mnemonic::Mov),
            (store_4(RDI, RDX, 0), Mnemonic::Mov),
            (add_to_memory(RSI, RAX, 0), Mnemonic::Add),
            (locked_add(RSI, R8, 0), Mnemonic::Xadd),
            (movnti(RAX, RCX, 0), Mnemonic::Movnti),
            (movntdq(R8, 0), Mnemonic::Movntdq),
            (movntdq_64(0), Mnemonic::Vmovntdq),
            (clflush(RAX, 0), Mnemonic::Clflush),
            (clflushopt(R8, 0), Mnemonic::Clflushopt),
            (clwb(RAX, 0), Mnemonic::Clwb),
            (prefetch(RAX, 0), Mnemonic::Prefetcht0),
            (sfence(), Mnemonic::Sfence),
            (mfence(), Mnemonic::Mfence),
            (lfence(), Mnemonic::Lfence),
            (add(RAX, R9), Mnemonic::Add),
            (multiply(RAX, R9), Mnemonic::Imul),
            (zero(RAX), Mnemonic::Xor),
            (test(RAX), Mnemonic::Test),
            (lea(RAX, RBX), Mnemonic::Lea),
            (jump_if_not_zero(), Mnemonic::Jne),
            (call(0), Mnemonic::Call),
            (ret(0), Mnemonic::Ret),
            (jump_through(0), Mnemonic::Jmp),
            (rep_movs(0, 0, 0), Mnemonic::Movsb),
            (rep_stos(0, 0), Mnemonic::Stosb),
            (gather([0; 4]), Mnemonic::Vpgatherqq),
            (marker(1), Mnemonic::Nop),
        ];
        for (instruction, mnemonic) in all {
            let decoded = Decoder::with_ip(64, &instruction.bytes, 0, DecoderOptions::NONE).decode();
            assert_eq!((decoded.mnemonic(), decoded.len()), (mnemonic, instruction.bytes.len()), "{instruction:x?}");
        }
    }
}
