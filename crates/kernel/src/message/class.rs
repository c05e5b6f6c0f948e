//! The classes that messages travel in, and what each says of itself.
//!
//! Links, packing, credits and switches treat a class as its description says, and know no class by name. A protocol
//! describes its classes in its own file; the list below is the only one of all classes.

use super::back_invalidate;
use super::cache;
use super::coherence;
#[cfg(any(test, feature = "test-protocol"))]
use super::exchange;
use super::list::described;
use super::mem;

/// What a class says of itself.
#[derive(Clone, Copy, Debug)]
pub struct ClassDescription {
    /// The name in statistics.
    pub name: &'static str,
    /// Which way its messages travel.
    pub direction: Direction,
    /// How a switch finds the port that a message leaves by.
    pub route: Route,
    /// Slots of 16 bytes of data that follow a header; 0 for a class without data. A header takes one slot, or shares
    /// one: see [`SlotFormat`](super::SlotFormat).
    pub data_slots: u8,
    /// How many headers of the class a flit takes.
    pub headers_max: HeadersMax,
    /// The buffer places that its messages take at a receiver. No other class shares them.
    pub credits: CreditPool,
}

/// Which way messages travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From hosts towards devices.
    Downstream,
    /// From devices towards hosts.
    Upstream,
}

/// How a switch finds the port that a message leaves by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Route {
    /// By its line, as a request: out of the port that the line lies behind. The switch gives it a tag of its own.
    ByLine,
    /// By its tag, as the only answer to a request: out of the port that the request came in by, with the tag that it
    /// came with.
    ByTag,
}

/// How many headers of a class may lie in one flit, whatever its slots have room for.
#[derive(Clone, Copy, Debug)]
pub struct HeadersMax {
    /// In a flit of 68 bytes.
    pub in_flit_68: u8,
    /// In each group of 128 bytes of a flit of 256.
    pub in_group_256: u8,
}

/// The buffer places of a class.
#[derive(Clone, Copy, Debug)]
pub struct CreditPool {
    /// The key of their number in the `[link]` table of a machine file; empty for a class that travels on links of
    /// another kind only.
    pub key: &'static str,
    /// What that key means, for the documentation of machine files.
    pub meaning: &'static str,
    /// Whether every link carries the class. A link for which the key of another one is not given does not carry that
    /// one.
    pub is_on_every_link: bool,
}

described! {
    /// The credit classes; each has buffers and credits of its own, and no order holds between them.
    MessageClass: ClassDescription {
        /// CXL.mem M2S Req: requests without data.
        M2sReq = mem::M2S_REQ,
        /// CXL.mem M2S RwD: requests with data.
        M2sRwd = mem::M2S_RWD,
        /// CXL.mem S2M NDR: answers without data.
        S2mNdr = mem::S2M_NDR,
        /// CXL.mem S2M DRS: answers with data.
        S2mDrs = mem::S2M_DRS,
        /// Between sockets: requests of caching agents.
        AgentReq = coherence::REQ,
        /// Between sockets: lines that caching agents write back.
        AgentWb = coherence::WB,
        /// Between sockets: snoops of home agents.
        AgentSnp = coherence::SNP,
        /// Between sockets: answers without data.
        AgentRsp = coherence::RSP,
        /// Between sockets: answers with data.
        AgentData = coherence::DATA,
        /// CXL.cache D2H requests.
        D2hReq = cache::D2H_REQ,
        /// CXL.cache D2H responses.
        D2hRsp = cache::D2H_RSP,
        /// CXL.cache D2H data.
        D2hData = cache::D2H_DATA,
        /// CXL.cache H2D requests.
        H2dReq = cache::H2D_REQ,
        /// CXL.cache H2D responses.
        H2dRsp = cache::H2D_RSP,
        /// CXL.cache H2D data.
        H2dData = cache::H2D_DATA,
        /// CXL.mem S2M BISnp: snoops of devices.
        S2mBiSnp = back_invalidate::S2M_BI_SNP,
        /// CXL.mem M2S BIRsp: answers to them.
        M2sBiRsp = back_invalidate::M2S_BI_RSP,
        /// Requests without data of a protocol for tests.
        #[cfg(any(test, feature = "test-protocol"))]
        ExchangeReq = exchange::REQ,
        /// Requests with data of that protocol.
        #[cfg(any(test, feature = "test-protocol"))]
        ExchangeRwd = exchange::RWD,
        /// Answers with data of that protocol.
        #[cfg(any(test, feature = "test-protocol"))]
        ExchangeDrs = exchange::DRS,
    }
}

impl MessageClass {
    /// The name in statistics.
    #[inline]
    pub const fn name(self) -> &'static str {
        self.description().name
    }

    /// Whether data come with it.
    #[inline]
    pub const fn carries_data(self) -> bool {
        self.description().data_slots > 0
    }

    /// Slots of its header and its data.
    #[inline]
    pub const fn slots(self) -> u64 {
        1 + self.description().data_slots as u64
    }

    /// Which way its messages travel.
    #[inline]
    pub const fn direction(self) -> Direction {
        self.description().direction
    }

    /// How a switch finds the port that a message leaves by.
    #[inline]
    pub const fn route(self) -> Route {
        self.description().route
    }
}
