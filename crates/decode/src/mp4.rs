//! The sample table of a plain MP4 file, read from its header alone.
//!
//! FFmpeg's demuxer tells the same (see [`crate::cpu::ffi::scan`]), but reads the whole file for it. Whatever is out of the ordinary is left to
//! it, so that there is one place that knows how to read such files. What is read here must equal what it reads.

pub(crate) mod boxes;
mod table;

use std::io::{self, SeekFrom};

use crate::cpu::ffi::{Codec, Color, Header};
use crate::error::{Error, Place};
use crate::index::PacketIndex;
use crate::limits::MAX_HEADER_BYTES;
use crate::time::TimeBase;
use crate::video::Media;
use table::{Edit, Tables};

/// What an MP4 header says of the file's first video stream.
#[derive(Debug)]
pub(crate) struct Mp4 {
    /// What a decoder must know.
    pub(crate) header: Header,
    /// The stream's packets.
    pub(crate) index: PacketIndex,
}

/// Reads the header of an MP4 file. None where the file is not plain: it may be a sound file all the same.
///
/// Plain is: one header that is not followed by fragments; AV1, H.264 or HEVC with one set of parameters; bytes in this file,
/// not encrypted; no edits but one that cuts nothing away.
pub(crate) fn read(
    media: &mut dyn Media,
    file_bytes: u64,
    place: &Place,
) -> Result<Option<Mp4>, Error> {
    let bytes =
        read_moov(media, file_bytes).map_err(|source| place.io("read the headers", source))?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let Some(track) = Track::first_video(&bytes) else {
        return Ok(None);
    };
    let Some((packets, end)) = track.tables.packets(track.edit) else {
        return Ok(None);
    };
    for (number, packet) in packets.iter().enumerate() {
        if packet.pos.saturating_add(packet.size.into()) > file_bytes {
            return Err(place.truncated(number, packet.pos, file_bytes));
        }
    }
    let mut header = track.header;
    header.reorder_depth = table::reorder_depth(&packets);
    let index = PacketIndex::new(packets, track.time_base, end);
    Ok(index.map(|index| Mp4 { header, index }))
}

/// What the `moov` box holds. None where it is not the only one, or where fragments follow.
fn read_moov(media: &mut dyn Media, file_bytes: u64) -> io::Result<Option<Vec<u8>>> {
    let (mut moov, mut position) = (None, 0);
    while position < file_bytes {
        media.seek(SeekFrom::Start(position))?;
        let mut head = [0; 16];
        let len = usize::try_from(file_bytes - position).map_or(16, |left| left.min(16));
        media.read_exact(&mut head[..len])?;
        let Some(head) = boxes::Head::parse(&head[..len]) else {
            return Ok(None);
        };
        let Some(end) = position
            .checked_add(head.size)
            .filter(|&end| end <= file_bytes)
        else {
            return Ok(None);
        };
        match &head.kind {
            b"moov" if moov.is_none() && head.size <= MAX_HEADER_BYTES => {
                let len = usize::try_from(head.size).expect("MAX_HEADER_BYTES fits") - head.len;
                let mut bytes = vec![0; len];
                media.seek(SeekFrom::Start(position + head.len as u64))?;
                media.read_exact(&mut bytes)?;
                moov = Some(bytes);
            }
            b"moov" | b"moof" | b"sidx" | b"mfra" => return Ok(None),
            _ => {}
        }
        position = end;
    }
    Ok(moov)
}

/// What the header says of a track.
struct Track<'a> {
    header: Header,
    time_base: TimeBase,
    edit: Edit,
    tables: Tables<'a>,
}

impl<'a> Track<'a> {
    /// The first video track; None unless all is as it is in a plain file.
    fn first_video(moov: &'a [u8]) -> Option<Self> {
        if boxes::children(moov).any(|child| child.is_none_or(|(kind, _)| &kind == b"mvex")) {
            return None;
        }
        let mvhd = boxes::find(moov, b"mvhd")?;
        let trak = boxes::children(moov)
            .flatten()
            .filter(|(kind, _)| kind == b"trak")
            .map(|(_, trak)| trak)
            .find(|trak| is_video(trak).unwrap_or(false))?;
        let mdia = boxes::find(trak, b"mdia")?;
        let timescale = timescale(boxes::find(mdia, b"mdhd")?)?;
        let minf = boxes::find(mdia, b"minf")?;
        if !lies_in_this_file(minf)? {
            return None;
        }
        let stbl = boxes::find(minf, b"stbl")?;
        Some(Self {
            header: sample_entry(boxes::find(stbl, b"stsd")?)?,
            time_base: TimeBase::new(1, i32::try_from(timescale).ok()?)?,
            edit: edit(trak, self::timescale(mvhd)?, timescale),
            tables: Tables::find(stbl)?,
        })
    }
}

/// Whether a track is one of moving pictures.
fn is_video(trak: &[u8]) -> Option<bool> {
    let hdlr = boxes::find(boxes::find(trak, b"mdia")?, b"hdlr")?;
    Some(hdlr.get(8..12)? == b"vide")
}

/// The ticks a second of a movie (`mvhd`) or of a track (`mdhd`): behind two times, which are longer in version 1.
fn timescale(header: &[u8]) -> Option<u32> {
    let at = match header.first()? {
        0 => 12,
        1 => 20,
        _ => return None,
    };
    boxes::u32_at(header, at)
}

/// Whether the one place that a track's bytes may lie in is this file.
fn lies_in_this_file(minf: &[u8]) -> Option<bool> {
    let dref = boxes::find(boxes::find(minf, b"dinf")?, b"dref")?;
    // Version and flags, the number of entries, the entries. Flag 1 says: in this file.
    let (kind, reference) = boxes::only_child(dref.get(8..)?)?;
    Some(boxes::u32_at(dref, 4)? == 1 && &kind == b"url " && boxes::u32_at(reference, 0)? == 1)
}

/// What the track's one sample entry says to a decoder; None for a codec, or for a box within, that is left to FFmpeg.
fn sample_entry(stsd: &[u8]) -> Option<Header> {
    let (tag, entry) = boxes::only_child(stsd.get(8..)?)?;
    let (codec, config) = match &tag {
        b"av01" => (Codec::Av1, b"av1C"),
        b"avc1" => (Codec::H264, b"avcC"),
        b"hvc1" | b"hev1" => (Codec::Hevc, b"hvcC"),
        _ => return None,
    };
    if boxes::u32_at(stsd, 4)? != 1 {
        return None;
    }
    let (mut color, mut extradata) = (None, None);
    for child in boxes::children(entry.get(78..)?) {
        let (kind, payload) = child?;
        match &kind {
            kind if kind == config && extradata.is_none() => extradata = Some(payload.to_vec()),
            b"colr" if color.is_none() => color = Some(Color::parse(payload)?),
            b"btrt" | b"pasp" | b"fiel" => {}
            _ => return None,
        }
    }
    Some(Header {
        codec,
        tag,
        width: u32::from(boxes::u16_at(entry, 24)?),
        height: u32::from(boxes::u16_at(entry, 26)?),
        color,
        reorder_depth: 0,
        extradata: extradata?,
    })
}

/// The part of a track that its edit list shows.
fn edit(trak: &[u8], movie_timescale: u32, timescale: u32) -> Edit {
    let has_edits = boxes::children(trak)
        .flatten()
        .any(|(kind, _)| &kind == b"edts");
    if !has_edits {
        return Edit::None;
    }
    let elst = boxes::find(trak, b"edts").and_then(|edts| boxes::find(edts, b"elst"));
    elst.and_then(|elst| plain_edit(elst, movie_timescale, timescale))
        .unwrap_or(Edit::Other)
}

/// The one edit of a list, at normal speed, in ticks of the track. Its duration is in ticks of the movie, and rounded.
fn plain_edit(elst: &[u8], movie_timescale: u32, timescale: u32) -> Option<Edit> {
    let number = |at| boxes::u32_at(elst, at).map(u64::from);
    let long_number = |at| Some(number(at)? << 32 | number(at + 4)?);
    let (duration, time, rate) = match elst.first()? {
        0 => (number(8)?, number(12)?, number(16)?),
        1 => (long_number(8)?, long_number(16)?, number(24)?),
        _ => return None,
    };
    // A time of -1, for nothing, is beyond these, too.
    let from = i64::try_from(time)
        .ok()
        .filter(|&from| from < i64::from(u32::MAX))?;
    if number(4)? != 1 || rate != 1 << 16 {
        return None;
    }
    let ticks = u128::from(duration) * u128::from(timescale) + u128::from(movie_timescale / 2);
    let ticks = ticks.checked_div(movie_timescale.into())?;
    let to = from.checked_add(i64::try_from(ticks).ok()?)?;
    (to > from).then_some(Edit::Between(from, to))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::Cursor;
    use std::path::{Path, PathBuf};

    use proptest::prelude::*;

    use super::*;
    use crate::cpu::ffi;

    /// What is read of a file, if it is plain.
    fn read_bytes(bytes: &[u8]) -> Result<Option<Mp4>, Error> {
        let place = place();
        read(&mut Cursor::new(bytes.to_vec()), bytes.len() as u64, &place)
    }

    fn scan_bytes(bytes: &[u8]) -> Result<ffi::Scan, Error> {
        let place = place();
        ffi::scan(&mut Cursor::new(bytes.to_vec()), bytes.len() as u64, &place)
    }

    fn place() -> Place {
        Place {
            file: "a.mp4".to_owned(),
            camera: "wrist".to_owned(),
        }
    }

    fn same(ours: &Mp4, theirs: &ffi::Scan) -> Result<(), String> {
        let (a, b) = (ours.index.packets(), theirs.index.packets());
        if let Some(number) = (0..a.len().max(b.len())).find(|&n| a.get(n) != b.get(n)) {
            return Err(format!(
                "packet {number}: {:?}, not {:?}",
                a.get(number),
                b.get(number)
            ));
        }
        let parameters = ffi::Parameters::from_header(&ours.header).unwrap();
        let likenesses = [parameters.likeness(), theirs.parameters.likeness()];
        if likenesses[0] != likenesses[1] {
            return Err(format!("{:?}\nnot {:?}", likenesses[0], likenesses[1]));
        }
        Ok(())
    }

    /// All MP4 files below a folder.
    fn files(folder: &Path) -> Vec<PathBuf> {
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                found.extend(files(&path));
            } else if path.extension().is_some_and(|extension| extension == "mp4") {
                found.push(path);
            }
        }
        found.sort();
        found
    }

    fn clip(name: &str) -> Vec<u8> {
        fs::read(format!("tests/clips/{name}.mp4")).unwrap()
    }

    #[test]
    fn what_is_read_is_what_ffmpeg_reads() {
        // Empty edits, cuts, fragments, other codecs.
        let left_to_ffmpeg = ["offset", "cut", "fragmented", "odd_vp9"];
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let clips = files(&root.join("tests/clips"));
        let videos = files(&root.join("../../fixtures"));
        assert!(clips.len() > 20 && videos.len() > 20);
        for path in clips.iter().chain(&videos) {
            let (bytes, name) = (fs::read(path).unwrap(), path.file_stem().unwrap());
            let ours = read_bytes(&bytes).unwrap();
            let expect = !left_to_ffmpeg.iter().any(|left| *left == name);
            assert_eq!(ours.is_some(), expect, "{}", path.display());
            if let Some(ours) = ours {
                let theirs = scan_bytes(&bytes).unwrap();
                if let Err(difference) = same(&ours, &theirs) {
                    panic!("{}: {difference}", path.display());
                }
                // FFmpeg cannot tell how long the frame lasts that is shown last, where that is not the one decoded last.
                let ends_s = [ours.index.end_s(), theirs.index.end_s()];
                let apart_s = (ends_s[0] - ends_s[1]).abs();
                assert!(
                    apart_s < ours.index.frame_interval_s(),
                    "{}: {ends_s:?}",
                    path.display()
                );
            }
        }
    }

    #[test]
    fn only_the_header_is_read() {
        struct Counting(Cursor<Vec<u8>>, u64);
        impl io::Read for Counting {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let read = self.0.read(buffer)?;
                self.1 += read as u64;
                Ok(read)
            }
        }
        impl io::Seek for Counting {
            fn seek(&mut self, target: SeekFrom) -> io::Result<u64> {
                self.0.seek(target)
            }
        }
        for name in ["b_frames", "faststart"] {
            let bytes = clip(name);
            let moov = bytes.windows(4).position(|word| word == b"moov").unwrap() - 4;
            let moov_bytes = u32::from_be_bytes(bytes[moov..moov + 4].try_into().unwrap());
            let len = bytes.len() as u64;
            let mut media = Counting(Cursor::new(bytes), 0);
            assert!(read(&mut media, len, &place()).unwrap().is_some());
            assert!(media.1 <= u64::from(moov_bytes) + 5 * 16, "{}", media.1);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

        /// Whatever is read of a damaged header is what FFmpeg reads of it, unless FFmpeg refuses it.
        #[test]
        fn a_damaged_header_is_read_as_ffmpeg_does_or_not_at_all(
            name in prop::sample::select(vec!["b_frames", "faststart", "av1_g2", "hevc_cra", "color_bt709_pc"]),
            damage in prop::collection::vec((any::<prop::sample::Index>(), prop_oneof![Just(0_u8), Just(1), Just(255), any::<u8>()]), 1..4),
            cut in prop_oneof![9 => Just(None), 1 => any::<prop::sample::Index>().prop_map(Some)],
        ) {
            let mut bytes = clip(name);
            let moov = bytes.windows(4).position(|word| word == b"moov").unwrap() - 4;
            let len = u32::from_be_bytes(bytes[moov..moov + 4].try_into().unwrap()) as usize;
            for (place, byte) in damage {
                bytes[moov + place.index(len)] = byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            if let (Ok(Some(ours)), Ok(theirs)) = (read_bytes(&bytes), scan_bytes(&bytes)) {
                prop_assert_eq!(same(&ours, &theirs), Ok(()));
            }
        }
    }
}
