//! The rules of coherence, each a switch: all are kept, and a mutant of the checker breaks one.

/// What both ends and the channels between keep to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    /// A snoop does not pass an earlier response to a request for the same line: "snoop pushes GO".
    pub snoop_pushes_go: bool,
    /// The host sends no GO before it has all snoop responses: "GO after snoops".
    pub go_after_snoops: bool,
    /// The host drops pulled data that are bogus.
    pub host_drops_bogus: bool,
    /// The device says of pulled data that the line was snooped away meanwhile.
    pub device_marks_bogus: bool,
    /// The device answers snoops while it waits to give a line up.
    pub evicting_device_answers: bool,
    /// The device answers snoops of a shared line while it waits to own it.
    pub upgrading_device_answers: bool,
    /// The device holds a snoop back between GO and the data.
    pub snoop_waits_for_data: bool,
    /// `SnpInv` takes shared lines away.
    pub snp_inv_invalidates: bool,
    /// `SnpData` leaves no owner.
    pub snp_data_shares: bool,
    /// `SnpCur` leaves a modified line modified.
    pub snp_cur_keeps: bool,
    /// `RdCurr` leaves nothing in the device's cache.
    pub rd_curr_keeps_nothing: bool,
    /// What a snoop brings goes into the host's cache.
    pub snooped_data_are_kept: bool,
    /// `WrCur` writes memory if the host's cache does not have the line.
    pub wr_cur_writes_on_miss: bool,
    /// What `ItoMWr` leaves in the host's cache is newer than memory, and known to be.
    pub ito_m_wr_leaves_dirty: bool,
    /// A partial write is merged with what the host's cache has.
    pub partial_writes_merge_with_cache: bool,
    /// `CLFlush` writes a modified line of the host's cache to memory.
    pub flush_writes_back: bool,
    /// The host pulls the data of each `DirtyEvict`.
    pub dirty_evictions_are_pulled: bool,
    /// `RdAny` gives a line to own only if no other cache has it.
    pub rd_any_looks_at_sharers: bool,
    /// `RdOwn` takes the line away from its sharers.
    pub rd_own_snoops_sharers: bool,
    /// A write past the caches takes the line away from its sharers.
    pub writes_snoop_sharers: bool,
    /// A core's store takes the line away from devices that share it.
    pub stores_snoop_sharers: bool,
    /// `CacheFlushed` concerns only the device that says it.
    pub cache_flushed_is_of_one_device: bool,
    /// Giving a line up removes only that device from the directory.
    pub evictions_are_of_one_device: bool,
    /// The host serves a `RdOwn` also while others share the line, and does not tell the device to ask again.
    pub host_serves_shared_lines: bool,
    /// The host takes it that `SnpCur` leaves a line where it is.
    pub kept_is_an_answer: bool,
    /// The device takes a stale eviction to be over once its bogus data are pulled.
    pub stale_evictions_end: bool,
    /// Both ends take an eviction to be over when its data are pulled, bogus or not.
    pub bogus_data_end_a_pull: bool,
}

impl Rules {
    /// All are kept.
    pub const SOUND: Rules = Rules {
        snoop_pushes_go: true,
        go_after_snoops: true,
        host_drops_bogus: true,
        device_marks_bogus: true,
        evicting_device_answers: true,
        upgrading_device_answers: true,
        snoop_waits_for_data: true,
        snp_inv_invalidates: true,
        snp_data_shares: true,
        snp_cur_keeps: true,
        rd_curr_keeps_nothing: true,
        snooped_data_are_kept: true,
        wr_cur_writes_on_miss: true,
        ito_m_wr_leaves_dirty: true,
        partial_writes_merge_with_cache: true,
        flush_writes_back: true,
        dirty_evictions_are_pulled: true,
        rd_any_looks_at_sharers: true,
        rd_own_snoops_sharers: true,
        writes_snoop_sharers: true,
        stores_snoop_sharers: true,
        cache_flushed_is_of_one_device: true,
        evictions_are_of_one_device: true,
        host_serves_shared_lines: true,
        kept_is_an_answer: true,
        stale_evictions_end: true,
        bogus_data_end_a_pull: true,
    };
}
