//! Decoding on the CPU, with FFmpeg: from wanted packets to decoded frames.

#[expect(unsafe_code, reason = "calls into FFmpeg, which is C")]
pub(crate) mod ffi;

use std::collections::BTreeMap;
use std::io::SeekFrom;

use crate::error::{Error, Place};
use crate::index::{Packet, PacketIndex};
use crate::video::Media;
use ffi::{Decoder, Frame, Received};

/// Reads packets from a file and decodes them.
///
/// A frame is these packets, in this order: from the keyframe where its decoding must start ([`PacketIndex::start_for`]) to its own. The
/// container is not asked again, and nothing is sought by time. Frames are told apart by the number of their packet, never by counting.
pub(crate) struct FrameReader {
    media: Box<dyn Media>,
    /// Where `media` stands, when known.
    media_pos: Option<u64>,
    packet_bytes: Vec<u8>,
    decoder: Decoder,
    /// What the decoder is in the middle of. None: it must restart.
    run: Option<Run>,
    /// Keyframes at which decoding cannot start, and the earlier ones at which it has to.
    detours: BTreeMap<usize, usize>,
}

/// Packets sent since the decoder was last restarted.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The keyframe where it started.
    start: usize,
    /// The next packet to send.
    next: usize,
    /// Whether the decoder has been told that no packet follows.
    drained: bool,
    /// The pts of the last frame that came out.
    last_pts: i64,
}

/// Frames that are decoded in one go: from one keyframe on, without a packet in between that none of them needs.
#[derive(Debug, PartialEq, Eq)]
struct Group<'a> {
    /// Their packets, by pts.
    wanted: &'a [usize],
    /// Where decoding starts.
    start: usize,
    /// The last packet, in decode order, that one of them needs.
    end: usize,
}

/// A group to decode, and all that is needed for it.
struct Task<'a> {
    index: &'a PacketIndex,
    place: &'a Place,
    group: Group<'a>,
}

/// What is done when all packets of a group are sent, and frames of it are still to come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AtEnd {
    /// Say that no packet follows. That is the fewest packets, but the decoder must restart afterwards.
    Drain,
    /// Send what follows in the file, so that the next request can go on from there.
    Feed,
}

/// Why a group could not be decoded.
enum Stop {
    /// The decoder failed, which a restart may mend.
    Decoder(Error),
    /// Anything else.
    Other(Error),
}

impl FrameReader {
    pub(crate) fn new(media: Box<dyn Media>, decoder: Decoder) -> Self {
        Self {
            media,
            media_pos: None,
            packet_bytes: Vec::new(),
            decoder,
            run: None,
            detours: BTreeMap::new(),
        }
    }

    pub(crate) fn decoder_name(&self) -> &'static str {
        self.decoder.name()
    }

    /// Decodes the frames of the packets `wanted`, which are sorted by pts and distinct, and hands out each, in this order, with its place
    /// in `wanted`.
    ///
    /// What comes out does not depend on what was asked before.
    pub(crate) fn read(
        &mut self,
        index: &PacketIndex,
        wanted: &[usize],
        place: &Place,
        mut each: impl FnMut(usize, &Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut done = 0;
        while done < wanted.len() {
            let group = next_group(index, &wanted[done..]).ok_or_else(|| {
                let what =
                    "no keyframe precedes it in the file, so that its decoding can start nowhere";
                place.decode(index.packet_s(wanted[done]), what, None)
            })?;
            let len = group.wanted.len();
            let task = Task {
                index,
                place,
                group,
            };
            self.read_group(&task, |nth, frame| each(done + nth, frame))?;
            done += len;
        }
        Ok(())
    }

    /// Decodes one group.
    ///
    /// One that goes on where the last request ended is likely to be followed by another that does. That is worth a try at feeding the
    /// decoder on; if it fails, on packets that others need or will need, the group is decoded by itself, from its own keyframe
    /// or, where decoding cannot start there, from an earlier one.
    fn read_group(
        &mut self,
        task: &Task<'_>,
        mut each: impl FnMut(usize, &Frame) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let reaches = |run: &Run| run.reaches(task.index, &task.group);
        if let Some(run) = self.run.take().filter(|run| reaches(&run.undrained())) {
            let run = if reaches(&run) {
                run
            } else {
                self.restart(self.detour(task.group.start))
            };
            match self.go_on(run, task, AtEnd::Feed, &mut each) {
                Err(Stop::Decoder(_)) => {}
                Err(Stop::Other(error)) => return Err(error),
                Ok(()) => return Ok(()),
            }
        }
        let start = task.group.start;
        let first_error = match self.start_over(self.detour(start), task, &mut each)? {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // A keyframe of H.264 need not be an IDR picture: the packets after it may let go of pictures from before it, which a
        // decoder that started there calls damage. One that started earlier does not. Other codecs have no such keyframes, and
        // an earlier start could only hide that theirs is damaged.
        if self.decoder.name() == "h264" {
            for earlier in task.index.starts_before(start) {
                if self.start_over(earlier, task, &mut each)?.is_ok() {
                    self.detours.insert(start, earlier);
                    return Ok(());
                }
            }
        }
        Err(first_error)
    }

    /// Where decoding that should start at the keyframe `start` is known to have to start.
    fn detour(&self, start: usize) -> usize {
        self.detours.get(&start).copied().unwrap_or(start)
    }

    /// Decodes one group by itself, from a keyframe on. The inner error is the decoder's, which another start may spare.
    fn start_over(
        &mut self,
        start: usize,
        task: &Task<'_>,
        each: &mut impl FnMut(usize, &Frame) -> Result<(), Error>,
    ) -> Result<Result<(), Error>, Error> {
        let run = self.restart(start);
        match self.go_on(run, task, AtEnd::Drain, each) {
            Ok(()) => Ok(Ok(())),
            Err(Stop::Decoder(error)) => Ok(Err(error)),
            Err(Stop::Other(error)) => Err(error),
        }
    }

    fn restart(&mut self, start: usize) -> Run {
        self.decoder.restart();
        Run {
            start,
            next: start,
            drained: false,
            last_pts: i64::MIN,
        }
    }

    /// Decodes one group in a run, which is kept if all goes well.
    fn go_on(
        &mut self,
        mut run: Run,
        task: &Task<'_>,
        at_end: AtEnd,
        each: &mut impl FnMut(usize, &Frame) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        for (nth, &wanted) in task.group.wanted.iter().enumerate() {
            self.advance(&mut run, wanted, task, at_end)?;
            each(nth, self.decoder.frame()).map_err(Stop::Other)?;
        }
        self.run = Some(run);
        Ok(())
    }

    /// Sends packets until the frame of packet `wanted` has come out.
    fn advance(
        &mut self,
        run: &mut Run,
        wanted: usize,
        task: &Task<'_>,
        at_end: AtEnd,
    ) -> Result<(), Stop> {
        let packets = task.index.packets();
        let fail = |what: String, source| {
            Stop::Decoder(task.place.decode(task.index.packet_s(wanted), what, source))
        };
        loop {
            let received = self
                .decoder
                .receive()
                .map_err(|source| fail(format!("before packet {}", run.next), Some(source)))?;
            match received {
                Received::Frame => {
                    let frame = self.decoder.frame();
                    let id = usize::try_from(frame.id()).ok();
                    if let Some(packet) = id.and_then(|id| packets.get(id)) {
                        run.last_pts = packet.pts;
                    }
                    if id == Some(wanted) {
                        let is_damaged = frame.is_damaged();
                        return if is_damaged {
                            Err(fail(
                                format!("packet {wanted} decodes to a damaged picture"),
                                None,
                            ))
                        } else {
                            Ok(())
                        };
                    }
                }
                Received::End => {
                    return Err(fail(
                        format!("the decoder gave no picture for packet {wanted}"),
                        None,
                    ));
                }
                Received::NeedsPacket
                    if run.next == packets.len()
                        || (run.next > task.group.end && at_end == AtEnd::Drain) =>
                {
                    self.decoder
                        .drain()
                        .map_err(|source| fail("after its last packet".to_owned(), Some(source)))?;
                    run.drained = true;
                }
                Received::NeedsPacket => {
                    let (number, packet) = (run.next, packets[run.next]);
                    run.next += 1;
                    // What leads the keyframe of the start refers to what was not decoded. Nothing that follows refers to it.
                    if packet.pts >= packets[run.start].pts {
                        self.read_packet(number, packet, task.place)
                            .map_err(Stop::Other)?;
                        let id = i64::try_from(number).expect("MAX_PACKETS is below i64::MAX");
                        self.decoder
                            .send(id, &self.packet_bytes)
                            .map_err(|source| fail(format!("at packet {number}"), Some(source)))?;
                    }
                }
            }
        }
    }

    /// Reads a packet's bytes into `packet_bytes`.
    fn read_packet(&mut self, number: usize, packet: Packet, place: &Place) -> Result<(), Error> {
        let failed = |source| {
            place.io(
                format!(
                    "read packet {number}, {} bytes at byte {}",
                    packet.size, packet.pos
                ),
                source,
            )
        };
        if self.media_pos.take() != Some(packet.pos) {
            self.media
                .seek(SeekFrom::Start(packet.pos))
                .map_err(failed)?;
        }
        // The scan has checked that the file is long enough for this.
        self.packet_bytes.resize(packet.size as usize, 0);
        self.media
            .read_exact(&mut self.packet_bytes)
            .map_err(failed)?;
        self.media_pos = Some(packet.pos + u64::from(packet.size));
        Ok(())
    }
}

impl std::fmt::Debug for FrameReader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FrameReader")
            .field("decoder", &self.decoder.name())
            .field("run", &self.run)
            .finish_non_exhaustive()
    }
}

impl Run {
    /// The run as it would be, had the decoder been fed on.
    fn undrained(self) -> Self {
        Self {
            drained: false,
            ..self
        }
    }

    /// Whether all frames of a group can still come out, at no greater cost than from the group's own keyframe.
    fn reaches(&self, index: &PacketIndex, group: &Group<'_>) -> bool {
        let ahead = index.packets()[group.wanted[0]].pts > self.last_pts;
        let fed = if self.drained {
            group.end < self.next
        } else {
            group.start <= self.next
        };
        ahead && fed && self.start <= group.start
    }
}

/// The frames at the head of `wanted` that are decoded in one go. None where the first has no keyframe to start from.
fn next_group<'a>(index: &PacketIndex, wanted: &'a [usize]) -> Option<Group<'a>> {
    let start = index.start_for(wanted[0])?;
    let (mut end, mut len) = (wanted[0], 1);
    for &packet in &wanted[1..] {
        // One that starts right after the last needed packet costs no more in this group than in its own.
        match index.start_for(packet) {
            Some(other) if other >= start && other <= end + 1 => end = end.max(packet),
            _ => break,
        }
        len += 1;
    }
    Some(Group {
        wanted: &wanted[..len],
        start,
        end,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::TimeBase;

    /// Two closed GOPs, I0 P3 B1 B2 | I4 P7 B5 B6, and a third of one frame.
    fn index() -> PacketIndex {
        let packets = [
            (0, true),
            (3, false),
            (1, false),
            (2, false),
            (4, true),
            (7, false),
            (5, false),
            (6, false),
            (8, true),
        ];
        let packets = packets.map(|(pts, key)| Packet {
            pts,
            pos: 0,
            size: 1,
            key,
            shown: true,
        });
        PacketIndex::new(packets.to_vec(), TimeBase::new(1, 1).unwrap(), 9).unwrap()
    }

    #[test]
    fn a_group_ends_where_a_packet_would_be_decoded_for_nobody() {
        let check = |wanted: &[usize], len, start, end| {
            assert_eq!(
                next_group(&index(), wanted),
                Some(Group {
                    wanted: &wanted[..len],
                    start,
                    end
                }),
                "{wanted:?}"
            );
        };
        check(&[2, 3, 1], 3, 0, 3);
        check(&[0, 4], 1, 0, 0);
        check(&[2, 3, 4], 3, 0, 4);
        check(&[6, 5, 8], 2, 4, 6);
        check(&[7, 5, 8], 3, 4, 8);
        check(&[8], 1, 8, 8);
    }

    #[test]
    fn a_run_goes_on_only_towards_frames_that_are_still_to_come() {
        let index = index();
        let reaches =
            |run: Run, wanted: usize| run.reaches(&index, &next_group(&index, &[wanted]).unwrap());
        let run = Run {
            start: 0,
            next: 2,
            drained: false,
            last_pts: 0,
        };
        assert!(reaches(run, 2) && reaches(run, 1), "fed on");
        assert!(!reaches(run, 0), "has come out");
        assert!(!reaches(run, 4), "its own keyframe is nearer");
        assert!(
            reaches(Run { next: 4, ..run }, 4),
            "the next keyframe follows"
        );
        let drained = Run {
            drained: true,
            ..run
        };
        assert!(
            reaches(drained, 1) && !reaches(drained, 2),
            "a drained decoder holds what it was fed"
        );
        assert!(
            !reaches(
                Run {
                    start: 4,
                    next: 5,
                    drained: false,
                    last_pts: i64::MIN
                },
                3
            ),
            "started too late"
        );
    }
}
