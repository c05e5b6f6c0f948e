//! Where in its file each page of the pool lies.

use std::collections::{BTreeMap, BTreeSet};

use fencepost_record::{Clock, Mapping, MappingKind, MemoryMap, PmSelector, Protection, Record};

use super::CrashError;
use super::content_hash::LINE;

const PAGE: u64 = 4096;
const LINES_PER_PAGE: u64 = PAGE / LINE as u64;

/// The one file whose mappings are the persistent memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolFile {
    /// Its path while the program ran.
    pub path: String,
    /// The end of its last mapped page.
    pub mapped_bytes: u64,
    /// When it was first mapped.
    pub mapped: Clock,
    /// By page of the address space, the page of the file.
    pages: BTreeMap<u64, u64>,
}

impl PoolFile {
    /// The file that `selector` means in this record.
    ///
    /// # Errors
    /// If there is none or more than one, or if one address meant different places of it in turn.
    pub fn of_record(record: &Record, selector: &PmSelector) -> Result<PoolFile, CrashError> {
        let refuse = |text: String| Err(CrashError::Unsuitable(text));
        let PmSelector::File(_) = selector else {
            return refuse(format!("--pm {selector}: crash states are images of a file; it has to be file:PATTERN"));
        };
        let map = record.memory_map()?;
        let is_pool = |mapping: &&Mapping| mapping.kind == MappingKind::File && selector.means_file(&mapping.name);
        let mut pool: Option<PoolFile> = None;
        for mapping in map.mappings().iter().filter(is_pool) {
            let file = pool.get_or_insert_with(|| PoolFile {
                path: mapping.name.to_string(),
                mapped_bytes: 0,
                mapped: mapping.mapped,
                pages: BTreeMap::new(),
            });
            if file.path != *mapping.name {
                return refuse(format!(
                    "--pm {selector} means more than one file ({} and {}); name one of them",
                    file.path, mapping.name
                ));
            }
            file.mapped = file.mapped.min(mapping.mapped);
            let first = mapping.range.start / PAGE;
            for page in first..mapping.range.end.div_ceil(PAGE) {
                let of_file = mapping.offset / PAGE + (page - first);
                if file.pages.insert(page, of_file).is_some_and(|before| before != of_file) {
                    let address = page * PAGE;
                    return refuse(format!(
                        "{}: two parts of it were mapped at {address:#x} one after the other, which cannot be told apart",
                        file.path
                    ));
                }
                file.mapped_bytes = file.mapped_bytes.max((of_file + 1) * PAGE);
            }
        }
        pool.map_or_else(|| refuse(format!("--pm {selector}: {}", nothing_mapped(map))), Ok)
    }

    /// A file of these pages, by page of the address space.
    #[cfg(test)]
    pub fn of_pages<const N: usize>(pages: [(u64, u64); N]) -> PoolFile {
        let mapped_bytes = N as u64 * PAGE;
        PoolFile { path: "pool".into(), mapped_bytes, mapped: Clock::default(), pages: pages.into() }
    }

    /// The line of the file (offset / 64) that a line of the address space (address / 64) is.
    pub fn line_of(&self, line: u64) -> Option<u64> {
        let page = self.pages.get(&(line / LINES_PER_PAGE))?;
        Some(page * LINES_PER_PAGE + line % LINES_PER_PAGE)
    }

    /// What of the file is mapped: offsets of its pages, each once.
    pub fn mapped_pages(&self) -> BTreeSet<u64> {
        self.pages.values().map(|page| page * PAGE).collect()
    }

    /// The pages of the address space that belong to it.
    pub fn pages(&self) -> impl Iterator<Item = u64> {
        self.pages.keys().copied()
    }
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
