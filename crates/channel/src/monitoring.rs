//! The bytes that a thread moves, by memory bandwidth monitoring: a monitoring group of resctrl for each thread.
//!
//! The processor counts for a group all bytes of all memory, local and far, that its caches fill and write back. Files
//! are opened anew for each look, so a program that closes all of its own does no harm.

use std::ffi::CStr;

use crate::system_call;

/// Bytes of a group's path, at most.
const PATH_BYTES: usize = 256;
/// Last levels whose counters are added up, at most.
pub const DOMAINS_MAX: usize = 16;

/// Where groups are made, and the last levels that count.
#[derive(Clone, Copy, Debug)]
pub struct Monitoring {
    root: &'static CStr,
    domains: [u32; DOMAINS_MAX],
    count: usize,
}

impl Monitoring {
    /// From a list of last levels with commas between them, and the root of resctrl. `None` for anything else.
    pub fn parse(root: &'static CStr, domains: &str) -> Option<Monitoring> {
        let mut found = Monitoring { root, domains: [0; DOMAINS_MAX], count: 0 };
        for domain in domains.split(',') {
            *found.domains.get_mut(found.count)? = domain.parse().ok()?;
            found.count += 1;
        }
        Some(found)
    }
}

/// The group of the calling thread.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    path: Path,
    monitoring: Monitoring,
    last: [Option<u64>; DOMAINS_MAX],
}

impl Group {
    /// A group for `thread`. `owner` and `number` tell it from all others; one that a killed thread left is taken over.
    /// `None` where the processor has no number left for it, or the process may not make one.
    pub fn open(monitoring: Monitoring, owner: u64, number: usize, thread: u32) -> Option<Group> {
        let path = Path::default().text(monitoring.root.to_bytes())?.text(b"/mon_groups/fencepost-")?;
        let path = path.hexadecimal(owner)?.text(b"-")?.decimal(number as u64, 1)?;
        let mut group = Group { path, monitoring, last: [None; DOMAINS_MAX] };
        // SAFETY: the path ends with a zero.
        let made = unsafe { system_call!(libc::SYS_mkdir, path.pointer(), 0o755) };
        // SAFETY: this thread's `errno`.
        if made != 0 && unsafe { *libc::__errno_location() } != libc::EEXIST {
            return None;
        }
        let is_ours = path.text(b"/tasks").is_some_and(|tasks| tasks.write(thread));
        group.bytes();
        if !is_ours || group.last[..monitoring.count].iter().all(Option::is_none) {
            group.close();
            return None;
        }
        Some(group)
    }

    /// Bytes since the last call. A last level that says nothing now, as happens right after a group was made, is asked
    /// again at the next.
    pub fn bytes(&mut self) -> u64 {
        let mut bytes = 0;
        for at in 0..self.monitoring.count {
            let Some(now) = self.read(self.monitoring.domains[at]) else { continue };
            if let Some(before) = self.last[at].replace(now) {
                bytes += now.saturating_sub(before);
            }
        }
        bytes
    }

    /// Ends it: its thread belongs to no group then.
    pub fn close(self) {
        // SAFETY: the path ends with a zero.
        unsafe { system_call!(libc::SYS_rmdir, self.path.pointer()) };
    }

    fn read(&self, domain: u32) -> Option<u64> {
        let path = self.path.text(b"/mon_data/mon_L3_")?.decimal(u64::from(domain), 2)?;
        let path = path.text(b"/mbm_total_bytes")?;
        let mut text = [0u8; 32];
        let length = crate::system::read_file(&path.bytes, &mut text);
        let digits = text[..length].trim_ascii();
        std::str::from_utf8(digits).ok()?.parse().ok()
    }
}

/// A path that ends with a zero.
#[derive(Clone, Copy, Debug)]
struct Path {
    bytes: [u8; PATH_BYTES],
    length: usize,
}

impl Default for Path {
    fn default() -> Path {
        Path { bytes: [0; PATH_BYTES], length: 0 }
    }
}

impl Path {
    fn text(mut self, text: &[u8]) -> Option<Path> {
        let end = self.length + text.len();
        if end >= PATH_BYTES {
            return None;
        }
        self.bytes[self.length..end].copy_from_slice(text);
        self.length = end;
        Some(self)
    }

    fn decimal(self, number: u64, digits_least: u32) -> Option<Path> {
        let digits = (number.checked_ilog10().unwrap_or(0) + 1).max(digits_least);
        (0..digits).rev().try_fold(self, |path, at| path.text(&[b'0' + (number / 10u64.pow(at) % 10) as u8]))
    }

    fn hexadecimal(self, number: u64) -> Option<Path> {
        let digit = |at: u32| b"0123456789abcdef"[(number >> (4 * at) & 15) as usize];
        (0..16).rev().try_fold(self, |path, at| path.text(&[digit(at)]))
    }

    fn pointer(&self) -> *const u8 {
        self.bytes.as_ptr()
    }

    /// Writes a number into the file of this path, which has to be there.
    fn write(&self, number: u32) -> bool {
        let Some(text) = Path::default().decimal(u64::from(number), 1) else { return false };
        let flags = libc::O_WRONLY | libc::O_CLOEXEC;
        // SAFETY: the path ends with a zero; the text is as long as it says; the file is ours.
        unsafe {
            let file = system_call!(libc::SYS_openat, libc::AT_FDCWD, self.pointer(), flags, 0);
            if file < 0 {
                return false;
            }
            let written = system_call!(libc::SYS_write, file, text.pointer(), text.length);
            system_call!(libc::SYS_close, file);
            usize::try_from(written) == Ok(text.length)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    /// A folder that looks like resctrl with one group made already: ordinary folders stay empty when they are made.
    fn tree(name: &str, domains: &[u32]) -> (PathBuf, PathBuf) {
        let root = std::env::temp_dir().join(format!("fencepost-{name}-{}", std::process::id()));
        let group = root.join("mon_groups/fencepost-00000000000000ab-7");
        for domain in domains {
            fs::create_dir_all(group.join(format!("mon_data/mon_L3_{domain:02}"))).unwrap();
        }
        fs::write(group.join("tasks"), "").unwrap();
        (root, group)
    }

    fn monitoring(root: &std::path::Path, domains: &str) -> Monitoring {
        let root = CString::new(root.to_str().unwrap()).unwrap();
        Monitoring::parse(Box::leak(root.into_boxed_c_str()), domains).unwrap()
    }

    #[test]
    fn bytes_of_all_last_levels_are_added_and_one_that_says_nothing_is_asked_again() {
        let (root, group) = tree("adds", &[0, 11]);
        let says = |domain: u32, text: &str| {
            fs::write(group.join(format!("mon_data/mon_L3_{domain:02}/mbm_total_bytes")), text).unwrap();
        };
        says(0, "100\n");
        says(11, "Unavailable\n");
        let mut opened = Group::open(monitoring(&root, "0,11"), 0xab, 7, 4711).unwrap();
        assert_eq!(fs::read_to_string(group.join("tasks")).unwrap(), "4711");
        says(0, "164\n");
        says(11, "5000\n");
        assert_eq!(opened.bytes(), 64);
        says(11, "5128\n");
        assert_eq!(opened.bytes(), 128);
        assert_eq!(opened.bytes(), 0);
        fs::remove_dir_all(root).unwrap();
    }

    #[test]
    fn without_counters_or_rights_there_is_no_group() {
        let (root, group) = tree("lacks", &[0]);
        assert!(Group::open(monitoring(&root, "0"), 0xab, 7, 1).is_none());
        fs::remove_file(group.join("tasks")).unwrap();
        assert!(Group::open(monitoring(&root, "0"), 0xab, 7, 1).is_none());
        fs::remove_dir_all(&root).unwrap();
        assert!(Group::open(monitoring(&root, "0"), 0xab, 7, 1).is_none());
        assert!(Monitoring::parse(c"/", "").is_none());
        assert!(Monitoring::parse(c"/", &["1"; DOMAINS_MAX + 1].join(",")).is_none());
    }
}
