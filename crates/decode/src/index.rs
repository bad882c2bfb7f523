//! The packet index: what a file holds, and which packets a frame needs.

use std::fmt;

use crate::time::TimeBase;

/// One packet: the bytes of one frame.
///
/// The order of packets in the index is the order in which they are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Packet {
    /// When its frame is shown, in ticks.
    pub(crate) pts: i64,
    /// When it is decoded, in ticks.
    pub(crate) dts: i64,
    /// Where its bytes start in the file.
    pub(crate) pos: u64,
    /// How many they are.
    pub(crate) size: u32,
    /// Whether decoding can start here.
    pub(crate) key: bool,
    /// Whether its frame is shown. One that is not has been cut away by an edit list, and is decoded only because others refer to it.
    pub(crate) shown: bool,
}

/// All packets of a file's video stream, and the order in which their frames are shown.
///
/// Invariant: at least one frame is shown.
pub(crate) struct PacketIndex {
    /// In decode order.
    packets: Vec<Packet>,
    /// The packets whose frames are shown, as positions in `packets`, by pts.
    shown: Vec<u32>,
    time_base: TimeBase,
    /// The largest end of a shown frame, in ticks.
    end: i64,
}

impl PacketIndex {
    /// Sorts the shown frames by time. `end` is the largest `pts + duration` of them. None where no frame is shown.
    ///
    /// # Panics
    ///
    /// On more than `u32::MAX` packets, which `limits` keeps out.
    pub(crate) fn new(mut packets: Vec<Packet>, time_base: TimeBase, end: i64) -> Option<Self> {
        let num_packets = u32::try_from(packets.len()).expect("MAX_PACKETS is below u32::MAX");
        let mut shown: Vec<u32> = (0..num_packets)
            .zip(&packets)
            .filter(|(_, packet)| packet.shown)
            .map(|(position, _)| position)
            .collect();
        // Stable: of two frames with one pts, the first in the file comes first.
        shown.sort_by_key(|&position| packets[position as usize].pts);
        // Many files are open at once, each with its index.
        packets.shrink_to_fit();
        shown.shrink_to_fit();
        (!shown.is_empty()).then_some(Self {
            packets,
            shown,
            time_base,
            end,
        })
    }

    /// All packets, in decode order.
    pub(crate) fn packets(&self) -> &[Packet] {
        &self.packets
    }

    /// The number of frames shown.
    pub(crate) fn num_frames(&self) -> usize {
        self.shown.len()
    }

    /// The number of packets at which decoding can start.
    pub(crate) fn num_keyframes(&self) -> usize {
        self.packets.iter().filter(|packet| packet.key).count()
    }

    /// The packet of the frame shown as number `frame`.
    pub(crate) fn packet_of_frame(&self, frame: usize) -> usize {
        self.shown[frame] as usize
    }

    /// When the frame of a packet is shown.
    pub(crate) fn packet_s(&self, packet: usize) -> f64 {
        self.time_base.seconds(self.packets[packet].pts)
    }

    /// When the frame shown as number `frame` is shown.
    pub(crate) fn frame_s(&self, frame: usize) -> f64 {
        self.packet_s(self.packet_of_frame(frame))
    }

    /// When the last frame ends; where the file does not say for how long it lasts, as long as the others.
    pub(crate) fn end_s(&self) -> f64 {
        let last_s = self.frame_s(self.num_frames() - 1);
        let end_s = self.time_base.seconds(self.end);
        if end_s > last_s {
            end_s
        } else {
            last_s + self.frame_interval_s()
        }
    }

    /// The mean time between frames, or the one frame's duration; 0 where the file does not say.
    pub(crate) fn frame_interval_s(&self) -> f64 {
        let gaps = self.num_frames() - 1;
        let (first, last) = (self.frame_s(0), self.frame_s(gaps));
        if last > first {
            (last - first) / gaps as f64
        } else {
            (self.time_base.seconds(self.end) - first).max(0.0)
        }
    }

    /// The number of the shown frame nearest to a time; the earlier of two as near.
    pub(crate) fn nearest(&self, time_s: f64) -> usize {
        let after = self
            .shown
            .partition_point(|&position| self.packet_s(position as usize) < time_s);
        if after == 0 {
            return 0;
        }
        let before = after - 1;
        let is_nearer = after < self.num_frames()
            && self.frame_s(after) - time_s < time_s - self.frame_s(before);
        if is_nearer { after } else { before }
    }

    /// Where decoding must start for a packet's frame: the last keyframe at or before it in decode order that is not shown after it.
    ///
    /// A picture that follows a keyframe in the file and precedes it on the screen ("leading", in an open GOP) refers to the GOP
    /// before, so that its decoding starts one keyframe earlier. None where the file has no such keyframe.
    pub(crate) fn start_for(&self, packet: usize) -> Option<usize> {
        let pts = self.packets[packet].pts;
        (0..=packet)
            .rev()
            .find(|&start| self.packets[start].key && self.packets[start].pts <= pts)
    }

    /// Where to start instead when decoding cannot start at the keyframe `start`: one keyframe earlier, and then at the file's
    /// first, which refers to nothing before it.
    pub(crate) fn starts_before(&self, start: usize) -> impl Iterator<Item = usize> + use<> {
        let is_key = |packet: &usize| self.packets[*packet].key;
        let previous = (0..start).rev().find(is_key);
        let first = (0..start).find(is_key);
        previous
            .into_iter()
            .chain(first.filter(|_| first != previous))
    }
}

impl fmt::Debug for PacketIndex {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PacketIndex")
            .field("packets", &self.packets.len())
            .field("shown", &self.shown.len())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An index at 1 tick a second, from (pts, key) in decode order. A negative pts is not shown.
    fn index(packets: &[(i64, bool)]) -> PacketIndex {
        let packets: Vec<Packet> = packets
            .iter()
            .map(|&(pts, key)| Packet {
                pts,
                dts: pts,
                pos: 0,
                size: 1,
                key,
                shown: pts >= 0,
            })
            .collect();
        let end = packets.iter().map(|packet| packet.pts + 1).max().unwrap();
        PacketIndex::new(packets, TimeBase::new(1, 1).unwrap(), end).unwrap()
    }

    #[test]
    fn leading_pictures_start_one_keyframe_earlier() {
        // I0 P3 B1 B2 | I6 B4 B5 P7: B4 and B5 lead the second keyframe.
        let index = index(&[
            (0, true),
            (3, false),
            (1, false),
            (2, false),
            (6, true),
            (4, false),
            (5, false),
            (7, false),
        ]);
        let starts: Vec<_> = (0..8)
            .map(|packet| index.start_for(packet).unwrap())
            .collect();
        assert_eq!(starts, [0, 0, 0, 0, 4, 0, 0, 4]);
    }

    #[test]
    fn other_starts_are_the_keyframe_before_and_the_first() {
        let index = index(&[(0, true), (1, true), (2, true), (3, false), (4, true)]);
        let before = |start| index.starts_before(start).collect::<Vec<_>>();
        assert_eq!(before(4), [2, 0]);
        assert_eq!(before(1), [0]);
        assert!(before(0).is_empty());
    }

    #[test]
    fn a_picture_before_every_keyframe_has_no_start() {
        assert_eq!(index(&[(0, false), (1, true)]).start_for(0), None);
        assert_eq!(index(&[(2, true), (1, false)]).start_for(1), None);
    }

    #[test]
    fn packets_that_are_not_shown_are_no_frames() {
        let index = index(&[(-2, true), (1, false), (-1, false), (0, false)]);
        assert_eq!(index.num_frames(), 2);
        assert_eq!([index.packet_of_frame(0), index.packet_of_frame(1)], [3, 1]);
        assert_eq!(index.start_for(3), Some(0));
        assert_eq!(index.nearest(-9.0), 0);
    }

    #[test]
    fn an_index_shows_a_frame() {
        let packet = Packet {
            pts: 0,
            dts: 0,
            pos: 0,
            size: 1,
            key: true,
            shown: false,
        };
        assert!(PacketIndex::new(vec![packet], TimeBase::new(1, 1).unwrap(), 0).is_none());
    }

    #[test]
    fn nearest_takes_the_earlier_of_equals() {
        let index = index(&[(0, true), (2, false), (4, false)]);
        for (time_s, frame) in [
            (-1.0, 0),
            (0.9, 0),
            (1.0, 0),
            (1.1, 1),
            (2.0, 1),
            (3.0, 1),
            (3.1, 2),
            (99.0, 2),
        ] {
            assert_eq!(index.nearest(time_s), frame, "{time_s}");
        }
    }

    #[test]
    fn the_interval_is_the_mean_or_the_only_frames_duration() {
        assert_eq!(
            index(&[(0, true), (2, false), (4, false)]).frame_interval_s(),
            2.0
        );
        assert_eq!(index(&[(5, true)]).frame_interval_s(), 1.0);
    }
}
