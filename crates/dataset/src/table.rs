//! Columns of the tables below `meta/`, found by name and read as numbers.

use crate::convert::{self, Number};
use crate::parquet::{File, RawColumn};
use crate::{DType, Error, Values};

/// The names of columns to be read.
pub(crate) struct Wanted<'a> {
    file: &'a File,
    path: &'a str,
    names: Vec<String>,
}

impl<'a> Wanted<'a> {
    pub(crate) fn new(file: &'a File, path: &'a str) -> Self {
        Self {
            file,
            path,
            names: Vec::new(),
        }
    }

    /// The names wanted so far, in the order of wanting.
    pub(crate) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// Wants a column if it is there, and tells whether it is.
    pub(crate) fn want(&mut self, name: &str) -> bool {
        let found = self.file.has_column(name);
        if found {
            self.names.push(name.to_owned());
        }
        found
    }

    /// Wants a column by the first of its spellings that is there.
    pub(crate) fn need(&mut self, spellings: &[&str], reason: &'static str) -> Result<(), Error> {
        if spellings.iter().any(|name| self.want(name)) {
            return Ok(());
        }
        Err(Error::MissingColumn {
            path: self.path.to_owned(),
            column: spellings[0].to_owned(),
            reason,
        })
    }
}

/// A column of one number a row.
pub(crate) struct TableColumn {
    path: String,
    name: String,
    values: Values,
    null_rows: Vec<usize>,
}

impl TableColumn {
    pub(crate) fn new(path: &str, name: String, column: RawColumn) -> Result<Self, Error> {
        let (values, null_rows) = convert::shaped(column, path, &name, &[])?;
        if !values.is_empty() && convert::number(&values, 0).is_none() {
            return Err(Error::Type {
                path: path.to_owned(),
                column: name,
                found: convert::type_name(&values).to_owned(),
                expected: DType::Int64,
            });
        }
        Ok(Self {
            path: path.to_owned(),
            name,
            values,
            null_rows,
        })
    }

    fn number(&self, row: usize) -> Option<Number> {
        if self.null_rows.binary_search(&row).is_ok() {
            return None;
        }
        convert::number(&self.values, row)
    }

    fn fault(&self, row: usize, found: Option<Number>, expected: &str) -> Error {
        Error::Value {
            path: self.path.clone(),
            column: self.name.clone(),
            row,
            found: found.map_or_else(|| "null".to_owned(), |found| found.to_string()),
            expected: expected.to_owned(),
        }
    }

    /// A whole number of any sign.
    pub(crate) fn integer(&self, row: usize) -> Result<i64, Error> {
        let found = self.number(row);
        let integer = found
            .and_then(Number::exact)
            .and_then(|number| i64::try_from(number).ok());
        integer.ok_or_else(|| self.fault(row, found, "a whole number"))
    }

    /// A whole number, 0 or more.
    pub(crate) fn index(&self, row: usize) -> Result<usize, Error> {
        let found = self.number(row);
        let index = found
            .and_then(Number::exact)
            .and_then(|number| usize::try_from(number).ok());
        index.ok_or_else(|| self.fault(row, found, "a whole number, 0 or more"))
    }

    pub(crate) fn index_or_null(&self, row: usize) -> Result<Option<usize>, Error> {
        match self.number(row) {
            None => Ok(None),
            // What a null becomes in a table of floats.
            Some(Number::Float(value)) if value.is_nan() => Ok(None),
            Some(_) => self.index(row).map(Some),
        }
    }

    /// A finite number, if it is one.
    pub(crate) fn float(&self, row: usize) -> Option<f64> {
        self.number(row)
            .map(Number::as_f64)
            .filter(|value| value.is_finite())
    }

    pub(crate) fn finite(&self, row: usize) -> Result<f64, Error> {
        self.float(row)
            .ok_or_else(|| self.fault(row, self.number(row), "a finite number of seconds"))
    }
}
