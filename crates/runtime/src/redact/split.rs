//! Secrets in pieces: texts of one value that form a secret when joined.
//!
//! Two ways of joining are covered. In document order, however short the pieces. And in any order,
//! because object members have none; these pieces must be long enough not to occur by chance.
//! Member names are not texts.

use aho_corasick::{AhoCorasick, MatchKind};
use serde_json::Value;
use std::ops::Range;
use tandem_record::{UserData, UserDataRefs};

/// Shorter pieces occur in every document.
const MIN_PIECE: usize = 4;

/// The beginning of a secret. Every text with the secret or its first piece contains it.
pub(super) fn head(secret: &str) -> &str {
    let end = secret.char_indices().nth(MIN_PIECE);
    end.map_or(secret, |(end, _)| &secret[..end])
}

fn tail(secret: &str) -> &str {
    let start = secret.char_indices().nth_back(MIN_PIECE - 1);
    start.map_or(secret, |(start, _)| &secret[start..])
}

/// Masks the pieces of a secret in texts. Returns whether there were any.
pub(super) fn mask(texts: &mut [&mut String], secret: &str, mark: &str) -> bool {
    let mut found = mask_in_order(texts, secret, mark);
    // Each round masks one way of cutting the secret wherever it occurs, so the number of possible
    // cuts is enough rounds.
    for _ in 0..secret.len() {
        let Some(pieces) = in_any_order(texts, secret) else {
            break;
        };
        let pieces: Vec<String> = pieces
            .into_iter()
            .map(|(place, range)| texts[place][range].to_owned())
            .collect();
        mask_everywhere(texts, &pieces, mark);
        found = true;
    }
    found
}

/// Every text in the data, in document order. Keys are not texts.
pub(super) fn texts_of(places: UserDataRefs<'_>) -> Vec<&mut String> {
    let mut texts = Vec::new();
    for place in places {
        match place {
            UserData::Text(text) => texts.push(text),
            UserData::Value(value) => texts_in(value, &mut texts),
            UserData::Object(object) => {
                object.values_mut().for_each(|v| texts_in(v, &mut texts));
            }
        }
    }
    texts
}

fn texts_in<'a>(value: &'a mut Value, to: &mut Vec<&'a mut String>) {
    match value {
        Value::String(text) => to.push(text),
        Value::Array(items) => items.iter_mut().for_each(|v| texts_in(v, to)),
        Value::Object(members) => members.values_mut().for_each(|v| texts_in(v, to)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Both ends of each secret. Texts without them cannot form it.
#[derive(Clone)]
pub(super) struct Ends {
    /// Checks whether any of `each` is present at all. Nearly always none is, and this check is
    /// faster.
    any: AhoCorasick,
    /// Beginning and end of each secret, alternating.
    each: AhoCorasick,
    secrets: usize,
}

impl Ends {
    /// `None` when there is no secret to look for.
    pub(super) fn new(secrets: &[String]) -> Option<Self> {
        let ends: Vec<&str> = secrets.iter().flat_map(|s| [head(s), tail(s)]).collect();
        if ends.is_empty() {
            return None;
        }
        // An existence check can use SIMD.
        let builder = &mut AhoCorasick::builder();
        let any = builder.match_kind(MatchKind::LeftmostFirst).build(&ends);
        Some(Self {
            any: any.ok()?,
            each: AhoCorasick::new(&ends).ok()?,
            secrets: secrets.len(),
        })
    }

    /// Whether both ends of one secret are present.
    pub(super) fn both_in(&self, text: &str) -> bool {
        if !self.any.is_match(text) {
            return false;
        }
        let mut found_ends = vec![[false; 2]; self.secrets];
        for found in self.each.find_overlapping_iter(text) {
            let end = found.pattern().as_usize();
            found_ends[end / 2][end % 2] = true;
            if found_ends[end / 2] == [true; 2] {
                return true;
            }
        }
        false
    }
}

/// Parts of texts by index of the text, without duplicates.
type Pieces = Vec<(usize, Range<usize>)>;

/// Masks the secret wherever it continues from one text into the next.
fn mask_in_order(texts: &mut [&mut String], secret: &str, mark: &str) -> bool {
    let whole: String = texts.iter().map(|text| text.as_str()).collect();
    let mut found = whole.match_indices(secret).peekable();
    let mut any = false;
    let mut begin = 0;
    for text in texts {
        let end = begin + text.len();
        let mut clean = String::new();
        let mut copied = 0;
        while let Some((at, _)) = found.peek() {
            let (first, last) = (*at, at + secret.len());
            if first >= end {
                break;
            }
            let within = first.max(begin)..last.min(end);
            if !within.is_empty() && within.len() < secret.len() {
                clean.push_str(&text[copied..within.start - begin]);
                clean.push_str(mark);
                copied = within.end - begin;
            }
            if last > end {
                break;
            }
            found.next();
        }
        begin = end;
        if copied > 0 {
            clean.push_str(&text[copied..]);
            **text = clean;
            any = true;
        }
    }
    any
}

/// Masks the pieces of one cut of a secret: the first where a text ends with it, the last where a
/// text begins with it, the others where they are the whole text.
fn mask_everywhere(texts: &mut [&mut String], pieces: &[String], mark: &str) {
    let [first, middle @ .., last] = pieces else {
        return;
    };
    for text in texts {
        if middle.contains(text) {
            mark.clone_into(text);
            continue;
        }
        if text.ends_with(first.as_str()) {
            let start = text.len() - first.len();
            text.replace_range(start.., mark);
        }
        if text.starts_with(last.as_str()) {
            text.replace_range(..last.len(), mark);
        }
    }
}

/// A text that ends with the secret's beginning, texts that are its middle pieces, and one that
/// begins with its end.
fn in_any_order(texts: &[&mut String], secret: &str) -> Option<Pieces> {
    let cuts: Vec<usize> = secret.char_indices().map(|(at, _)| at).collect();
    if cuts.len() < 2 * MIN_PIECE {
        return None;
    }
    let (first, last) = (cuts[MIN_PIECE], cuts[cuts.len() - MIN_PIECE]);
    // For each position: the pieces that form the secret up to it.
    let mut reachable: Vec<Option<Pieces>> = vec![None; secret.len()];
    for cut in cuts
        .iter()
        .copied()
        .filter(|cut| (first..=last).contains(cut))
    {
        let head = &secret[..cut];
        reachable[cut] = texts
            .iter()
            .position(|text| text.ends_with(head))
            .map(|place| {
                let length = texts[place].len();
                vec![(place, length - head.len()..length)]
            });
    }
    for cut in cuts {
        let Some(pieces) = reachable[cut].clone() else {
            continue;
        };
        let rest = &secret[cut..];
        let free = |place: usize| pieces.iter().all(|(used, _)| *used != place);
        for (place, text) in texts.iter().enumerate().filter(|(place, _)| free(*place)) {
            let longer = |length: usize| {
                let mut longer = pieces.clone();
                longer.push((place, 0..length));
                Some(longer)
            };
            if text.starts_with(rest) && cut <= last {
                return longer(rest.len());
            }
            let next = cut + text.len();
            let long = text.chars().nth(MIN_PIECE - 1).is_some();
            if long && next <= last && rest.starts_with(text.as_str()) && reachable[next].is_none()
            {
                reachable[next] = longer(text.len());
            }
        }
    }
    None
}
