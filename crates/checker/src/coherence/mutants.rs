//! Broken variants, each breaking another rule.

use std::iter;

use fencepost_sim::device::type2::Rules;
use fencepost_sim::device::type2::device_memory::MemoryRules;
use fencepost_sim::nearest::there_is_no;

use super::bounds::{Bounds, DeviceMemoryKind};
use super::device_memory::DeviceMemory;
use super::model::Model;
use super::predicates::{DATA_VALUE, Looks, NO_DEADLOCK, NO_LOST_WRITE, PROGRESS, SINGLE_WRITER};

/// A broken variant.
#[derive(Clone, Copy, Debug)]
pub struct Mutant {
    /// Its name on the command line.
    pub name: &'static str,
    /// What it does wrong.
    pub does: &'static str,
    /// The name of the predicate that has to find it.
    pub predicate: &'static str,
    /// The rules that it keeps to.
    pub rules: Rules,
    /// What of device memory it is about, if it is, with the rules that it keeps to there.
    memory: Option<(DeviceMemoryKind, MemoryRules)>,
    /// Devices and cores in the bounds in which it shows.
    sizes: (u8, u8),
    /// The requests that devices make there; none stands for all.
    requests: &'static [&'static str],
}

impl Mutant {
    /// The broken protocol, in the bounds in which it shows. Only the predicate that it was made for is looked at.
    pub fn model(&self) -> Model {
        let (devices, cores) = self.sizes;
        if let Some((kind, rules)) = self.memory {
            let bounds = Bounds { device_memory: Some(kind), ..Bounds::default() };
            let device_memory = Some(DeviceMemory { kind: kind.into(), rules });
            return Model { device_memory, looks: Looks::At(self.predicate), ..Model::sound(bounds) };
        }
        let requests = self.requests.iter().map(|name| (*name).to_owned()).collect();
        let bounds = Bounds { devices, cores, requests, ..Bounds::default() };
        Model { rules: self.rules, looks: Looks::At(self.predicate), ..Model::sound(bounds) }
    }

    /// The mutant of that name.
    pub fn named(name: &str) -> Result<&'static Mutant, String> {
        ALL.iter().find(|mutant| mutant.name == name).ok_or_else(|| {
            let names: Vec<&str> = iter::once("all").chain(ALL.iter().map(|mutant| mutant.name)).collect();
            there_is_no("mutant", name, &names)
        })
    }
}

/// One mutant: name, predicate, what it does, devices and cores, requests if not all, and the rule that it breaks.
macro_rules! mutant {
    ($name:literal, $predicate:ident, $sizes:expr, $requests:expr, $rule:ident, $does:literal) => {
        Mutant {
            name: $name,
            does: $does,
            predicate: $predicate.name,
            rules: Rules { $rule: false, ..Rules::SOUND },
            memory: None,
            sizes: $sizes,
            requests: $requests,
        }
    };
}

/// A mutant of device memory: name, predicate, what it does, kind of memory, and the rule that it breaks.
macro_rules! memory_mutant {
    ($name:literal, $predicate:ident, $kind:ident, $rule:ident, $does:literal) => {
        Mutant {
            name: $name,
            does: $does,
            predicate: $predicate.name,
            rules: Rules::SOUND,
            memory: Some((DeviceMemoryKind::$kind, MemoryRules { $rule: false, ..MemoryRules::SOUND })),
            sizes: (1, 0),
            requests: ANY,
        }
    };
}

const ANY: &[&str] = &[];

/// All of them.
#[rustfmt::skip]
pub const ALL: &[Mutant] = &[
    mutant!("snoop-passes-go", SINGLE_WRITER, (2, 0), &["RdShared", "RdOwn"], snoop_pushes_go,
        "a snoop passes an earlier GO for the same line: an owner and a sharer at once"),
    mutant!("go-before-snoops", SINGLE_WRITER, (2, 0), ANY, go_after_snoops,
        "the host sends GO before all snoops are answered"),
    mutant!("keeps-bogus-data", DATA_VALUE, (2, 1), ANY, host_drops_bogus,
        "the host keeps the data of an eviction whose line was snooped away meanwhile"),
    mutant!("stale-eviction-unmarked", NO_LOST_WRITE, (2, 1), ANY, device_marks_bogus,
        "a device does not say that the line which it evicts was snooped away meanwhile"),
    mutant!("evicting-device-is-deaf", NO_DEADLOCK, (2, 0), &["RdShared", "RdOwn", "DirtyEvict"], evicting_device_answers,
        "a device that waits to evict a line answers no snoop of it: `[Read] ‖ [Write, Evict]` blocks"),
    mutant!("upgrading-device-is-deaf", NO_DEADLOCK, (2, 0), &["RdShared", "RdOwn"], upgrading_device_answers,
        "a device that shares a line and waits to own it answers no snoop of it: two RdOwn from S block"),
    mutant!("snoop-between-go-and-data", SINGLE_WRITER, (2, 0), ANY, snoop_waits_for_data,
        "a device answers a snoop between GO and the data as if it had nothing"),
    mutant!("snp-inv-leaves-shared", SINGLE_WRITER, (2, 0), ANY, snp_inv_invalidates,
        "SnpInv leaves a shared copy"),
    mutant!("snp-data-leaves-owner", SINGLE_WRITER, (2, 0), ANY, snp_data_shares,
        "SnpData leaves a modified copy modified"),
    mutant!("snp-cur-cleans", NO_LOST_WRITE, (2, 0), ANY, snp_cur_keeps,
        "SnpCur makes a modified copy clean, though its data go nowhere but to the reader"),
    mutant!("rd-curr-keeps", SINGLE_WRITER, (2, 1), ANY, rd_curr_keeps_nothing,
        "RdCurr leaves a copy in the device's cache that the directory does not know"),
    mutant!("snooped-data-lost", NO_LOST_WRITE, (2, 0), ANY, snooped_data_are_kept,
        "the host does not keep what a snoop brings"),
    mutant!("wr-cur-misses-memory", NO_LOST_WRITE, (1, 1), ANY, wr_cur_writes_on_miss,
        "WrCur writes nothing if the host's cache does not have the line"),
    mutant!("ito-m-wr-leaves-clean", NO_LOST_WRITE, (1, 1), ANY, ito_m_wr_leaves_dirty,
        "ItoMWr leaves the line clean in the host's cache, which drops it"),
    mutant!("merges-with-memory", DATA_VALUE, (1, 1), ANY, partial_writes_merge_with_cache,
        "a partial write is merged with memory, though the host's cache has newer data"),
    mutant!("flush-drops", NO_LOST_WRITE, (1, 1), ANY, flush_writes_back,
        "CLFlush drops a modified line of the host's cache"),
    mutant!("drops-dirty-eviction", NO_LOST_WRITE, (1, 1), ANY, dirty_evictions_are_pulled,
        "the host answers DirtyEvict with GO_WritePull_Drop"),
    mutant!("rd-any-owns-shared", SINGLE_WRITER, (2, 0), ANY, rd_any_looks_at_sharers,
        "RdAny gives a line to own that others share"),
    mutant!("rd-own-leaves-sharers", SINGLE_WRITER, (2, 0), ANY, rd_own_snoops_sharers,
        "RdOwn snoops an owner, and leaves those who share the line"),
    mutant!("writes-leave-sharers", DATA_VALUE, (2, 0), ANY, writes_snoop_sharers,
        "a write past the caches leaves copies of those who share the line"),
    mutant!("stores-leave-sharers", SINGLE_WRITER, (1, 1), ANY, stores_snoop_sharers,
        "a core's store leaves copies of devices that share the line"),
    mutant!("cache-flushed-forgets-all", SINGLE_WRITER, (2, 0), ANY, cache_flushed_is_of_one_device,
        "CacheFlushed of one device clears all devices from the directory"),
    mutant!("eviction-forgets-all", SINGLE_WRITER, (2, 0), ANY, evictions_are_of_one_device,
        "an eviction clears all devices from the directory"),
    mutant!("asks-to-retry", PROGRESS, (2, 0), ANY, host_serves_shared_lines,
        "the host refuses RdOwn as long as others share the line, and the device asks again and again"),
    mutant!("snoops-until-gone", PROGRESS, (2, 0), ANY, kept_is_an_answer,
        "the host repeats SnpCur until the owner has nothing, though SnpCur lets it keep the line"),
    mutant!("evicts-again", PROGRESS, (2, 0), ANY, stale_evictions_end,
        "a device whose line was snooped away before it was evicted evicts it again and again"),
    mutant!("pulls-again", PROGRESS, (2, 0), ANY, bogus_data_end_a_pull,
        "both ends go on with an eviction until data are pulled that are not bogus"),
    memory_mutant!("forward-is-passed", SINGLE_WRITER, Bias, forward_is_not_passed,
        "a later request of the host passes MemRdFwd, which then takes back what was granted"),
    memory_mutant!("answer-before-write", DATA_VALUE, Bias, answer_waits_for_write,
        "the host sends MemRdFwd before what it wrote back is in memory"),
    memory_mutant!("host-keeps-copy", SINGLE_WRITER, Bias, host_gives_up,
        "the host keeps a copy of a line that the device wants to write, and says that it has none"),
    memory_mutant!("kept-copy-unsaid", SINGLE_WRITER, Bias, kept_copies_are_said,
        "the host keeps a copy to read, and says in MemRdFwd that it has none: the device takes the line into its bias"),
    memory_mutant!("device-keeps-owning", SINGLE_WRITER, Bias, reads_share_device_copy,
        "a read of the host leaves the device's cache its copy to write"),
    memory_mutant!("device-copy-not-written", DATA_VALUE, Bias, device_writes_back,
        "the host reads memory though the device's cache has newer data"),
    memory_mutant!("device-copy-stays", SINGLE_WRITER, Bias, ownership_takes_device_copy,
        "the host gets a line to write, and the device's cache keeps its copy"),
    memory_mutant!("writes-leave-device-copy", DATA_VALUE, Bias, writes_take_device_copy,
        "a write of the host past its caches leaves the copy of the device's cache"),
    memory_mutant!("bias-does-not-flip", SINGLE_WRITER, Bias, reads_end_device_bias,
        "a read of the host leaves the line in device bias"),
    memory_mutant!("conflict-unresolved", SINGLE_WRITER, BackInvalidate, conflicts_are_resolved,
        "the host answers BISnp as if its own request, which may have been granted, came after it"),
    memory_mutant!("snooping-device-answers", SINGLE_WRITER, BackInvalidate, snooping_device_holds_back,
        "a device grants the host's request while its own snoop is under way"),
    memory_mutant!("asking-device-is-deaf", NO_DEADLOCK, Bias, asking_device_answers,
        "a device that waits for MemRdFwd answers no request of the host"),
];
