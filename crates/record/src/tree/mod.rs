//! The records of a tree of processes, read as one record.
//!
//! All processes took turns and have one process clock, so their records are one sequence. Its threads are those of
//! all processes, one process after the other, in one address space: each process has a part of it, and what processes
//! share lies in parts of its own. Who reads it needs to know nothing of processes.
//!
//! ```text
//! spaces   where addresses of a process lie
//! member   what a frame of one process is in the tree
//! pairing  who woke whom at objects that processes share
//! ```

mod member;
mod pairing;
mod spaces;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh64::Xxh64;

use super::code::{BLOCKS_MAX, Program};
use super::error::{Problem, RecordError};
use super::event::{Clock, Event, ThreadId};
use super::info::ISA_X86_64;
use super::memory_map::MemoryMap;
use super::reader::Record;
pub(super) use member::Member;
use pairing::Pairing;
use spaces::Spaces;

/// Processes of a tree; each takes a part of the address space.
const PROCESSES_MAX: u64 = 1 << 14;

/// The processes of a tree.
pub(super) struct Tree {
    /// By their first thread.
    members: Vec<Member>,
    /// Those that have no record.
    absent: Vec<u64>,
}

/// What all events of one record say that a tree has to know.
#[derive(Default)]
struct Survey {
    children: Vec<u64>,
    spaces: Spaces,
    /// The thread that came to its end last.
    last_thread: ThreadId,
    last_clock: Clock,
}

impl Survey {
    fn of(record: &Record) -> Result<Self, RecordError> {
        let mut survey = Self::default();
        let mut mappings = Vec::new();
        record.visit_events(|thread, event| {
            if let Some(clock) = event.clock().filter(|clock| *clock > survey.last_clock) {
                (survey.last_clock, survey.last_thread) = (clock, thread);
            }
            match *event {
                Event::Fork { child } if child > 0 => survey.children.push(child),
                Event::Map { .. } | Event::Unmap { .. } | Event::SharedMapping { .. } | Event::Exec { .. } => {
                    mappings.push(event.clone());
                }
                _ => {}
            }
        })?;
        survey.spaces = Spaces::of(mappings);
        Ok(survey)
    }
}

impl Tree {
    /// The tree of which `root` is the first process, and all its code; `open` opens the record of a process by its
    /// number.
    ///
    /// # Errors
    /// If a record cannot be opened or read, or cannot be part of a tree.
    pub(super) fn of(
        root: Record,
        processes: u64,
        mut open: impl FnMut(u64) -> Result<Option<Record>, RecordError>,
    ) -> Result<(Self, Program), RecordError> {
        let mut found: BTreeMap<u64, (Record, Survey)> = BTreeMap::new();
        let mut absent = Vec::new();
        let mut open_ones = vec![(0, root)];
        let mut known: BTreeSet<u64> = (1..processes.min(PROCESSES_MAX)).collect();
        let mut forked: BTreeSet<u64> = BTreeSet::new();
        for &number in &known {
            match open(number)? {
                Some(record) => open_ones.push((number, record)),
                None => absent.push(number),
            }
        }
        while let Some((number, record)) = open_ones.pop() {
            check(&record, number)?;
            let survey = Survey::of(&record)?;
            for &child in &survey.children {
                forked.insert(child);
                if child > number && known.insert(child) {
                    match open(child)? {
                        Some(record) => open_ones.push((child, record)),
                        None => absent.push(child),
                    }
                }
            }
            found.insert(number, (record, survey));
        }
        let mut tree = Self { members: Vec::new(), absent };
        let mut program = Program::default();
        let mut last_threads: BTreeMap<u64, ThreadId> = BTreeMap::new();
        let mut first_thread = 0;
        for (number, (record, survey)) in found {
            last_threads.insert(number, ThreadId(first_thread + survey.last_thread.0));
            let blocks_before = program.blocks.len() as u32 - 1;
            let member = Member::new(number, record, survey, first_thread, blocks_before);
            member.blocks().for_each(|block| _ = program.append(block));
            let too_many = Problem::check_limit("the number of blocks", program.blocks.len() as u64, BLOCKS_MAX);
            too_many.map_err(|problem| member.record.refuse(None, problem))?;
            first_thread += member.record.threads() as u32;
            tree.members.push(member);
        }
        let firsts: BTreeMap<u64, ThreadId> =
            tree.members.iter().map(|member| (member.number, ThreadId(member.first_thread))).collect();
        tree.begin_untold(&forked);
        let objects = tree.members.iter().flat_map(|member| member.spaces.objects());
        let written = objects.filter(|(_, is_written)| *is_written).map(|(object, _)| *object).collect();
        let pairing = Pairing::of(&tree.members)?;
        for member in &mut tree.members {
            member.know(&firsts, &last_threads, &written, &pairing);
        }
        Ok((tree, program))
    }

    /// Children of which no record says that they were forked begin where their parents were killed.
    fn begin_untold(&mut self, forked: &BTreeSet<u64>) {
        for at in 1..self.members.len() {
            let Member { number, first_thread, .. } = self.members[at];
            let parent = self.members[at].record.info().parent;
            if forked.contains(&number) {
                continue;
            }
            let is_parent = |member: &&mut Member| Some(member.number) == parent && member.was_killed();
            if let Some(parent) = self.members.iter_mut().find(is_parent) {
                parent.has_forked(ThreadId(first_thread));
            }
        }
    }

    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    /// A hash of the numbers and the content of all records but the first.
    pub(super) fn hash_of_children(&self) -> u64 {
        let mut hash = Xxh64::new(0);
        for Member { number, record, .. } in &self.members[1..] {
            hash.update(&number.to_le_bytes());
            hash.update(record.hash().as_bytes());
        }
        hash.digest()
    }

    /// The numbers of processes that have no record.
    pub(super) fn absent(&self) -> &[u64] {
        &self.absent
    }

    /// Whose thread it is.
    pub(super) fn member_of(&self, thread: ThreadId) -> &Member {
        let after = self.members.partition_point(|member| member.first_thread <= thread.0);
        &self.members[after - 1]
    }

    /// What lay where, of all processes.
    pub(super) fn memory_map(&self) -> Result<MemoryMap, RecordError> {
        let mut all = MemoryMap::default();
        for member in &self.members {
            all.add(member.record.memory_map()?, |range, clock| member.spaces.place_of(range, clock));
        }
        Ok(all)
    }
}

/// Where the record of the process with a number lies if that of its tree's first one is at `first`.
#[must_use]
pub fn path_of_child(first: &Path, number: u64) -> PathBuf {
    let mut name = first.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{number}"));
    if let Some(ending) = first.extension() {
        name.push(".");
        name.push(ending);
    }
    first.with_file_name(name)
}

/// Where the record of a tree's first process lies if that of the process with a number is at `path`; nothing where
/// that is not named so.
#[must_use]
pub fn path_of_first(path: &Path, number: u64) -> Option<PathBuf> {
    let (stem, ending) = (path.file_stem()?.to_str()?, path.extension().and_then(|ending| ending.to_str()));
    let name = match (stem.strip_suffix(&format!(".{number}")), ending) {
        _ if number == 0 => return Some(path.to_owned()),
        (Some(stem), Some(ending)) => format!("{stem}.{ending}"),
        (None, Some(ending)) if ending == number.to_string() => stem.to_owned(),
        _ => return None,
    };
    Some(path.with_file_name(name))
}

fn check(record: &Record, number: u64) -> Result<(), RecordError> {
    let info = record.info();
    let process = info.process.unwrap_or_default();
    let problem = if info.isa != ISA_X86_64 {
        "processes of a tree are recorded on x86-64 only"
    } else if number == 0 && process > 0 {
        "it is of a child: with its children the record of the first process is replayed"
    } else if process != number {
        "it is of another process than its name says: was it renamed, or left of an earlier recording?"
    } else if info.options.values {
        "a tree recorded with --values cannot be replayed as one"
    } else if number >= PROCESSES_MAX {
        "the tree has too many processes to be replayed as one"
    } else {
        return Ok(());
    };
    Err(record.refuse(None, Problem::Tree(problem)))
}

#[cfg(test)]
mod tests;
