//! Repeated string instructions.

use iced_x86::Mnemonic;

use super::cracker::Cracker;
use super::operands::{ACCUMULATOR, COUNT};
use crate::micro_op::{MicroOp, StringAccess, StringOperands};
use fencepost_record::SlotKind;

impl Cracker<'_> {
    pub(super) fn is_string(&self) -> bool {
        self.slots.iter().any(|(_, slot)| slot.kind.is_string())
    }

    /// The string operation itself, then the registers that it writes and cannot name: a micro-operation has two
    /// destinations.
    pub(super) fn push_string(&self, mut micro_op: MicroOp, micro_ops: &mut Vec<MicroOp>) {
        micro_op.string = StringOperands { access: self.string_access(), count: COUNT, value: ACCUMULATOR };
        micro_ops.push(micro_op);
        for &register in self.written.iter().skip(2) {
            let mut update = MicroOp::default();
            update.sources[0] = self.written[0];
            update.destinations[0] = register;
            micro_ops.push(update);
        }
    }

    fn string_access(&self) -> StringAccess {
        use Mnemonic::{Cmpsb, Cmpsd, Cmpsq, Cmpsw, Scasb, Scasd, Scasq, Scasw};
        let has = |kind| self.slots.iter().any(|(_, slot)| slot.kind == kind);
        let compares =
            matches!(self.instruction.mnemonic(), Cmpsb | Cmpsw | Cmpsd | Cmpsq | Scasb | Scasw | Scasd | Scasq);
        match (has(SlotKind::StringSource), has(SlotKind::StringDestination), compares) {
            (true, false, _) => StringAccess::Read,
            (true, true, true) => StringAccess::Compare,
            (true, true, false) => StringAccess::Copy,
            (false, true, true) => StringAccess::Scan,
            (false, true, false) => StringAccess::Fill,
            (false, false, _) => StringAccess::None,
        }
    }
}
