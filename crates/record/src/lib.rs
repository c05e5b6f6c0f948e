//! The record of a program: what it did to memory, written once by a recorder and read here, frame by frame.
//!
//! A [`Record`] is opened from a [`Source`]; its [`ThreadReader`]s give the simulator what each thread did. Nothing
//! is believed that a checksum does not cover, and nothing is allocated because a few bytes claim that there is much
//! to come: a damaged, truncated, foreign or newer record ends in a [`RecordError`] that names frame and offset,
//! never in a panic and never in a silently different program. While it is read, a record takes the memory of its
//! static code and of one frame per reader, however long it is. `docs/record-format.md` is the format.

mod address_ranges;
mod code;
mod control;
mod error;
mod event;
mod event_codec;
mod frame;
mod info;
mod memory_map;
mod order;
mod overview;
mod pm_selector;
mod reader;
mod scan;
mod seal;
mod slots;
mod source;
mod summary;
mod text;
mod trace;
mod tree;
mod values;
mod varint;
mod waits;
mod writer;

pub use address_ranges::{AddressRange, AddressRanges};
pub use code::{Block, Marker, Program, Slot, SlotKind};
pub use error::{FramePlace, Problem, RecordError};
pub use event::{
    Clock, Event, FutexOutcome, MappingKind, MarkKind, PersistCall, Protection, SpinReleaseKind, ThreadId,
};
pub use frame::{Codec, MAGIC as RECORD_MAGIC, VERSION, VERSION_OLDEST};
pub use info::{ISA_AARCH64, ISA_X86_64, Info, RecordingOptions};
pub use memory_map::{LoadedModule, Mapping, MemoryMap};
pub use pm_selector::{PmSelector, SelectorError};
pub use reader::{CutPolicy, Ended, Record, ThreadReader};
pub use source::{Bytes, Source};
pub use summary::{EndedSummary, Noted, NotedBy, Summary, ThreadSummary};
pub use text::{Text, escaped};
pub use trace::Frame;
pub use tree::{path_of_child, path_of_first};
pub use values::WrittenValue;
pub use waits::{WaitingLoop, waiting_loops};
pub use writer::{BlockBuilder, Writer, WriterOptions};
