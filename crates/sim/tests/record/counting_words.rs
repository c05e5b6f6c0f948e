//! Updates of a word that counts arrivals count from the first one on, also those before the recorder knew.

use fencepost_sim::record::{Clock, CutPolicy, Event, Frame, Info, SpinReleaseKind, ThreadId, Writer, WriterOptions};

use super::generate::open;

const COUNTER: u64 = 0x1000;
const OTHER: u64 = 0x2000;

fn release(clock: u64, object: u64, kind: SpinReleaseKind) -> Event {
    Event::SpinRelease { clock: Clock(clock), object, kind, after: None, lock: 0 }
}

#[test]
fn an_update_counts_where_another_thread_s_later_one_does() {
    use SpinReleaseKind::{Count, Store, Update};
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    for event in [release(1, COUNTER, Update), release(2, OTHER, Update), release(3, COUNTER, Store)] {
        writer.event(ThreadId(0), &event).unwrap();
    }
    writer.event(ThreadId(1), &release(4, COUNTER, Count)).unwrap();
    let record = open(writer.seal("exit 0").unwrap(), CutPolicy::Refuse).unwrap();

    let mut frame = Frame::default();
    assert!(record.reader(ThreadId(0)).next_frame(&mut frame).unwrap());
    let read = [release(1, COUNTER, Count), release(2, OTHER, Update), release(3, COUNTER, Store)];
    assert_eq!(frame.events, read);
}
