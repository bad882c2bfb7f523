//! Ticks and seconds.
