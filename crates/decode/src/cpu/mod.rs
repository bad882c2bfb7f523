//! Decoding on the CPU, with FFmpeg: from wanted packets to decoded frames.

#[expect(unsafe_code, reason = "calls into FFmpeg, which is C")]
pub(crate) mod ffi;

mod reference;

use std::ops::ControlFlow;

use crate::error::Error;
use crate::index::PacketIndex;
use crate::stream::{Encoded, Stream};
use ffi::{Decoder, Frame, Parameters, Received};
use reference::{References, Syntax};

/// One decoder, and what it is in the middle of.
///
/// It decodes the frames of every stream with its parameters. A frame is these packets, in this order: from the keyframe where its decoding
/// must start ([`PacketIndex::start_for`]) to its own. The container is not asked again, and nothing is sought by time. Frames are told
/// apart by the number of their packet, never by counting.
pub(crate) struct FrameReader {
    decoder: Decoder,
    references: References,
    /// None: it must restart.
    run: Option<Run>,
    /// Bytes that were read before their packets are sent.
    encoded: Encoded,
    /// Frames that came out of the decoder so far, wanted or not.
    num_decoded: u64,
}

/// Packets sent since the decoder was last restarted.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The stream that they belong to.
    stream: u64,
    /// The keyframe where it started.
    start: usize,
    /// The next packet to send.
    next: usize,
    /// Whether the decoder has been told that no packet follows.
    drained: bool,
    /// Whether packets were left out that no other refers to.
    skipped: bool,
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
    stream: &'a Stream,
    group: Group<'a>,
    /// The group's wanted packets, in decode order.
    in_decode_order: Vec<usize>,
    /// Asked before every packet: whether anybody still waits for the frames.
    interrupt: &'a dyn Fn() -> bool,
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
    /// Nobody waits any more.
    Interrupted,
}

/// What a read came to: all wanted frames, or none after an interruption.
pub(crate) type Outcome = ControlFlow<()>;

impl FrameReader {
    /// For streams with these parameters, by `decoder`, which was opened for them.
    pub(crate) fn new(decoder: Decoder, parameters: &Parameters) -> Self {
        let syntax = match parameters.codec_name() {
            "h264" => Syntax::H264,
            "hevc" => Syntax::Hevc,
            _ => Syntax::Other,
        };
        Self {
            references: References::new(syntax, parameters.extradata()),
            decoder,
            run: None,
            encoded: Encoded::default(),
            num_decoded: 0,
        }
    }

    pub(crate) fn decoder_name(&self) -> &'static str {
        self.decoder.name()
    }

    /// The number of frames that came out of the decoder since the last call, wanted or not.
    pub(crate) fn take_num_decoded(&mut self) -> u64 {
        std::mem::take(&mut self.num_decoded)
    }

    /// Decodes the frames of the packets `wanted`, which are sorted by pts and distinct, and hands out each, in this order, with its place
    /// in `wanted`.
    ///
    /// What comes out does not depend on what was asked before. `encoded` holds bytes of the stream that were read already.
    pub(crate) fn read(
        &mut self,
        stream: &Stream,
        encoded: Encoded,
        wanted: &[usize],
        interrupt: &dyn Fn() -> bool,
        mut each: impl FnMut(usize, &mut Frame) -> Result<(), Error>,
    ) -> Result<Outcome, Error> {
        self.encoded = encoded;
        let mut done = 0;
        while done < wanted.len() {
            let group = next_group(&stream.index, &wanted[done..])
                .ok_or_else(|| stream.no_start(wanted[done]))?;
            let len = group.wanted.len();
            let mut in_decode_order = group.wanted.to_vec();
            in_decode_order.sort_unstable();
            let task = Task {
                stream,
                group,
                in_decode_order,
                interrupt,
            };
            match self.read_group(&task, |nth, frame| each(done + nth, frame)) {
                Ok(()) => done += len,
                Err(Stop::Interrupted) => return Ok(ControlFlow::Break(())),
                Err(Stop::Decoder(error) | Stop::Other(error)) => return Err(error),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Decodes one group.
    ///
    /// One that goes on where the last request ended is likely to be followed by another that does. That is worth a try at feeding the
    /// decoder on; if it fails, on packets that others need or will need, the group is decoded by itself, from its own keyframe
    /// or, where decoding cannot start there, from an earlier one.
    fn read_group(
        &mut self,
        task: &Task<'_>,
        mut each: impl FnMut(usize, &mut Frame) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        let reaches = |run: &Run| run.reaches(task.stream, &task.group);
        let detour = task.stream.detour(task.group.start);
        if let Some(run) = self.run.take().filter(|run| reaches(&run.undrained())) {
            let run = if reaches(&run) {
                run
            } else {
                self.restart(task, detour)
            };
            match self.go_on(run, task, AtEnd::Feed, &mut each) {
                Err(Stop::Decoder(_)) => {}
                done => return done,
            }
        }
        let start = task.group.start;
        let first_error = match self.start_over(detour, task, &mut each) {
            Err(Stop::Decoder(error)) => error,
            done => return done,
        };
        // A keyframe of H.264 need not be an IDR picture: the packets after it may let go of pictures from before it, which a
        // decoder that started there calls damage. One that started earlier does not. Other codecs have no such keyframes, and
        // an earlier start could only hide that theirs is damaged.
        if self.decoder.name() == "h264" {
            for earlier in task.stream.index.starts_before(start) {
                match self.start_over(earlier, task, &mut each) {
                    Err(Stop::Decoder(_)) => {}
                    Ok(()) => {
                        task.stream.add_detour(start, earlier);
                        return Ok(());
                    }
                    stop => return stop,
                }
            }
        }
        Err(Stop::Decoder(first_error))
    }

    /// Decodes one group by itself, from a keyframe on.
    fn start_over(
        &mut self,
        start: usize,
        task: &Task<'_>,
        each: &mut impl FnMut(usize, &mut Frame) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        let run = self.restart(task, start);
        self.go_on(run, task, AtEnd::Drain, each)
    }

    fn restart(&mut self, task: &Task<'_>, start: usize) -> Run {
        self.decoder.restart();
        Run {
            stream: task.stream.id,
            start,
            next: start,
            drained: false,
            skipped: false,
            last_pts: i64::MIN,
        }
    }

    /// Decodes one group in a run, which is kept if all goes well.
    fn go_on(
        &mut self,
        mut run: Run,
        task: &Task<'_>,
        at_end: AtEnd,
        each: &mut impl FnMut(usize, &mut Frame) -> Result<(), Error>,
    ) -> Result<(), Stop> {
        for (nth, &wanted) in task.group.wanted.iter().enumerate() {
            self.advance(&mut run, wanted, task, at_end)?;
            each(nth, self.decoder.frame_mut()).map_err(Stop::Other)?;
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
        let packets = task.stream.index.packets();
        let fail = |what: String, source| {
            Stop::Decoder(task.stream.place.decode(
                task.stream.index.packet_s(wanted),
                what,
                source,
            ))
        };
        loop {
            let received = self
                .decoder
                .receive()
                .map_err(|source| fail(format!("before packet {}", run.next), Some(source)))?;
            match received {
                Received::Frame => {
                    self.num_decoded += 1;
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
                Received::NeedsPacket => self.feed(run, task, at_end, &fail)?,
            }
        }
    }

    /// Sends the run's next packet.
    fn feed(
        &mut self,
        run: &mut Run,
        task: &Task<'_>,
        at_end: AtEnd,
        fail: &impl Fn(String, Option<crate::FfmpegError>) -> Stop,
    ) -> Result<(), Stop> {
        if (task.interrupt)() {
            return Err(Stop::Interrupted);
        }
        let packets = task.stream.index.packets();
        let number = run.next;
        run.next += 1;
        // What leads the keyframe of the start refers to what was not decoded. Nothing that follows refers to it.
        if packets[number].pts < packets[run.start].pts {
            return Ok(());
        }
        let last = task.group.end.max(number);
        let bytes = task
            .stream
            .packet_bytes(&mut self.encoded, number, last)
            .map_err(Stop::Other)?;
        // A frame that nobody wants must be decoded where others refer to it. Where none does, it is left out; but not in a run that is
        // fed on, which may be asked for the frame later.
        if at_end == AtEnd::Drain
            && task.in_decode_order.binary_search(&number).is_err()
            && self.references.can_leave_out(bytes)
        {
            run.skipped = true;
            return Ok(());
        }
        let id = i64::try_from(number).expect("MAX_PACKETS is below i64::MAX");
        self.decoder
            .send(id, bytes)
            .map_err(|source| fail(format!("at packet {number}"), Some(source)))
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
    fn reaches(&self, stream: &Stream, group: &Group<'_>) -> bool {
        self.stream == stream.id && self.reaches_in(&stream.index, group)
    }

    fn reaches_in(&self, index: &PacketIndex, group: &Group<'_>) -> bool {
        let ahead = index.packets()[group.wanted[0]].pts > self.last_pts;
        let fed = if self.drained {
            group.end < self.next
        } else {
            group.start <= self.next
        };
        // What was sent may have been left out.
        let whole = !self.skipped || group.wanted.iter().all(|&packet| packet >= self.next);
        ahead && fed && whole && self.start <= group.start
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
    use crate::index::Packet;
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
            dts: pts,
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
        let reaches = |run: Run, wanted: usize| {
            run.reaches_in(&index, &next_group(&index, &[wanted]).unwrap())
        };
        let run = Run {
            stream: 1,
            skipped: false,
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
        let skipped = Run {
            skipped: true,
            ..run
        };
        assert!(
            reaches(skipped, 2) && !reaches(skipped, 1),
            "what was sent may have been left out"
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
                    stream: 1,
                    skipped: false,
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
