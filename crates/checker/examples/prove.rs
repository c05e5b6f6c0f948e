//! Explores the bounds in a JSON file (`{}`: the default ones), for profiling: `cargo run --release -p
//! fencepost-checker --example prove -- BOUNDS.json THREADS`, with so many threads beside the first.

use std::ops::ControlFlow;

use fencepost_checker::exploration::Means;
use fencepost_checker::protocol::bounds::Bounds;
use fencepost_checker::protocol::prove;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, threads] = &arguments[..] else { panic!("BOUNDS.json THREADS-BESIDE-THE-FIRST") };
    let text = std::fs::read_to_string(file).expect("a file of bounds");
    let bounds: Bounds = serde_json::from_str(&text).expect("bounds");
    let means = Means { memory_max: u64::MAX, threads: threads.parse().expect("a number of threads") };
    let report = prove::prove(&prove::sound(bounds).expect("bounds"), means, &mut |_| ControlFlow::Continue(()));
    println!("{}", serde_json::to_string(&report).expect("a report is JSON"));
}
