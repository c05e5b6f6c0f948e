//! Records whose checksums are right and whose contents are not: the work of a faulty recorder, or of an adversary.

use fencepost_record::{Codec, CutPolicy, Frame, Problem, Summary, ThreadId};
use proptest::prelude::*;
use xxhash_rust::xxh64::xxh64;

use super::damage::{frame_places, small_plan};
use super::generate::{open, plan, read};
use super::summary::noted;

/// Makes the checksums of all frames and of the footer fit again, as far as frames can be found.
fn sign(file: &mut [u8]) {
    let mut offset = 0;
    while file.get(offset..offset + 48).is_some_and(|header| header.starts_with(b"FPFR")) {
        let stored = u32::from_le_bytes(file[offset + 32..offset + 36].try_into().unwrap()) as usize;
        let Some(payload) = file.get(offset + 48..(offset + 48).saturating_add(stored)) else { break };
        let covered = [&file[offset..offset + 40], payload].concat();
        file[offset + 40..offset + 48].copy_from_slice(&xxh64(&covered, 0).to_le_bytes());
        offset += 48 + stored;
    }
    if file.get(offset..).is_some_and(|footer| footer.len() == 32 && footer.starts_with(b"FPRECEND")) {
        let footer = offset;
        let checksum = xxh64(&file[footer..footer + 24], 0).to_le_bytes();
        file[footer + 24..].copy_from_slice(&checksum);
    }
}

/// Header and payload of one stored frame, signed.
fn frame(kind: u8, thread: u32, sequence: u32, instructions: u64, position: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = b"FPFR\x05\x00".to_vec();
    frame.extend([kind, 0]);
    frame.extend(thread.to_le_bytes());
    frame.extend(sequence.to_le_bytes());
    frame.extend(instructions.to_le_bytes());
    frame.extend(position.to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend([0; 8]);
    frame.extend(payload);
    sign(&mut frame);
    frame
}

fn info() -> Vec<u8> {
    let info = br#"{"format_version":5,"isa":"x86-64","recorder":"r","engine":"e","program":"p","arguments":[],
        "page_size":4096,"line_size":64,"options":{"values":false,"pm":null,"roi":null},"later":"ignored"}"#;
    frame(1, 0, 0, 0, 0, info)
}

/// One block of two instructions with one load.
fn code() -> Vec<u8> {
    let mut payload = 0x1000u64.to_le_bytes().to_vec();
    payload.extend([0, 2, 1, 1, 0x90, 0x90, 1, 0, 0, 8]);
    frame(2, 0, 0, 1, 1, &payload)
}

fn streams(streams: &[(u32, &[u8])]) -> Vec<u8> {
    let mut payload = (streams.len() as u32).to_le_bytes().to_vec();
    for (id, contents) in streams {
        payload.extend(id.to_le_bytes());
        payload.extend((contents.len() as u32).to_le_bytes());
    }
    payload.extend(streams.iter().flat_map(|stream| stream.1));
    payload
}

/// What reading says about a record with this trace frame.
fn problem_of_trace(instructions: u64, payload: &[u8]) -> Option<Problem> {
    let file = [info(), code(), frame(3, 0, 0, instructions, 0, payload)].concat();
    let record = match open(file, CutPolicy::Allow) {
        Ok(record) => record,
        Err(error) => return Some(error.problem),
    };
    record.reader(ThreadId(0)).next_frame(&mut Frame::default()).err().map(|error| error.problem)
}

const CLOCK: (u32, &[u8]) = (4, &[0; 16]);

#[test]
fn a_sound_frame_by_hand_is_read() {
    // Block 1, then twice what followed it: itself.
    let control = [0, 1, 0, 1, 2];
    assert_eq!(problem_of_trace(8, &streams(&[(1, &control), (2, &[2, 4, 0, 0]), CLOCK])), None);
    assert_eq!(problem_of_trace(8, &streams(&[(1, &control), (9, &[1, 2]), (2, &[2, 4, 0, 0]), CLOCK])), None);
    assert_eq!(problem_of_trace(0, &streams(&[CLOCK])), None);
}

#[test]
fn each_broken_rule_of_a_trace_is_named() {
    let malformed = |part: &str, instructions, payload: &[u8]| {
        let problem = problem_of_trace(instructions, payload).unwrap_or_else(|| panic!("{part}: accepted"));
        let message = problem.to_string();
        assert!(message.contains(part), "`{message}` should say `{part}`");
    };
    malformed("a field runs past", 0, &streams(&[]));
    malformed("more streams than bytes", 0, &[255, 255, 255, 255]);
    malformed("a stream runs past", 0, &[1, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0]);
    malformed("follow its last stream", 0, &[&streams(&[CLOCK])[..], &[0]].concat());
    malformed("a stream is there twice", 0, &streams(&[CLOCK, CLOCK]));
    malformed("not two growing clocks", 0, &streams(&[(4, &[1; 8].into_iter().chain([0; 8]).collect::<Vec<u8>>())]));
    malformed("a prediction that there is not", 2, &streams(&[(1, &[1, 1]), CLOCK]));
    malformed("a prediction that there is not", 4, &streams(&[(1, &[0, 1, 1]), (2, &[0, 0]), CLOCK]));
    malformed("ends within a number", 2, &streams(&[(1, &[0, 0x80]), (4, &[0x80; 16])]));
    malformed("block 2 is executed, and the record defines 1", 2, &streams(&[(1, &[0, 2]), CLOCK]));
    malformed("fewer events than", 2, &streams(&[(1, &[0, 0]), CLOCK]));
    malformed("more events than", 2, &streams(&[(1, &[0, 1]), (2, &[0]), (3, &[2, 0]), CLOCK]));
    malformed("another number of instructions", 1, &streams(&[(1, &[0, 1]), (2, &[0]), CLOCK]));
    malformed("an interruption does not fit", 0, &streams(&[(1, &[0, 0]), (3, &[27, 0]), CLOCK]));
    malformed("an interruption does not fit", 2, &streams(&[(1, &[0, 1, 0, 0]), (2, &[0]), (3, &[27, 3]), CLOCK]));
    let twice: &[u8] = &[27, 0, 27, 0];
    malformed("an interruption does not fit", 2, &streams(&[(1, &[0, 1, 0, 0, 0, 0]), (2, &[0]), (3, twice), CLOCK]));
    malformed("more slots than its slot stream", 2, &streams(&[(1, &[0, 1]), CLOCK]));
    malformed("ends before its blocks do", 2, &streams(&[(1, &[0, 1]), (2, &[0x80]), CLOCK]));
    malformed("follow its last slot value", 2, &streams(&[(1, &[0, 1]), (2, &[0, 0]), CLOCK]));
    malformed("more writes than were executed", 2, &streams(&[(1, &[0, 1]), (2, &[0]), CLOCK, (5, &[0])]));
}

#[test]
fn few_bytes_cannot_claim_much_memory() {
    let too_large = |problem: Option<Problem>| matches!(problem, Some(Problem::TooLarge { .. }));
    let endless_run = [&[0, 1, 0, 1][..], &[0xff; 9], &[1]].concat();
    let most = (1 << 22) + (1 << 16);
    assert!(too_large(problem_of_trace(most, &streams(&[(1, &endless_run), (2, &[0, 0]), CLOCK]))));
    assert!(too_large(problem_of_trace(most + 1, &streams(&[CLOCK]))));
    // More blocks than its header has instructions, on to the limit.
    let long_run = [&[0, 1, 0, 1][..], &[0xff, 0xff, 0xff, 7]].concat();
    assert!(too_large(problem_of_trace(1000, &streams(&[(1, &long_run), (2, &[0, 0]), CLOCK]))));
    let many_events = [26u8, 1].repeat((1 << 19) + 1);
    assert!(too_large(problem_of_trace(0, &streams(&[(3, &many_events), CLOCK]))));
    // 2^21 times one slot, and a stream of two bytes.
    let slots = problem_of_trace(1 << 22, &streams(&[(1, &[0, 1, 0, 1, 0xfe, 0xff, 0x7f]), (2, &[0, 0]), CLOCK]));
    assert!(matches!(slots, Some(Problem::Malformed(_))), "{slots:?}");

    let of_frames = |frames: &[Vec<u8>]| open(frames.concat(), CutPolicy::Allow).err().map(|error| error.problem);
    let code = |count, payload: &[u8]| of_frames(&[info(), frame(2, 0, 0, count, 1, payload)]);
    let many_slots = [&[0; 8][..], &[0, 1, 1, 0x90], &[0xff; 9], &[1]].concat();
    assert!(matches!(code(1, &many_slots), Some(Problem::Malformed(_))));
    let many_instructions = [&[0; 8][..], &[0], &[0xff; 9], &[1]].concat();
    assert!(too_large(code(1, &many_instructions)));
    assert!(matches!(code(u64::MAX, &[]), Some(Problem::Malformed(_))));
    let seal = [&[0, 0][..], &[0xff; 9], &[1]].concat();
    assert!(matches!(of_frames(&[info(), frame(4, 0, 0, 0, 0, &seal)]), Some(Problem::Malformed(_))));
    let thread = frame(3, 1 << 20, 0, 0, 0, &streams(&[CLOCK]));
    assert!(too_large(of_frames(&[info(), thread])));
    let arguments = format!("{{\"arguments\":[{}\"\"]}}", "\"\",".repeat(6 << 20));
    assert!(too_large(of_frames(&[frame(1, 0, 0, 0, 0, arguments.as_bytes())])));
    let mut long = info();
    long[32..40].fill(0xff);
    assert!(too_large(of_frames(&[long])));
}

/// A frame with these payload bytes, compressed.
fn compressed(kind: u8, sequence: u32, instructions: u64, position: u64, payload: &[u8]) -> Vec<u8> {
    let stored = zstd::bulk::compress(payload, 3).expect("it can be compressed");
    let mut frame = frame(kind, 0, sequence, instructions, position, &stored);
    frame[7] = 1;
    frame[36..40].copy_from_slice(&(payload.len() as u32).to_le_bytes());
    sign(&mut frame);
    frame
}

#[test]
fn code_that_compresses_as_no_program_does_is_refused() {
    let block = [&0x1000u64.to_le_bytes()[..], &[0, 1, 1, 0x90, 0]].concat();
    let frames = |count: usize| {
        let payload = block.repeat(count);
        let parts: Vec<Vec<u8>> = (0..3u32)
            .map(|sequence| {
                let first = 1 + u64::from(sequence) * count as u64;
                compressed(2, sequence, count as u64, first, &payload)
            })
            .collect();
        open([info(), parts.concat()].concat(), CutPolicy::Allow)
    };
    assert!(frames(1 << 15).is_ok());
    let error = frames(1 << 18).expect_err("ten million bytes of a few hundred");
    assert!(error.to_string().contains("frame 3"), "{error}");
    assert!(matches!(error.problem, Problem::TooLarge { found: 10_223_616, .. }), "{error}");
}

#[test]
fn frames_out_of_their_order_are_refused() {
    let trace = |sequence, instructions, position| frame(3, 0, sequence, instructions, position, &streams(&[CLOCK]));
    let cases = [
        ("no INFO first", vec![code()]),
        ("INFO twice", vec![info(), info()]),
        ("CODE twice", vec![info(), code(), code()]),
        ("TRACE not from 0", vec![info(), code(), trace(1, 0, 0)]),
        ("TRACE with a gap", vec![info(), code(), trace(0, 5, 0), trace(1, 5, 6)]),
        ("a position of INFO", vec![frame(1, 0, 0, 0, 1, &info()[48..])]),
        ("no JSON", vec![frame(1, 0, 0, 0, 0, b"{")]),
    ];
    for (what, frames) in cases {
        let error = open(frames.concat(), CutPolicy::Allow).err().unwrap_or_else(|| panic!("{what}: accepted"));
        assert!(matches!(error.problem, Problem::Malformed(_) | Problem::Json(_)), "{what}: {error}");
        assert!(error.frame.is_some(), "{what}: {error}");
    }
}

#[test]
fn a_seal_that_says_something_else_than_the_frames_is_refused() {
    let file = small_plan().write(true).0;
    let seal = frame_places(&file).last().unwrap().offset as usize;
    let mut stored = small_plan();
    stored.options.codec = Codec::Stored;
    let file_stored = stored.write(true).0;
    let seal_stored = frame_places(&file_stored).last().unwrap().offset as usize;
    let mut other_index = file_stored.clone();
    let last = other_index.len() - 33;
    other_index[last] ^= 1;
    sign(&mut other_index);
    let error = open(other_index, CutPolicy::Allow).err().unwrap();
    assert_eq!(error.frame.map(|frame| frame.offset), Some(seal_stored as u64));
    assert!(error.to_string().contains("its index is not that of the frames"), "{error}");

    let mut other_footer = file.clone();
    let footer = other_footer.len() - 32;
    other_footer[footer + 8..footer + 16].copy_from_slice(&(seal as u64 - 1).to_le_bytes());
    sign(&mut other_footer);
    assert!(matches!(open(other_footer, CutPolicy::Allow).err().unwrap().problem, Problem::DamagedEnd(_)));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn changed_contents_under_right_checksums_never_panic(
        plan in plan(12),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..5),
        is_stored in prop::bool::weighted(0.8),
    ) {
        let mut plan = plan;
        plan.options.codec = if is_stored { Codec::Stored } else { Codec::Zstd };
        let mut file = plan.write(true).0;
        for (index, value) in changes {
            let place = index.index(file.len());
            file[place] = value;
        }
        sign(&mut file);
        if let Ok(record) = open(file.clone(), CutPolicy::Allow) {
            if let Err(error) = read(&record) {
                prop_assert!(error.frame.is_some(), "{}", error);
            }
            let _ = Summary::of(&record, noted);
            let _ = record.memory_map();
        }
        let _ = Summary::inspect(std::sync::Arc::new(fencepost_record::Bytes::new("changed", file)), noted);
    }
}
