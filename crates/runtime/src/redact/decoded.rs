//! Secrets with characters written as percent escapes or as references of HTML. There are too many ways to
//! list: any of the characters, digits of either case, leading zeros, references without a semicolon. Such a
//! text is decoded, and the secrets are looked for in what it means.

use aho_corasick::AhoCorasick;
use std::ops::Range;

/// References by name. Those in capitals are HTML too.
const NAMED: [(&str, char); 9] = [
    ("quot", '"'),
    ("QUOT", '"'),
    ("amp", '&'),
    ("AMP", '&'),
    ("apos", '\''),
    ("lt", '<'),
    ("LT", '<'),
    ("gt", '>'),
    ("GT", '>'),
];

/// A text as it is read, and where each of its bytes is written. Form data writes a space as `+`, so both are
/// taken for a space.
struct Decoded {
    bytes: Vec<u8>,
    places: Vec<Range<usize>>,
}

/// Reads an escape at the beginning of a text: its length and what it means.
type ReadEscape = fn(&str) -> Option<(usize, Meaning)>;

/// Whether a text can be the beginning of an escape that goes on.
type MayGoOn = fn(&str) -> bool;

enum Meaning {
    Byte(u8),
    Character(char),
}

/// The sign that begins an escape, and how it is read.
const ENCODINGS: [(char, ReadEscape, MayGoOn); 2] = [
    ('%', percent, |text| {
        text.len() < 3 && text[1..].bytes().all(|b| b.is_ascii_hexdigit())
    }),
    ('&', reference, |text| match text.strip_prefix("&#") {
        Some(number) => {
            let digits = number.strip_prefix(['x', 'X']).unwrap_or(number);
            digits.bytes().all(|b| b.is_ascii_hexdigit())
        }
        None => NAMED.iter().any(|(name, _)| name.starts_with(&text[1..])),
    }),
];

fn percent(text: &str) -> Option<(usize, Meaning)> {
    let digits = text.get(1..3)?;
    let hex = digits.bytes().all(|b| b.is_ascii_hexdigit());
    let byte = hex.then(|| u8::from_str_radix(digits, 16).ok())??;
    Some((3, Meaning::Byte(byte)))
}

fn reference(text: &str) -> Option<(usize, Meaning)> {
    let with_end = |length: usize| length + usize::from(text[length..].starts_with(';'));
    if let Some(number) = text.strip_prefix("&#") {
        let (prefix, radix) = match number.as_bytes().first()? {
            b'x' | b'X' => (3, 16),
            _ => (2, 10),
        };
        let digits = &text[prefix..];
        let end = digits.find(|c: char| !c.is_digit(radix));
        let digits = &digits[..end.unwrap_or(digits.len())];
        let code = u32::from_str_radix(digits, radix).ok()?;
        let length = with_end(prefix + digits.len());
        return Some((length, Meaning::Character(char::from_u32(code)?)));
    }
    let named = NAMED.iter().find(|(name, _)| text[1..].starts_with(name));
    let (name, meaning) = named?;
    Some((with_end(1 + name.len()), Meaning::Character(*meaning)))
}

impl Decoded {
    fn of(text: &str, sign: char, read: ReadEscape) -> Self {
        let mut decoded = Self {
            bytes: Vec::with_capacity(text.len()),
            places: Vec::with_capacity(text.len()),
        };
        let mut at = 0;
        while at < text.len() {
            let escape = text[at..].starts_with(sign).then(|| read(&text[at..]));
            match escape.flatten() {
                Some((length, Meaning::Byte(byte))) => {
                    decoded.push(&[byte], at..at + length);
                    at += length;
                }
                Some((length, Meaning::Character(c))) => {
                    let mut buffer = [0; 4];
                    decoded.push(c.encode_utf8(&mut buffer).as_bytes(), at..at + length);
                    at += length;
                }
                None => {
                    let next = text.as_bytes()[at + 1..]
                        .iter()
                        .position(|byte| char::from(*byte) == sign);
                    let next = next.map_or(text.len(), |skip| at + 1 + skip);
                    for plain in at..next {
                        decoded.push(&text.as_bytes()[plain..=plain], plain..plain + 1);
                    }
                    at = next;
                }
            }
        }
        decoded
    }

    fn push(&mut self, bytes: &[u8], place: Range<usize>) {
        for byte in bytes {
            self.bytes.push(if *byte == b'+' { b' ' } else { *byte });
            self.places.push(place.clone());
        }
    }
}

/// Finds secrets in texts with escapes.
#[derive(Clone)]
pub(super) struct EscapedSecrets {
    /// The secrets, with a space for each `+`.
    spellings: Vec<String>,
    finder: AhoCorasick,
    longest: usize,
}

impl EscapedSecrets {
    pub(super) fn new<'a>(secrets: impl Iterator<Item = &'a str>) -> Self {
        let spellings: Vec<String> = secrets.map(|secret| secret.replace('+', " ")).collect();
        Self {
            finder: AhoCorasick::new(&spellings).expect("secrets are few and short"),
            longest: spellings.iter().map(String::len).max().unwrap_or(0),
            spellings,
        }
    }

    /// Where a secret is written with escapes, and which one.
    pub(super) fn find(&self, text: &str) -> Vec<(Range<usize>, usize)> {
        let mut found = Vec::new();
        for (sign, read, _) in ENCODINGS {
            // Texts with a sign that begins no escape are common: addresses, for example.
            if !text
                .match_indices(sign)
                .any(|(at, _)| read(&text[at..]).is_some())
            {
                continue;
            }
            let decoded = Decoded::of(text, sign, read);
            for secret in self.finder.find_overlapping_iter(&decoded.bytes) {
                let first = &decoded.places[secret.start()];
                let last = &decoded.places[secret.end() - 1];
                found.push((first.start..last.end, secret.pattern().as_usize()));
            }
        }
        found
    }

    /// Where the longest beginning of a secret with escapes begins that the text ends with.
    pub(super) fn unfinished(&self, text: &str) -> Option<usize> {
        let starts = ENCODINGS.iter().filter_map(|(sign, read, may_go_on)| {
            let last = text.rfind(*sign)?;
            let begun = may_go_on(&text[last..]).then_some(last);
            let whole = &text[..begun.unwrap_or(text.len())];
            let decoded = Decoded::of(whole, *sign, *read);
            let from = decoded.bytes.len().saturating_sub(self.longest);
            let mut starts = from..decoded.bytes.len();
            let start = starts.find(|start| self.goes_on(&decoded.bytes[*start..]));
            start.map(|start| decoded.places[start].start).or(begun)
        });
        starts.min()
    }

    /// Whether a spelling begins like this and goes on.
    fn goes_on(&self, text: &[u8]) -> bool {
        let mut spellings = self.spellings.iter().map(String::as_bytes);
        spellings.any(|spelling| spelling.len() > text.len() && spelling.starts_with(text))
    }
}
