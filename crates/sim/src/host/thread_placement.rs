//! On which cores the threads of a program run.

use std::fmt;
use std::str::FromStr;

/// As `--threads` says it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ThreadPlacement {
    /// Wherever a core is idle: its own last one first, then one that no thread has used.
    #[default]
    Free,
    /// `close`: the first thread on the first core, the next one on the core beside it; the cores of a socket lie
    /// beside each other.
    Close,
    /// `spread`: as far apart as they can be: over sockets in turn, and so the same as `close` where there is one.
    Spread,
    /// `0,2,4`: thread by thread, and from the start again behind the last one.
    Listed(Vec<usize>),
}

impl ThreadPlacement {
    /// The core of each thread on a host with so many in so many sockets, thread by thread and then from the start
    /// again; empty if threads run where there is room.
    pub fn pins(&self, cores: usize, sockets: usize) -> Vec<usize> {
        match self {
            ThreadPlacement::Free => Vec::new(),
            ThreadPlacement::Close => (0..cores).collect(),
            ThreadPlacement::Spread => {
                (0..cores).map(|thread| thread % sockets * (cores / sockets) + thread / sockets).collect()
            }
            ThreadPlacement::Listed(listed) => listed.clone(),
        }
    }

    /// Whether a host with so many cores has all that are named.
    ///
    /// # Errors
    /// If it has not, with the reason.
    pub fn check(&self, cores: usize) -> Result<(), String> {
        match self.pins(cores, 1).iter().find(|&&core| core >= cores) {
            Some(core) => Err(format!(
                "--threads {self}: there is no core {core}; the cores of this machine are 0 to {}",
                cores - 1
            )),
            None => Ok(()),
        }
    }
}

impl FromStr for ThreadPlacement {
    type Err = String;

    fn from_str(text: &str) -> Result<ThreadPlacement, String> {
        match text {
            "free" => Ok(ThreadPlacement::Free),
            "close" => Ok(ThreadPlacement::Close),
            "spread" => Ok(ThreadPlacement::Spread),
            _ => {
                let cores: Result<Vec<usize>, _> = text.split(',').map(str::parse).collect();
                cores.map(ThreadPlacement::Listed).map_err(|_| {
                    format!("--threads {text}: it has to be free, close, spread or numbers of cores with commas between them, as in 0,2,4")
                })
            }
        }
    }
}

impl fmt::Display for ThreadPlacement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ThreadPlacement::Free => write!(formatter, "free"),
            ThreadPlacement::Close => write!(formatter, "close"),
            ThreadPlacement::Spread => write!(formatter, "spread"),
            ThreadPlacement::Listed(cores) => {
                write!(formatter, "{}", cores.iter().map(usize::to_string).collect::<Vec<_>>().join(","))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_threads_fill_a_socket_before_the_next_and_spread_ones_take_sockets_in_turn() {
        assert_eq!(ThreadPlacement::Close.pins(6, 2), [0, 1, 2, 3, 4, 5]);
        assert_eq!(ThreadPlacement::Spread.pins(6, 2), [0, 3, 1, 4, 2, 5]);
        assert_eq!(ThreadPlacement::Spread.pins(6, 1), [0, 1, 2, 3, 4, 5]);
    }
}
