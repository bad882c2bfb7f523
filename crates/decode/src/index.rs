//! The packet index of a file.
