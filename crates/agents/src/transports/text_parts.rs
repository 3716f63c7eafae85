//! Splits a text into parts that a network takes. The same text always gives the same parts.

/// The longest text of one message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextLimit {
    Utf16Units(usize),
    Chars(usize),
}

impl TextLimit {
    fn units(self) -> usize {
        match self {
            Self::Utf16Units(units) | Self::Chars(units) => units,
        }
    }

    fn size_of(self, c: char) -> usize {
        match self {
            Self::Utf16Units(_) => c.len_utf16(),
            Self::Chars(_) => 1,
        }
    }
}

/// Cuts after a line if there is one in the second half of a part, else after a word, else anywhere between
/// characters. Parts without a visible character are left out: networks refuse them.
pub(super) fn split(text: &str, limit: TextLimit) -> Vec<String> {
    let mut parts = Vec::new();
    let mut rest = text;
    loop {
        let end = longest_prefix(rest, limit);
        if end == rest.len() {
            parts.push(rest);
            break;
        }
        let (head, half) = (&rest[..end], end / 2);
        let after = |found: Option<usize>| found.map(|at| at + 1).filter(|at| *at > half);
        let cut = after(head.rfind('\n'))
            .or_else(|| after(head.rfind(' ')))
            .unwrap_or(end);
        parts.push(&rest[..cut]);
        rest = &rest[cut..];
    }
    parts.retain(|part| !part.trim().is_empty());
    if parts.is_empty() {
        parts.push(text);
    }
    parts.into_iter().map(str::to_owned).collect()
}

/// How many bytes of the text fit.
fn longest_prefix(text: &str, limit: TextLimit) -> usize {
    let mut room = limit.units();
    for (at, c) in text.char_indices() {
        let size = limit.size_of(c);
        // A part is never empty, or splitting would not end.
        if size > room && at > 0 {
            return at;
        }
        room = room.saturating_sub(size);
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(text: &str, units: usize) -> Vec<String> {
        split(text, TextLimit::Utf16Units(units))
    }

    #[test]
    fn short_texts_are_one_part() {
        assert_eq!(parts("hello", 5), ["hello"]);
        assert_eq!(parts("", 5), [""]);
    }

    #[test]
    fn cuts_follow_lines_then_words_then_characters() {
        assert_eq!(parts("abc\nd ef", 6), ["abc\n", "d ef"].map(str::to_owned));
        assert_eq!(parts("one two six", 8), ["one two ", "six"]);
        assert_eq!(parts("abcdefgh", 3), ["abc", "def", "gh"]);
        assert_eq!(parts("ab\n\n\n\ncd", 3), ["ab\n", "cd"], "no blank message");
    }

    #[test]
    fn a_character_of_two_units_is_never_cut() {
        assert_eq!(parts("a😀b😀", 2), ["a", "😀", "b", "😀"]);
        assert_eq!(split("a😀b", TextLimit::Chars(2)), ["a😀", "b"]);
        assert_eq!(parts("😀", 1), ["😀"]);
    }

    #[test]
    fn nothing_visible_is_lost() {
        let text: String = (0..5_000).map(|n| format!("word{n} ")).collect();
        let split = parts(&text, 4096);
        assert!(split.iter().all(|part| part.encode_utf16().count() <= 4096));
        assert_eq!(split.concat(), text);
    }
}
