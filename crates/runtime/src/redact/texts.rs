//! Serializes a record and collects its texts in one pass. The strings are collected before JSON
//! escapes them.

use serde::Serialize;
use serde_json::ser::{CharEscape, Formatter, Serializer};
use std::io::{Result, Write};

/// The texts of a serialized record.
#[derive(Default)]
pub(crate) struct Texts {
    /// All string values joined, so that a secret cut into pieces is whole again.
    pub(super) values: String,
    /// Keys, and numbers if requested, one per line.
    pub(super) names: String,
    pub(super) with_numbers: bool,
    /// No configured secret can be escaped or cut by JSON: searching the JSON text is enough.
    pub(super) search_json_only: bool,
    pub(super) in_key: bool,
}

impl Texts {
    /// The record as JSON. The collected texts are those of this record alone.
    pub(crate) fn serialize(&mut self, record: &impl Serialize) -> String {
        self.values.clear();
        self.names.clear();
        self.in_key = false;
        if self.search_json_only {
            return serde_json::to_string(record).expect("records are plain data with text keys");
        }
        let mut json = Vec::with_capacity(256);
        let mut serializer = Serializer::with_formatter(&mut json, TextCollector(self));
        record
            .serialize(&mut serializer)
            .expect("records are plain data with text keys");
        String::from_utf8(json).expect("JSON is text")
    }

    fn number(&mut self, number: impl ToString) {
        if self.with_numbers {
            self.names.push_str(&number.to_string());
            self.names.push('\n');
        }
    }
}

struct TextCollector<'a>(&'a mut Texts);

impl TextCollector<'_> {
    fn text(&mut self) -> &mut String {
        match self.0.in_key {
            true => &mut self.0.names,
            false => &mut self.0.values,
        }
    }
}

impl Formatter for TextCollector<'_> {
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> Result<()> {
        self.0.in_key = true;
        match first {
            true => Ok(()),
            false => writer.write_all(b","),
        }
    }

    fn end_object_key<W: ?Sized + Write>(&mut self, _: &mut W) -> Result<()> {
        self.0.in_key = false;
        self.0.names.push('\n');
        Ok(())
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> Result<()> {
        self.text().push_str(fragment);
        writer.write_all(fragment.as_bytes())
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> Result<()> {
        let (sign, written) = match escape {
            CharEscape::Quote => ('"', b"\\\""),
            CharEscape::ReverseSolidus => ('\\', b"\\\\"),
            CharEscape::Solidus => ('/', b"\\/"),
            CharEscape::Backspace => ('\u{8}', b"\\b"),
            CharEscape::FormFeed => ('\u{c}', b"\\f"),
            CharEscape::LineFeed => ('\n', b"\\n"),
            CharEscape::CarriageReturn => ('\r', b"\\r"),
            CharEscape::Tab => ('\t', b"\\t"),
            CharEscape::AsciiControl(byte) => {
                self.text().push(char::from(byte));
                return write!(writer, "\\u{byte:04x}");
            }
        };
        self.text().push(sign);
        writer.write_all(written)
    }

    fn write_u64<W: ?Sized + Write>(&mut self, writer: &mut W, number: u64) -> Result<()> {
        self.0.number(number);
        serde_json::ser::CompactFormatter.write_u64(writer, number)
    }

    fn write_i64<W: ?Sized + Write>(&mut self, writer: &mut W, number: i64) -> Result<()> {
        self.0.number(number);
        serde_json::ser::CompactFormatter.write_i64(writer, number)
    }

    fn write_f64<W: ?Sized + Write>(&mut self, writer: &mut W, number: f64) -> Result<()> {
        // The JSON form, which differs from `Display`.
        if self.0.with_numbers {
            self.0.number(serde_json::Value::from(number));
        }
        serde_json::ser::CompactFormatter.write_f64(writer, number)
    }
}
