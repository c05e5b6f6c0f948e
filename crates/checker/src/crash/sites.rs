//! Where in the program an act comes from: its instruction, and the calls that led there. A copy in a library, or a
//! store inside a template of the standard library, says nothing by its instruction alone; the call that asked for it
//! does.
//!
//! A record has no call stacks. They are rebuilt from the blocks that a thread executed: a block that ends with a call
//! adds one, and a return removes those up to the one that it returns to, so what an exception or `longjmp` skipped
//! goes with it; or with the next call that puts its return address where one of them had its own.

use std::collections::HashMap;

use fencepost_isa::micro_op::Exit;
use fencepost_sim::replay::simulation::Program;

/// Number of a site among [`Sites`].
pub type SiteId = u32;

/// Of the calls that led to an act so many are known: templates of the standard library are nested about ten deep where
/// nothing is inlined.
const CALLS_MAX: usize = 16;

/// How far up a return looks for the call that it belongs to.
const FRAMES_LEFT_MAX: usize = 256;

/// Threads that recurse without end, or leave calls by other ways than returns.
const DEPTH_MAX: usize = 1 << 16;

/// An instruction and the calls that led to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Site<'a> {
    /// Virtual address of the instruction; 0 for a system call or a synchronisation function.
    pub instruction: u64,
    /// Virtual addresses of the call instructions, innermost first.
    pub calls: &'a [u64],
}

/// All sites of a record, by number.
#[derive(Clone, Debug, Default)]
pub struct Sites {
    sites: Vec<(u64, u32)>,
    numbers: HashMap<(u64, u32), SiteId>,
    paths: Vec<Box<[u64]>>,
    path_numbers: HashMap<Box<[u64]>, u32>,
}

impl Sites {
    /// The site with this number.
    pub fn get(&self, site: SiteId) -> Site<'_> {
        let (instruction, path) = self.sites[site as usize];
        Site { instruction, calls: &self.paths[path as usize] }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.sites.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// The number of an instruction that a thread with these calls executes.
    pub fn number(&mut self, instruction: u64, stack: &mut CallStack) -> SiteId {
        let path = stack.path.unwrap_or_else(|| self.path_of(&stack.calls));
        stack.path = Some(path);
        let sites = &mut self.sites;
        *self.numbers.entry((instruction, path)).or_insert_with(|| {
            sites.push((instruction, path));
            (sites.len() - 1) as SiteId
        })
    }

    fn path_of(&mut self, calls: &[Call]) -> u32 {
        let known = calls.iter().rev().map(|call| call.instruction).take_while(|&instruction| instruction != 0);
        let path: Box<[u64]> = known.take(CALLS_MAX).collect();
        let paths = &mut self.paths;
        *self.path_numbers.entry(path).or_insert_with_key(|path| {
            paths.push(path.clone());
            (paths.len() - 1) as u32
        })
    }
}

/// A call that has not returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Call {
    /// 0 for a signal, which nobody called.
    instruction: u64,
    returns_to: u64,
    /// Where in memory its return address lies; 0 if it lies in none.
    frame: u64,
}

/// The calls that a thread is in.
#[derive(Clone, Debug, Default)]
pub struct CallStack {
    calls: Vec<Call>,
    /// Whether the last block, or what stands for a call, has returned.
    has_returned: bool,
    /// The number of `calls` among the paths of [`Sites`], once that was asked for.
    path: Option<u32>,
}

impl CallStack {
    /// A block begins at this address.
    pub fn begin(&mut self, block: u64) {
        if std::mem::take(&mut self.has_returned) {
            let left = self.calls.iter().rev().take(FRAMES_LEFT_MAX).position(|call| call.returns_to == block);
            if let Some(left) = left {
                self.calls.truncate(self.calls.len() - left - 1);
                self.path = None;
            }
        }
    }

    /// A block has ended.
    pub fn end(&mut self, end: BlockEnd) {
        match end {
            BlockEnd::Call { instruction, returns_to, frame } => {
                self.drop_overwritten(frame);
                self.push(Call { instruction, returns_to, frame });
            }
            BlockEnd::Return => self.returned(),
            BlockEnd::Other => {}
        }
    }

    /// What a function did is known by an event, and it has returned.
    pub fn returned(&mut self) {
        self.has_returned = true;
    }

    /// A signal's handler begins.
    pub fn interrupted(&mut self) {
        self.push(Call { instruction: 0, returns_to: 0, frame: 0 });
    }

    /// How many calls these are.
    pub fn depth(&self) -> usize {
        self.calls.len()
    }

    /// Removes the call whose return address lay there, and those that it made: `longjmp` or an exception left them.
    fn drop_overwritten(&mut self, frame: u64) {
        let mut inner = self.calls.iter().rev().take(FRAMES_LEFT_MAX).take_while(|call| call.frame <= frame);
        if frame != 0
            && let Some(left) = inner.position(|call| call.frame == frame)
        {
            self.calls.truncate(self.calls.len() - left - 1);
        }
    }

    fn push(&mut self, call: Call) {
        if self.calls.len() == DEPTH_MAX {
            self.calls.drain(..DEPTH_MAX / 2);
        }
        self.calls.push(call);
        self.path = None;
    }
}

/// How a block ends, as far as it concerns calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlockEnd {
    /// With a call.
    Call {
        /// Its address.
        instruction: u64,
        /// The address behind it.
        returns_to: u64,
        /// Where in memory that is put; 0 if nowhere.
        frame: u64,
    },
    /// With a return.
    Return,
    /// Otherwise.
    #[default]
    Other,
}

impl BlockEnd {
    /// That of block number `id`; where it puts a return address differs from time to time.
    pub fn of_block(program: &Program, id: u32) -> BlockEnd {
        match program.blocks()[id as usize].exit {
            Exit::Call | Exit::IndirectCall => {
                let last = program.record().program().block(id).instructions().last();
                last.map_or(BlockEnd::Other, |(instruction, bytes)| BlockEnd::Call {
                    instruction,
                    returns_to: instruction + bytes.len() as u64,
                    frame: 0,
                })
            }
            Exit::Return => BlockEnd::Return,
            _ => BlockEnd::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(sites: &mut Sites, stack: &mut CallStack) -> Vec<u64> {
        let site = sites.number(7, stack);
        assert_eq!(sites.get(site).instruction, 7);
        sites.get(site).calls.to_vec()
    }

    fn call(instruction: u64) -> BlockEnd {
        call_from(instruction, 0)
    }

    fn call_from(instruction: u64, frame: u64) -> BlockEnd {
        BlockEnd::Call { instruction, returns_to: instruction + 5, frame }
    }

    #[test]
    fn a_site_knows_the_calls_that_led_to_it() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        assert!(calls(&mut sites, &mut stack).is_empty());
        stack.end(call(100));
        stack.begin(200);
        stack.end(call(210));
        stack.begin(300);
        assert_eq!(calls(&mut sites, &mut stack), [210, 100]);
        stack.end(BlockEnd::Return);
        stack.begin(215);
        assert_eq!(calls(&mut sites, &mut stack), [100]);
        stack.end(call(210));
        stack.begin(300);
        assert_eq!(calls(&mut sites, &mut stack), [210, 100]);
        assert_eq!(sites.len(), 3, "the same instruction, called in the same way, is one site");
    }

    #[test]
    fn what_an_exception_skipped_goes_with_the_next_return() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        for call_at in [100, 200, 300] {
            stack.end(call(call_at));
            stack.begin(call_at + 90);
        }
        stack.begin(250); // caught by what 100 has called
        stack.end(BlockEnd::Return);
        stack.begin(105);
        assert!(calls(&mut sites, &mut stack).is_empty());
    }

    #[test]
    fn what_longjmp_left_goes_with_the_next_call_of_the_same_depth() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        for (call_at, frame) in [(100, 8000), (200, 7900), (300, 7800)] {
            stack.end(call_from(call_at, frame));
            stack.begin(call_at + 90);
        }
        stack.begin(250); // where `setjmp` was called
        stack.end(call_from(260, 7900));
        assert_eq!(calls(&mut sites, &mut stack), [260, 100]);
    }

    #[test]
    fn a_call_on_another_stack_leaves_those_of_this_one() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        stack.end(call_from(100, 8000));
        stack.end(call_from(200, 9000));
        assert_eq!(calls(&mut sites, &mut stack), [200, 100]);
    }

    #[test]
    fn a_return_that_belongs_to_no_call_removes_none() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        stack.end(call(100));
        stack.begin(200);
        stack.end(BlockEnd::Return);
        stack.begin(400);
        assert_eq!(calls(&mut sites, &mut stack), [100]);
    }

    #[test]
    fn a_handler_is_called_by_nobody() {
        let (mut sites, mut stack) = (Sites::default(), CallStack::default());
        stack.end(call(100));
        stack.begin(200);
        stack.interrupted();
        stack.begin(900);
        stack.end(call(910));
        stack.begin(950);
        assert_eq!(calls(&mut sites, &mut stack), [910]);
    }
}
