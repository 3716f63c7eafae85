//! Shapes of well-known credentials, which are redacted whoever they belong to.
//!
//! A credential begins at the start of a text or after anything that is not an ASCII letter or
//! digit: `task-…` is a word, `KEY_sk-…` is not. An escape in the text (`\nsk-…` in JSON within a
//! text, `%3Dsk-…` in a URL) ends in a letter or digit and may still precede a credential.
//!
//! Matching is linear in the length of the text, whatever its content.

use super::finder::Finder;
use std::ops::Range;
use std::sync::LazyLock;

const MARK: &str = "[REDACTED]";
/// White space allowed between `Bearer` and its token.
const MAX_GAP: usize = 8;

#[derive(Clone, Copy)]
enum Rest {
    /// A minimum of characters of a class, and all that follow.
    Run(fn(u8) -> bool, usize),
    /// Three runs with dots between them.
    JsonWebToken,
    /// White space, then a token. The literal lacks its first letter, which may be of either case.
    Bearer,
}

impl Rest {
    /// How many bytes before the literal the credential begins.
    fn letters_before(self) -> usize {
        match self {
            Self::Bearer => 1,
            Self::Run(..) | Self::JsonWebToken => 0,
        }
    }
}

const SHAPES: [(&str, Rest); 18] = [
    ("sk-", Rest::Run(is_url_safe, 16)),
    ("AKIA", Rest::Run(is_upper_or_digit, 16)),
    ("ASIA", Rest::Run(is_upper_or_digit, 16)),
    ("xoxb-", Rest::Run(is_slack, 10)),
    ("xoxa-", Rest::Run(is_slack, 10)),
    ("xoxp-", Rest::Run(is_slack, 10)),
    ("xoxr-", Rest::Run(is_slack, 10)),
    ("xoxs-", Rest::Run(is_slack, 10)),
    ("ghp_", Rest::Run(is_alphanumeric, 20)),
    ("gho_", Rest::Run(is_alphanumeric, 20)),
    ("ghu_", Rest::Run(is_alphanumeric, 20)),
    ("ghs_", Rest::Run(is_alphanumeric, 20)),
    ("ghr_", Rest::Run(is_alphanumeric, 20)),
    ("tdm_live_", Rest::Run(is_url_safe, 20)),
    ("tdm_test_", Rest::Run(is_url_safe, 20)),
    ("eyJ", Rest::JsonWebToken),
    ("earer", Rest::Bearer),
    ("EARER", Rest::Bearer),
];

/// Whether a credential of this shape may contain something that JSON escapes: the gap after
/// `Bearer`.
pub(super) fn may_be_escaped(shape: usize) -> bool {
    matches!(SHAPES[shape].1, Rest::Bearer)
}

/// What every credential of a known shape contains.
pub(super) fn literals() -> impl Iterator<Item = &'static str> {
    SHAPES.iter().map(|(literal, _)| *literal)
}

pub(super) const COUNT: usize = SHAPES.len();

static FINDER: LazyLock<Finder> = LazyLock::new(|| Finder::new(&literals().collect::<Vec<_>>()));

/// The text with every credential masked; `None` when there is none.
pub(super) fn redact(text: &str) -> Option<String> {
    let mut clean = String::new();
    let mut copied = 0;
    for range in find(text) {
        clean.push_str(&text[copied..range.start]);
        clean.push_str(MARK);
        copied = range.end;
    }
    (copied > 0).then(|| clean + &text[copied..])
}

/// Where the credentials are, in order.
pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    let mut all = Vec::new();
    let mut copied = 0;
    let mut from = 0;
    let mut matcher = Matcher::default();
    while let Some(found) = FINDER.find(text, from) {
        let shape = found.pattern().as_usize();
        let begins = found.start() - SHAPES[shape].1.letters_before().min(found.start());
        // Checked first: it is cheap, and a sequence of words that are no credentials must not be
        // scanned for each of them.
        let credential = (begins >= copied && starts_word(text.as_bytes(), begins))
            .then(|| matcher.credential(text.as_bytes(), shape, found.range()))
            .flatten();
        match credential {
            Some(range) => {
                copied = range.end;
                from = range.end;
                all.push(range);
            }
            None => from = found.start() + 1,
        }
    }
    all
}

/// Where the first credential begins that what follows the text may complete or lengthen.
pub(super) fn unfinished(text: &str) -> Option<usize> {
    let text = text.as_bytes();
    let ends = Ends::of(text);
    let mut letters = (0..text.len()).filter(|at| b"sAxgteBb".contains(&text[*at]));
    letters.find(|at| starts_word(text, *at) && ends.may_continue(text, *at))
}

/// Where the sequences begin that reach the end of a text.
struct Ends {
    of_class: [usize; SHAPES.len()],
    token68: usize,
    /// Of parts of a token and dots.
    dotted: usize,
    /// The last three dots, the last one first.
    dots: [Option<usize>; 3],
}

impl Ends {
    fn of(text: &[u8]) -> Self {
        let start = |class: &dyn Fn(u8) -> bool| {
            let before = text.iter().rposition(|byte| !class(*byte));
            before.map_or(0, |at| at + 1)
        };
        let class = |(_, rest): (&str, Rest)| match rest {
            Rest::Run(class, _) => start(&class),
            Rest::JsonWebToken | Rest::Bearer => text.len(),
        };
        let dotted = start(&|byte| is_url_safe(byte) || byte == b'.');
        let mut found = (dotted..text.len()).rev().filter(|at| text[*at] == b'.');
        Self {
            of_class: SHAPES.map(class),
            token68: start(&is_token68),
            dotted,
            dots: [(); 3].map(|()| found.next()),
        }
    }

    /// Whether a credential that begins here is cut off by the end of the text.
    fn may_continue(&self, text: &[u8], at: usize) -> bool {
        SHAPES.iter().enumerate().any(|(shape, (literal, rest))| {
            let begins = at + rest.letters_before();
            if rest.letters_before() > 0 && !text[at].eq_ignore_ascii_case(&b'b') {
                return false;
            }
            let Some(tail) = text.get(begins..) else {
                return false;
            };
            if tail.len() < literal.len() {
                return literal.as_bytes().starts_with(tail);
            }
            if !tail.starts_with(literal.as_bytes()) {
                return false;
            }
            let after = begins + literal.len();
            match rest {
                Rest::Run(..) => after >= self.of_class[shape],
                Rest::JsonWebToken => self.token_continues(after),
                Rest::Bearer => {
                    let gap = text[after..].iter().take(MAX_GAP);
                    let gap = gap.take_while(|byte| byte.is_ascii_whitespace()).count();
                    let token = after + gap;
                    token == text.len() || (gap > 0 && token >= self.token68)
                }
            }
        })
    }

    fn token_continues(&self, header: usize) -> bool {
        let dots = self.dots.map(|dot| dot.filter(|dot| *dot >= header));
        header >= self.dotted
            && match dots {
                [None, ..] => true,
                [Some(first), None, _] => first - header >= 8,
                [Some(second), Some(first), None] => first - header >= 8 && second - first > 8,
                [_, _, Some(_)] => false,
            }
    }
}

/// Whether a credential of any shape may go on with this character.
pub(super) fn may_hold(sign: char) -> bool {
    u8::try_from(sign).is_ok_and(is_token68)
}

/// Caches the result of a search for the end of a token, so that many beginnings in one sequence of
/// characters do not each scan to its end.
#[derive(Default)]
pub(super) struct Matcher {
    /// End of the last scanned sequence, and where a token that continues there ends.
    token: Option<(usize, Option<usize>)>,
}

impl Matcher {
    /// The credential around a literal, if the text beside the literal makes it one. Does not check
    /// whether it starts a word.
    pub(super) fn credential(
        &mut self,
        text: &[u8],
        shape: usize,
        literal: Range<usize>,
    ) -> Option<Range<usize>> {
        let (start, after) = (literal.start, literal.end);
        match SHAPES[shape].1 {
            Rest::Run(class, min) => run(text, after, class, min).map(|end| start..end),
            Rest::JsonWebToken => self.token_end(text, after).map(|end| start..end),
            Rest::Bearer => {
                let start = start.checked_sub(1)?;
                let gap = text[after..].iter().take(MAX_GAP);
                let gap = gap.take_while(|byte| byte.is_ascii_whitespace()).count();
                let begins = text[start].eq_ignore_ascii_case(&b'b') && gap > 0;
                let end = begins.then(|| run(text, after + gap, is_token68, 16))?;
                end.map(|end| start..end)
            }
        }
    }

    fn token_end(&mut self, text: &[u8], header: usize) -> Option<usize> {
        let (header_end, end) = match self.token {
            Some(cached) if header <= cached.0 => cached,
            _ => {
                let header_end = run(text, header, is_url_safe, 0)?;
                let part = |dot: usize| {
                    let follows = text.get(dot) == Some(&b'.');
                    follows.then(|| run(text, dot + 1, is_url_safe, 8))?
                };
                let parsed = (header_end, part(header_end).and_then(part));
                self.token = Some(parsed);
                parsed
            }
        };
        end.filter(|_| header_end - header >= 8)
    }
}

/// Where the characters of a class that begin at `from` end, if there are enough of them.
fn run(text: &[u8], from: usize, class: fn(u8) -> bool, min: usize) -> Option<usize> {
    let rest = text.get(from..)?;
    let length = rest.iter().position(|byte| !class(*byte));
    let length = length.unwrap_or(rest.len());
    (length >= min).then_some(from + length)
}

fn starts_word(text: &[u8], at: usize) -> bool {
    let before = &text[..at];
    let Some(last) = before.last() else {
        return true;
    };
    if !last.is_ascii_alphanumeric() {
        return true;
    }
    let hex = |from_end: usize| {
        let start = before.len().checked_sub(from_end)?;
        let digits = before[start..].iter().all(u8::is_ascii_hexdigit);
        digits.then(|| &before[..start])
    };
    let ends = |rest: Option<&[u8]>, with: &[&[u8]]| {
        rest.is_some_and(|rest| with.iter().any(|end| rest.ends_with(end)))
    };
    let letter = b"abfnrtv0".contains(last) && ends(before.get(..at - 1), &[b"\\"]);
    letter || ends(hex(2), &[b"%", b"\\x"]) || ends(hex(4), &[b"\\u"])
}

fn is_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

fn is_upper_or_digit(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit()
}

fn is_slack(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'-'
}

fn is_url_safe(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"_-".contains(&byte)
}

fn is_token68(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"._~+/=-".contains(&byte)
}
