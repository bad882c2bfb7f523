//! What a file is made of, before anybody decodes it.

use std::fmt;
use std::io::{self, Read, Seek, SeekFrom};

use crate::mp4::boxes::Head;

/// The bytes at a file's start that are looked at.
const START_BYTES: u64 = 512;

/// The boxes of a file that are looked at: a fragmented recording of a day has some hundred thousand.
const MAX_BOXES: usize = 1 << 20;

/// What a file seems to be, by its first bytes alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Appearance {
    /// There are no bytes.
    Empty,
    /// An MP4 or MOV file.
    Mp4,
    /// What Git leaves in place of a large file that was not fetched.
    LfsPointer,
    /// A page, or a server's error, in HTML or XML.
    Markup,
    /// A JSON text, as servers answer with.
    Json,
    /// Zeros: space that was reserved, and never written.
    Zeros,
    /// None of these.
    Other,
}

impl Appearance {
    /// Judges a file by its first bytes. The more there are, the better; 512 are plenty.
    ///
    /// # Examples
    ///
    /// ```
    /// use decode::Appearance;
    ///
    /// assert_eq!(Appearance::of(b"\0\0\0\x20ftypisom"), Appearance::Mp4);
    /// assert_eq!(Appearance::of(b"version https://git-lfs.github.com/spec/v1\n"), Appearance::LfsPointer);
    /// ```
    #[must_use]
    pub fn of(start: &[u8]) -> Self {
        let text = start.trim_ascii_start();
        if start.is_empty() {
            Self::Empty
        } else if matches!(start.get(4..8), Some(b"ftyp" | b"moov" | b"mdat" | b"wide")) {
            Self::Mp4
        } else if start.starts_with(b"version https://git-lfs") {
            Self::LfsPointer
        } else if text.starts_with(b"<") {
            Self::Markup
        } else if text.starts_with(b"{") || text.starts_with(b"[") {
            Self::Json
        } else if start.iter().all(|&byte| byte == 0) {
            Self::Zeros
        } else {
            Self::Other
        }
    }

    /// What it is, and what to do, for a file that should be a video and is not.
    #[must_use]
    pub fn remedy(self) -> Option<&'static str> {
        match self {
            Self::Mp4 => None,
            Self::Empty => Some("the copy or the recording was not finished: copy the file again"),
            Self::LfsPointer => Some("run `git lfs pull` in the dataset's repository"),
            Self::Markup | Self::Json => Some(
                "a server's answer was kept in place of the file: read it, set right what it complains of (a login, a spelling), and \
                 download the file again",
            ),
            Self::Zeros => {
                Some("the download reserved its space and stopped: download the file again")
            }
            Self::Other => Some("videos have to be MP4 files: look at what wrote this one"),
        }
    }
}

impl fmt::Display for Appearance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "an empty file",
            Self::Mp4 => "an MP4 file",
            Self::LfsPointer => "a Git LFS pointer",
            Self::Markup => "an HTML or XML page",
            Self::Json => "a JSON text",
            Self::Zeros => "nothing but zeros",
            Self::Other => "no MP4 file",
        })
    }
}

/// One of the boxes that an MP4 file is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TopLevelBox {
    /// Four letters, such as `moov`; any bytes in a damaged file.
    pub kind: [u8; 4],
    /// Where it starts, in bytes from the start of the file.
    pub start_byte: u64,
    /// Its length by its own account, head included. It may reach past the end of the file.
    pub num_bytes: u64,
}

/// What a file is made of, as far as it tells by itself; nothing is decoded, and nothing believed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Anatomy {
    /// The file's length.
    pub num_bytes: u64,
    /// Its first bytes, at most 512.
    pub start: Vec<u8>,
    /// The boxes, one behind the other; none unless it seems to be an MP4 file. At most 1,048,576.
    pub boxes: Vec<TopLevelBox>,
    /// Where the boxes stop making sense, if that is before the end of the file.
    pub stray_byte: Option<u64>,
}

impl Anatomy {
    /// Looks into a file.
    ///
    /// # Errors
    ///
    /// When the media fails.
    ///
    /// # Examples
    ///
    /// ```
    /// use std::io::Cursor;
    ///
    /// let mut file = Cursor::new(b"\0\0\0\x0cftypisom\0\0\0\x63mdat");
    /// let anatomy = decode::Anatomy::read(&mut file)?;
    /// assert_eq!(anatomy.boxes.len(), 2);
    /// assert!(anatomy.is_cut_short() && !anatomy.has(b"moov"));
    /// # Ok::<(), std::io::Error>(())
    /// ```
    pub fn read(media: &mut (impl Read + Seek + ?Sized)) -> io::Result<Self> {
        let num_bytes = media.seek(SeekFrom::End(0))?;
        media.seek(SeekFrom::Start(0))?;
        let mut start = Vec::new();
        media.take(START_BYTES).read_to_end(&mut start)?;
        let mut anatomy = Self {
            num_bytes,
            start,
            boxes: Vec::new(),
            stray_byte: None,
        };
        if anatomy.appearance() == Appearance::Mp4 {
            anatomy.read_boxes(media)?;
        }
        Ok(anatomy)
    }

    fn read_boxes(&mut self, media: &mut (impl Read + Seek + ?Sized)) -> io::Result<()> {
        let mut start_byte = 0;
        while start_byte < self.num_bytes && self.boxes.len() < MAX_BOXES {
            let left = self.num_bytes - start_byte;
            media.seek(SeekFrom::Start(start_byte))?;
            let mut head = Vec::with_capacity(16);
            media.take(16).read_to_end(&mut head)?;
            let head = match head.first_chunk::<8>() {
                // The last one may leave its length open.
                Some(&[0, 0, 0, 0, a, b, c, d]) if [a, b, c, d].is_ascii() && a != 0 => {
                    Some(([a, b, c, d], left))
                }
                _ => Head::parse(&head).map(|head| (head.kind, head.size)),
            };
            let Some((kind, num_bytes)) = head else {
                self.stray_byte = Some(start_byte);
                break;
            };
            self.boxes.push(TopLevelBox {
                kind,
                start_byte,
                num_bytes,
            });
            start_byte = start_byte.saturating_add(num_bytes);
        }
        Ok(())
    }

    /// What it seems to be.
    #[must_use]
    pub fn appearance(&self) -> Appearance {
        Appearance::of(&self.start)
    }

    /// Whether there is a box of a kind.
    #[must_use]
    pub fn has(&self, kind: &[u8; 4]) -> bool {
        self.boxes.iter().any(|found| &found.kind == kind)
    }

    /// Whether the last box goes on past the end of the file.
    #[must_use]
    pub fn is_cut_short(&self) -> bool {
        let last = self.boxes.last();
        last.is_some_and(|last| last.start_byte.saturating_add(last.num_bytes) > self.num_bytes)
    }

    /// Whether it was written in fragments, as live recordings are: each with an index of its own.
    #[must_use]
    pub fn is_fragmented(&self) -> bool {
        self.has(b"moof")
    }

    /// Whether the header (`moov`) comes before the pictures (`mdat`): who reads over a network then need not look for it at the end.
    #[must_use]
    pub fn is_header_first(&self) -> bool {
        let mut kinds = self.boxes.iter().map(|found| &found.kind);
        kinds.find(|kind| matches!(&kind[..], b"moov" | b"mdat")) == Some(b"moov")
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn read(bytes: &[u8]) -> Anatomy {
        Anatomy::read(&mut Cursor::new(bytes)).unwrap()
    }

    fn bytes(boxes: &[(u32, &[u8; 4])]) -> Vec<u8> {
        let bytes = |&(len, kind): &(u32, &[u8; 4])| {
            let mut bytes = [&len.to_be_bytes()[..], kind].concat();
            bytes.resize(bytes.len().max(len as usize), 7);
            bytes
        };
        boxes.iter().flat_map(bytes).collect()
    }

    #[test]
    fn files_are_judged_by_their_first_bytes() {
        for (start, expected) in [
            (b"" as &[u8], Appearance::Empty),
            (
                b"version https://git-lfs.github.com/spec/v1\noid",
                Appearance::LfsPointer,
            ),
            (b"\n <!DOCTYPE html>", Appearance::Markup),
            (b"<?xml version='1.0'?><Error>", Appearance::Markup),
            (b"{\"error\":\"gated\"}", Appearance::Json),
            (&[0; 512], Appearance::Zeros),
            (b"\0\0\0\x14ftypqt  ", Appearance::Mp4),
            (b"PAR1\x15\x04", Appearance::Other),
        ] {
            assert_eq!(Appearance::of(start), expected, "{}", start.escape_ascii());
            assert_eq!(expected.remedy().is_none(), expected == Appearance::Mp4);
        }
    }

    #[test]
    fn boxes_are_walked_to_the_end_or_to_where_they_stop_making_sense() {
        let whole = bytes(&[(16, b"ftyp"), (24, b"moov"), (40, b"mdat")]);
        let anatomy = read(&whole);
        let places: Vec<_> = anatomy
            .boxes
            .iter()
            .map(|found| (found.start_byte, found.num_bytes))
            .collect();
        assert_eq!(places, [(0, 16), (16, 24), (40, 40)]);
        assert!(anatomy.is_header_first() && !anatomy.is_cut_short() && !anatomy.is_fragmented());
        assert_eq!(anatomy.stray_byte, None);

        assert!(read(&whole[..70]).is_cut_short());
        assert_eq!(read(&whole[..43]).stray_byte, Some(40));
        assert_eq!(
            read(&bytes(&[(16, b"ftyp"), (3, b"moov")])).stray_byte,
            Some(16)
        );
        let mut open = bytes(&[(16, b"ftyp"), (20, b"mdat")]);
        open[16..20].fill(0);
        let open = read(&open);
        assert_eq!((open.boxes[1].num_bytes, open.is_cut_short()), (20, false));
        assert!(!read(&bytes(&[(16, b"ftyp"), (8, b"mdat"), (8, b"moov")])).is_header_first());
        assert!(read(b"no video").boxes.is_empty());
    }
}
