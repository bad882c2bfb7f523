//! What stands for fetching in a build without remote sources: nothing ever is fetched.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use dataset::EpisodeRows;
use pool_core::Emission;

use crate::cameras::Cameras;
use crate::course::Course;
use crate::pool::Dataset;
use crate::{Error, FetchReport, FetchTotals};

#[derive(Debug, Clone)]
pub(crate) enum FetchMeans {}

#[derive(Debug)]
pub(crate) enum Fetches {}

impl FetchMeans {
    #[expect(clippy::unnecessary_wraps, reason = "its namesake may fail")]
    pub(crate) fn start(_: &Dataset) -> Result<Option<Self>, Error> {
        Ok(None)
    }

    pub(crate) fn totals(&self) -> FetchTotals {
        match *self {}
    }
}

impl Fetches {
    pub(crate) fn new(
        means: FetchMeans,
        _: &Course,
        _: &Arc<Cameras>,
        _: &Arc<AtomicBool>,
        _: bool,
    ) -> Self {
        match means {}
    }

    pub(crate) fn admit(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn evict(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn settle(&mut self) {
        match *self {}
    }

    pub(crate) fn is_mapped(&self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn is_lost(&self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn wait_mapped(&mut self, _: usize) {
        match *self {}
    }

    pub(crate) fn want_rows(&self, _: usize) {
        match *self {}
    }

    pub(crate) fn want(&self, _: usize, _: &str, _: &[Range<u64>]) {
        match *self {}
    }

    pub(crate) fn is_whole(&self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn take_rows(&mut self, _: usize) -> Result<Option<EpisodeRows>, Error> {
        match *self {}
    }

    pub(crate) fn wait_bytes(
        &mut self,
        _: &Emission,
        _: &[(Arc<str>, Vec<Range<u64>>)],
    ) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn is_left_out(&mut self, _: usize) -> bool {
        match *self {}
    }

    pub(crate) fn leave_out(&mut self, _: usize, _: Error) -> Result<(), Error> {
        match *self {}
    }

    pub(crate) fn report(&self) -> FetchReport {
        match *self {}
    }
}
