//! Which packets no other refers to: their frames need not be decoded unless they are wanted.

/// How the packets of a stream say whether others refer to them.
///
/// FFmpeg's `skip_frame` would leave the same packets out; but while it is on, its H.264 decoder overlooks damage in those that it does
/// decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum References {
    /// H.264: `nal_ref_idc` is 0.
    H264 { length_bytes: usize },
    /// HEVC: a sub-layer non-reference picture, where there is one sub-layer only.
    Hevc { length_bytes: usize },
    /// They do not, or not so that we would know.
    Unknown,
}

/// Which codec it is, as far as that matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Syntax {
    H264,
    Hevc,
    Other,
}

impl References {
    /// Takes what is needed from the stream's `avcC` or `hvcC` header.
    pub(super) fn new(syntax: Syntax, header: &[u8]) -> Self {
        let length_bytes = |byte: u8| usize::from(byte & 3) + 1;
        match (syntax, header) {
            (Syntax::H264, [1, _, _, _, last, ..]) => Self::H264 {
                length_bytes: length_bytes(*last),
            },
            // With several sub-layers, a picture of a higher one may refer to a lower one's non-reference picture.
            (Syntax::Hevc, [1, rest @ ..]) if rest.get(20).is_some_and(|b| b >> 3 & 7 == 1) => {
                Self::Hevc {
                    length_bytes: length_bytes(rest[20]),
                }
            }
            _ => Self::Unknown,
        }
    }

    /// Whether a packet can be left out without harm to any other: it holds slices that no other refers to, and nothing that lasts.
    pub(super) fn can_leave_out(self, packet: &[u8]) -> bool {
        let (length_bytes, of_unit): (usize, fn(&[u8]) -> Unit) = match self {
            Self::H264 { length_bytes } => (length_bytes, h264_unit),
            Self::Hevc { length_bytes } => (length_bytes, hevc_unit),
            Self::Unknown => return false,
        };
        let mut has_slice = false;
        for unit in units(packet, length_bytes) {
            match unit.map(of_unit) {
                Some(Unit::UnreferencedSlice) => has_slice = true,
                Some(Unit::Remark) => {}
                Some(Unit::Needed) | None => return false,
            }
        }
        has_slice
    }
}

/// What a NAL unit is to the packets that follow.
enum Unit {
    UnreferencedSlice,
    /// Lasts no longer than its packet.
    Remark,
    Needed,
}

fn h264_unit(unit: &[u8]) -> Unit {
    match unit.first() {
        Some(byte) if byte & 0x1f == 1 && byte >> 5 & 3 == 0 => Unit::UnreferencedSlice,
        // Supplemental information, a delimiter, filler.
        Some(byte) if [6, 9, 12].contains(&(byte & 0x1f)) => Unit::Remark,
        _ => Unit::Needed,
    }
}

fn hevc_unit(unit: &[u8]) -> Unit {
    match unit.first().map(|byte| byte >> 1 & 0x3f) {
        // TRAIL_N, TSA_N, STSA_N, RADL_N, RASL_N.
        Some(0 | 2 | 4 | 6 | 8) => Unit::UnreferencedSlice,
        // A delimiter, filler, supplemental information before and after.
        Some(35 | 38..=40) => Unit::Remark,
        _ => Unit::Needed,
    }
}

/// The NAL units of a packet, each behind its length; None for one that does not fit in the packet.
fn units(mut packet: &[u8], length_bytes: usize) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if packet.is_empty() {
            return None;
        }
        let split = packet
            .split_at_checked(length_bytes)
            .and_then(|(length, rest)| {
                let length = length
                    .iter()
                    .fold(0, |sum, &byte| sum << 8 | usize::from(byte));
                rest.split_at_checked(length)
            });
        packet = split.map_or(&[], |(_, rest)| rest);
        Some(split.map(|(unit, _)| unit))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(units: &[&[u8]]) -> Vec<u8> {
        let unit = |unit: &&[u8]| [&(unit.len() as u32).to_be_bytes(), *unit].concat();
        units.iter().flat_map(unit).collect()
    }

    #[test]
    fn h264_slices_of_reference_0_can_be_left_out() {
        let references = References::new(Syntax::H264, &[1, 100, 0, 30, 0xff, 0xe1]);
        assert_eq!(references, References::H264 { length_bytes: 4 });
        let check = |units: &[&[u8]]| references.can_leave_out(&packet(units));
        assert!(check(&[&[0x01, 9]]));
        assert!(check(&[&[0x09, 0x10], &[0x06, 5], &[0x01, 9], &[0x01, 9]]));
        assert!(!check(&[&[0x21, 9]]), "referred to");
        assert!(!check(&[&[0x01, 9], &[0x41, 9]]), "one slice is");
        assert!(!check(&[&[0x65, 9]]), "a keyframe");
        assert!(!check(&[&[0x68, 9], &[0x01, 9]]), "parameters last");
        assert!(!check(&[&[0x06, 5]]), "no slice");
        assert!(!check(&[&[]]) && !check(&[]), "nothing");
        assert!(!references.can_leave_out(&[0, 0, 0, 9, 1]), "cut short");
        assert!(!references.can_leave_out(&[0, 0, 0]), "cut shorter");
    }

    #[test]
    fn hevc_pictures_of_no_reference_can_be_left_out_where_there_is_one_sub_layer() {
        let mut header = [0; 23];
        (header[0], header[21]) = (1, 0b0000_1111);
        let references = References::new(Syntax::Hevc, &header);
        assert_eq!(references, References::Hevc { length_bytes: 4 });
        let check = |kind: u8| references.can_leave_out(&packet(&[&[kind << 1, 1, 7]]));
        assert!([0, 2, 4, 6, 8].into_iter().all(check));
        assert!(
            ![1, 9, 16, 19, 21, 32, 33, 34, 35, 39]
                .into_iter()
                .any(check)
        );
        for sub_layers in [0, 2, 3] {
            header[21] = sub_layers << 3 | 0b111;
            assert_eq!(References::new(Syntax::Hevc, &header), References::Unknown);
        }
    }

    #[test]
    fn other_streams_say_nothing() {
        assert_eq!(
            References::new(Syntax::Other, &[1; 40]),
            References::Unknown
        );
        assert_eq!(
            References::new(Syntax::H264, &[0, 0, 0, 1, 0x67]),
            References::Unknown
        );
        assert_eq!(References::new(Syntax::Hevc, &[1; 20]), References::Unknown);
        assert!(!References::Unknown.can_leave_out(&packet(&[&[0x01, 9]])));
    }
}
