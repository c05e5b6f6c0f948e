//! Streams (Jouppi 1990; as in Intel's second levels): in each page the direction in which lines are accessed. Once two
//! accesses have gone the same way it runs ahead of them, by so many lines an access until it is far enough ahead.

use super::{Ahead, PAGE_SHIFT};
use crate::cache::config::CacheConfig;
use fencepost_kernel::line::LINE_BYTES;

/// The accesses to one page.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    page: u64,
    /// The line of the page that was accessed last.
    last: i64,
    /// 1 or -1; 0 before there was a second line.
    direction: i64,
    /// The line from which on nothing has been fetched yet, in the stream's direction.
    next: i64,
    /// When it was used last; 0 if it never was.
    used: u64,
}

/// The table of one cache.
#[derive(Clone, Debug)]
pub struct Streams {
    streams: Box<[Stream]>,
    clock: u64,
    distance: i64,
    degree: u8,
}

impl Streams {
    /// As `config` says.
    pub fn new(config: &CacheConfig) -> Streams {
        Streams {
            streams: vec![Stream::default(); usize::from(config.prefetch_entries)].into(),
            clock: 0,
            distance: i64::from(config.prefetch_distance),
            degree: config.prefetch_degree,
        }
    }

    /// `address` is accessed.
    pub fn observe(&mut self, address: u64) -> Ahead {
        let (page, line) = (address >> PAGE_SHIFT, (address / LINE_BYTES) as i64);
        self.clock += 1;
        let known = self.streams.iter_mut().find(|stream| stream.used != 0 && stream.page == page);
        let Some(stream) = known else {
            let oldest = self.streams.iter_mut().min_by_key(|stream| stream.used).expect("there is an entry");
            *oldest = Stream { page, last: line, used: self.clock, ..Stream::default() };
            return Ahead::default();
        };
        stream.used = self.clock;
        let direction = (line - stream.last).signum();
        if direction == 0 {
            return Ahead::default();
        }
        stream.last = line;
        if direction != stream.direction {
            (stream.direction, stream.next) = (direction, line + direction);
            return Ahead::default();
        }
        // What the accesses have passed is not fetched any more.
        let first = if (stream.next - line) * direction > 0 { stream.next } else { line + direction };
        let room = self.distance - (first - line) * direction + 1;
        let left = room.clamp(0, i64::from(self.degree));
        stream.next = first + left * direction;
        // Below the first line of all there is none: that wraps to a page that is not this one.
        Ahead { next: (first as u64).wrapping_mul(LINE_BYTES), step: direction * LINE_BYTES as i64, left: left as u8 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(entries: usize, degree: u8, distance: i64) -> Streams {
        Streams { streams: vec![Stream::default(); entries].into(), clock: 0, distance, degree }
    }

    /// What an access to each line in turn asks for, by the numbers of the lines.
    fn asked(streams: &mut Streams, lines: &[u64]) -> Vec<Vec<u64>> {
        lines.iter().map(|line| streams.observe(64 * line).map(|address| address / 64).collect()).collect()
    }

    #[test]
    fn a_second_step_the_same_way_starts_a_stream_that_runs_to_its_distance() {
        let lines = asked(&mut streams(4, 2, 4), &[10, 11, 12, 13, 14, 15]);
        assert_eq!(lines, [vec![], vec![], vec![13, 14], vec![15, 16], vec![17, 18], vec![19]]);
    }

    #[test]
    fn it_goes_down_and_leaves_out_what_is_left_out() {
        assert_eq!(asked(&mut streams(4, 1, 8), &[40, 38, 36, 33]), [vec![], vec![], vec![35], vec![32]]);
    }

    #[test]
    fn another_direction_starts_anew_and_the_same_line_says_nothing() {
        let lines = asked(&mut streams(4, 1, 8), &[10, 11, 11, 12, 11, 10]);
        assert_eq!(lines, [vec![], vec![], vec![], vec![13], vec![], vec![9]]);
    }

    #[test]
    fn the_page_used_least_recently_is_forgotten() {
        let page = |number: u64, line: u64| 64 * number + line;
        let mut two = streams(2, 1, 8);
        let lines = [page(1, 0), page(2, 0), page(1, 1), page(3, 0), page(1, 2), page(2, 1), page(2, 2)];
        assert_eq!(asked(&mut two, &lines)[4..], [vec![page(1, 3)], vec![], vec![]]);
    }
}
