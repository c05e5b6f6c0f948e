//! Crash states: whatever a record says a program stored, flushed and mapped, its images are within what was promised
//! and what was visible, and none is made twice.
//!
//! The input is a record, as for the target `record`; its last bytes also say in which order its stores become visible
//! and durable.
#![no_main]

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use fencepost_checker::crash::Exploration;
use fencepost_checker::crash::content_hash::LINE;
use fencepost_checker::crash::diagnosis::diagnose;
use fencepost_checker::crash::mapped_reads::MappedReads;
use fencepost_checker::crash::named_functions::NamedFunctions;
use fencepost_checker::crash::pool_file::PoolFile;
use fencepost_checker::crash::recorded_stores::{RecordedStores, StoreId, lines_of};
use fencepost_checker::crash::replay::{Change, LineHistory, LineId, MadeVersion, Replayed};
use fencepost_checker::crash::sites::SiteId;
use fencepost_fuzz::with_right_checksums;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::time::{Duration, Time};
use fencepost_record::{Bytes, CutPolicy, PmSelector, Record};
use fencepost_sim::cache::config::PointOfCoherence;
use fencepost_sim::replay::simulation::Program;
use libfuzzer_sys::fuzz_target;

const STORES_MAX: usize = 48;
const IMAGES_MAX: usize = 16;

fuzz_target!(|input: &[u8]| {
    let source = Arc::new(Bytes::new("input", with_right_checksums(input)));
    let Ok(record) = Record::open(source, CutPolicy::Allow) else { return };
    let _ = MappedReads::of_record(&record, "pool");
    let selector: PmSelector = "file:pool".parse().expect("it is a selector");
    let Ok(file) = PoolFile::of_record(&record, &selector) else { return };
    let Ok(persistent) = record.memory_map().map(|map| map.select(&selector)) else { return };
    let Ok(program) = Program::new(record) else { return };
    let coherence =
        if input.len().is_multiple_of(2) { PointOfCoherence::Volatile } else { PointOfCoherence::Persistent };
    let functions = NamedFunctions::default();
    let Ok(recorded) = RecordedStores::read(&program, &persistent, &file, coherence, &functions) else { return };
    for lost in 0..recorded.stores.len().min(STORES_MAX) as StoreId {
        diagnose(&recorded, lost, lost.checked_sub(1));
    }
    let order = &input[input.len().saturating_sub(STORES_MAX)..];
    let replayed = happened(&recorded, file, order);
    let atomicity = [8, 16, 64][input.len() % 3];
    explore(Exploration::new(Arc::new(recorded), Arc::new(replayed), atomicity));
});

/// The first stores become visible in the order of their numbers; between them `order` says what becomes durable and
/// what came otherwise.
fn happened(recorded: &RecordedStores, file: PoolFile, order: &[u8]) -> Replayed {
    let mut replayed = Replayed { file, ..Replayed::default() };
    let mut numbers: HashMap<u64, LineId> = HashMap::new();
    let mut foreign = 0..recorded.foreign.len() as u32;
    let stores = recorded.stores.iter().enumerate().take(STORES_MAX);
    for (number, store) in stores {
        let choice = order.get(number).copied().unwrap_or_default();
        if choice % 3 == 0
            && let Some(foreign) = foreign.next()
        {
            push(&mut replayed, Change::Foreign(foreign));
        }
        for virtual_line in lines_of(store.address, store.size.min(4096)) {
            let Some(file_line) = replayed.file.line_of(virtual_line) else { continue };
            let line = *numbers.entry(file_line).or_insert_with(|| {
                let physical = LineAddress(file_line);
                replayed.lines.push(LineHistory { virtual_line, file_line, physical, versions: Vec::new() });
                replayed.lines.len() as LineId - 1
            });
            let change = replayed.changes.len();
            let versions = &mut replayed.lines[line as usize].versions;
            versions.push(MadeVersion { version: versions.len() as u64 + 1, stores: vec![number as StoreId], change });
            push(&mut replayed, Change::Visible(line));
        }
        if choice % 2 == 0 && !replayed.lines.is_empty() {
            let line = usize::from(choice / 2) % replayed.lines.len();
            let versions = replayed.lines[line].versions.len() as u32;
            push(&mut replayed, Change::Durable(line as LineId, versions.saturating_sub(u32::from(choice / 64))));
        }
    }
    replayed
}

fn push(replayed: &mut Replayed, change: Change) {
    let now = Time::ZERO + Duration::from_ps(replayed.changes.len() as u64);
    replayed.changes.push((now, change));
}

fn explore(mut exploration: Exploration) {
    let mut base: BTreeMap<u64, [u8; LINE]> = BTreeMap::new();
    let mut made = BTreeSet::new();
    while exploration.advance() {
        base.extend(exploration.take_changes());
        for doubtful in exploration.doubtful() {
            let (durable, visible) = exploration.versions(doubtful.line);
            assert!(durable < visible, "only what is not promised is in doubt");
            assert!(doubtful.contents.iter().all(|content| (durable..=visible).contains(&content.versions)));
        }
        let images = exploration.images(IMAGES_MAX, 1, None);
        assert!(images.images.len() <= IMAGES_MAX);
        for image in &images.images {
            assert_eq!(exploration.hash_of(&image.choice), image.hash);
            let is_meant = |site: SiteId| site.is_multiple_of(2);
            let (whole, before) = exploration.without_loss(&image.choice, is_meant);
            assert!(!exploration.lost_sites(&whole).into_iter().any(is_meant), "nothing that is meant is lost");
            let is_between = |((older, between), newer)| older <= between && between <= newer;
            assert!(image.choice.iter().zip(&before).zip(&whole).all(is_between));
            let mut content = base.clone();
            content.extend(exploration.patches(&image.choice));
            content.retain(|_, bytes| bytes != &[0; LINE]);
            assert!(made.insert(content), "no image is made twice");
        }
    }
}
