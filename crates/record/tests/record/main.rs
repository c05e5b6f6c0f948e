//! Records through their public face: what is written comes back, and what is not whole is refused.

mod damage;
mod generate;
mod malformed;
mod memory_map;
mod round_trip;
mod summary;
