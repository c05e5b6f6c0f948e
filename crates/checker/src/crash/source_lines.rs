//! From instruction addresses to source lines, by the DWARF of the modules that were loaded; to function names where
//! there is none. A module whose file has been built anew since it was recorded says nothing.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::path::Path;

use addr2line::{Loader, demangle_auto};
use fencepost_record::{LoadedModule, Record, RecordError, Text};
use object::{Object, ObjectSegment, ReadCache};
use serde::Serialize;

/// A place in the source; of an inlined function first, then of what it was inlined into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize)]
pub struct SourceFrame {
    /// The function, if it is known.
    pub function: Option<String>,
    /// Path of the source file, if it is known.
    pub file: Option<String>,
    /// Line in it, counted from 1.
    pub line: Option<u32>,
}

/// Where an instruction comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SourcePlace {
    /// Its address.
    pub address: u64,
    /// Path of its module, if it lies in one.
    pub module: Option<String>,
    /// Its address in the module.
    pub offset: u64,
    /// Innermost first; empty if nothing is known.
    pub frames: Vec<SourceFrame>,
}

/// The modules of a record.
pub struct SourceLines {
    modules: Vec<LoadedModule>,
    /// By path, with the address that the file gives to its first byte.
    loaders: HashMap<Text, Option<(Loader, u64)>>,
    changed: Vec<String>,
}

impl SourceLines {
    /// Those that `record` loaded.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn of_record(record: &Record) -> Result<SourceLines, RecordError> {
        Ok(SourceLines {
            modules: record.memory_map()?.modules().to_vec(),
            loaders: HashMap::new(),
            changed: Vec::new(),
        })
    }

    /// Paths of modules that were asked for, and whose files are not what was recorded.
    pub fn changed(&self) -> &[String] {
        &self.changed
    }

    /// Where the instruction at `address` comes from.
    pub fn place(&mut self, address: u64) -> SourcePlace {
        let is_in = |module: &&LoadedModule| (module.range.start..module.range.end).contains(&address);
        // An executed program lies where the one before it lay, and is the one that works in the pool.
        let Some(module) = self.modules.iter().rfind(is_in) else {
            return SourcePlace { address, ..SourcePlace::default() };
        };
        let path = module.path.clone();
        let offset = address - module.range.start;
        let changed = &mut self.changed;
        let loader = self.loaders.entry(path.clone()).or_insert_with(|| {
            // A named pipe would be waited for.
            if !Path::new(module.path.as_os_str()).is_file() {
                return None;
            }
            if is_as_recorded(module) {
                return Some((Loader::new(module.path.as_os_str()).ok()?, first_address(module.path.as_os_str())));
            }
            changed.push(module.path.to_string());
            None
        });
        let frames = loader.as_ref().map(|(loader, first)| frames(loader, first + offset)).unwrap_or_default();
        SourcePlace { address, module: Some(path.to_string()), offset, frames }
    }
}

/// Whether the file of a module is the one that was loaded; also if it has no build id, or is not there.
pub(super) fn is_as_recorded(module: &LoadedModule) -> bool {
    let Ok(file) = std::fs::File::open(module.path.as_os_str()) else { return true };
    let content = ReadCache::new(file);
    let Ok(object) = object::File::parse(&content) else { return true };
    let Ok(Some(build_id)) = object.build_id() else { return true };
    let build_id: String = build_id.iter().map(|byte| format!("{byte:02x}")).collect();
    module.build_id.is_empty() || module.build_id == build_id
}

/// The address that the file gives to its first byte, in whole pages: 0 where it can be loaded anywhere, and that of
/// its first segment where it is a program that cannot.
pub(super) fn first_address(path: &OsStr) -> u64 {
    const PAGE: u64 = 4096;
    let Ok(file) = std::fs::File::open(path) else { return 0 };
    let content = ReadCache::new(file);
    let Ok(object) = object::File::parse(&content) else { return 0 };
    object.segments().map(|segment| segment.address()).min().unwrap_or(0) / PAGE * PAGE
}

fn frames(loader: &Loader, probe: u64) -> Vec<SourceFrame> {
    let mut found = Vec::new();
    if let Ok(mut frames) = loader.find_frames(probe) {
        while let Ok(Some(frame)) = frames.next() {
            let function = frame.function.as_ref().and_then(|name| name.demangle().ok()).map(|name| name.into_owned());
            let file = frame.location.as_ref().and_then(|location| location.file).map(str::to_owned);
            let line = frame.location.as_ref().and_then(|location| location.line);
            found.push(SourceFrame { function, file, line });
        }
    }
    if found.is_empty()
        && let Some(symbol) = loader.find_symbol(probe)
    {
        let function = demangle_auto(symbol.into(), None).into_owned();
        found.push(SourceFrame { function: Some(function), ..SourceFrame::default() });
    }
    found
}
