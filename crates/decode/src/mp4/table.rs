//! From the tables of a track to its packets.

use super::boxes;
use crate::index::Packet;
use crate::limits::{MAX_PACKET_BYTES, MAX_PACKETS};

/// The most frames that one is shown before, though decoded after them: H.264 allows no more.
const MAX_REORDER_DEPTH: usize = 16;

/// The longest time from decoding to showing, in ticks. FFmpeg takes larger ones for damage, or for negative ones, with which it has its
/// own ways.
const MAX_SHIFT: u32 = 1 << 28;

/// Which part of the track is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edit {
    /// All, at the times that the tables say.
    None,
    /// A time of the track, and a time after it, in ticks: what lies between is shown, from time 0 on.
    Between(i64, i64),
    /// Something else.
    Other,
}

/// The sample tables of a track, each as it lies in the file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tables<'a> {
    stts: &'a [u8],
    ctts: Option<&'a [u8]>,
    stsc: &'a [u8],
    stsz: &'a [u8],
    stco: Option<&'a [u8]>,
    co64: Option<&'a [u8]>,
    stss: Option<&'a [u8]>,
}

impl<'a> Tables<'a> {
    /// Finds the tables in the `stbl` box. None where one is missing or there twice, or where there are others: groups of samples, and
    /// other lists of keyframes, are for FFmpeg to understand.
    pub(super) fn find(stbl: &'a [u8]) -> Option<Self> {
        let mut found = [None; 7];
        for child in boxes::children(stbl) {
            let (kind, payload) = child?;
            let place = match &kind {
                b"stts" => 0,
                b"ctts" => 1,
                b"stsc" => 2,
                b"stsz" => 3,
                b"stco" => 4,
                b"co64" => 5,
                b"stss" => 6,
                b"stsd" | b"sdtp" => continue,
                _ => return None,
            };
            if found[place].replace(payload).is_some() {
                return None;
            }
        }
        let [stts, ctts, stsc, stsz, stco, co64, stss] = found;
        Some(Self {
            stts: stts?,
            ctts,
            stsc: stsc?,
            stsz: stsz?,
            stco,
            co64,
            stss,
        })
    }

    /// The packets of a track in decode order, and the end of the last frame in ticks. None where the tables contradict each other, or
    /// ask for more than is sensible, or where the edit cuts something away.
    pub(super) fn packets(&self, edit: Edit) -> Option<(Vec<Packet>, i64)> {
        let sizes = sizes(self.stsz)?;
        let num_packets = sizes.len();
        let positions = positions(self.stsc, &self.offsets()?, &sizes)?;
        let (times, deltas) = times(self.stts, num_packets)?;
        let shifts = shifts(self.ctts, num_packets)?;
        let is_key = keys(self.stss, num_packets)?;

        let mut packets = Vec::with_capacity(num_packets);
        for number in 0..num_packets {
            packets.push(Packet {
                pts: times[number].checked_add(shifts[number])?,
                dts: times[number],
                pos: positions[number],
                size: sizes[number],
                key: is_key[number],
                shown: true,
            });
        }
        apply(edit, &mut packets, &deltas)?;
        let mut last = i64::MIN;
        for (packet, &delta) in packets.iter().zip(&deltas) {
            last = last.max(packet.pts.checked_add(delta.into())?);
        }
        Some((packets, last))
    }

    /// Where the chunks start.
    fn offsets(&self) -> Option<Vec<u64>> {
        match (self.stco, self.co64) {
            (Some(stco), None) => Some(entries(stco)?.map(|[offset]| offset.into()).collect()),
            (None, Some(co64)) => {
                let long = |[high, low]: [u32; 2]| u64::from(high) << 32 | u64::from(low);
                Some(entries(co64)?.map(long).collect())
            }
            _ => None,
        }
    }
}

/// The entries of a table, each of `N` numbers: behind version, flags and their count. None where there are fewer than counted.
fn entries<const N: usize>(
    table: &[u8],
) -> Option<impl ExactSizeIterator<Item = [u32; N]> + Clone> {
    let count = boxes::u32_at(table, 4)? as usize;
    let bytes = table.get(8..)?.get(..count.checked_mul(4 * N)?)?;
    let entry = |bytes: &[u8]| {
        std::array::from_fn(|n| boxes::u32_at(bytes, 4 * n).expect("a chunk has 4 * N bytes"))
    };
    Some(bytes.chunks_exact(4 * N).map(entry))
}

/// Moves times to where the edit puts them; None where it does more than that.
fn apply(edit: Edit, packets: &mut [Packet], deltas: &[u32]) -> Option<()> {
    let (from, to) = match edit {
        Edit::None => return Some(()),
        Edit::Between(from, to) => (from, to),
        Edit::Other => return None,
    };
    let first = packets.iter().map(|packet| packet.pts).min()?;
    // FFmpeg ends a track with the first keyframe that reaches its end.
    let mut before_last = packets.iter().zip(deltas).rev().skip(1);
    let ends_early = before_last.any(|(packet, &delta)| {
        packet.key
            && packet
                .pts
                .checked_add(delta.into())
                .is_none_or(|end| end >= to)
    });
    if first != from || packets.iter().any(|packet| packet.pts >= to) || ends_early {
        return None;
    }
    for packet in packets {
        packet.pts -= from;
        packet.dts = packet.dts.checked_sub(from)?;
    }
    Some(())
}

/// How many frames at most are decoded before one that is shown before them. Decoders of streams that do not say so themselves need to
/// know it.
pub(super) fn reorder_depth(packets: &[Packet]) -> usize {
    // The latest times so far, ascending: more than these cannot matter.
    let mut latest: Vec<i64> = Vec::with_capacity(MAX_REORDER_DEPTH + 1);
    let mut depth = 0;
    for packet in packets {
        let place = latest.partition_point(|&pts| pts <= packet.pts);
        depth = depth.max(latest.len() - place);
        latest.insert(place, packet.pts);
        if latest.len() > MAX_REORDER_DEPTH {
            latest.remove(0);
        }
    }
    depth
}

/// The size of each packet, in bytes. None where all have one size, which needs no list: a count alone would ask for any amount of
/// memory.
fn sizes(stsz: &[u8]) -> Option<Vec<u32>> {
    let (common, len) = (boxes::u32_at(stsz, 4)?, boxes::u32_at(stsz, 8)? as usize);
    if common != 0 || len == 0 || len > MAX_PACKETS {
        return None;
    }
    let sizes: Vec<u32> = entries(stsz.get(4..)?)?.map(|[size]| size).collect();
    let fits = |&size: &u32| (1..=MAX_PACKET_BYTES).contains(&size);
    sizes.iter().all(fits).then_some(sizes)
}

/// Where each packet starts: chunks lie at `offsets`, and packets within a chunk behind one another.
fn positions(stsc: &[u8], offsets: &[u64], sizes: &[u32]) -> Option<Vec<u64>> {
    let mut positions = Vec::with_capacity(sizes.len());
    // Of each run of chunks: the first, counted from 1, the packets in each, and which sample entry they go by.
    let runs: Vec<[u32; 3]> = entries(stsc)?.collect();
    if runs.first()?[0] != 1 {
        return None;
    }
    for (number, &[first, packets_per_chunk, entry]) in runs.iter().enumerate() {
        let end = match runs.get(number + 1) {
            Some(next) => next[0],
            None => u32::try_from(offsets.len()).ok()?.checked_add(1)?,
        };
        if end <= first || packets_per_chunk == 0 || entry != 1 {
            return None;
        }
        for chunk in first..end {
            let mut position = *offsets.get(chunk as usize - 1)?;
            for _ in 0..packets_per_chunk {
                let size = *sizes.get(positions.len())?;
                positions.push(position);
                position = position.checked_add(size.into())?;
            }
        }
    }
    (positions.len() == sizes.len()).then_some(positions)
}

/// Runs of equal values, one value a packet.
fn expand(runs: &[u8], len: usize) -> Option<Vec<u32>> {
    let mut values = Vec::with_capacity(len);
    for [count, value] in entries(runs)? {
        let count = count as usize;
        if count > len - values.len() {
            return None;
        }
        values.extend(std::iter::repeat_n(value, count));
    }
    (values.len() == len).then_some(values)
}

/// When each packet is decoded, and for how long it lasts.
fn times(stts: &[u8], len: usize) -> Option<(Vec<i64>, Vec<u32>)> {
    let deltas = expand(stts, len)?;
    // Large ones are meant as negative.
    if deltas.iter().any(|&delta| i32::try_from(delta).is_err()) {
        return None;
    }
    // No overflow: at most 2^24 packets of 2^31 ticks.
    let times = deltas.iter().scan(0_i64, |time, &delta| {
        let here = *time;
        *time += i64::from(delta);
        Some(here)
    });
    Some((times.collect(), deltas))
}

/// How much later than decoded each frame is shown.
fn shifts(ctts: Option<&[u8]>, len: usize) -> Option<Vec<i64>> {
    let Some(ctts) = ctts else {
        return Some(vec![0; len]);
    };
    expand(ctts, len)?
        .into_iter()
        .map(|shift| (shift <= MAX_SHIFT).then_some(shift.into()))
        .collect()
}

/// Which packets decoding can start at: all, unless there is a list.
fn keys(stss: Option<&[u8]>, len: usize) -> Option<Vec<bool>> {
    let Some(stss) = stss else {
        return Some(vec![true; len]);
    };
    let numbers = entries(stss)?.map(|[number]| number);
    if numbers.len() == 0 || !numbers.clone().is_sorted_by(|a, b| a < b) {
        return None;
    }
    let mut keys = vec![false; len];
    for number in numbers {
        *keys.get_mut((number as usize).checked_sub(1)?)? = true;
    }
    Some(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reorder_depth_counts_later_frames_that_come_first() {
        let depth = |times: &[i64]| {
            let packet = |&pts: &i64| Packet {
                pts,
                dts: 0,
                pos: 0,
                size: 1,
                key: true,
                shown: true,
            };
            reorder_depth(&times.iter().map(packet).collect::<Vec<_>>())
        };
        assert_eq!(depth(&[0, 1, 2]), 0);
        assert_eq!(depth(&[0, 3, 1, 2, 6, 4, 5]), 1);
        assert_eq!(depth(&[0, 4, 2, 1, 3]), 2);
        assert_eq!(depth(&(0..40).rev().collect::<Vec<_>>()), 16);
    }

    #[test]
    fn a_count_alone_reserves_nothing() {
        // 2^24 packets of 100 bytes each, by a table of 12 bytes.
        let stsz = [[0; 4], 100_u32.to_be_bytes(), (1_u32 << 24).to_be_bytes()].concat();
        assert_eq!(sizes(&stsz), None);
        // As many by a list that is not there.
        let stsz = [[0; 4], [0; 4], (1_u32 << 24).to_be_bytes()].concat();
        assert_eq!(sizes(&stsz), None);
    }
}
