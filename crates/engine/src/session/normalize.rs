//! Texts of people in a form in which they can be compared.
//!
//! NFKC, lower case, no diacritics, no punctuation around, no variation selectors, single spaces.
//! Only the first characters of a text are looked at.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// An answer is short. What comes later in a text is not looked at.
const MAX_CHARS: usize = 2_000;

/// A text ready for comparison.
pub(super) fn normalized(text: &str) -> String {
    let folded = folded(text);
    let kept = folded.trim_matches(|c: char| !is_word(c) && !is_sign(c));
    kept.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The words of a normalized text. A sign such as 👍 is a word of its own. Han and kana are written
/// without spaces: a run of them is one word, because a keyword inside it may mean something else
/// (`好` in `你好`).
pub(super) fn tokens(normalized: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut before = CharClass::Separator;
    for c in normalized.chars() {
        let class = CharClass::of(c);
        match (class, tokens.last_mut()) {
            (CharClass::Separator, _) => {}
            (CharClass::Letter | CharClass::Unspaced, Some(word)) if class == before => {
                word.push(c);
            }
            (CharClass::Letter | CharClass::Unspaced | CharClass::Sign, _) => {
                tokens.push(c.to_string());
            }
        }
        before = class;
    }
    tokens
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CharClass {
    Letter,
    Unspaced,
    Sign,
    Separator,
}

impl CharClass {
    fn of(c: char) -> Self {
        match c {
            _ if is_sign(c) => Self::Sign,
            _ if is_unspaced(c) => Self::Unspaced,
            _ if is_word(c) => Self::Letter,
            _ => Self::Separator,
        }
    }
}

/// Case, width and accents are removed. Marks that carry a vowel (Devanagari, for example) stay.
fn folded(text: &str) -> String {
    let plain = text.chars().take(MAX_CHARS).nfkc();
    let lower = plain.flat_map(char::to_lowercase);
    let open = lower
        .nfd()
        .filter(|c| !is_diacritic(*c) && !is_invisible(*c));
    // Composed again, so that scripts whose letters are composed (Hangul) stay whole.
    let composed = open.nfc();
    composed.map(|c| if c == 'đ' { 'd' } else { c }).collect()
}

fn is_diacritic(c: char) -> bool {
    let accent =
        matches!(c, '\u{300}'..='\u{36f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}');
    accent && is_combining_mark(c)
}

/// Variation selectors, skin tones, joiners.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{fe00}'..='\u{fe0f}' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}'
        | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0100}'..='\u{e01ef}')
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || is_combining_mark(c)
}

/// A pictograph. It is not punctuation: it can be the whole answer.
fn is_sign(c: char) -> bool {
    matches!(c, '\u{1f000}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}' | '\u{2600}'..='\u{27bf}')
}

/// Scripts written without spaces: Han and kana.
fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3ffff}')
}
