//! Two kernels: which parameters and which of the mechanisms' variants they have.
//!
//! Where a number comes from stands beside it; `mm/` is Linux's, of that version.

use serde::{Deserialize, Serialize};

/// What packs compressed pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Packing {
    /// Two to a page.
    Zbud,
    /// Classes of sizes, objects across pages.
    Zsmalloc,
}

/// A kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct Preset {
    /// `zswap.zpool`: mm/Kconfig, `ZSWAP_ZPOOL_DEFAULT`.
    pub packing: Packing,
    /// `zswap.max_pool_percent`: mm/zswap.c.
    pub pool_percent_max: u32,
    /// `zswap.accept_threshold_percent`: mm/zswap.c.
    pub accept_percent: u32,
    /// Whether the worker writes back until the pool accepts again (6.8) or once a kick (6.2): `shrink_worker`.
    pub writes_back_until_accepting: bool,
    /// Whether an entry stays when its page has been loaded, until that is written: it does where loads are not
    /// exclusive (6.2; `zswap_frontswap_load`).
    pub keeps_loaded: bool,
    /// `vm.page-cluster` 3: pages that a fault reads, `swap_ra` at its most (mm/swap_state.c).
    pub readahead_pages: u32,
    /// `SWAP_CLUSTER_MAX`.
    pub reclaim_batch: u32,
    /// `ksm.pages_to_scan`: mm/ksm.c.
    pub ksm_pages: u32,
    /// `ksm.sleep_millisecs`: mm/ksm.c.
    pub ksm_sleep_ms: u32,
    /// `ksm.max_page_sharing`: mm/ksm.c.
    pub ksm_sharers_max: u32,
    /// `ksm.smart_scan`, from 6.7 on.
    pub ksm_smart_scan: bool,
    /// Weight of ksmd at nice 5 over nice 0 (`sched_prio_to_weight`: 335 of 1,024).
    pub ksm_weight: u32,
}

/// Linux 6.2.
pub const LINUX_6_2: Preset = Preset {
    packing: Packing::Zbud,
    pool_percent_max: 20,
    accept_percent: 90,
    writes_back_until_accepting: false,
    keeps_loaded: true,
    readahead_pages: 8,
    reclaim_batch: 32,
    ksm_pages: 100,
    ksm_sleep_ms: 20,
    ksm_sharers_max: 256,
    ksm_smart_scan: false,
    ksm_weight: 335,
};

/// Linux 6.8: its shrinker is off by default, its advisor too.
pub const LINUX_6_8: Preset = Preset {
    packing: Packing::Zsmalloc,
    writes_back_until_accepting: true,
    keeps_loaded: false,
    ksm_smart_scan: true,
    ..LINUX_6_2
};

/// By its name, `6.2` or `6.8`.
#[must_use]
pub fn preset(name: &str) -> Option<&'static Preset> {
    match name {
        "6.2" => Some(&LINUX_6_2),
        "6.8" => Some(&LINUX_6_8),
        _ => None,
    }
}
