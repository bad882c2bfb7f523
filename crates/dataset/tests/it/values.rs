//! Values: how they may be stored, and what becomes of them.

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    ArrayRef, BinaryArray, BooleanArray, DictionaryArray, Float16Array, Float32Array, Int8Array,
    Int16Array, Int32Array, LargeListArray, LargeStringArray, ListArray, StringArray, StructArray,
    UInt8Array, UInt16Array, UInt32Array, UInt64Array,
};
use arrow_buffer::OffsetBuffer;
use arrow_schema::{DataType, Field};
use dataset::{Column, Error, Values};

use crate::small::{DATA, Small, doubles, fixed_lists, floats, int_lists, ints, lists, strings};

/// The whole column of a feature of 4 rows.
fn read(dtype: &str, shape: &[usize], stored: ArrayRef) -> Result<Column, Error> {
    let small = Small::new(&[4]).with_feature("x", dtype, shape, stored);
    small.rows(0).map(|rows| rows.column("x").unwrap().clone())
}

/// Lists of these lengths.
fn ragged(values: ArrayRef, lens: &[usize]) -> ArrayRef {
    let field = Arc::new(Field::new("element", values.data_type().clone(), true));
    Arc::new(ListArray::new(
        field,
        OffsetBuffer::from_lengths(lens.iter().copied()),
        values,
        None,
    ))
}

#[test]
fn every_type_is_read_as_what_it_is() {
    let texts = strings(&["a", "", "ü", "a"]);
    let cases: Vec<(&str, ArrayRef, Values)> = vec![
        (
            "float32",
            floats([0.5, -1.0, f32::NAN, 3.0]),
            Values::F32(vec![0.5, -1.0, f32::NAN, 3.0]),
        ),
        (
            "float64",
            doubles([0.1, 0.2, 0.3, 0.4]),
            Values::F64(vec![0.1, 0.2, 0.3, 0.4]),
        ),
        (
            "int8",
            Arc::new(Int8Array::from(vec![-128, 0, 1, 127])),
            Values::I8(vec![-128, 0, 1, 127]),
        ),
        (
            "int16",
            Arc::new(Int16Array::from(vec![-3, 0, 1, 2])),
            Values::I16(vec![-3, 0, 1, 2]),
        ),
        (
            "int32",
            Arc::new(Int32Array::from(vec![-3, 0, 1, 2])),
            Values::I32(vec![-3, 0, 1, 2]),
        ),
        (
            "int64",
            ints([i64::MIN, 0, 1, i64::MAX]),
            Values::I64(vec![i64::MIN, 0, 1, i64::MAX]),
        ),
        (
            "uint8",
            Arc::new(UInt8Array::from(vec![0, 1, 2, 255])),
            Values::U8(vec![0, 1, 2, 255]),
        ),
        (
            "uint16",
            Arc::new(UInt16Array::from(vec![0, 1, 2, 65535])),
            Values::U16(vec![0, 1, 2, 65535]),
        ),
        (
            "uint32",
            Arc::new(UInt32Array::from(vec![0, 1, 2, u32::MAX])),
            Values::U32(vec![0, 1, 2, u32::MAX]),
        ),
        (
            "uint64",
            Arc::new(UInt64Array::from(vec![0, 1, 2, u64::MAX])),
            Values::U64(vec![0, 1, 2, u64::MAX]),
        ),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![true, false, false, true])),
            Values::Bool(vec![true, false, false, true]),
        ),
    ];
    for (dtype, stored, expected) in cases {
        let column = read(dtype, &[1], stored).unwrap();
        // Debug, for a NaN differs from itself.
        assert_eq!(
            format!("{:?}", column.values()),
            format!("{expected:?}"),
            "{dtype}"
        );
        assert_eq!(column.shape(), &[] as &[usize], "{dtype}");
    }
    for stored in [
        Arc::clone(&texts),
        Arc::new(LargeStringArray::from(vec!["a", "", "ü", "a"])) as ArrayRef,
        Arc::new(
            ["a", "", "ü", "a"]
                .into_iter()
                .collect::<DictionaryArray<Int32Type>>(),
        ),
    ] {
        let column = read("string", &[1], stored).unwrap();
        let Values::Str(strings) = column.values() else {
            panic!("a string feature holds strings");
        };
        assert_eq!(strings.iter().collect::<Vec<_>>(), ["a", "", "ü", "a"]);
        assert_eq!((strings.get(2), strings.get(4)), (Some("ü"), None));
    }
}

#[test]
fn shape_1_is_a_scalar_whether_stored_plain_or_as_a_list_of_one() {
    let plain: [(&str, ArrayRef); 4] = [
        ("float32", floats([0.5, 1.5, 2.5, 3.5])),
        ("int64", ints([4, 5, 6, 7])),
        (
            "bool",
            Arc::new(BooleanArray::from(vec![true, false, true, true])),
        ),
        ("string", strings(&["a", "b", "c", "d"])),
    ];
    for (dtype, values) in plain {
        let plain = read(dtype, &[1], Arc::clone(&values)).unwrap();
        assert_eq!(plain.shape(), &[] as &[usize]);
        assert_eq!(plain.values().len(), 4);
        for list in [
            fixed_lists(Arc::clone(&values), 1),
            ragged(Arc::clone(&values), &[1; 4]),
        ] {
            assert_eq!(read(dtype, &[1], list).unwrap(), plain, "{dtype}");
        }
        // A shape without axes is a scalar, too.
        assert_eq!(read(dtype, &[], values).unwrap().shape(), plain.shape());
    }
}

#[test]
fn vectors_and_matrices_are_read_from_every_kind_of_list() {
    let flat: Vec<f32> = (0..24).map(|value| value as f32).collect();
    let expected = Values::F32(flat.clone());
    let large: ArrayRef = {
        let field = Arc::new(Field::new("element", DataType::Float32, true));
        let offsets = OffsetBuffer::from_lengths([6; 4]);
        Arc::new(LargeListArray::new(
            field,
            offsets,
            Arc::new(Float32Array::from(flat.clone())),
            None,
        ))
    };
    for stored in [
        fixed_lists(floats(flat.iter().copied()), 6),
        ragged(floats(flat.iter().copied()), &[6; 4]),
        large,
    ] {
        let column = read("float32", &[6], stored).unwrap();
        assert_eq!((column.shape(), column.values()), (&[6][..], &expected));
    }
    let inner = floats(flat.iter().copied());
    for stored in [
        fixed_lists(fixed_lists(Arc::clone(&inner), 3), 2),
        ragged(ragged(Arc::clone(&inner), &[3; 8]), &[2; 4]),
        ragged(fixed_lists(inner, 3), &[2; 4]),
    ] {
        let column = read("float32", &[2, 3], stored).unwrap();
        assert_eq!((column.shape(), column.values()), (&[2, 3][..], &expected));
    }
}

#[test]
fn a_stored_shape_other_than_the_declared_names_both() {
    let error = read("float32", &[17], lists((0..4).map(|_| vec![0.0; 41]))).unwrap_err();
    assert!(
        matches!(&error, Error::Shape { path, column, row: 0, found, declared }
            if path == DATA && column == "x" && *found == [41] && *declared == [17]),
        "{error}"
    );
    assert!(
        error.to_string().contains("[41]") && error.to_string().contains("[17]"),
        "{error}"
    );
    for (shape, stored, row, found) in [
        (
            &[2][..],
            int_lists([vec![1, 2], vec![1, 2], vec![1], vec![1, 2]]),
            2,
            &[1][..],
        ),
        (
            &[1],
            int_lists([vec![1], vec![1, 2], vec![1], vec![]]),
            1,
            &[2],
        ),
        (&[3], ints([0; 4]), 0, &[]),
        (&[2, 3], int_lists((0..4).map(|_| vec![0; 6])), 0, &[6]),
    ] {
        let error = read("int64", shape, stored).unwrap_err();
        assert!(
            matches!(&error, Error::Shape { row: at, found: shown, .. } if *at == row && shown == found),
            "{error}"
        );
    }
    // The row is that of the file, not that of the episode.
    let mut rows = vec![vec![0.0, 1.0]; 10];
    rows[6] = vec![0.0];
    let small = Small::default().with_feature("x", "float32", &[2], lists(rows));
    small.rows(0).unwrap();
    assert!(matches!(small.rows(1), Err(Error::Shape { row: 6, .. })));
}

#[test]
fn a_null_names_column_and_row() {
    let null_list = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(1), Some(2)]),
        None,
        Some(vec![Some(1), Some(2)]),
    ]);
    let null_element = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(1), Some(2)]),
        Some(vec![Some(1), None]),
        Some(vec![Some(1), Some(2)]),
    ]);
    let cases: [(&str, &[usize], ArrayRef); 4] = [
        (
            "float32",
            &[1],
            Arc::new(Float32Array::from(vec![
                Some(0.0),
                Some(1.0),
                None,
                Some(2.0),
            ])),
        ),
        (
            "string",
            &[1],
            Arc::new(StringArray::from(vec![Some("a"), Some("b"), None, None])),
        ),
        ("int32", &[2], Arc::new(null_list)),
        ("int32", &[2], Arc::new(null_element)),
    ];
    for (dtype, shape, stored) in cases {
        let error = read(dtype, shape, stored).unwrap_err();
        assert!(
            matches!(&error, Error::Value { path, column, row: 2, found, .. }
                if path == DATA && column == "x" && found == "null"),
            "{error}"
        );
    }
}

#[test]
fn columns_stored_as_float64_keep_their_declared_type() {
    let column = read(
        "int64",
        &[1],
        doubles([0.0, 1.0, -2.0, 9_007_199_254_740_992.0]),
    )
    .unwrap();
    assert_eq!(
        column.values(),
        &Values::I64(vec![0, 1, -2, 9_007_199_254_740_992])
    );
    let column = read("float32", &[1], doubles([0.1, 0.2, 0.3, 1e-50])).unwrap();
    assert_eq!(column.values(), &Values::F32(vec![0.1, 0.2, 0.3, 0.0]));
    let column = read("bool", &[1], doubles([0.0, 1.0, 1.0, 0.0])).unwrap();
    assert_eq!(
        column.values(),
        &Values::Bool(vec![false, true, true, false])
    );

    let error = read(
        "int64",
        &[2],
        fixed_lists(doubles([0., 1., 2., 3., 4., 5.5, 6., 7.]), 2),
    )
    .unwrap_err();
    assert!(
        matches!(&error, Error::Value { row: 2, found, .. } if found == "5.5"),
        "{error}"
    );
    let error = read("string", &[1], ints([0; 4])).unwrap_err();
    assert!(
        matches!(&error, Error::Type { found, .. } if found == "int64"),
        "{error}"
    );
    let error = read("int64", &[1], strings(&["0"; 4])).unwrap_err();
    assert!(
        matches!(&error, Error::Type { found, .. } if found == "string"),
        "{error}"
    );
}

#[test]
fn a_type_that_no_feature_has_is_refused_only_where_it_is_declared() {
    let halves: ArrayRef = Arc::new(Float16Array::new_null(4));
    let error = read("float32", &[1], Arc::clone(&halves)).unwrap_err();
    assert!(
        matches!(&error, Error::Unsupported { column, .. } if column == "x"),
        "{error}"
    );
    let mut small = Small::new(&[4]).with_feature("x", "float32", &[1], halves);
    small.info["features"]
        .as_object_mut()
        .unwrap()
        .remove("x")
        .unwrap();
    small.rows(0).unwrap();
}

/// Pictures as `datasets` stores them.
fn pictures(bytes: Vec<Option<&[u8]>>) -> ArrayRef {
    let bytes: ArrayRef = Arc::new(BinaryArray::from(bytes));
    let paths: ArrayRef = strings(&["a.png"; 4]);
    Arc::new(StructArray::from(vec![
        (Arc::new(Field::new("bytes", DataType::Binary, true)), bytes),
        (Arc::new(Field::new("path", DataType::Utf8, true)), paths),
    ]))
}

#[test]
fn pictures_are_bytes_and_one_without_them_is_named() {
    let whole: Vec<Option<&[u8]>> = vec![Some(b"png0"), Some(b"png-1"), Some(b""), Some(b"png3")];
    let plain: ArrayRef = Arc::new(BinaryArray::from(whole.clone()));
    for stored in [pictures(whole), plain] {
        let column = read("image", &[4, 6, 3], stored).unwrap();
        assert_eq!(column.shape(), &[] as &[usize]);
        let Values::Bytes(blobs) = column.values() else {
            panic!("an image feature holds bytes");
        };
        assert_eq!(
            blobs.iter().collect::<Vec<_>>(),
            [b"png0" as &[u8], b"png-1", b"", b"png3"]
        );
    }
    let error = read(
        "image",
        &[4, 6, 3],
        pictures(vec![Some(b"0"), None, Some(b"2"), Some(b"3")]),
    )
    .unwrap_err();
    assert!(
        matches!(&error, Error::Value { column, row: 1, .. } if column == "x"),
        "{error}"
    );
    assert!(error.to_string().contains("path"), "{error}");
}

#[test]
fn the_memory_of_rows_is_that_of_their_values() {
    let rows = Small::new(&[4]).rows(0).unwrap();
    // state 2 x 4 bytes, timestamp 4, and four of 8, for 4 rows.
    assert_eq!(rows.nbytes(), 4 * (8 + 4 + 4 * 8));
}
