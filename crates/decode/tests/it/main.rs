//! What `decode` promises, through its public interface.

mod cache;
mod clips;
mod clock;
mod color;
mod corrupt;
mod depth;
mod fuzzed;
mod images;
mod io;
mod parity;
mod random_access;
