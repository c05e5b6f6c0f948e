//! The whole simulator, from record to result: machines and programs made by hand and by chance, power cuts, the
//! schemes against each other.

mod aarch64;
mod global_flush;
mod instruction_sets;
mod machine;
mod machine_generator;
mod power;
mod power_cut;
mod program;
mod program_generator;
mod random;
mod random_machines;
mod results;
mod sampling;
mod schemes;
mod several_hosts;
mod timeline;
