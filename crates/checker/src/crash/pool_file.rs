//! Where in its files each page of the pool lies.

use std::collections::{BTreeMap, BTreeSet};

use fencepost_record::{Clock, Mapping, MappingKind, MemoryMap, PmSelector, Protection, Record};

use super::CrashError;
use super::content_hash::LINE;

const PAGE: u64 = 4096;
const LINES_PER_PAGE: u64 = PAGE / LINE as u64;

/// How far apart the files of a pool lie among its lines. Larger ones are refused.
pub const FILE_BYTES: u64 = 1 << 40;

const PAGES_OF_FILE: u64 = FILE_BYTES / PAGE;

/// A file of the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MappedFile {
    /// Its path while the program ran.
    pub path: String,
    /// The end of its last mapped page.
    pub mapped_bytes: u64,
}

/// The files whose mappings are the persistent memory; one, as a rule. Each has [`FILE_BYTES`] of the pool's lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolFile {
    /// In the order of their paths.
    pub files: Vec<MappedFile>,
    /// When the first one was mapped.
    pub mapped: Clock,
    /// By page of the address space, the page of the pool.
    pages: BTreeMap<u64, u64>,
}

impl PoolFile {
    /// The files that `selector` means in this record.
    ///
    /// # Errors
    /// If there is none, or if one address meant different places of them in turn.
    pub fn of_record(record: &Record, selector: &PmSelector) -> Result<PoolFile, CrashError> {
        let refuse = |text: String| Err(CrashError::Unsuitable(text));
        let PmSelector::File(_) = selector else {
            return refuse(format!("--pm {selector}: crash states are images of a file; it has to be file:PATTERN"));
        };
        let map = record.memory_map()?;
        let is_pool = |mapping: &&Mapping| mapping.kind == MappingKind::File && selector.means_file(&mapping.name);
        let mappings: Vec<&Mapping> = map.mappings().iter().filter(is_pool).collect();
        let Some(mapped) = mappings.iter().map(|mapping| mapping.mapped).min() else {
            return refuse(format!("--pm {selector}: {}", nothing_mapped(map)));
        };
        let paths: BTreeSet<String> = mappings.iter().map(|mapping| mapping.name.to_string()).collect();
        let files = paths.into_iter().map(|path| MappedFile { path, mapped_bytes: 0 }).collect();
        let mut pool = PoolFile { files, mapped, pages: BTreeMap::new() };
        for mapping in mappings {
            pool.add(mapping)?;
        }
        Ok(pool)
    }

    fn add(&mut self, mapping: &Mapping) -> Result<(), CrashError> {
        let refuse = |text: String| Err(CrashError::Unsuitable(text));
        let number = self.files.iter().position(|file| file.path == *mapping.name).expect("it is one of them");
        let file = &mut self.files[number];
        let first = mapping.range.start / PAGE;
        for page in first..mapping.range.end.div_ceil(PAGE) {
            let of_file = mapping.offset / PAGE + (page - first);
            if of_file >= PAGES_OF_FILE {
                return refuse(format!("{}: it is mapped behind {FILE_BYTES} bytes, which is too long", file.path));
            }
            file.mapped_bytes = file.mapped_bytes.max((of_file + 1) * PAGE);
            let of_pool = number as u64 * PAGES_OF_FILE + of_file;
            if self.pages.insert(page, of_pool).is_some_and(|before| before != of_pool) {
                let (path, address) = (&file.path, page * PAGE);
                return refuse(format!(
                    "{path}: two parts of it, or of another file of the pool, were mapped at {address:#x} one after \
                     the other, which cannot be told apart"
                ));
            }
        }
        Ok(())
    }

    /// A file of these pages, by page of the address space.
    #[cfg(test)]
    pub fn of_pages<const N: usize>(pages: [(u64, u64); N]) -> PoolFile {
        let file = MappedFile { path: "pool".into(), mapped_bytes: N as u64 * PAGE };
        PoolFile { files: vec![file], mapped: Clock::default(), pages: pages.into() }
    }

    /// The line of the pool (offset / 64) that a line of the address space (address / 64) is.
    pub fn line_of(&self, line: u64) -> Option<u64> {
        let page = self.pages.get(&(line / LINES_PER_PAGE))?;
        Some(page * LINES_PER_PAGE + line % LINES_PER_PAGE)
    }

    /// What of a file is mapped: offsets of its pages, each once.
    pub fn mapped_pages(&self, file: usize) -> BTreeSet<u64> {
        let places = self.pages.values().map(|page| place_in_file(page * PAGE));
        places.filter(|(of, _)| *of == file).map(|(_, offset)| offset).collect()
    }

    /// The pages of the address space that belong to it.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }
}

/// In which file a byte of the pool lies, and where in it.
pub fn place_in_file(offset: u64) -> (usize, u64) {
    ((offset / FILE_BYTES) as usize, offset % FILE_BYTES)
}

/// Why there is no pool: what the program mapped for writing instead.
fn nothing_mapped(map: &MemoryMap) -> String {
    let programs: BTreeSet<String> = map.modules().iter().map(|module| module.path.to_string()).collect();
    let is_written =
        |mapping: &&Mapping| mapping.kind == MappingKind::File && mapping.protection.0 & Protection::WRITE != 0;
    let written = map.mappings().iter().filter(is_written).map(|mapping| mapping.name.to_string());
    let files: BTreeSet<String> = written.filter(|file| !programs.contains(file)).collect();
    let files: Vec<String> = files.into_iter().collect();
    let mapped = if files.is_empty() { "no file for writing".into() } else { files.join(", ") };
    format!(
        "the program mapped no such file; it mapped {mapped} (a file that is written by calls, not mapped, cannot be \
         explored)"
    )
}
