//! The record reader: whatever a file holds, the answer is its content or one error, never a panic and never unbounded
//! memory.
//!
//! The input is a record. Its checksums are made right again, so that what was changed reaches the code behind them;
//! and, when the last byte says so, it is read as it stands.
#![no_main]

use std::sync::Arc;

use fencepost_fuzz::with_right_checksums;
use fencepost_record::{Bytes, CutPolicy, Frame, PmSelector, Record, ThreadId};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let is_as_it_stands = input.last().is_some_and(|last| last % 2 == 1);
    let file = if is_as_it_stands { input.to_vec() } else { with_right_checksums(input) };
    for cut in [CutPolicy::Refuse, CutPolicy::Allow] {
        let Ok(record) = Record::open(Arc::new(Bytes::new("input", file.clone())), cut) else { continue };
        read(&record);
    }
});

/// Reads everything that can be asked of a record.
fn read(record: &Record) {
    let mut frame = Frame::default();
    for thread in 0..record.threads().min(64) as u32 {
        let mut reader = record.reader(ThreadId(thread));
        while let Ok(true) = reader.next_frame(&mut frame) {
            assert!(frame.slots.len() <= 1 << 24, "a frame's slots are bounded");
        }
    }
    let Ok(map) = record.memory_map() else { return };
    for selector in ["heap", "file:*", "range:0x0-0xffffffffffff"] {
        let selector: PmSelector = selector.parse().expect("it is a selector");
        let _ = map.select(&selector);
    }
}
