//! The boxes that MP4 files are made of: a length, a kind, and what it holds.

/// A box's kind, and what it holds.
pub(super) type Child<'a> = ([u8; 4], &'a [u8]);

/// The head of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) kind: [u8; 4],
    /// The size of head and contents, in bytes.
    pub(crate) size: u64,
    /// The size of the head.
    pub(crate) len: usize,
}

impl Head {
    /// Reads a head from the first 16 bytes of a box, or all that there are. None for one that makes no sense, or that goes on to the
    /// end of the file without saying how far that is.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let (size, rest) = bytes.split_first_chunk::<4>()?;
        let (kind, rest) = rest.split_first_chunk::<4>()?;
        let (size, len) = match u32::from_be_bytes(*size) {
            1 => (u64::from_be_bytes(*rest.first_chunk()?), 16),
            size => (size.into(), 8),
        };
        (size >= len as u64).then_some(Self {
            kind: *kind,
            size,
            len,
        })
    }
}

/// The boxes in a box, one after the other; None, and no more, for one that does not fit.
pub(super) fn children(mut bytes: &[u8]) -> impl Iterator<Item = Option<Child<'_>>> {
    std::iter::from_fn(move || {
        if bytes.is_empty() {
            return None;
        }
        let child = Head::parse(bytes).and_then(|head| {
            let (child, rest) = bytes.split_at_checked(usize::try_from(head.size).ok()?)?;
            Some(((head.kind, &child[head.len..]), rest))
        });
        bytes = child.map_or(&[], |(_, rest)| rest);
        Some(child.map(|(child, _)| child))
    })
}

/// What the one box of a kind holds; None where there is none, or several.
pub(super) fn find<'a>(bytes: &'a [u8], kind: &[u8; 4]) -> Option<&'a [u8]> {
    let mut found = children(bytes)
        .flatten()
        .filter(|(found, _)| found == kind)
        .map(|(_, payload)| payload);
    found.next().filter(|_| found.next().is_none())
}

/// The one box in a box.
pub(super) fn only_child(bytes: &[u8]) -> Option<Child<'_>> {
    let mut children = children(bytes);
    let child = children.next()??;
    children.next().is_none().then_some(child)
}

/// The big-endian number at a place; None where the bytes end before.
pub(super) fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u32::from_be_bytes(*bytes))
}

/// The same, of 16 bits.
pub(super) fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    let bytes = bytes.get(at..)?.first_chunk()?;
    Some(u16::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(boxes: &[(&[u8; 4], &[u8])]) -> Vec<u8> {
        let bytes = |(kind, payload): &(&[u8; 4], &[u8])| {
            [
                &(8 + payload.len() as u32).to_be_bytes(),
                &kind[..],
                payload,
            ]
            .concat()
        };
        boxes.iter().flat_map(bytes).collect()
    }

    #[test]
    fn children_end_with_one_that_does_not_fit() {
        let mut boxes = bytes(&[(b"aaaa", &[1, 2]), (b"bbbb", &[]), (b"aaaa", &[])]);
        let kinds = |bytes: &[u8]| {
            children(bytes)
                .map(|c| c.map(|c| c.0[0]))
                .collect::<Vec<_>>()
        };
        assert_eq!(kinds(&boxes), [Some(b'a'), Some(b'b'), Some(b'a')]);
        assert_eq!(find(&boxes, b"bbbb"), Some(&[][..]));
        assert_eq!(find(&boxes, b"aaaa"), None, "two");
        assert_eq!(only_child(&boxes), None);
        assert_eq!(only_child(&boxes[..10]), Some((*b"aaaa", &[1, 2][..])));
        boxes.truncate(boxes.len() - 1);
        assert_eq!(kinds(&boxes), [Some(b'a'), Some(b'b'), None]);
    }

    #[test]
    fn a_head_may_be_long_and_must_count_itself() {
        let long = [&1_u32.to_be_bytes()[..], b"mdat", &99_u64.to_be_bytes()].concat();
        let head = Head::parse(&long).unwrap();
        assert_eq!((head.size, head.len), (99, 16));
        assert_eq!(Head::parse(&long[..12]), None);
        for size in [0_u32, 2, 7] {
            assert_eq!(
                Head::parse(&[&size.to_be_bytes()[..], b"free"].concat()),
                None
            );
        }
    }
}
