//! What a power cut can leave, from stores and promises that are written down by hand.

use std::collections::BTreeSet;
use std::sync::Arc;

use fencepost_isa::micro_op::{Fence, Flush, Operation};
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::{Duration, Time};
use fencepost_record::{Clock, MarkKind};

use super::Exploration;
use super::content_hash::LINE;
use super::diagnosis::Fault;
use super::explanation::ExplainedStore;
use super::image_stores::StoreRun;
use super::operations::{MarksMatter, PassedMark, RecordedMark};
use super::pool_file::PoolFile;
use super::recorded_stores::{Act, ForeignBytes, RecordedStores};
use super::replay::{Change, LineHistory, MadeVersion, Replayed};

/// The pool is mapped here, from its beginning.
const PAGE: u64 = 0x7000;
const POOL: u64 = PAGE << 12;

/// Writes down what happened, one picosecond after the other.
struct Script {
    recorded: RecordedStores,
    replayed: Replayed,
}

impl Script {
    fn new(lines: u32) -> Script {
        let line = |number: u32| LineHistory {
            virtual_line: POOL / LINE as u64 + u64::from(number),
            file_line: number.into(),
            physical: LineAddress(number.into()),
            versions: Vec::new(),
        };
        let file = PoolFile::of_pages([(PAGE, 0)]);
        let replayed = Replayed { file, lines: (0..lines).map(line).collect(), ..Replayed::default() };
        Script { recorded: RecordedStores::default(), replayed }
    }

    /// A store of one byte to the beginning of a line becomes visible.
    fn store(self, line: u32, byte: u8) -> Script {
        self.store_by(0, line, byte)
    }

    fn store_by(mut self, thread: u32, line: u32, byte: u8) -> Script {
        let store = self.recorded.add_store(thread, POOL + u64::from(line) * LINE as u64, &[byte]);
        let versions = &mut self.replayed.lines[line as usize].versions;
        let version = versions.len() as u64 + 1;
        versions.push(MadeVersion { version, stores: vec![store], change: self.replayed.changes.len() });
        self.happens(Change::Visible(line))
    }

    /// A thread flushes a line and waits for it, as the record has it: the line is promised apart.
    fn flush_by(mut self, thread: u32, line: u32) -> Script {
        let address = POOL + u64::from(line) * LINE as u64;
        self.recorded.add_act(thread, Act::Flush { address, operation: Operation::Flush(Flush::CLWB) });
        self.recorded.add_act(thread, Act::Fence { operation: Operation::Fence(Fence::SFENCE) });
        self
    }

    /// So many stores to the line are promised to be durable.
    fn promise(self, line: u32, stores: u32) -> Script {
        self.happens(Change::Durable(line, stores))
    }

    /// The pool is mapped, and holds a byte at the beginning of a line.
    fn initial(mut self, line: u32, byte: u8) -> Script {
        let address = POOL + u64::from(line) * LINE as u64;
        self.recorded.foreign.push(ForeignBytes { thread: 0, acts_before: 0, address, bytes: Box::new([byte]) });
        let number = self.recorded.foreign.len() as u32 - 1;
        self.happens(Change::Foreign(number))
    }

    /// The first thread says something of its operations.
    fn mark(mut self, kind: MarkKind) -> Script {
        let acts_before = self.recorded.threads.first().map_or(0, |acts| acts.len() as u32);
        let mark = RecordedMark { kind, text: String::new(), clock: Clock(0), acts_before };
        let number = self.replayed.marks.len() as u32;
        self.replayed.marks.push(PassedMark { thread: 0, mark, time: Time::ZERO });
        self.happens(Change::Mark(number))
    }

    fn happens(mut self, change: Change) -> Script {
        let now = Time::ZERO + Duration::from_ps(self.replayed.changes.len() as u64);
        self.replayed.changes.push((now, change));
        self
    }

    fn explore(self) -> Exploration {
        Exploration::new(Arc::new(self.recorded), Arc::new(self.replayed), 8)
    }

    fn instants(self) -> usize {
        let mut exploration = self.explore();
        std::iter::repeat_with(|| exploration.advance()).take_while(|is_one| *is_one).count()
    }

    /// The first bytes of all lines in each image, by instant.
    fn images(self) -> Vec<BTreeSet<Vec<u8>>> {
        let lines = self.replayed.lines.len();
        let mut exploration = self.explore();
        let (mut found, mut base) = (Vec::new(), vec![0; lines]);
        while exploration.advance() {
            exploration.take_changes().iter().for_each(|(line, bytes)| base[*line as usize] = bytes[0]);
            let images = exploration.images(1000, 0, None);
            assert!(images.is_all);
            let image = |choice| {
                let mut image = base.clone();
                exploration.patches(choice).iter().for_each(|(line, bytes)| image[*line as usize] = bytes[0]);
                image
            };
            found.push(images.images.iter().map(|made| image(&made.choice)).collect());
        }
        found
    }
}

fn set<const N: usize>(images: [&[u8]; N]) -> BTreeSet<Vec<u8>> {
    images.into_iter().map(<[u8]>::to_vec).collect()
}

#[test]
fn lines_that_nobody_flushed_may_be_durable_in_any_combination() {
    let images = Script::new(2).store(0, 1).store(1, 2).images();
    assert_eq!(images, [set([&[0, 0], &[1, 0], &[0, 2], &[1, 2]])]);
}

#[test]
fn stores_to_one_line_become_durable_in_their_order() {
    let images = Script::new(1).store(0, 1).store(0, 2).store(0, 3).images();
    assert_eq!(images, [set([&[0], &[1], &[2], &[3]])], "and never the third without the second");
}

#[test]
fn what_was_promised_is_in_every_image_from_then_on() {
    let images = Script::new(2).store(0, 1).promise(0, 1).store(1, 2).promise(1, 1).images();
    assert_eq!(images, [set([&[0, 0], &[1, 0]]), set([&[1, 2]])], "never the second line without the first");
}

#[test]
fn an_instant_is_right_before_a_promise_if_something_became_visible() {
    let script = Script::new(2).store(0, 1).store(1, 2).promise(0, 1).promise(1, 1).promise(1, 1);
    assert_eq!(script.instants(), 1, "what is possible between the promises was so before the first");
    assert_eq!(Script::new(1).instants(), 1, "a program that stores nothing leaves one state");
}

#[test]
fn the_same_content_is_one_image_however_it_came_about() {
    let images = Script::new(1).store(0, 7).promise(0, 1).store(0, 8).store(0, 7).promise(0, 3).images();
    assert_eq!(images, [set([&[0], &[7]]), set([&[8]])]);
    let mut exploration = Script::new(1).store(0, 7).store(0, 0).explore();
    assert!(exploration.advance());
    let images = exploration.images(1000, 0, None);
    assert_eq!((images.images.len(), images.duplicates, images.combinations), (2, 1, 3.0));
}

#[test]
fn what_the_pool_held_is_durable_and_lies_over_older_stores() {
    let images = Script::new(1).store(0, 1).initial(0, 5).promise(0, 1).store(0, 6).images();
    assert_eq!(images, [set([&[5]]), set([&[6]])]);
}

#[test]
fn each_store_behind_what_was_promised_is_durable_or_lost() {
    // Two stores each of different instructions to lines 0 and 1, one of either promised; line 2 is not in doubt.
    let script = Script::new(3).store(0, 1).store(1, 2).store(2, 3).promise(2, 1).promise(0, 1).store(0, 4);
    let mut exploration = script.store(0, 5).store(1, 6).explore();
    while exploration.advance() {}
    let doubtful: Vec<_> = exploration.doubtful().iter().map(|line| line.contents.len()).collect();
    assert_eq!(doubtful, [3, 3]);
    let instruction = |store: &ExplainedStore| exploration.recorded.sites.get(store.site).instruction;
    let instructions =
        |runs: &[StoreRun]| runs.iter().map(|run| (instruction(&run.first), run.stores)).collect::<Vec<_>>();
    let stores = exploration.stores_in(&vec![1, 2]);
    let told = stores.iter().map(|line| {
        let promised = line.promised.as_ref().map(instruction);
        (line.offset, promised, instructions(&line.durable), instructions(&line.lost))
    });
    assert_eq!(
        told.collect::<Vec<_>>(),
        [(0, Some(100), vec![(103, 1)], vec![(104, 1)]), (64, None, vec![(101, 1), (105, 1)], vec![])]
    );
}

#[test]
fn an_image_gets_the_stores_that_it_lacks_up_to_the_last_one_that_is_meant() {
    // Line 0 gets four stores, line 1 two; those with even bytes are meant. The byte of a store says which it is.
    let script = Script::new(2).store(0, 1).store(0, 2).store(1, 3).store(0, 4).store(0, 5).store(1, 7);
    let mut exploration = script.explore();
    assert!(exploration.advance());
    let recorded = Arc::clone(&exploration.recorded);
    let meant = [recorded.site_of(1), recorded.site_of(3)];
    let is_meant = |site| meant.contains(&site);
    assert_eq!(exploration.lost_sites(&vec![2, 0]).into_iter().collect::<Vec<_>>(), [2, 3, 4, 5]);
    assert_eq!(
        exploration.without_loss(&vec![0, 0], is_meant),
        (vec![3, 0], vec![1, 0]),
        "before is without the first"
    );
    assert_eq!(exploration.without_loss(&vec![2, 1], is_meant), (vec![3, 1], vec![2, 1]));
    assert_eq!(
        exploration.without_loss(&vec![4, 0], is_meant),
        (vec![4, 0], vec![4, 0]),
        "nothing that is meant is lost"
    );
}

#[test]
fn the_store_behind_the_content_that_fails_is_the_one_that_is_lost() {
    // The third store to line 0 changes nothing: the content that the fourth one makes is the next.
    let script = Script::new(2).store(0, 1).store(0, 2).store(0, 2).store(0, 3).store(1, 9).promise(1, 1);
    let mut exploration = script.explore();
    assert!(exploration.advance());
    let instruction = |site| exploration.recorded.sites.get(site).instruction;
    let lost = |content| {
        let explanation = exploration.explain(&vec![content, 1], &[1], &[0]);
        let lost = explanation.lost.map(|store| instruction(store.site));
        (lost, explanation.durable.map(|store| instruction(store.site)))
    };
    assert_eq!(lost(0), (Some(100), Some(104)));
    assert_eq!(lost(1), (Some(101), Some(104)));
    assert_eq!(lost(2), (Some(103), Some(104)));
}

#[test]
fn another_thread_waited_for_the_lost_store_only_if_it_stored_after_it() {
    // Line 0 is lost, line 1 durable and in doubt; both threads flush what they store.
    let fault_of = |script: Script| {
        let mut exploration = script.explore();
        assert!(exploration.advance());
        exploration.explain(&vec![0, 1], &[1], &[0]).fault
    };
    let lost_first = Script::new(2).store_by(0, 0, 1).store_by(1, 1, 2).flush_by(0, 0).flush_by(1, 1);
    assert_eq!(fault_of(lost_first), Fault::AcrossThreads);
    let durable_first = Script::new(2).store_by(1, 1, 2).store_by(0, 0, 1).flush_by(0, 0).flush_by(1, 1);
    assert_eq!(fault_of(durable_first), Fault::LaterStore);
}

#[test]
fn where_all_is_promised_the_thread_of_the_lost_store_is_looked_at_first() {
    // A thread promises line 1 too early and stores to line 0; another one works meanwhile in line 2.
    let script = Script::new(3).store(1, 1).promise(1, 1).store(0, 2).store_by(1, 2, 3).promise(2, 1);
    let mut exploration = script.flush_by(0, 0).flush_by(1, 2).store(0, 3).explore();
    while exploration.advance() {}
    let explanation = exploration.explain(&vec![0], &[], &[0]);
    let instruction = |store: ExplainedStore| (store.thread, exploration.recorded.sites.get(store.site).instruction);
    assert_eq!((explanation.fault, explanation.durable.map(instruction)), (Fault::LaterStore, Some((0, 100))));
}

#[test]
fn lines_that_the_check_does_not_read_stay_as_promised() {
    let mut exploration = Script::new(2).store(0, 1).store(1, 2).explore();
    assert!(exploration.advance());
    let images = exploration.images(1000, 0, Some(&[1].into()));
    let choices: Vec<_> = images.images.iter().map(|image| image.choice.clone()).collect();
    assert_eq!((choices, images.combinations), (vec![vec![0, 0], vec![0, 1]], 2.0));
}

#[test]
fn a_line_may_have_any_number_of_contents() {
    for stores in [65_534, 65_535, 65_536, 70_000] {
        let script = (0..stores).fold(Script::new(1), |script, store| script.store(0, store as u8 % 200 + 1));
        let mut exploration = script.explore();
        let newest = exploration.left();
        assert_eq!(newest[0].1[0], (stores - 1) as u8 % 200 + 1, "{stores} stores");
        assert!(exploration.advance());
        let images = exploration.images(100_000, 0, None);
        assert!(images.is_all && images.combinations == f64::from(stores) + 1.0, "{stores} stores");
        let (choices, ..) = exploration.choices(100_000, 0, None);
        assert!((0..=stores).eq(choices.into_iter().flatten()), "each content of the line, with {stores} stores");
        assert_eq!(images.images.len() as u64 + images.duplicates, u64::from(stores) + 1);
        assert_eq!(images.images.len(), 201, "200 bytes, and what there was before");
    }
}

/// Creates line 0, then changes lines 1 and 2 in an operation each.
fn two_operations() -> Script {
    let created = Script::new(3).store(0, 1).promise(0, 1);
    let first = created.mark(MarkKind::Begin).store(1, 2).promise(1, 1).mark(MarkKind::End);
    first.mark(MarkKind::Begin).store(2, 3).promise(2, 1).mark(MarkKind::End)
}

/// How many marks were passed at each instant, and how many images are new there.
fn instants_by_marks(script: Script, matter: MarksMatter) -> (Vec<(u32, usize)>, usize) {
    let mut exploration = script.explore();
    exploration.set_marks_matter(matter);
    let mut found = Vec::new();
    while exploration.advance() {
        found.push((exploration.marks_passed(), exploration.images(100, 0, None).images.len()));
    }
    (found, exploration.skipped())
}

#[test]
fn marks_alone_change_nothing_that_is_explored() {
    let (instants, skipped) = instants_by_marks(two_operations(), MarksMatter::default());
    assert_eq!((instants, skipped), (vec![(0, 2), (1, 1), (3, 1)], 0));
}

#[test]
fn what_comes_before_the_first_operation_is_skipped() {
    let skips = MarksMatter { skips_creation: true, ..MarksMatter::default() };
    assert_eq!(instants_by_marks(two_operations(), skips), (vec![(1, 2), (3, 1)], 1));
    let (instants, skipped) = instants_by_marks(Script::new(1).store(0, 1).promise(0, 1), skips);
    assert_eq!((instants, skipped), (vec![(0, 2)], 0), "without operations there is nothing to skip");
}

#[test]
fn a_check_that_is_told_of_operations_sees_each_image_before_the_next_begins() {
    let told = MarksMatter { check_is_told: true, skips_creation: true };
    let (instants, skipped) = instants_by_marks(two_operations(), told);
    assert_eq!((instants, skipped), (vec![(1, 2), (2, 1), (3, 2), (4, 1)], 1));
}

#[test]
fn a_store_ends_with_the_operation_that_it_lies_in() {
    // By store, before how many acts its operation has ended.
    let ends = |script: Script| {
        let mut exploration = script.explore();
        exploration.set_marks_matter(MarksMatter { check_is_told: true, ..MarksMatter::default() });
        while exploration.advance() {}
        (0..exploration.recorded.stores.len() as u32).map(|store| exploration.end_after(store)).collect::<Vec<_>>()
    };
    let begin = |script: Script| script.mark(MarkKind::Begin);
    let end = |script: Script| script.mark(MarkKind::End);
    let around = end(begin(Script::new(1).store(0, 1)).store(0, 2)).store(0, 3);
    assert_eq!(ends(end(begin(around).store(0, 4))), [None, Some(2), None, Some(4)]);
    let nested = || end(begin(begin(Script::new(1)).store(0, 1)).store(0, 2)).store(0, 3);
    assert_eq!(ends(nested()), [None, Some(2), None]);
    assert_eq!(ends(end(nested())), [Some(3), Some(2), Some(3)]);
    let told = end(begin(Script::new(1)).store(0, 1)).store(0, 2).mark(MarkKind::Acknowledged);
    assert_eq!(ends(told), [Some(2), None], "whoever is told of an operation is told of no store behind it");
}

#[test]
fn the_pool_at_a_mark_has_all_that_was_stored_before_it() {
    let exploration = two_operations().explore();
    let at = |mark| exploration.at_mark(mark).into_iter().map(|(line, bytes)| (line, bytes[0])).collect::<Vec<_>>();
    assert_eq!(at(0), [(0, 1)]);
    assert_eq!(at(1), [(0, 1), (1, 2)]);
    assert_eq!(at(3), [(0, 1), (1, 2), (2, 3)]);
    let unflushed = Script::new(1).store(0, 1).mark(MarkKind::End).store(0, 2).explore();
    assert_eq!(unflushed.at_mark(0)[0].1[0], 1, "durable or not");
}

#[test]
fn of_stores_that_are_written_together_the_pool_at_a_mark_has_those_before_it() {
    // Two non-temporal stores, to the first two bytes of the line, with a mark between them.
    let mut script = Script::new(1);
    let first = script.recorded.add_store(0, POOL, &[1]);
    let mut script = script.mark(MarkKind::End);
    let second = script.recorded.add_store(0, POOL + 1, &[2]);
    let change = script.replayed.changes.len();
    script.replayed.lines[0].versions.push(MadeVersion { version: 1, stores: vec![first, second], change });
    let exploration = script.happens(Change::Visible(0)).explore();
    let [(0, bytes)] = exploration.at_mark(0)[..] else { panic!("the line is not there") };
    assert_eq!(bytes[..2], [1, 0]);
}

#[test]
fn a_second_way_through_gives_no_image_again() {
    let mut exploration = Script::new(2).store(0, 1).promise(0, 1).store(1, 2).explore();
    let new_images = |exploration: &mut Exploration| {
        let mut found = Vec::new();
        while exploration.advance() {
            found.push(exploration.images(100, 0, None).images.len());
        }
        found
    };
    assert_eq!(new_images(&mut exploration), [2, 1]);
    exploration.rewind();
    assert_eq!(new_images(&mut exploration), [0, 0]);
}
