//! From sites to the lines of the program that its author wrote. What a library or a header of the system stores, a
//! program's line asked for: the first one on the way out through inlined functions and calls.

use std::collections::HashMap;
use std::path::Path;

use serde::Serialize;

use super::sites::{Site, SiteId, Sites};
use super::source_lines::{SourceFrame, SourceLines, SourcePlace};

/// Number of an origin among [`Origins`].
pub type OriginId = u32;

/// Where the system keeps its libraries.
const LIBRARY_FOLDERS: [&str; 7] =
    ["/lib/", "/lib32/", "/lib64/", "/usr/lib/", "/usr/lib32/", "/usr/lib64/", "/usr/local/lib/"];

/// And what its headers are compiled from; compilers have some in a folder of their own.
const HEADER_FOLDERS: [&str; 4] = ["/usr/include/", "/usr/local/include/", "/usr/lib/", "/usr/lib64/"];

/// A line of the program that stores, flushes or fences, and who called its function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The instruction; its frames go on through calls as far as the line of the program.
    #[serde(flatten)]
    pub place: SourcePlace,
    /// The first frame that is the program's; none if no call that is known is.
    pub program_frame: Option<usize>,
    /// The line of the program that called the function of that frame, if it is known.
    pub called_from: Option<SourcePlace>,
    /// The number of its line: the same for all origins that only callers tell apart.
    pub line: u32,
}

/// What makes one line of instructions: their source, or where nobody knows that, their address in the module.
type LineKey = (Option<String>, Vec<SourceFrame>, u64);

/// The origins of all sites of a record.
#[derive(Clone, Debug, Default)]
pub struct Origins {
    of_site: Vec<OriginId>,
    origins: Vec<Origin>,
}

impl Origins {
    /// Those of `sites`.
    pub fn of(sites: &Sites, sources: &mut SourceLines) -> Origins {
        let mut places: HashMap<u64, SourcePlace> = HashMap::new();
        let mut place = |address: u64| places.entry(address).or_insert_with(|| sources.place(address)).clone();
        let mut lines: HashMap<LineKey, u32> = HashMap::new();
        let mut numbers: HashMap<(u32, Option<LineKey>), OriginId> = HashMap::new();
        let mut found = Origins::default();
        for site in 0..sites.len() as SiteId {
            let (mut origin, line, caller) = origin_of(sites.get(site), &mut place);
            let next = lines.len() as u32;
            origin.line = *lines.entry(line).or_insert(next);
            let origins = &mut found.origins;
            let number = *numbers.entry((origin.line, caller)).or_insert_with(|| {
                origins.push(origin);
                (origins.len() - 1) as OriginId
            });
            found.of_site.push(number);
        }
        found
    }

    /// That of a site.
    pub fn number_of(&self, site: SiteId) -> OriginId {
        self.of_site[site as usize]
    }

    /// The origin with this number.
    pub fn get(&self, origin: OriginId) -> &Origin {
        &self.origins[origin as usize]
    }

    /// All of them, by number.
    pub fn all(&self) -> &[Origin] {
        &self.origins
    }
}

/// The origin of a site, what makes its line, and what makes the line that called it.
fn origin_of(site: Site<'_>, place: &mut impl FnMut(u64) -> SourcePlace) -> (Origin, LineKey, Option<LineKey>) {
    let own = if site.instruction == 0 { SourcePlace::default() } else { place(site.instruction) };
    let mut origin = Origin { place: own.clone(), ..Origin::default() };
    let mut calls = site.calls.iter();
    let mut at = own.clone();
    let mut frames = Vec::new();
    let first = loop {
        if let Some(first) = first_of_program(&at) {
            break Some(first);
        }
        frames.append(&mut at.frames);
        match calls.next() {
            Some(&call) => at = place(call),
            None => break None,
        }
    };
    let Some(first) = first else {
        let line = line_key(&own, 0);
        return (origin, line, None);
    };
    let line = line_key(&at, first);
    origin.program_frame = Some(frames.len() + first);
    if at.frames.is_empty() && at.address != own.address {
        at.frames.push(SourceFrame { function: Some(in_module(&at)), ..SourceFrame::default() });
    }
    frames.append(&mut at.frames);
    origin.place.frames = frames;
    // What calls `main` is linked to every program and has no lines.
    let has_lines = origin.place.frames[first..].iter().any(|frame| frame.line.is_some());
    origin.called_from = calls.map(|&call| place(call)).find(|caller| {
        first_of_program(caller).is_some() && (!has_lines || caller.frames.iter().any(|frame| frame.line.is_some()))
    });
    let caller = origin.called_from.as_ref().map(|caller| line_key(caller, 0));
    (origin, line, caller)
}

fn line_key(place: &SourcePlace, first: usize) -> LineKey {
    let frames = place.frames.get(first..).unwrap_or_default().to_vec();
    let is_known = frames.iter().any(|frame| frame.line.is_some());
    let address = if place.module.is_some() { place.offset } else { place.address };
    (place.module.clone(), if is_known { frames } else { Vec::new() }, if is_known { 0 } else { address })
}

/// Which frame of an instruction is the program's; 0 also where nothing is known of it but that it lies in the program.
fn first_of_program(place: &SourcePlace) -> Option<usize> {
    let module = place.module.as_deref()?;
    if is_of_system(module) {
        return None;
    }
    if place.frames.is_empty() {
        return Some(0);
    }
    let is_of_header = |frame: &SourceFrame| {
        frame.file.as_deref().is_some_and(|file| HEADER_FOLDERS.iter().any(|folder| file.starts_with(folder)))
    };
    place.frames.iter().position(|frame| !is_of_header(frame))
}

/// Whether a module is the kernel's, or a library of the system.
pub(super) fn is_of_system(module: &str) -> bool {
    let name = module.rsplit('/').next().unwrap_or_default();
    let is_library = name.ends_with(".so") || name.contains(".so.");
    module.starts_with('[') || is_library && LIBRARY_FOLDERS.iter().any(|folder| module.starts_with(folder))
}

fn in_module(place: &SourcePlace) -> String {
    let module = place.module.as_deref().unwrap_or("?");
    let name = Path::new(module).file_name().map_or(module.into(), |name| name.to_string_lossy());
    format!("{name}+{:#x}", place.offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "/home/me/tree";
    const LIBRARY: &str = "/usr/lib/x86_64-linux-gnu/libc.so.6";
    const HEADER: &str = "/usr/include/c++/12/bits/atomic_base.h";

    fn frame(function: &str, file: Option<&str>) -> SourceFrame {
        SourceFrame { function: Some(function.into()), file: file.map(Into::into), line: file.map(|_| 7) }
    }

    /// What lies at some addresses: 1 the C library, 2 a header alone, 3 a header inlined into the program, from 10 on
    /// the program.
    fn place(address: u64) -> SourcePlace {
        let (module, frames) = match address {
            1 => (LIBRARY, vec![frame("memmove", None)]),
            2 => (OWN, vec![frame("store", Some(HEADER))]),
            3 => (OWN, vec![frame("store", Some(HEADER)), frame("insert", Some("tree.cpp"))]),
            98 => (OWN, vec![frame("_start", None)]),
            99 => (OWN, vec![]),
            _ => (OWN, vec![frame(&format!("function {address}"), Some("tree.cpp"))]),
        };
        SourcePlace { address, module: Some(module.into()), offset: address, frames }
    }

    fn origin(instruction: u64, calls: &[u64]) -> (Vec<String>, Option<usize>, Option<u64>) {
        let (origin, ..) = origin_of(Site { instruction, calls }, &mut place);
        let functions = origin.place.frames.iter().filter_map(|frame| frame.function.clone()).collect();
        (functions, origin.program_frame, origin.called_from.map(|caller| caller.address))
    }

    #[test]
    fn a_store_belongs_to_the_first_line_of_the_program_on_the_way_out() {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
        assert_eq!(origin(10, &[11, 12]), (names(&["function 10"]), Some(0), Some(11)));
        assert_eq!(origin(3, &[11]), (names(&["store", "insert"]), Some(1), Some(11)), "inlined");
        assert_eq!(origin(2, &[3, 11]), (names(&["store", "store", "insert"]), Some(2), Some(11)), "called");
        assert_eq!(origin(1, &[1, 10, 11]), (names(&["memmove", "memmove", "function 10"]), Some(2), Some(11)));
        assert_eq!(origin(10, &[1, 98]), (names(&["function 10"]), Some(0), None), "what calls main says nothing");
        assert_eq!(origin(99, &[98]), (names(&[]), Some(0), Some(98)), "but where nothing has lines");
        assert_eq!(origin(1, &[99]), (names(&["memmove", "tree+0x63"]), Some(1), None), "without debug information");
        assert_eq!(origin(0, &[1, 10]), (names(&["memmove", "function 10"]), Some(1), None), "a system call");
        assert_eq!(origin(1, &[]), (names(&["memmove"]), None, None), "nobody knows who called it");
    }

    #[test]
    fn one_line_has_one_number_and_its_callers_make_origins_of_it() {
        let keys = |instruction, calls: &[u64]| {
            let (_, line, caller) = origin_of(Site { instruction, calls }, &mut place);
            (line, caller)
        };
        assert_eq!(keys(1, &[10, 11]).0, keys(10, &[11]).0, "whichever instruction of it stores");
        assert_eq!(keys(10, &[11]).0, keys(10, &[12]).0);
        assert_ne!(keys(10, &[11]).1, keys(10, &[12]).1);
        assert_eq!(keys(10, &[1, 11]).1, keys(10, &[11]).1, "callers are lines of the program, too");
    }
}
