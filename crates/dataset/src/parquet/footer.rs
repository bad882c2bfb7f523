//! The end of a Parquet file: where its footer lies, and whether a reader may be shown it.

use bytes::Bytes;

use super::bytes::Source;
use super::thrift::{Cursor, Malformed};
use crate::limits::{MAX_FOOTER_BYTES, MAX_SCHEMA_DEPTH};
use crate::{Error, damage};

/// The magic number at the start and the end of a file.
const MAGIC: &[u8] = b"PAR1";

/// What stands there when the footer is encrypted.
const ENCRYPTED_MAGIC: &[u8] = b"PARE";

/// The footer's length and the magic number after it.
const TAIL_BYTES: u64 = 8;

/// The most of a file's start that is read to say what it is instead.
const JUDGED_BYTES: u64 = 512;

/// Reads the footer of a file, if the file has one and its schema is no trap.
pub(super) fn read(source: &mut Source) -> Result<Bytes, Error> {
    let size = source.size();
    let tail = source.read(size.saturating_sub(TAIL_BYTES)..size)?;
    let Some((len, magic)) = tail
        .split_first_chunk()
        .filter(|_| size >= TAIL_BYTES + MAGIC.len() as u64)
    else {
        return Err(not_parquet(source, &tail));
    };
    if magic == ENCRYPTED_MAGIC {
        return Err(corrupt(source, "its footer is encrypted".to_owned()));
    }
    if magic != MAGIC {
        return Err(not_parquet(source, &tail));
    }
    let len = u64::from(u32::from_le_bytes(*len));
    if len > MAX_FOOTER_BYTES {
        return Err(Error::TooLarge {
            path: source.path().to_owned(),
            what: "footer in bytes",
            found: len,
            limit: MAX_FOOTER_BYTES,
        });
    }
    let end = size - TAIL_BYTES;
    let Some(start) = end.checked_sub(len) else {
        return Err(corrupt(
            source,
            format!("its footer would be {len} bytes long, but the file has {size}"),
        ));
    };
    let footer = source.read(start..end)?;
    check_schema(&footer).map_err(|reason| corrupt(source, reason))?;
    Ok(footer)
}

fn corrupt(source: &Source, reason: String) -> Error {
    Error::Corrupt {
        path: source.path().to_owned(),
        reason,
    }
}

fn not_parquet(source: &mut Source, tail: &[u8]) -> Error {
    let size = source.size();
    match source.read(0..size.min(JUDGED_BYTES)) {
        Ok(start) => damage::error(source.path(), size, &start, tail),
        Err(error) => error,
    }
}

/// Checks that the tree of the schema is whole and not deep: readers recurse into it, and reserve room for as many children
/// as an element says it has.
fn check_schema(footer: &[u8]) -> Result<(), String> {
    let malformed = |Malformed| "its footer is malformed".to_owned();
    let mut elements: Vec<i64> = Vec::new();
    Cursor::new(footer)
        .fields(|cursor, id, kind| {
            // FileMetaData.schema
            if id != 2 {
                return Ok(false);
            }
            for _ in 0..cursor.structs(kind)? {
                let mut num_children = 0;
                cursor.fields(|cursor, id, kind| {
                    // SchemaElement.num_children
                    if id == 5 {
                        num_children = cursor.integer(kind)?;
                    }
                    Ok(id == 5)
                })?;
                elements.push(num_children);
            }
            Ok(true)
        })
        .map_err(malformed)?;

    // The number of children still to come of each group that the element is in.
    let mut open: Vec<i64> = Vec::new();
    for (position, num_children) in elements.iter().enumerate() {
        match open.last_mut() {
            Some(left) => *left -= 1,
            None if position == 0 => {}
            None => return Err("its schema has more than one root".to_owned()),
        }
        if !(0..=elements.len() as i64).contains(num_children) {
            return Err(format!(
                "a group of its schema claims {num_children} children"
            ));
        }
        if *num_children > 0 {
            open.push(*num_children);
        }
        if open.len() > MAX_SCHEMA_DEPTH {
            return Err(format!(
                "its schema nests deeper than {MAX_SCHEMA_DEPTH} levels"
            ));
        }
        while open.last() == Some(&0) {
            open.pop();
        }
    }
    if open.is_empty() && !elements.is_empty() {
        Ok(())
    } else {
        Err("its schema is not whole".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer whose schema elements have these numbers of children.
    fn footer(children: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0x29, 0xfc, children.len() as u8];
        for children in children {
            // 5: i32
            bytes.extend([0x55, children * 2, 0]);
        }
        bytes.push(0);
        bytes
    }

    #[test]
    fn only_a_whole_tree_of_bounded_depth_is_shown_to_a_reader() {
        for (children, expected) in [
            (&[2, 0, 0][..], None),
            (&[2, 1, 0, 0], None),
            (&[1], Some("not whole")),
            (&[9, 0, 0], Some("claims 9 children")),
            (&[1, 0, 0], Some("more than one root")),
            (&[3, 0, 0], Some("not whole")),
            (&[], Some("not whole")),
            (&[1; 100], Some("nests deeper")),
        ] {
            let result = check_schema(&footer(children));
            match expected {
                None => assert_eq!(result, Ok(()), "{children:?}"),
                Some(text) => assert!(
                    result.as_ref().is_err_and(|error| error.contains(text)),
                    "{children:?}: {result:?}"
                ),
            }
        }
        assert!(check_schema(&[0x29, 0xfc, 3, 0]).is_err());
        assert!(check_schema(&[]).is_err());
    }
}
