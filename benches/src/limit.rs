//! The fewest frames that any loader must decode for a planned order, when it may hold a number of decoded frames.

use std::collections::{HashMap, HashSet};

/// A frame, as a request names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The GOP: video and start.
    pub gop: (u32, u32),
    /// Its number in the video.
    pub number: u32,
    /// How many frames come out before it when the GOP is decoded for it alone, itself included.
    pub cost: u32,
}

/// A lower bound on the frames decoded, for samples that want `requests` (each sample's frames, in the order of samples) and memory for
/// `held` decoded frames.
///
/// Whoever is asked for a frame either decodes its GOP up to it then, at the frame's whole cost, or has held it since the GOP was decoded
/// for another sample: no longer ago than when a frame of this GOP was last wanted. So each saving takes a place in memory for at least
/// that long; and all places together last as long as the epoch. The bound takes the savings that are cheapest by this measure, as if they could be
/// cut to fit: no order of work does better.
#[must_use]
pub fn fewest_decodes(samples: &[Vec<Frame>], held: u64) -> f64 {
    let mut gops: HashMap<(u32, u32), Gop> = HashMap::new();
    let (mut total, mut distinct) = (0_u64, HashSet::new());
    // (what holding saves, for how many samples it takes a place)
    let mut savings: Vec<(u64, u64)> = Vec::new();
    for (now, frames) in (0_u64..).zip(samples) {
        let mut frames = frames.clone();
        frames.sort_unstable_by_key(|frame| (frame.gop, frame.cost));
        distinct.extend(frames.iter().map(|frame| (frame.gop, frame.number)));
        for in_gop in frames.chunk_by(|a, b| a.gop == b.gop) {
            let gop = gops.entry(in_gop[0].gop).or_default();
            // The frames of one sample share a pass, which ends with the last of them.
            let cost = u64::from(in_gop.last().map_or(0, |frame| frame.cost));
            total += cost;
            if let Some(last_wanted) = gop.last_wanted {
                // A frame that no pass has reached so far is decoded once more than before, whoever does it.
                let new = cost.saturating_sub(gop.reached);
                // One place at least, however many of the sample's frames it takes.
                savings.push((cost - new, now - last_wanted));
            }
            gop.last_wanted = Some(now);
            gop.reached = gop.reached.max(cost);
        }
    }
    savings.retain(|&(saved, _)| saved > 0);
    savings.sort_by(|(a, b), (c, d)| (b * c).cmp(&(d * a)));
    let mut room = held as f64 * samples.len() as f64;
    let mut saved = 0.0;
    for (gain, places) in savings {
        let part = (room / (places as f64).max(1e-9)).min(1.0);
        saved += gain as f64 * part;
        room -= places as f64 * part;
    }
    (total as f64 - saved).max(distinct.len() as f64)
}

#[derive(Debug, Default)]
struct Gop {
    last_wanted: Option<u64>,
    /// The most frames that came out in one pass.
    reached: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(gop: u32, cost: u32) -> Vec<Frame> {
        vec![Frame {
            gop: (0, gop),
            number: cost,
            cost,
        }]
    }

    #[test]
    fn with_room_for_all_each_frame_is_decoded_once() {
        let samples = [
            frame(0, 2),
            frame(1, 1),
            frame(0, 1),
            frame(1, 2),
            frame(0, 2),
        ];
        assert_eq!(fewest_decodes(&samples, 10), 4.0);
    }

    #[test]
    fn without_memory_each_pays_its_own_cost() {
        let samples = [
            frame(0, 2),
            frame(1, 1),
            frame(0, 1),
            frame(1, 2),
            frame(0, 2),
        ];
        assert_eq!(fewest_decodes(&samples, 0), 8.0);
    }

    #[test]
    fn memory_goes_to_what_saves_most_for_its_time() {
        // The pair that is wanted soon saves 1 for 1 sample; the other 29 for 3. Four samples of one place hold both.
        let samples = [frame(0, 30), frame(1, 2), frame(1, 1), frame(0, 29)];
        assert_eq!(fewest_decodes(&samples, 1), 32.0);
    }
}
