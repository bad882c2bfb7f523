//! The task table: sentences by number.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use crate::limits::MAX_TABLE_ROWS;
use crate::parquet::File;
use crate::table::TableColumn;
use crate::{Error, Info, Reader, Storage, Values, convert, storage};

/// Where the table lies.
const PATH: &str = "meta/tasks.parquet";

/// The names of the column of sentences: it is the index of a pandas table, and this is what one without a name is called.
const TEXT_COLUMNS: [&str; 2] = ["task", "__index_level_0__"];

/// The tasks of a dataset: what `task_index` in a row stands for.
///
/// Looked up by value: the order of the rows of `meta/tasks.parquet` means nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks {
    texts: BTreeMap<i64, String>,
}

impl Tasks {
    /// The sentence of the task with this number.
    #[must_use]
    pub fn get(&self, task_index: i64) -> Option<&str> {
        self.texts.get(&task_index).map(String::as_str)
    }

    /// All tasks, by rising number.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &str)> {
        self.texts
            .iter()
            .map(|(index, text)| (*index, text.as_str()))
    }

    /// The number of tasks.
    #[must_use]
    pub fn len(&self) -> usize {
        self.texts.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    /// The numbers that are known, for a message: `0, 3, 7`, at most ten of them.
    #[must_use]
    pub fn known(&self) -> String {
        const SHOWN: usize = 10;
        if self.texts.is_empty() {
            return "none".to_owned();
        }
        let mut known: Vec<String> = self.texts.keys().take(SHOWN).map(i64::to_string).collect();
        if self.texts.len() > SHOWN {
            known.push(format!("and {} more", self.texts.len() - SHOWN));
        }
        known.join(", ")
    }

    /// Reads the table; a dataset whose rows have no `task_index` need not have one.
    pub(crate) fn read(storage: &dyn Storage, reader: Reader, info: &Info) -> Result<Self, Error> {
        let opened = match storage::open(storage, PATH) {
            Err(Error::Missing { path, source, .. }) => {
                if info.feature("task_index").is_none() {
                    return Ok(Self::default());
                }
                let needed_for = Some("info.json declares `task_index`".to_owned());
                return Err(Error::Missing {
                    path,
                    needed_for,
                    source,
                });
            }
            opened => opened?,
        };
        let mut file = File::open(opened, PATH, reader)?;
        if file.num_rows() > MAX_TABLE_ROWS {
            return Err(Error::TooLarge {
                path: PATH.to_owned(),
                what: "number of tasks",
                found: file.num_rows() as u64,
                limit: MAX_TABLE_ROWS as u64,
            });
        }
        let missing = |column: &str, reason| Error::MissingColumn {
            path: PATH.to_owned(),
            column: column.to_owned(),
            reason,
        };
        if !file.has_column("task_index") {
            return Err(missing("task_index", "every task has a number"));
        }
        let text_column = TEXT_COLUMNS
            .into_iter()
            .find(|name| file.has_column(name))
            .ok_or_else(|| {
                missing(
                    "task",
                    "every task has a sentence (`__index_level_0__` would do as well)",
                )
            })?;
        let num_rows = file.num_rows();
        let columns = file.read(&["task_index", text_column], 0..num_rows)?;
        let [numbers, texts] =
            <[_; 2]>::try_from(columns).expect("the reader returns a column for each name");
        let numbers = TableColumn::new(PATH, "task_index".to_owned(), numbers)?;
        let (texts, null_rows) = convert::shaped(texts, PATH, text_column, &[])?;
        let fault = |row, found: &str, expected: &str| Error::Value {
            path: PATH.to_owned(),
            column: text_column.to_owned(),
            row,
            found: found.to_owned(),
            expected: expected.to_owned(),
        };
        let Values::Str(sentences) = &texts else {
            return Err(fault(0, convert::type_name(&texts), "text"));
        };
        let mut tasks = BTreeMap::new();
        for row in 0..num_rows {
            let sentence = match sentences.get(row) {
                Some(sentence) if null_rows.binary_search(&row).is_err() => sentence,
                _ => return Err(fault(row, "null", "text")),
            };
            match tasks.entry(numbers.integer(row)?) {
                Entry::Vacant(entry) => {
                    entry.insert(sentence.to_owned());
                }
                Entry::Occupied(entry) if entry.get() == sentence => {}
                Entry::Occupied(entry) => {
                    let expected = format!(
                        "`{}`, as an earlier row has it for task_index {}",
                        entry.get(),
                        entry.key()
                    );
                    return Err(fault(row, sentence, &expected));
                }
            }
        }
        Ok(Self { texts: tasks })
    }
}
