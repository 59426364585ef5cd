//! Typed access to one table of the file. Unknown keys, missing keys and wrong types become complaints. Reading then continues with a substitute,
//! so that one run finds all mistakes of a file.

use std::cell::RefCell;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::complaint::{Complaint, Mistakes, StudyError};
use super::keys::KeyTable;
use super::words::{nearest, one_of, shown, tamed};

/// A file during reading, and the complaints so far.
pub(super) struct StudyReader<'t> {
    text: &'t str,
    folder: &'t Path,
    complaints: RefCell<Vec<Complaint>>,
}

impl<'t> StudyReader<'t> {
    pub(super) fn new(text: &'t str, folder: &'t Path) -> Self {
        Self { text, folder, complaints: RefCell::default() }
    }

    /// The study's folder, as an absolute path.
    pub(super) fn folder(&self) -> &'t Path {
        self.folder
    }

    pub(super) fn complain(&self, complaint: Complaint) {
        self.complaints.borrow_mut().push(complaint);
    }

    pub(super) fn is_clean(&self) -> bool {
        self.complaints.borrow().is_empty()
    }

    pub(super) fn into_error(self, path: &str) -> StudyError {
        let mut complaints = self.complaints.into_inner();
        complaints.sort_by_key(|complaint| complaint.span().start);
        StudyError::Mistakes(Mistakes { path: path.into(), text: self.text.into(), complaints })
    }

    /// The place of `part` in a string of the file. The place of the whole string if escapes hide the part.
    pub(super) fn part_of(&self, string: &Range<usize>, part: &str) -> Range<usize> {
        let found = self.text.get(string.clone()).and_then(|source| source.find(part));
        found.map_or(string.clone(), |at| string.start + at..string.start + at + part.len())
    }

    /// A path of the file, relative to the study's folder unless absolute. Complains if the path does not satisfy `exists`.
    pub(super) fn path(
        &self,
        found: &Spanned<String>,
        kind: &str,
        exists: impl Fn(&Path) -> bool,
    ) -> PathBuf {
        let path = joined(self.folder, found.get_ref());
        if !exists(&path) {
            let title = format!("there is no {kind} `{}`", shown(found.get_ref()));
            let label = format!("looked for {}", tamed(&path.display().to_string()));
            let complaint = Complaint::new(found.span(), title, label);
            self.complain(complaint.help("paths are relative to the study's folder"));
        }
        path
    }
}

/// Joins `path` to `folder`, without the `.` parts.
fn joined(folder: &Path, path: &str) -> PathBuf {
    folder.join(path).components().collect()
}

/// One table of the file.
pub(super) struct Fields<'r, 'd> {
    reading: &'r StudyReader<'r>,
    table: &'d DeTable<'d>,
    /// The place of the table's heading, for complaints about missing keys.
    span: Range<usize>,
    /// The name of the table in messages.
    what: &'static str,
}

impl<'r, 'd> Fields<'r, 'd> {
    /// Opens a table. Complains about each key that this kind of table does not have.
    pub(super) fn open(
        reading: &'r StudyReader<'r>,
        table: &'d DeTable<'d>,
        span: Range<usize>,
        kind: &'static KeyTable,
    ) -> Self {
        let what = kind.name;
        let known = |key: &str| kind.words().any(|word| word == key);
        for key in table.keys().filter(|key| !known(key.get_ref())) {
            let word = key.get_ref().as_ref();
            let title = format!("{what} has no key `{}`", shown(word));
            let complaint = Complaint::new(key.span(), title, "unknown key");
            let complaint = complaint.meant(nearest(word, kind.words()));
            reading.complain(complaint.help(format!("its keys are {}", one_of(kind.words()))));
        }
        Self { reading, table, span, what }
    }

    pub(super) fn reading(&self) -> &'r StudyReader<'r> {
        self.reading
    }

    pub(super) fn complain(&self, complaint: Complaint) {
        self.reading.complain(complaint);
    }

    /// The table's name in messages, such as `[[scenario]]`.
    pub(super) fn table_name(&self) -> &'static str {
        self.what
    }

    /// The place of the table's heading.
    pub(super) fn span(&self) -> Range<usize> {
        self.span.clone()
    }

    pub(super) fn get(&self, key: &str) -> Option<&'d Spanned<DeValue<'d>>> {
        self.table.get(key)
    }

    /// The place of the key itself, for values of several lines.
    pub(super) fn key_span(&self, key: &str) -> Range<usize> {
        self.table.get_key_value(key).map_or(self.span.clone(), |(key, _)| key.span())
    }

    /// Complains that `key` must be `expected`.
    pub(super) fn wrong(&self, key: &str, expected: &str, found: &Spanned<DeValue<'_>>) {
        let title = format!("`{key}` of {} must be {expected}", self.what);
        self.complain(Complaint::new(found.span(), title, format!("found {}", described(found.get_ref()))));
    }

    fn typed<T>(
        &self,
        key: &str,
        expected: &str,
        read: impl Fn(&'d DeValue<'d>) -> Option<T>,
    ) -> Option<Spanned<T>> {
        let found = self.get(key)?;
        let value = read(found.get_ref());
        if value.is_none() {
            self.wrong(key, expected, found);
        }
        value.map(|value| Spanned::new(found.span(), value))
    }

    pub(super) fn text(&self, key: &str) -> Option<Spanned<String>> {
        self.typed(key, "a string", |value| value.as_str().map(str::to_owned))
    }

    /// A required text that must not be empty. Returns an empty text if it is missing.
    pub(super) fn required_text(&self, key: &str, example: &str) -> Spanned<String> {
        self.require(key, example);
        let text = self.text(key).unwrap_or_else(|| Spanned::new(self.span(), String::new()));
        if text.get_ref().is_empty() && self.get(key).is_some_and(|value| value.get_ref().is_str()) {
            let title = format!("`{key}` of {} is empty", self.what);
            self.complain(
                Complaint::new(text.span(), title, "found nothing").help(format!("for example: {example}")),
            );
        }
        text
    }

    pub(super) fn require(&self, key: &str, example: &str) {
        if self.get(key).is_none() {
            let title = format!("{} needs `{key}`", self.what);
            let complaint = Complaint::new(self.span(), title, format!("`{key}` is missing here"));
            self.complain(complaint.help(format!("for example: {example}")));
        }
    }

    /// Complains if there is no table of this kind. Says nothing about a misspelled heading, because there is already a complaint about it.
    pub(super) fn some_tables(&self, key: &str, example: &str) {
        let is_empty =
            |value: &Spanned<DeValue<'_>>| value.get_ref().as_array().is_some_and(|list| list.is_empty());
        let meant =
            |name: &str| if name == key { !self.get(key).is_some_and(is_empty) } else { near(name, key) };
        if !self.table.keys().any(|name| meant(name.get_ref())) {
            let complaint =
                Complaint::new(0..0, format!("the study has no {key}"), format!("no [[{key}]] in this file"));
            self.complain(complaint.help(format!("for example: [[{key}]] with {example}")));
        }
    }

    pub(super) fn flag(&self, key: &str) -> Option<Spanned<bool>> {
        self.typed(key, "true or false", DeValue::as_bool)
    }

    /// A whole number from `low` to `high`.
    pub(super) fn whole(&self, key: &str, low: u32, high: u32) -> Option<Spanned<u32>> {
        let expected = format!("a whole number from {low} to {high}");
        self.typed(key, &expected, |value| {
            whole(value)
                .and_then(|number| u32::try_from(number).ok())
                .filter(|number| (low..=high).contains(number))
        })
    }

    pub(super) fn number(&self, key: &str) -> Option<Spanned<f64>> {
        self.typed(key, "a number", number)
    }

    /// A list of strings, each with its place.
    pub(super) fn texts(&self, key: &str) -> Option<Vec<Spanned<String>>> {
        let expected = "a list of strings";
        let list = self.typed(key, expected, DeValue::as_array)?;
        let texts = list.get_ref().iter().filter_map(|item| {
            let text = item.get_ref().as_str().map(|text| Spanned::new(item.span(), text.to_owned()));
            if text.is_none() {
                self.wrong(key, expected, item);
            }
            text
        });
        Some(texts.collect())
    }

    /// A table of strings. If `lenient`, numbers and booleans are accepted in their written form.
    pub(super) fn text_map(&self, key: &str, lenient: bool) -> Vec<(Spanned<String>, Spanned<String>)> {
        let expected = "a table of strings, such as { NAME = \"text\" }";
        let Some(table) = self.typed(key, expected, DeValue::as_table) else { return Vec::new() };
        let mut map = Vec::new();
        for (name, item) in *table.get_ref() {
            let text = match item.get_ref() {
                DeValue::String(text) => Some(text.to_string()),
                DeValue::Boolean(flag) if lenient => Some(flag.to_string()),
                DeValue::Integer(integer) if lenient => Some(integer.to_string()),
                _ => None,
            };
            match text {
                Some(text) => {
                    let name = Spanned::new(name.span(), name.get_ref().to_string());
                    map.push((name, Spanned::new(item.span(), text)));
                }
                None => self.wrong(key, expected, item),
            }
        }
        map
    }

    /// The members of a table, of any type.
    pub(super) fn members(&self, key: &str, expected: &str) -> Option<&'d DeTable<'d>> {
        self.typed(key, expected, DeValue::as_table).map(Spanned::into_inner)
    }

    /// The elements of a list, of any type.
    pub(super) fn items(&self, key: &str, expected: &str) -> Option<Spanned<&'d [Spanned<DeValue<'d>>]>> {
        self.typed(key, expected, |value| value.as_array().map(|array| array.as_ref()))
    }

    /// A single table.
    pub(super) fn table(&self, key: &str, kind: &'static KeyTable) -> Option<Fields<'r, 'd>> {
        let expected = format!("one table: {}", kind.name);
        let table = self.typed(key, &expected, DeValue::as_table)?;
        Some(Self::open(self.reading, table.get_ref(), heading(table.span(), self.key_span(key)), kind))
    }

    /// Any number of tables.
    pub(super) fn tables(&self, key: &str, kind: &'static KeyTable) -> Vec<Fields<'r, 'd>> {
        let expected = format!("a list of tables, each beginning with {}", kind.name);
        if let Some(table) = self.get(key).filter(|value| value.get_ref().is_table()) {
            let place = heading(table.span(), self.key_span(key));
            let complaint =
                Complaint::new(place, format!("there can be several {key}s"), "found a single table");
            self.complain(complaint.help(format!("write {}, with two brackets", kind.name)));
            return Vec::new();
        }
        let Some(list) = self.items(key, &expected) else { return Vec::new() };
        self.each_table(key, list.get_ref(), &expected, kind)
    }

    fn each_table(
        &self,
        key: &str,
        list: &'d [Spanned<DeValue<'d>>],
        expected: &str,
        kind: &'static KeyTable,
    ) -> Vec<Fields<'r, 'd>> {
        let open = |item: &'d Spanned<DeValue<'d>>| {
            let table = item.get_ref().as_table();
            if table.is_none() {
                self.wrong(key, expected, item);
            }
            table.map(|table| Self::open(self.reading, table, item.span(), kind))
        };
        list.iter().filter_map(open).collect()
    }

    /// Opens a table inside the list `key` of this table.
    pub(super) fn inner(&self, item: &'d DeTable<'d>, span: Range<usize>, kind: &'static KeyTable) -> Self {
        Self::open(self.reading, item, span, kind)
    }
}

fn near(word: &str, key: &str) -> bool {
    nearest(word, [key]).is_some()
}

/// The shorter of the two places, because a table's span may cover all of its lines.
fn heading(table: Range<usize>, key: Range<usize>) -> Range<usize> {
    if table.len() <= key.len() { table } else { key }
}

/// The value of an integer. `None` for other types and for values outside the range of `i64`.
pub(super) fn whole(value: &DeValue<'_>) -> Option<i64> {
    let integer = value.as_integer()?;
    i64::from_str_radix(integer.as_str(), integer.radix()).ok()
}

/// The value of an integer or float. `None` for other types and for values that are not finite.
pub(super) fn number(value: &DeValue<'_>) -> Option<f64> {
    let float = value.as_float().and_then(|float| float.as_str().parse::<f64>().ok());
    float.or_else(|| whole(value).map(|integer| integer as f64)).filter(|number| number.is_finite())
}

/// Describes the found value in words.
pub(super) fn described(value: &DeValue<'_>) -> String {
    match value {
        DeValue::String(text) if text.is_empty() => "an empty string".into(),
        DeValue::String(text) => format!("the string \"{}\"", shown(text)),
        DeValue::Integer(integer) => format!("the number {integer}"),
        DeValue::Float(float) => format!("the number {float}"),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(datetime) => format!("the date {datetime}"),
        DeValue::Array(_) => "a list".into(),
        DeValue::Table(_) => "a table".into(),
    }
}
