//! Explores the protocol within bounds given as JSON, or all mutants: `explore '{"entries": 2}'`, `explore mutants`. For measuring;
//! `fencepost prove` is the command.

use std::ops::ControlFlow;
use std::time::Duration;

use fencepost_checker::protocol::bounds::Bounds;
use fencepost_checker::protocol::explore::every;
use fencepost_checker::protocol::mutants::{self, Explored};
use fencepost_checker::protocol::prove::{prove, sound};

fn main() {
    let text = std::env::args().nth(1).unwrap_or("{}".into());
    if text == "mutants" {
        mutants::ALL.iter().for_each(|mutant| run(mutant.name, &mutant.model()));
        return;
    }
    let bounds: Bounds = serde_json::from_str(&text).expect("bounds as JSON");
    run("sound", &sound(bounds).expect("bounds that can be explored"));
}

fn run(name: &str, model: &Explored) {
    let mut observe = every(Duration::from_secs(5), |progress| {
        eprintln!("{progress:?}");
        ControlFlow::Continue(())
    });
    let report = prove(model, &mut observe);
    let progress = report.progress;
    let rate = progress.transitions as f64 / progress.seconds / 1e6;
    println!("{name}: {progress:?}, {rate:.2} M transitions/s, {} bytes/state", progress.bytes / progress.states);
    if let Some(story) = report.counterexample {
        println!("  breaks {} {:?}", story.predicate, story.invariants);
        story.steps.iter().enumerate().for_each(|(number, step)| println!("  {}. {step}", number + 1));
    }
}
