//! A record that has been opened, and the readers that give what each thread did, frame by frame.

use std::cell::RefCell;
use std::fmt;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh64::Xxh64;

use super::code::Program;
use super::error::{FramePlace, Problem, RecordError};
use super::event::{Event, ThreadId};
use super::frame::{Codec, Decompressor, FrameHeader, FrameKind, HEADER_BYTES, pack};
use super::info::Info;
use super::memory_map::MemoryMap;
use super::order::{self, Changes, FrameChanges};
use super::overview::Overview;
use super::scan::{Scan, ScanEnd, TraceFrame, TreeOrder, scan};
use super::source::Source;
use super::trace::{Frame, Predictors, TraceDecoder};
use super::tree::{Member, Tree};
use super::varint::PADDING;

/// What to do with a record whose recording was cut off, so that nobody sealed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CutPolicy {
    /// Refuse it.
    Refuse,
    /// Read its whole frames; [`Record::ended`] says that there was more.
    Allow,
}

/// How a record ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The launcher sealed it.
    Sealed {
        /// How the program ended, such as `exit 0` or `signal 9`.
        how: String,
        /// Threads whose last buffer was lost because the process was killed.
        lost: u64,
    },
    /// The recording was cut off.
    Cut {
        /// Frames that can be read.
        whole_frames: u64,
        /// The frame, or the footer's place, after them that is not whole.
        incomplete: Option<FramePlace>,
    },
}

/// An opened record. Cloning shares it; nothing in it changes any more.
#[derive(Clone)]
pub struct Record {
    contents: Arc<Contents>,
}

impl fmt::Debug for Record {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Record({}, {})", self.source().name(), self.hash())
    }
}

struct Contents {
    source: Arc<dyn Source>,
    info: Info,
    program: Program,
    threads: Vec<Vec<TraceFrame>>,
    /// The ORDER frame of each TRACE frame, or none at all.
    orders: Vec<Vec<TraceFrame>>,
    tree_order: TreeOrder,
    /// How many processes the tree has of which it is the first one, where that is known.
    processes: u64,
    /// Who was not recorded and may have stored to memory that it shares, by name.
    sharers: Vec<String>,
    program_instructions: Option<u64>,
    ended: Ended,
    frames: u64,
    hash: u64,
    overview: OnceLock<Result<Overview, RecordError>>,
    /// If it is the records of several processes.
    tree: Option<Tree>,
}

impl Record {
    /// Opens a record: walks it once and checks every byte against the checksum that covers it.
    ///
    /// # Errors
    /// If there is anything wrong with it. A record that was cut off is only wrong under [`CutPolicy::Refuse`]; a
    /// damaged frame always is.
    pub fn open(source: Arc<dyn Source>, cut: CutPolicy) -> Result<Self, RecordError> {
        let (record, problem) = Self::open_up_to_problem(source)?;
        match (problem, record.ended()) {
            (Some(problem), _) => Err(problem),
            (None, &Ended::Cut { whole_frames, incomplete }) if cut == CutPolicy::Refuse => {
                let problem = Problem::Unsealed { whole_frames, incomplete: incomplete.is_some() };
                Err(record.refuse(incomplete, problem))
            }
            (None, _) => Ok(record),
        }
    }

    /// Opens what can be read before the first problem, and gives the problem too. Only for describing a record: what
    /// it gives must not be replayed as if it were whole.
    pub(super) fn open_up_to_problem(source: Arc<dyn Source>) -> Result<(Self, Option<RecordError>), RecordError> {
        let (scan, end) = scan(&source);
        let frames = scan.frames();
        let Scan { info, program, threads, mut orders, tree_order, seal, hash, .. } = scan;
        if !is_whole(&orders, &threads) {
            orders.clear();
        }
        let processes = seal.as_ref().map_or(0, |seal| seal.processes);
        let sharers = seal.as_ref().map_or_else(Vec::new, |seal| seal.sharers.clone());
        let program_instructions = seal.as_ref().and_then(|seal| seal.program_instructions);
        let (ended, problem) = match (end, seal) {
            (ScanEnd::Sealed, Some(seal)) => (Ended::Sealed { how: seal.ended, lost: seal.lost }, None),
            (ScanEnd::Sealed, None) => unreachable!("a walk ends sealed at a seal only"),
            (ScanEnd::Cut { whole_frames, incomplete }, _) => (Ended::Cut { whole_frames, incomplete }, None),
            (ScanEnd::Refused(problem), _) => (Ended::Cut { whole_frames: frames, incomplete: None }, Some(problem)),
        };
        let Some(info) = info else {
            let nothing = RecordError { record: source.name().into(), frame: None, problem: Problem::NothingWhole };
            return Err(problem.unwrap_or(nothing));
        };
        let overview = OnceLock::new();
        let (tree, hash) = (None, hash.digest());
        let contents = Contents {
            source,
            info,
            program,
            threads,
            orders,
            tree_order,
            processes,
            sharers,
            program_instructions,
            ended,
            frames,
            hash,
            overview,
            tree,
        };
        Ok((Self { contents: Arc::new(contents) }, problem))
    }

    /// The records of a process and of all that began in it, as one; `open` opens that of the process with a number,
    /// if it has one. There are at least `processes`, or as many as the record says: one that was killed may have
    /// forked without a word.
    ///
    /// # Errors
    /// If one of them cannot be opened or read, or cannot be part of a tree.
    pub fn of_tree(
        root: Self,
        processes: u64,
        open: impl FnMut(u64) -> Result<Option<Self>, RecordError>,
    ) -> Result<Self, RecordError> {
        let processes = processes.max(root.contents.processes);
        let (tree, program) = Tree::of(root, processes, open)?;
        let records = || tree.members().iter().map(|member| &member.record);
        let root = &records().next().expect("the root").contents;
        let threads: Vec<_> = records().flat_map(|record| record.contents.threads.iter().cloned()).collect();
        let order = &root.tree_order;
        let is_known = order.children == tree.hash_of_children() && is_whole(&order.threads, &threads);
        let mut hash = Xxh64::new(0);
        records().for_each(|record| hash.update(&record.contents.hash.to_le_bytes()));
        let contents = Contents {
            source: Arc::clone(&root.source),
            info: root.info.clone(),
            program,
            threads,
            orders: if is_known { order.threads.clone() } else { Vec::new() },
            tree_order: TreeOrder::default(),
            processes: 0,
            sharers: root.sharers.clone(),
            program_instructions: None,
            ended: root.ended.clone(),
            frames: records().map(Self::frames).sum(),
            hash: hash.digest(),
            overview: OnceLock::new(),
            tree: Some(tree),
        };
        Ok(Self { contents: Arc::new(contents) })
    }

    /// What the record says about its recording.
    #[must_use]
    pub fn info(&self) -> &Info {
        &self.contents.info
    }

    /// The static code.
    #[must_use]
    pub fn program(&self) -> &Program {
        &self.contents.program
    }

    /// Number of threads; their ids are those below.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.contents.threads.len()
    }

    /// How the record ends.
    #[must_use]
    pub fn ended(&self) -> &Ended {
        &self.contents.ended
    }

    /// What has to be said of every result that is made from this record: it may hold less than one thinks.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let Some(tree) = self.tree() else { return self.own_warnings() };
        let of_process = |member: &Member| {
            let number = member.number;
            member.record.warnings().into_iter().map(move |warning| format!("process {number}: {warning}"))
        };
        let absent = |number| format!("process {number} has no record: what it did is not replayed");
        tree.members().iter().flat_map(of_process).chain(tree.absent().iter().map(absent)).collect()
    }

    /// Why no replay of it is of what was recorded: others stored to its memory, and nothing says what.
    #[must_use]
    pub fn unreliable_because(&self) -> Vec<String> {
        let reason = |name: &String| {
            format!(
                "{name} was not recorded and may have stored to memory that the program shares: a replay lacks that"
            )
        };
        self.contents.sharers.iter().map(reason).collect()
    }

    fn own_warnings(&self) -> Vec<String> {
        let Ended::Sealed { how, lost } = self.ended() else {
            return vec!["the recording was cut off: the record holds what was written until then".into()];
        };
        let mut warnings = Vec::new();
        if let Some(number) = how.strip_prefix("signal ") {
            warnings.push(format!(
                "the recorded program was ended by signal {number}: the record holds what it did until then"
            ));
        }
        if *lost > 0 {
            let threads = if *lost == 1 { "1 thread".to_string() } else { format!("{lost} threads") };
            warnings.push(format!("the last instructions of {threads} are not in the record"));
        }
        if self.info().options.warm == Some(0) && self.instructions() > 0 {
            warnings.push(
                "the region of interest was recorded alone: caches and predictors are cold where it begins \
                 (record --warm)"
                    .into(),
            );
        }
        warnings
    }

    /// Architectural instructions of all threads.
    #[must_use]
    pub fn instructions(&self) -> u64 {
        self.contents.threads.iter().map(|frames| end_of(frames)).sum()
    }

    /// Those of the whole program, where windows of it were recorded.
    #[must_use]
    pub fn program_instructions(&self) -> Option<u64> {
        self.contents.program_instructions
    }

    /// Architectural instructions of one thread.
    #[must_use]
    pub fn thread_instructions(&self, thread: ThreadId) -> u64 {
        end_of(self.trace_frames(thread))
    }

    /// Number of frames, of all kinds.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.contents.frames
    }

    /// How many bytes it has, of all its processes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        match self.tree() {
            Some(tree) => tree.members().iter().map(|member| member.record.bytes()).sum(),
            None => self.source().len(),
        }
    }

    /// How many processes it is of.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.tree().map_or(1, |tree| tree.members().len())
    }

    /// Whether no other thread can see what it stores.
    pub(super) fn is_alone(&self, thread: ThreadId) -> bool {
        self.tree().is_some_and(|tree| tree.member_of(thread).is_alone())
    }

    pub(super) fn tree(&self) -> Option<&Tree> {
        self.contents.tree.as_ref()
    }

    /// The name and the bytes of the record; of its first process.
    #[must_use]
    pub fn source(&self) -> &dyn Source {
        self.contents.source.as_ref()
    }

    /// A hash of the record's content, in 16 hexadecimal digits: the same wherever and under whichever name it lies.
    #[must_use]
    pub fn hash(&self) -> String {
        format!("{:016x}", self.contents.hash)
    }

    /// A reader at the beginning of a thread. A thread that the record does not have has nothing to read.
    #[must_use]
    pub fn reader(&self, thread: ThreadId) -> ThreadReader {
        ThreadReader { record: self.clone(), thread, next: 0 }
    }

    /// The mappings over time. The first call reads all events of the record; the answer is kept.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn memory_map(&self) -> Result<&MemoryMap, RecordError> {
        self.overview().map(|overview| &overview.memory_map)
    }

    fn overview(&self) -> Result<&Overview, RecordError> {
        self.contents.overview.get_or_init(|| Overview::read(self)).as_ref().map_err(Clone::clone)
    }

    /// Hands all events to `visit`, thread by thread, each thread's in order; what stands between them is not unpacked.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn visit_events(&self, mut visit: impl FnMut(ThreadId, &Event)) -> Result<(), RecordError> {
        let mut frame = Frame::default();
        self.visit_trace(|thread, decoder, _| {
            decoder.events(&mut frame)?;
            frame.events.iter().for_each(|event| visit(thread, event));
            Ok(())
        })
    }

    pub(super) fn refuse(&self, frame: Option<FramePlace>, problem: Problem) -> RecordError {
        RecordError { record: self.source().name().to_string(), frame, problem }
    }

    pub(super) fn trace_frames(&self, thread: ThreadId) -> &[TraceFrame] {
        self.contents.threads.get(thread.0 as usize).map_or(&[], Vec::as_slice)
    }

    /// Hands the unpacked payloads of all TRACE frames to `visit`, thread by thread, each in order.
    pub(super) fn visit_trace(
        &self,
        mut visit: impl FnMut(ThreadId, &TraceDecoder<'_>, &mut Predictors) -> Result<(), Problem>,
    ) -> Result<(), RecordError> {
        for (thread, frames) in self.contents.threads.iter().enumerate() {
            let thread = ThreadId(thread as u32);
            for frame in frames {
                self.decode(thread, frame, |decoder, predictors| visit(thread, decoder, predictors))?;
            }
        }
        Ok(())
    }

    fn frame(&self, thread: ThreadId, frame: &TraceFrame, into: &mut Frame) -> Result<(), RecordError> {
        self.decode(thread, frame, |decoder, predictors| decoder.frame(predictors, into))?;
        let (number, overview) = (frame.header.sequence as usize, self.overview()?);
        overview.drop_foreign(into);
        if let Some(order) = self.contents.orders.get(thread.0 as usize).map(|orders| &orders[number]) {
            let changes = self.unpack(order, |raw, _| FrameChanges::decode(raw))?;
            let changed = changes.apply(self.program(), into);
            return changed.map_err(|problem| self.refuse(Some(order.place), problem));
        }
        let completed = overview.complete(self.program(), thread, number, into);
        completed.map_err(|problem| self.refuse(Some(frame.place), problem))?;
        Ok(())
    }

    pub(super) fn is_sealed(&self) -> bool {
        matches!(self.ended(), Ended::Sealed { .. })
    }

    /// What replays change in its frames, if anything.
    pub(super) fn changes(&self) -> Result<Option<Changes>, RecordError> {
        if !self.has_its_order() {
            return Ok(self.overview()?.changes.clone());
        }
        let of_frame = |order: &TraceFrame| self.unpack(order, |raw, _| FrameChanges::decode(raw));
        let of_thread = |orders: &Vec<TraceFrame>| orders.iter().map(of_frame).collect::<Result<Vec<_>, _>>();
        let threads = self.contents.orders.iter().map(of_thread).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(threads.into()))
    }

    /// Whether its threads took turns, so that it is one sequence.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn has_turns(&self) -> Result<bool, RecordError> {
        self.overview().map(|overview| overview.has_turns)
    }

    /// Whether it holds what of its order a replay keeps.
    pub(super) fn has_its_order(&self) -> bool {
        !self.contents.orders.is_empty()
    }

    /// The ORDER frames that belong behind its frames, or of a tree behind those of its first process: what of its
    /// order a replay keeps, found once and for all. They are none if its threads did not take turns, or if it has
    /// them.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn order_frames(&self) -> Result<Vec<u8>, RecordError> {
        self.order_frames_and_undecided().map(|(frames, _)| frames)
    }

    /// With the number of accesses of which it is not known what they have to come behind: there were too many.
    ///
    /// # Errors
    /// If a frame cannot be read.
    pub fn order_frames_and_undecided(&self) -> Result<(Vec<u8>, u64), RecordError> {
        let mut frames = Vec::new();
        if self.has_its_order() {
            return Ok((frames, 0));
        }
        let Some(changes) = order::changes_of(self)? else { return Ok((frames, 0)) };
        let (kind, position) = match self.tree() {
            Some(tree) => (FrameKind::TreeOrder, tree.hash_of_children()),
            None => (FrameKind::Order, 0),
        };
        for (thread, sequence, changes) in changes.frames() {
            let header = FrameHeader {
                version: self.info().format_version as u16,
                kind,
                codec: Codec::Zstd,
                thread,
                sequence,
                instructions: 0,
                position,
                stored_bytes: 0,
                raw_bytes: 0,
                checksum: 0,
            };
            pack(header, &changes.encode(), &mut frames).map_err(|problem| self.refuse(None, problem))?;
        }
        Ok((frames, changes.undecided))
    }

    /// Fills `into` with a thread's frame of this number, as the recorder wrote it; false where there is none.
    pub(super) fn frame_as_recorded(
        &self,
        thread: ThreadId,
        number: usize,
        into: &mut Frame,
    ) -> Result<bool, RecordError> {
        let Some(frame) = self.trace_frames(thread).get(number) else { return Ok(false) };
        self.decode(thread, frame, |decoder, predictors| decoder.frame(predictors, into))?;
        Ok(true)
    }

    fn decode(
        &self,
        thread: ThreadId,
        frame: &TraceFrame,
        decode: impl FnOnce(&TraceDecoder<'_>, &mut Predictors) -> Result<(), Problem>,
    ) -> Result<(), RecordError> {
        let member = self.tree().map(|tree| tree.member_of(thread));
        let own = member.map_or(self, |member| &member.record);
        own.unpack(frame, |raw, predictors| {
            raw.resize(raw.len() + PADDING, 0);
            decode(&TraceDecoder::new(&frame.header, own.program(), raw, member)?, predictors)
        })
    }

    /// Reads one frame again, checks that it is still what it was, and unpacks it for `read`.
    fn unpack<T>(
        &self,
        frame: &TraceFrame,
        read: impl FnOnce(&mut Vec<u8>, &mut Predictors) -> Result<T, Problem>,
    ) -> Result<T, RecordError> {
        let result = WORKSPACE.with_borrow_mut(|workspace| {
            let Workspace { stored, raw, decompressor, predictors } = workspace;
            let header = &frame.header;
            stored.resize(header.frame_bytes() as usize, 0);
            self.source().read_at(frame.place.offset, stored)?;
            let (head, payload) = stored.split_at(HEADER_BYTES);
            if head != header.to_bytes() || !header.fits(payload) {
                return Err(Problem::Damaged("it has changed since the record was opened"));
            }
            decompressor.unpack(header, payload, raw)?;
            read(raw, predictors)
        });
        result.map_err(|problem| self.refuse(Some(frame.place), problem))
    }
}

/// Whether there is a frame for each of the others.
fn is_whole(orders: &[Vec<TraceFrame>], threads: &[Vec<TraceFrame>]) -> bool {
    orders.len() == threads.len() && orders.iter().zip(threads).all(|(of, traces)| of.len() == traces.len())
}

fn end_of(frames: &[TraceFrame]) -> u64 {
    frames.last().map_or(0, |frame| frame.header.position + frame.header.instructions)
}

/// What unpacking a frame needs besides the frame. Nothing in it outlives the call, so the readers of one
/// operating-system thread share it: a simulation of many threads, and its clones, would otherwise keep the tables
/// many times.
#[derive(Default)]
struct Workspace {
    stored: Vec<u8>,
    raw: Vec<u8>,
    decompressor: Decompressor,
    predictors: Predictors,
}

thread_local! {
    static WORKSPACE: RefCell<Workspace> = RefCell::default();
}

/// Reads what one thread did, frame by frame. It holds a position only, so that a clone costs nothing.
#[derive(Clone, Debug)]
pub struct ThreadReader {
    record: Record,
    thread: ThreadId,
    next: usize,
}

impl ThreadReader {
    /// The thread that this reader reads.
    #[must_use]
    pub fn thread(&self) -> ThreadId {
        self.thread
    }

    /// Fills `into` with the next frame and says so; leaves it as it is after the last one.
    ///
    /// # Errors
    /// If the frame cannot be read or breaks the format; what `into` holds then means nothing, and the reader stays
    /// where it is.
    pub fn next_frame(&mut self, into: &mut Frame) -> Result<bool, RecordError> {
        let Some(frame) = self.record.trace_frames(self.thread).get(self.next) else { return Ok(false) };
        self.record.frame(self.thread, frame, into)?;
        self.next += 1;
        Ok(true)
    }

    /// Fills `into` once more with the frame that [`Self::next_frame`] gave last.
    ///
    /// # Errors
    /// As there.
    ///
    /// # Panics
    /// If it has given none.
    pub fn last_frame(&self, into: &mut Frame) -> Result<(), RecordError> {
        self.record.frame(self.thread, self.last(), into)
    }

    /// How many bytes of the record that frame takes.
    ///
    /// # Panics
    /// As [`Self::last_frame`].
    #[must_use]
    pub fn last_stored_bytes(&self) -> u64 {
        self.last().header.frame_bytes()
    }

    fn last(&self) -> &TraceFrame {
        &self.record.trace_frames(self.thread)[self.next.checked_sub(1).expect("a frame was read")]
    }

    /// Moves to the frame in which instruction number `instruction` of the thread executes, back or forth, or behind
    /// the last frame. Returns the number of the first instruction that is then read. Events in the frames between
    /// are passed over.
    pub fn skip_to(&mut self, instruction: u64) -> u64 {
        let frames = self.record.trace_frames(self.thread);
        // A frame of events alone, right before the instruction, is not passed over.
        self.next = frames.partition_point(|TraceFrame { header, .. }| {
            header.position < instruction && header.position + header.instructions <= instruction
        });
        frames.get(self.next).map_or(end_of(frames), |frame| frame.header.position)
    }
}
