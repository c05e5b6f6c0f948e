//! The event stream of a trace frame: a type byte and its fields, clocks as differences.

use super::error::Problem;
use super::event::{
    Clock, Event, FRAME_EVENTS_MAX, FutexOutcome, MappingKind, MarkKind, PersistCall, Protection, SpinReleaseKind,
    ThreadId,
};
use super::varint::{Fields, encode, encode_bytes, zigzag};

/// Reads the fields of one event.
struct EventFields<'a, 'b> {
    fields: &'b mut Fields<'a>,
    clock: &'b mut u64,
}

impl EventFields<'_, '_> {
    fn clock(&mut self) -> Result<Clock, Problem> {
        *self.clock = self.clock.wrapping_add_signed(self.fields.svarint()?);
        Ok(Clock(*self.clock))
    }

    fn wake(&mut self) -> Result<Option<Clock>, Problem> {
        let clock = self.fields.varint()?;
        Ok((clock != 0).then_some(Clock(clock)))
    }

    fn thread(&mut self) -> Result<ThreadId, Problem> {
        let limit = u64::from(super::frame::THREADS_MAX) - 1;
        Ok(ThreadId(self.fields.varint_up_to(limit, "the thread of an event")? as u32))
    }

    fn number(&mut self) -> Result<u64, Problem> {
        self.fields.varint()
    }

    /// One of the values of a byte that has a name each.
    fn choice<T: Copy>(&mut self, choices: &[(u8, T)]) -> Result<T, Problem> {
        let code = self.fields.u8()?;
        let choice = choices.iter().find(|choice| choice.0 == code);
        choice.map(|choice| choice.1).ok_or(Problem::Malformed("a choice of an event is none of its values"))
    }
}

const BOOLEANS: [(u8, bool); 2] = [(0, false), (1, true)];
const ROI_BOUNDARIES: [(u8, bool); 2] = [(1, true), (2, false)];
const FUTEX_OUTCOMES: [(u8, FutexOutcome); 4] = [
    (0, FutexOutcome::Woken),
    (1, FutexOutcome::ValueChanged),
    (2, FutexOutcome::TimedOut),
    (3, FutexOutcome::Interrupted),
];
const MAPPING_KINDS: [(u8, MappingKind); 5] = [
    (0, MappingKind::Anonymous),
    (1, MappingKind::File),
    (2, MappingKind::Stack),
    (3, MappingKind::Break),
    (4, MappingKind::Special),
];
const PERSIST_CALLS: [(u8, PersistCall); 4] =
    [(1, PersistCall::Msync), (2, PersistCall::Fsync), (3, PersistCall::Fdatasync), (4, PersistCall::Truncate)];
const MARK_KINDS: [(u8, MarkKind); 3] = [(1, MarkKind::Begin), (2, MarkKind::End), (3, MarkKind::Acknowledged)];
const SPIN_RELEASES: [(u8, SpinReleaseKind); 4] = [
    (0, SpinReleaseKind::Store),
    (1, SpinReleaseKind::Update),
    (4, SpinReleaseKind::TakesLock),
    (5, SpinReleaseKind::GivesLock),
];
const PROTECTION_MAX: u8 = 7;

/// Reads a whole event stream; clocks count on from `clock`.
pub(super) fn decode_events(stream: &[u8], mut clock: u64, into: &mut Vec<Event>) -> Result<(), Problem> {
    let mut fields = Fields::new(stream);
    while !fields.is_at_end() {
        Problem::check_limit("the number of events", into.len() as u64 + 1, FRAME_EVENTS_MAX)?;
        let code = fields.u8()?;
        let mut fields = EventFields { fields: &mut fields, clock: &mut clock };
        into.push(match code {
            1..=20 => fields.synchronisation(code)?,
            _ => fields.other(code)?,
        });
    }
    Ok(())
}

impl EventFields<'_, '_> {
    /// Events 1 to 20: all have a clock, and all but the first four an object.
    fn synchronisation(&mut self, code: u8) -> Result<Event, Problem> {
        let clock = self.clock()?;
        Ok(match code {
            1 => Event::ThreadStart {
                clock,
                kernel_tid: self.number()?,
                stack_low: self.number()?,
                stack_high: self.number()?,
            },
            2 => Event::ThreadExit { clock },
            3 => Event::ThreadCreate { clock, thread: self.thread()? },
            4 => Event::ThreadJoin { clock, thread: self.thread()? },
            _ => {
                let object = self.number()?;
                self.on_object(code, clock, object)?
            }
        })
    }

    fn on_object(&mut self, code: u8, clock: Clock, object: u64) -> Result<Event, Problem> {
        Ok(match code {
            5 => Event::MutexLock { clock, object },
            6 => Event::MutexUnlock { clock, object },
            7 => Event::SpinLock { clock, object },
            8 => Event::SpinUnlock { clock, object },
            9 => Event::ReadLock { clock, object },
            10 => Event::WriteLock { clock, object },
            11 => Event::RwUnlock { clock, object },
            12 => Event::AttemptFailed { clock, object },
            13 => Event::ConditionWait {
                clock,
                object,
                mutex: self.number()?,
                wake: self.wake()?,
                timed_out: self.choice(&BOOLEANS)?,
            },
            14 => Event::ConditionSignal { clock, object },
            15 => Event::ConditionBroadcast { clock, object },
            16 => Event::SemaphorePost { clock, object },
            17 => Event::SemaphoreWait { clock, object, wake: self.wake()? },
            18 => Event::BarrierWait { clock, object, participants: self.number()?, generation: self.number()? },
            19 => Event::FutexWait { clock, object, wake: self.wake()?, outcome: self.choice(&FUTEX_OUTCOMES)? },
            20 => Event::FutexWake { clock, object, woken: self.number()? },
            _ => return Err(Problem::UnknownEvent(code)),
        })
    }

    fn other(&mut self, code: u8) -> Result<Event, Problem> {
        Ok(match code {
            22 => Event::SystemCall { number: self.number()?, result: self.fields.svarint()? },
            23 => self.map()?,
            24 => Event::Unmap { clock: self.clock()?, start: self.number()?, length: self.number()? },
            25 => Event::Module {
                clock: self.clock()?,
                base: self.number()?,
                length: self.number()?,
                build_id: self.fields.bytes()?.into(),
                path: self.fields.bytes()?.into(),
            },
            26 => Event::Roi { begin: self.choice(&ROI_BOUNDARIES)? },
            27 => Event::Interrupted { instructions: self.number()? },
            28 => Event::Signal { number: self.number()? },
            29 => Event::Exec { clock: self.clock()?, path: self.fields.bytes()?.into() },
            30 => Event::Fork { child: self.number()? },
            31 => Event::KernelWrite { address: self.number()?, bytes: self.fields.bytes()?.into() },
            32 => Event::PersistCall {
                clock: self.clock()?,
                call: self.choice(&PERSIST_CALLS)?,
                start: self.number()?,
                length: self.number()?,
            },
            33 => Event::InitialBytes { address: self.number()?, bytes: self.fields.bytes()?.into() },
            34 => Event::Order { thread: self.thread()?, writes: self.number()? },
            35 => Event::SpinRelease {
                clock: self.clock()?,
                object: self.number()?,
                kind: self.choice(&SPIN_RELEASES)?,
                lock: self.number()?,
            },
            41 => Event::Turn { clock: self.clock()?, estimate: self.number()? },
            42 => Event::Supply { clock: self.clock()?, object: self.number()? },
            43 => Event::Consume { clock: self.clock()?, object: self.number()?, supply: self.wake()? },
            39 => Event::Polling { instructions: self.number()?, by_count: self.number()? },
            44 => Event::HandedOut { begin: self.choice(&BOOLEANS)? },
            45 => Event::StoreSeen { clock: Clock(self.number()?) },
            46 => Event::Loads { count: self.number()?, store: self.wake()? },
            47 => Event::DroppedEdges { count: self.number()? },
            48 => Event::SharedMapping {
                clock: self.clock()?,
                start: self.number()?,
                length: self.number()?,
                object: self.number()?,
                offset: self.number()?,
            },
            49 => Event::ChildWait { clock: self.clock()?, process: self.number()? },
            50 => {
                Event::Mark { clock: self.clock()?, kind: self.choice(&MARK_KINDS)?, text: self.fields.bytes()?.into() }
            }
            40 => {
                let (clock, object, wake) = (self.clock()?, self.number()?, Clock(self.number()?));
                Event::SpinWait { clock, object, wake, maker: self.thread()?, lends: self.number()? }
            }
            36 => Event::CallBegin,
            37 => Event::CallEnd,
            _ => return Err(Problem::UnknownEvent(code)),
        })
    }

    fn map(&mut self) -> Result<Event, Problem> {
        let (clock, start, length) = (self.clock()?, self.number()?, self.number()?);
        let protection = self.fields.u8()?;
        if protection > PROTECTION_MAX {
            return Err(Problem::Malformed("a protection is none of its values"));
        }
        Ok(Event::Map {
            clock,
            start,
            length,
            protection: Protection(protection),
            kind: self.choice(&MAPPING_KINDS)?,
            offset: self.number()?,
            name: self.fields.bytes()?.into(),
        })
    }
}

/// Appends events to a stream; clocks count on from `clock`.
pub(super) struct EventEncoder {
    pub(super) stream: Vec<u8>,
    pub(super) clock: u64,
}

impl EventEncoder {
    /// Type and clock.
    fn begin(&mut self, code: u8, clock: Clock) {
        self.stream.push(code);
        encode(&mut self.stream, zigzag(clock.0.wrapping_sub(self.clock) as i64));
        self.clock = clock.0;
    }

    fn numbers<const N: usize>(&mut self, numbers: [u64; N]) {
        for number in numbers {
            encode(&mut self.stream, number);
        }
    }

    fn clocked<const N: usize>(&mut self, code: u8, clock: Clock, numbers: [u64; N]) {
        self.begin(code, clock);
        self.numbers(numbers);
    }

    fn wake(wake: Option<Clock>) -> u64 {
        wake.map_or(0, |clock| clock.0)
    }

    /// Appends one event.
    pub(super) fn encode(&mut self, event: &Event) {
        use Event as E;
        match *event {
            E::ThreadStart { clock, kernel_tid, stack_low, stack_high } => {
                self.clocked(1, clock, [kernel_tid, stack_low, stack_high]);
            }
            E::ThreadExit { clock } => self.clocked(2, clock, []),
            E::ThreadCreate { clock, thread } => self.clocked(3, clock, [thread.0.into()]),
            E::ThreadJoin { clock, thread } => self.clocked(4, clock, [thread.0.into()]),
            E::MutexLock { clock, object } => self.clocked(5, clock, [object]),
            E::MutexUnlock { clock, object } => self.clocked(6, clock, [object]),
            E::SpinLock { clock, object } => self.clocked(7, clock, [object]),
            E::SpinUnlock { clock, object } => self.clocked(8, clock, [object]),
            E::ReadLock { clock, object } => self.clocked(9, clock, [object]),
            E::WriteLock { clock, object } => self.clocked(10, clock, [object]),
            E::RwUnlock { clock, object } => self.clocked(11, clock, [object]),
            E::AttemptFailed { clock, object } => self.clocked(12, clock, [object]),
            E::ConditionWait { clock, object, mutex, wake, timed_out } => {
                self.clocked(13, clock, [object, mutex, Self::wake(wake)]);
                self.stream.push(timed_out.into());
            }
            E::ConditionSignal { clock, object } => self.clocked(14, clock, [object]),
            E::ConditionBroadcast { clock, object } => self.clocked(15, clock, [object]),
            E::SemaphorePost { clock, object } => self.clocked(16, clock, [object]),
            E::SemaphoreWait { clock, object, wake } => {
                self.clocked(17, clock, [object, Self::wake(wake)]);
            }
            E::BarrierWait { clock, object, participants, generation } => {
                self.clocked(18, clock, [object, participants, generation]);
            }
            E::FutexWait { clock, object, wake, outcome } => {
                self.clocked(19, clock, [object, Self::wake(wake)]);
                self.stream.push(outcome as u8);
            }
            E::FutexWake { clock, object, woken } => self.clocked(20, clock, [object, woken]),
            E::SpinWait { clock, object, wake, maker, lends } => {
                self.clocked(40, clock, [object, wake.0, maker.0.into(), lends]);
            }
            E::SpinRelease { clock, object, kind, lock } => {
                self.clocked(35, clock, [object]);
                self.stream.push(kind as u8);
                self.numbers([lock]);
            }
            _ => self.encode_other(event),
        }
    }

    /// Everything that is not synchronisation.
    fn encode_other(&mut self, event: &Event) {
        match event {
            Event::SystemCall { number, result } => self.plain(22, [*number, zigzag(*result)]),
            Event::Map { clock, start, length, protection, kind, offset, name } => {
                self.clocked(23, *clock, [*start, *length]);
                self.stream.extend([protection.0, *kind as u8]);
                self.numbers([*offset]);
                encode_bytes(&mut self.stream, name.as_bytes());
            }
            Event::Unmap { clock, start, length } => self.clocked(24, *clock, [*start, *length]),
            Event::Module { clock, base, length, build_id, path } => {
                self.clocked(25, *clock, [*base, *length]);
                encode_bytes(&mut self.stream, build_id);
                encode_bytes(&mut self.stream, path.as_bytes());
            }
            Event::Roi { begin } => self.stream.extend([26, if *begin { 1 } else { 2 }]),
            Event::Interrupted { instructions } => self.plain(27, [*instructions]),
            Event::Signal { number } => self.plain(28, [*number]),
            Event::Turn { clock, estimate } => self.clocked(41, *clock, [*estimate]),
            Event::Supply { clock, object } => self.clocked(42, *clock, [*object]),
            Event::Consume { clock, object, supply } => {
                self.clocked(43, *clock, [*object, supply.map_or(0, |supply| supply.0)]);
            }
            Event::HandedOut { begin } => self.stream.extend([44, u8::from(*begin)]),
            Event::StoreSeen { clock } => self.plain(45, [clock.0]),
            Event::Loads { count, store } => self.plain(46, [*count, Self::wake(*store)]),
            Event::DroppedEdges { count } => self.plain(47, [*count]),
            Event::Polling { instructions, by_count } => self.plain(39, [*instructions, *by_count]),
            Event::Exec { clock, path } => {
                self.begin(29, *clock);
                encode_bytes(&mut self.stream, path.as_bytes());
            }
            Event::Fork { child } => self.plain(30, [*child]),
            Event::SharedMapping { clock, start, length, object, offset } => {
                self.clocked(48, *clock, [*start, *length, *object, *offset]);
            }
            Event::ChildWait { clock, process } => self.clocked(49, *clock, [*process]),
            Event::Mark { clock, kind, text } => {
                self.begin(50, *clock);
                self.stream.push(*kind as u8);
                encode_bytes(&mut self.stream, text.as_bytes());
            }
            Event::KernelWrite { address, bytes } => {
                self.plain(31, [*address]);
                encode_bytes(&mut self.stream, bytes);
            }
            Event::PersistCall { clock, call, start, length } => {
                self.begin(32, *clock);
                self.stream.push(*call as u8);
                self.numbers([*start, *length]);
            }
            Event::InitialBytes { address, bytes } => {
                self.plain(33, [*address]);
                encode_bytes(&mut self.stream, bytes);
            }
            Event::Order { thread, writes } => self.plain(34, [thread.0.into(), *writes]),
            Event::CallBegin => self.plain(36, []),
            Event::CallEnd => self.plain(37, []),
            synchronisation => unreachable!("encoded before: {synchronisation:?}"),
        }
    }

    fn plain<const N: usize>(&mut self, code: u8, numbers: [u64; N]) {
        self.stream.push(code);
        self.numbers(numbers);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(stream: &[u8]) -> Result<Vec<Event>, Problem> {
        let mut events = Vec::new();
        decode_events(stream, 7, &mut events).map(|()| events)
    }

    #[test]
    fn clocks_count_on_from_the_frame_and_from_each_other() {
        let stream = [14, 6, 0x40, 14, 1, 0x40];
        let at = |clock| Event::ConditionSignal { clock: Clock(clock), object: 0x40 };
        assert_eq!(decoded(&stream), Ok(vec![at(10), at(9)]));
    }

    #[test]
    fn types_and_choices_that_do_not_exist_are_refused() {
        for code in (0..=u8::MAX).filter(|code| !(1..=50).contains(code) || [21, 38].contains(code)) {
            assert_eq!(decoded(&[code, 0, 0, 0, 0]), Err(Problem::UnknownEvent(code)));
        }
        let (no_roi, no_outcome, no_call) = ([26, 0], [19, 0, 1, 0, 4], [32, 0, 5, 0, 0]);
        let (no_protection, no_kind) = ([23, 0, 1, 1, 8, 0, 0, 0], [23, 0, 1, 1, 7, 5, 0, 0]);
        for stream in [&no_roi[..], &no_outcome, &no_call, &no_protection, &no_kind] {
            assert!(matches!(decoded(stream), Err(Problem::Malformed(_))), "{stream:?}");
        }
    }

    #[test]
    fn every_prefix_of_an_event_is_refused() {
        let map = [23, 2, 1, 1, 7, 1, 0, 3, b'a', b'b', b'c'];
        assert_eq!(decoded(&map).map(|events| events.len()), Ok(1));
        for length in 1..map.len() {
            assert!(decoded(&map[..length]).is_err(), "{length} bytes");
        }
    }
}
