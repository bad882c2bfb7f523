//! As much of Thrift's compact protocol as it takes to look at a structure before a reader trusts it.

use crate::limits::MAX_THRIFT_DEPTH;

/// Bytes that do not follow the protocol, or end too early.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

/// A position in bytes.
#[derive(Debug, Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
}

/// The type of a field, as its header has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Type(u8);

impl Type {
    pub(super) const STRUCT: Self = Self(12);
    const LIST: Self = Self(9);

    /// Whether it is an integer of 16 bits or more.
    fn is_integer(self) -> bool {
        (4..=6).contains(&self.0)
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, position: 0 }
    }

    /// The number of bytes read.
    pub(super) fn position(&self) -> usize {
        self.position
    }

    /// Reads a structure: calls `visit` for each field with its number and type, and skips it unless `visit` says that it
    /// has read it.
    pub(super) fn fields(
        &mut self,
        mut visit: impl FnMut(&mut Self, i16, Type) -> Result<bool, Malformed>,
    ) -> Result<(), Malformed> {
        let mut id: i16 = 0;
        loop {
            let header = self.byte()?;
            if header == 0 {
                return Ok(());
            }
            let delta = header >> 4;
            id = match delta {
                0 => i16::try_from(self.zigzag()?).or(Err(Malformed))?,
                delta => id.checked_add(i16::from(delta)).ok_or(Malformed)?,
            };
            let kind = Type(header & 0x0f);
            if !visit(self, id, kind)? {
                self.skip(kind, MAX_THRIFT_DEPTH)?;
            }
        }
    }

    /// Reads the header of a list of structures: their number, each of which takes at least a byte.
    pub(super) fn structs(&mut self, kind: Type) -> Result<usize, Malformed> {
        let (element, len) = self.list()?;
        if kind == Type::LIST && element == Type::STRUCT {
            Ok(len)
        } else {
            Err(Malformed)
        }
    }

    /// Reads an integer.
    pub(super) fn integer(&mut self, kind: Type) -> Result<i64, Malformed> {
        if kind.is_integer() {
            self.zigzag()
        } else {
            Err(Malformed)
        }
    }

    fn list(&mut self) -> Result<(Type, usize), Malformed> {
        let header = self.byte()?;
        let len = match header >> 4 {
            15 => usize::try_from(self.varint()?).or(Err(Malformed))?,
            len => usize::from(len),
        };
        if len > self.bytes.len() - self.position {
            return Err(Malformed);
        }
        Ok((Type(header & 0x0f), len))
    }

    /// Passes over a value of a field.
    fn skip(&mut self, kind: Type, depth: usize) -> Result<(), Malformed> {
        let depth = depth.checked_sub(1).ok_or(Malformed)?;
        match kind.0 {
            // A bool's value is its type.
            1 | 2 => Ok(()),
            3 => self.take(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.take(8),
            8 => {
                let len = usize::try_from(self.varint()?).or(Err(Malformed))?;
                self.take(len)
            }
            9 | 10 => {
                let (element, len) = self.list()?;
                for _ in 0..len {
                    self.skip_element(element, depth)?;
                }
                Ok(())
            }
            11 => {
                let len = self.varint()?;
                if len == 0 {
                    return Ok(());
                }
                let types = self.byte()?;
                // Each key takes at least a byte, so this ends with the bytes.
                for _ in 0..len {
                    self.skip_element(Type(types >> 4), depth)?;
                    self.skip_element(Type(types & 0x0f), depth)?;
                }
                Ok(())
            }
            12 => loop {
                let header = self.byte()?;
                if header == 0 {
                    return Ok(());
                }
                if header >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(Type(header & 0x0f), depth)?;
            },
            _ => Err(Malformed),
        }
    }

    /// Passes over an element of a list, where a bool takes a byte.
    fn skip_element(&mut self, kind: Type, depth: usize) -> Result<(), Malformed> {
        if matches!(kind.0, 1 | 2) {
            self.take(1)
        } else {
            self.skip(kind, depth)
        }
    }

    fn take(&mut self, len: usize) -> Result<(), Malformed> {
        let end = self
            .position
            .checked_add(len)
            .filter(|end| *end <= self.bytes.len());
        self.position = end.ok_or(Malformed)?;
        Ok(())
    }

    fn byte(&mut self) -> Result<u8, Malformed> {
        let byte = *self.bytes.get(self.position).ok_or(Malformed)?;
        self.position += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Malformed)
    }

    fn zigzag(&mut self) -> Result<i64, Malformed> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fields by number, of those that are integers; others are skipped.
    fn integers(bytes: &[u8]) -> Result<Vec<(i16, i64)>, Malformed> {
        let mut found = Vec::new();
        let mut cursor = Cursor::new(bytes);
        cursor.fields(|cursor, id, kind| {
            let is_integer = kind.is_integer();
            if is_integer {
                found.push((id, cursor.integer(kind)?));
            }
            Ok(is_integer)
        })?;
        assert_eq!(cursor.position(), bytes.len());
        Ok(found)
    }

    #[test]
    fn fields_are_found_behind_others_of_any_type() {
        // 1: i32 = 3; 2: true; 3: binary "ab"; 4: list of 2 i32; 5: struct {1: i64 = 1}; 6: map {1: 2}; 7: double; 9: i16 = -2.
        let bytes = [
            0x15, 6, 0x11, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x1c, 0x16, 2, 0, 0x1b, 1, 0x55,
            2, 4, 0x17, 0, 0, 0, 0, 0, 0, 0, 0, 0x24, 3, 0,
        ];
        assert_eq!(integers(&bytes), Ok(vec![(1, 3), (9, -2)]));
        for len in 0..bytes.len() {
            assert_eq!(integers(&bytes[..len]), Err(Malformed), "cut to {len}");
        }
    }

    #[test]
    fn a_list_longer_than_the_bytes_left_is_malformed() {
        assert_eq!(
            integers(&[0x19, 0xf5, 0xff, 0xff, 0xff, 0x7f, 0, 0]),
            Err(Malformed)
        );
    }

    #[test]
    fn nesting_without_end_is_malformed() {
        assert_eq!(integers(&[0x1c; 100_000]), Err(Malformed));
        assert_eq!(integers(&[0x19; 100_000]), Err(Malformed));
    }
}
