//! How much of a run's values a page shows. Values may be many megabytes: a page shows the beginning of each
//! as long as it has room, and says where the rest is.

use serde::Serialize;
use serde_json::{Value, json};
use std::io::{self, Write};

/// Values of one page.
const PAGE_BYTES: usize = 1024 * 1024;
/// One value.
const VALUE_BYTES: usize = 128 * 1024;
/// A title or a name.
const LINE_BYTES: usize = 512;

const CUT: &str = "\n… The rest is not shown here. The API returns the whole value.";
const NOT_SHOWN: &str = "Not shown: this page is full. The API returns the value.";

/// The room that is left on a page.
pub(super) struct ShownBytes {
    left: usize,
}

impl ShownBytes {
    pub(super) fn page() -> Self {
        Self { left: PAGE_BYTES }
    }

    /// Pretty-printed JSON.
    pub(super) fn pretty(&mut self, value: &impl Serialize) -> String {
        let mut out = Prefix::new(self.left.min(VALUE_BYTES));
        // An error means that the value is longer.
        let is_whole = serde_json::to_writer_pretty(&mut out, value).is_ok();
        let text = String::from_utf8_lossy(&out.bytes);
        // A character may have been cut in two.
        let text = text.trim_end_matches(char::REPLACEMENT_CHARACTER);
        self.take(text, is_whole)
    }

    pub(super) fn text(&mut self, text: &str) -> String {
        let shown = prefix(text, self.left.min(VALUE_BYTES));
        self.take(shown, shown.len() == text.len())
    }

    /// A value that is either shown as a whole or replaced by a note.
    pub(super) fn value(&mut self, value: &Value) -> Value {
        let mut out = Prefix::new(self.left.min(VALUE_BYTES));
        match serde_json::to_writer(&mut out, value) {
            Ok(()) => {
                self.left -= out.bytes.len();
                value.clone()
            }
            Err(_) => json!("Too long to be shown here. The API returns the whole value."),
        }
    }

    fn take(&mut self, shown: &str, is_whole: bool) -> String {
        self.left -= shown.len();
        match (is_whole, shown.is_empty()) {
            (true, _) => shown.to_owned(),
            (false, false) => format!("{shown}{CUT}"),
            (false, true) => NOT_SHOWN.to_owned(),
        }
    }
}

/// A text that is shown on one line.
pub(super) fn line(text: &str) -> String {
    let shown = prefix(text, LINE_BYTES);
    match shown.len() == text.len() {
        true => text.to_owned(),
        false => format!("{shown}…"),
    }
}

fn prefix(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// Keeps the first bytes that are written and refuses the rest.
struct Prefix {
    bytes: Vec<u8>,
    max: usize,
}

impl Prefix {
    fn new(max: usize) -> Self {
        Self {
            bytes: Vec::new(),
            max,
        }
    }
}

impl Write for Prefix {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let room = self.max - self.bytes.len();
        if room == 0 && !bytes.is_empty() {
            return Err(io::ErrorKind::WriteZero.into());
        }
        let taken = &bytes[..bytes.len().min(room)];
        self.bytes.extend_from_slice(taken);
        Ok(taken.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_fit_are_shown_as_a_whole() {
        let mut shown = ShownBytes::page();
        assert_eq!(
            shown.pretty(&json!({"a": [1]})),
            "{\n  \"a\": [\n    1\n  ]\n}"
        );
        assert_eq!(shown.text("plain"), "plain");
        assert_eq!(shown.value(&json!({"a": 1})), json!({"a": 1}));
        assert_eq!(line("title"), "title");
    }

    #[test]
    fn beginning_of_a_long_value_is_shown() {
        let mut shown = ShownBytes::page();
        // Three bytes each, so that the limit is inside a character.
        let long = "€".repeat(VALUE_BYTES);
        for text in [shown.pretty(&long), shown.text(&long)] {
            assert!(
                text.contains("€€€") && text.ends_with(CUT),
                "{}",
                text.len()
            );
            assert!(text.len() <= VALUE_BYTES + CUT.len());
        }
        let note = shown.value(&json!(long));
        assert!(
            note.as_str()
                .is_some_and(|note| note.starts_with("Too long"))
        );
        assert!(line(&long).len() <= LINE_BYTES + "…".len());
    }

    #[test]
    fn page_that_is_full_shows_no_more_values() {
        let mut shown = ShownBytes::page();
        let long = "x".repeat(VALUE_BYTES);
        let texts: Vec<String> = (0..20).map(|_| shown.text(&long)).collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        assert!(bytes < PAGE_BYTES + 20 * NOT_SHOWN.len(), "{bytes}");
        assert_eq!(texts[19], NOT_SHOWN);
        assert_eq!(shown.pretty(&json!({})), NOT_SHOWN);
        assert_eq!(shown.text(""), "", "nothing needs no room");
    }
}
