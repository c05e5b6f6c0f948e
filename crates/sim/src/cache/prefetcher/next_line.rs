//! Next line (Smith 1982): whatever is accessed, the lines behind it are worth having.

use super::Ahead;
use crate::cache::config::CacheConfig;
use fencepost_kernel::line::LINE_BYTES;

/// Has no memory.
#[derive(Clone, Debug)]
pub struct NextLine {
    distance: u64,
    degree: u8,
}

impl NextLine {
    /// As `config` says.
    pub fn new(config: &CacheConfig) -> NextLine {
        NextLine { distance: u64::from(config.prefetch_distance), degree: config.prefetch_degree }
    }

    /// `address` is accessed.
    #[inline]
    pub fn observe(&self, address: u64) -> Ahead {
        let next = address.wrapping_add(self.distance * LINE_BYTES);
        Ahead { next, step: LINE_BYTES as i64, left: self.degree }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_degree_says_how_many_and_the_distance_where_they_begin() {
        let ahead = |degree, distance| NextLine { distance, degree }.observe(1000).collect::<Vec<_>>();
        assert_eq!(ahead(1, 1), [1064]);
        assert_eq!(ahead(2, 3), [1000 + 3 * 64, 1000 + 4 * 64]);
    }
}
