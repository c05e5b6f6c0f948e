//! What is written comes back.

use fencepost_record::{Bytes, CutPolicy, Ended, Frame, FramePlace, Problem, Record, Source, ThreadId};
use proptest::prelude::*;

use super::generate::{ThreadContents, event, open, plan, read};

proptest! {
    #[test]
    fn any_record_comes_back(plan in plan(40)) {
        let (file, written) = plan.write(true);
        let record = open(file, CutPolicy::Refuse).unwrap();
        prop_assert_eq!(record.ended(), &Ended::Sealed { how: "exit 0".to_string(), lost: 0 });
        prop_assert_eq!(read(&record).unwrap(), written.clone());
        for (thread, contents) in written.iter().enumerate() {
            prop_assert_eq!(record.thread_instructions(ThreadId(thread as u32)), contents.instructions);
        }
        let instructions: u64 = written.iter().map(|contents| contents.instructions).sum();
        prop_assert_eq!(record.instructions(), instructions);
        for block in &record.program().blocks[1..] {
            let planned = &plan.blocks[block.address as usize / 0x1000];
            let lengths: Vec<u8> = planned.iter().map(|instruction| instruction.0).collect();
            let slots: Vec<_> = planned.iter().enumerate()
                .flat_map(|(index, instruction)| instruction.1.iter().map(move |slot| (index as u16, *slot))).collect();
            prop_assert_eq!(&*block.instruction_lengths, &lengths);
            let read: Vec<_> = block.slots.iter().map(|slot| (slot.instruction, (slot.kind, slot.size))).collect();
            prop_assert_eq!(read, slots);
            for ((_, bytes), length) in block.instructions().zip(lengths) {
                prop_assert_eq!(bytes, &vec![0x90 + length; usize::from(length)]);
            }
        }
    }

    #[test]
    fn skipping_finds_the_frame_of_an_instruction(plan in plan(40), wanted in 0..20_000u64) {
        let record = open(plan.write(true).0, CutPolicy::Refuse).unwrap();
        let mut frame = Frame::default();
        for thread in (0..record.threads() as u32).map(ThreadId) {
            let total = record.thread_instructions(thread);
            let mut reader = record.reader(thread);
            let _ = reader.skip_to(u64::MAX);
            prop_assert!(!reader.next_frame(&mut frame).unwrap());
            let first = reader.skip_to(wanted);
            if reader.next_frame(&mut frame).unwrap() {
                prop_assert_eq!(frame.first_instruction, first);
                prop_assert!(first <= wanted);
                // Only a frame of events alone, right before the instruction, does not contain it.
                let end = first + frame.instructions;
                prop_assert!(wanted < end || frame.instructions == 0 && wanted == first);
            } else {
                prop_assert!(total <= wanted);
                prop_assert_eq!(first, total);
            }
        }
    }

    #[test]
    fn a_frame_reads_the_same_whatever_was_read_before_it(one in plan(20), other in plan(20)) {
        let (one, other) = (one.write(true), other.write(true));
        let record_one = open(one.0, CutPolicy::Refuse).unwrap();
        let record_other = open(other.0, CutPolicy::Refuse).unwrap();
        let mut contents = [ThreadContents::default(), ThreadContents::default()];
        let mut readers = [record_one.reader(ThreadId(0)), record_other.reader(ThreadId(0))];
        let mut frame = Frame::default();
        let mut is_more = true;
        while is_more {
            is_more = false;
            for (reader, contents) in readers.iter_mut().zip(&mut contents) {
                // A clone reads on from where its original stands.
                let mut clone = reader.clone();
                if reader.next_frame(&mut frame).unwrap() {
                    let mut again = Frame::default();
                    prop_assert!(clone.next_frame(&mut again).unwrap());
                    prop_assert_eq!(&again, &frame);
                    contents.extend(&frame);
                    is_more = true;
                }
            }
        }
        prop_assert_eq!(&contents[0], &one.1.first().cloned().unwrap_or_default());
        prop_assert_eq!(&contents[1], &other.1.first().cloned().unwrap_or_default());
    }
}

#[test]
fn every_event_has_its_name_and_its_clock() {
    let with_clock = (1..35).filter(|&code| code != 27 && event(code, [9, 1, 1, 1], "a").clock().is_some());
    let expected: Vec<u8> = (1..=21).chain([23, 24, 25, 29, 32]).collect();
    assert_eq!(with_clock.collect::<Vec<u8>>(), expected);
    assert_eq!(event(13, [0; 4], "").name(), "condition_wait");
    assert_eq!(event(33, [0; 4], "").name(), "initial_bytes");
}

#[test]
fn the_hash_depends_on_the_content_and_not_on_the_name() {
    use proptest::strategy::ValueTree;
    use proptest::test_runner::TestRunner;
    let plan = plan(40).new_tree(&mut TestRunner::deterministic()).unwrap().current();
    let file = plan.write(true).0;
    let hash = |name: &str, file: &[u8]| {
        Record::open(std::sync::Arc::new(Bytes::new(name, file.to_vec())), CutPolicy::Allow).unwrap().hash()
    };
    assert_eq!(hash("a", &file), hash("b", &file));
    assert_ne!(hash("a", &file), hash("a", &plan.write(false).0));
    assert_eq!(hash("a", &file).len(), 16);
}

/// A source whose bytes change when nobody should touch them.
struct Changing {
    before: Vec<u8>,
    after: Vec<u8>,
    has_changed: std::sync::atomic::AtomicBool,
}

impl Source for Changing {
    fn name(&self) -> &str {
        "changing"
    }

    fn len(&self) -> u64 {
        self.before.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> std::io::Result<()> {
        let has_changed = self.has_changed.load(std::sync::atomic::Ordering::Relaxed);
        let bytes = if has_changed { &self.after } else { &self.before };
        into.copy_from_slice(&bytes[offset as usize..][..into.len()]);
        Ok(())
    }
}

#[test]
fn a_record_that_changes_after_it_was_opened_is_refused_at_the_changed_frame() {
    use super::damage::{frame_places, small_plan};
    let before = small_plan().write(true).0;
    let trace = *frame_places(&before).iter().find(|place| before[place.offset as usize + 6] == 3).unwrap();
    let mut after = before.clone();
    after[trace.offset as usize + 60] ^= 1;
    let source = std::sync::Arc::new(Changing { before, after, has_changed: false.into() });
    let record = Record::open(source.clone(), CutPolicy::Refuse).unwrap();
    source.has_changed.store(true, std::sync::atomic::Ordering::Relaxed);
    let error = record.reader(ThreadId(0)).next_frame(&mut Frame::default()).unwrap_err();
    let place = FramePlace { number: trace.number, offset: trace.offset };
    assert_eq!(
        (error.frame, &error.problem),
        (Some(place), &Problem::Damaged("it has changed since the record was opened"))
    );
}
