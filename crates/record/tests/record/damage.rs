//! Records that are not what was written: cut off, with flipped bits, foreign, newer. None is read as something else.

use fencepost_record::{Codec, CutPolicy, Ended, FramePlace, Problem, WriterOptions};
use proptest::prelude::*;

use super::generate::{Action, Plan, event, open, plan, read};

/// A record small enough to try every bit of it: two threads, three frames each, events and values.
pub fn small_plan() -> Plan {
    use fencepost_record::SlotKind::{Flush, Load, Store};
    let execute = |block, times, base| Action::Execute {
        block,
        times,
        base,
        stride: 8,
        with_values: block == 1,
        interrupted_after: None,
    };
    let blocks = vec![vec![(3, vec![(Load, 8)]), (2, vec![])], vec![(4, vec![(Store, 8)]), (4, vec![(Flush, 1)])]];
    let actions = vec![
        (0, Action::Happen(event(1, [1, 4711, 0x7000, 0x8000], ""))),
        (0, execute(0, 5, 0x10_000)),
        (1, Action::Happen(event(1, [2, 4712, 0, 0], ""))),
        (1, execute(1, 4, 0x20_000)),
        (0, Action::Happen(event(5, [3, 0x40, 0, 0], ""))),
        (0, execute(1, 6, 0x30_000)),
        (1, execute(0, 9, 0x40_000)),
        (1, Action::Happen(event(2, [4, 0, 0, 0], ""))),
    ];
    let options = WriterOptions { frame_instructions: 8, frame_bytes: 1000, codec: Codec::Zstd };
    Plan { options, blocks, actions }
}

/// Where the frames of a sound record stand.
pub fn frame_places(file: &[u8]) -> Vec<FramePlace> {
    let mut places = Vec::new();
    let mut offset = 0;
    while file[offset..].starts_with(b"FPFR") {
        places.push(FramePlace { number: places.len() as u64, offset: offset as u64 });
        let stored = u32::from_le_bytes(file[offset + 32..offset + 36].try_into().unwrap());
        offset += 48 + stored as usize;
    }
    places
}

fn with_flipped_bit(file: &[u8], bit: usize) -> Vec<u8> {
    let mut file = file.to_vec();
    file[bit / 8] ^= 1 << (bit % 8);
    file
}

#[test]
fn a_sealed_record_with_any_flipped_bit_is_refused() {
    let file = small_plan().write(true).0;
    for bit in 0..8 * file.len() {
        for cut in [CutPolicy::Refuse, CutPolicy::Allow] {
            assert!(open(with_flipped_bit(&file, bit), cut).is_err(), "bit {bit}, {cut:?}");
        }
    }
}

#[test]
fn an_unsealed_record_with_any_flipped_bit_is_refused() {
    let file = small_plan().write(false).0;
    assert!(open(file.clone(), CutPolicy::Allow).is_ok());
    for bit in 0..8 * file.len() {
        assert!(open(with_flipped_bit(&file, bit), CutPolicy::Allow).is_err(), "bit {bit}");
    }
}

#[test]
fn the_damaged_frame_is_named() {
    let file = small_plan().write(true).0;
    let places = frame_places(&file);
    assert!(places.len() >= 9, "INFO, CODE, six of TRACE, SEAL");
    for (index, place) in places.iter().enumerate().skip(1) {
        let end = places.get(index + 1).map_or(file.len() - 32, |next| next.offset as usize);
        for byte in place.offset as usize..end {
            let error = open(with_flipped_bit(&file, 8 * byte + 3), CutPolicy::Allow).err().unwrap();
            assert_eq!(error.frame, Some(*place), "byte {byte}: {error}");
            let message = error.to_string();
            let begin = format!("test.fencepost: frame {} at offset {}: ", place.number, place.offset);
            assert!(message.starts_with(&begin) && !message.contains('\n'), "{message}");
        }
    }
}

#[test]
fn a_record_cut_anywhere_is_refused_unless_cuts_are_allowed_and_then_read_up_to_there() {
    for is_sealed in [true, false] {
        let (file, written) = small_plan().write(is_sealed);
        let places = frame_places(&file);
        for length in 0..file.len() {
            let cut = file[..length].to_vec();
            let refused = open(cut.clone(), CutPolicy::Refuse).err().unwrap();
            let frame_ends = places.iter().skip(1).map(|place| place.offset as usize);
            let footer = if is_sealed { file.len() - 32 } else { file.len() };
            let whole = frame_ends.chain([footer]).filter(|&end| end <= length).count();
            if whole == 0 {
                let problem = open(cut, CutPolicy::Allow).err().unwrap().problem;
                assert!(matches!(problem, Problem::NothingWhole | Problem::NotARecord(_)), "{length}: {problem}");
                continue;
            }
            let Problem::Unsealed { whole_frames, .. } = refused.problem else { panic!("{length}: {refused}") };
            assert_eq!(whole_frames, whole as u64);
            let record = open(cut, CutPolicy::Allow).unwrap();
            let Ended::Cut { whole_frames, incomplete } = *record.ended() else {
                panic!("{length} bytes are not sealed")
            };
            assert_eq!(whole_frames, whole as u64);
            let is_between_frames = length == footer || places.iter().any(|place| place.offset as usize == length);
            let is_in_footer = length >= footer;
            assert_eq!(incomplete.is_none(), is_between_frames || is_in_footer, "{length}");
            for (read, written) in read(&record).unwrap().iter().zip(&written) {
                assert!(read.is_prefix_of(written), "{length}");
            }
        }
    }
}

#[test]
fn what_is_no_record_says_so() {
    let problem = |bytes: &[u8]| open(bytes.to_vec(), CutPolicy::Allow).err().unwrap().to_string();
    assert_eq!(problem(b""), "test.fencepost: this is not a record: it is empty");
    let foreign = "test.fencepost: this is not a record: it does not begin with `FPFR`";
    assert_eq!(problem(b"\x7fELF, and so on"), foreign);
    assert_eq!(problem(b"F!"), foreign);
    assert_eq!(problem(b"FP"), "test.fencepost: the record was cut off before its first frame was whole");
}

#[test]
fn another_version_is_refused_by_its_number() {
    let error = |version| {
        let mut file = small_plan().write(true).0;
        file[4] = version;
        open(file, CutPolicy::Allow).err().unwrap().to_string()
    };
    let later = "test.fencepost: the record's format version is 6, and this program reads version 5";
    assert_eq!(error(6), later);
    let older = "test.fencepost: the record's format version is 4, and this program reads version 5: record the program \
                 again (fencepost record)";
    assert_eq!(error(4), older);
}

#[test]
fn bytes_after_the_footer_and_frames_missing_in_the_middle_are_refused() {
    let file = small_plan().write(true).0;
    let places = frame_places(&file);
    let longer = [&file[..], &[0]].concat();
    let twice = [&file[..], &file].concat();
    // The first frame of the first thread, behind INFO and CODE; others of that thread follow.
    let (from, to) = (places[2].offset as usize, places[3].offset as usize);
    assert_eq!(file[from + 6..from + 16], [3, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
    let without_a_frame = [&file[..from], &file[to..]].concat();
    let seal = places.last().unwrap().offset as usize;
    let without_seal = [&file[..seal], &file[file.len() - 32..]].concat();
    for (what, file) in [("longer", longer), ("twice", twice), ("gap", without_a_frame), ("no seal", without_seal)] {
        let error = open(file, CutPolicy::Allow).err().unwrap_or_else(|| panic!("{what} is refused"));
        assert!(matches!(error.problem, Problem::DamagedEnd(_)), "{what}: {error}");
    }
    // Without its end the record with the gap is an unsealed one, whose threads then do not continue.
    let gap_unsealed = [&file[..from], &file[to..seal]].concat();
    assert!(matches!(open(gap_unsealed, CutPolicy::Allow).err().unwrap().problem, Problem::Malformed(_)));
}

proptest! {
    #[test]
    fn whatever_happens_to_the_bytes_what_is_read_was_written(
        plan in plan(20),
        is_sealed: bool,
        flips in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let (mut file, written) = plan.write(is_sealed);
        let whole = file.clone();
        for flip in flips {
            let bit = flip.index(8 * file.len());
            file[bit / 8] ^= 1 << (bit % 8);
        }
        if let Some(cut) = cut {
            file.truncate(cut.index(file.len()));
        }
        let is_changed = file != whole;
        if let Ok(record) = open(file.clone(), CutPolicy::Refuse) {
            prop_assert!(!is_changed);
            prop_assert_eq!(read(&record).unwrap(), written.clone());
        }
        if let Ok(record) = open(file, CutPolicy::Allow) {
            prop_assert_eq!(matches!(record.ended(), Ended::Sealed { .. }), is_sealed && !is_changed);
            for (read, written) in read(&record).unwrap().iter().zip(&written) {
                prop_assert!(read.is_prefix_of(written));
            }
        }
    }

    #[test]
    fn random_bytes_are_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(open(bytes.clone(), CutPolicy::Allow).is_err());
        let like_a_record = [b"FPFR\x01\x00\x01\x00", &bytes[..]].concat();
        prop_assert!(open(like_a_record, CutPolicy::Allow).is_err());
    }
}
