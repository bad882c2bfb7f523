//! The contracts, as functions to run on your own episode lengths.
