//! How fast the exploration of coherence is: `prove_coherence DEVICES CORES LINES [THREADS]`.

use std::ops::ControlFlow;

use fencepost_checker::coherence::bounds::Bounds;
use fencepost_checker::coherence::prove::{prove, sound};
use fencepost_checker::exploration::Means;

fn main() {
    let sizes: Vec<u8> = std::env::args().skip(1).map(|size| size.parse().expect("a number")).collect();
    let [devices, cores, lines, rest @ ..] = &sizes[..] else { panic!("DEVICES CORES LINES [THREADS]") };
    let bounds = Bounds { devices: *devices, cores: *cores, lines: *lines, ..Bounds::default() };
    let threads = rest.first().map_or(0, |threads| usize::from(*threads));
    let means = Means { memory_max: 16 << 30, threads };
    let model = sound(bounds).expect("sizes that can be explored");
    let mut tell = fencepost_checker::exploration::every(std::time::Duration::from_secs(5), |p| {
        eprintln!("{} {} depth {} expanded {} {:.0}", p.states, p.transitions, p.depth, p.expanded, p.seconds);
        ControlFlow::Continue(())
    });
    let report = prove(&model, means, &mut tell);
    println!("{}", serde_json::to_string_pretty(&report).expect("a report is JSON"));
}
