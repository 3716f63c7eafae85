//! Removes the prompt from a provider's refusal text: such texts often repeat what they refuse, and
//! every reader of the run's events sees them.

use std::collections::HashSet;
use std::ops::Range;
use tandem_record::ModelMessage;

const MASK: &str = "[REDACTED:prompt]";
/// Number of consecutive words that count as a quotation.
const QUOTED_WORDS: usize = 3;
/// A single word of this length is unlikely to be in both texts by chance.
const LONG_WORD_CHARS: usize = 16;
const MAX_CHARS: usize = 500;

pub(crate) fn redact_prompt(text: &str, prompt: &[ModelMessage]) -> String {
    let words: Vec<(Range<usize>, String)> = words(text).collect();
    let mut quoted = vec![false; words.len()];
    let (phrases, long_words) = prompt_phrases(prompt);
    for size in 1..=QUOTED_WORDS {
        for (at, window) in words.windows(size).enumerate() {
            let phrase: Vec<&str> = window.iter().map(|(_, word)| word.as_str()).collect();
            if phrases.contains(&phrase.join(" ")) {
                quoted[at..at + size].fill(true);
            }
        }
    }
    let long = words.iter().zip(&mut quoted);
    long.for_each(|((_, word), quoted)| *quoted |= long_words.contains(word));

    let mut shown = String::new();
    let mut copied = 0;
    for (at, (place, _)) in words.iter().enumerate() {
        if !quoted[at] {
            continue;
        }
        if at == 0 || !quoted[at - 1] {
            shown.push_str(&text[copied..place.start]);
            shown.push_str(MASK);
        }
        copied = place.end;
    }
    shown.push_str(&text[copied..]);
    match shown.char_indices().nth(MAX_CHARS) {
        Some((cut, _)) => format!("{}…", &shown[..cut]),
        None => shown,
    }
}

/// Phrases of the prompt that count as quoted, and its long words. A message of fewer words counts
/// as a whole.
fn prompt_phrases(prompt: &[ModelMessage]) -> (HashSet<String>, HashSet<String>) {
    let (mut phrases, mut long_words) = (HashSet::new(), HashSet::new());
    for message in prompt {
        let words: Vec<String> = words(&message.content).map(|(_, word)| word).collect();
        let size = QUOTED_WORDS.min(words.len()).max(1);
        phrases.extend(words.windows(size).map(|w| w.join(" ")));
        let long = words.into_iter();
        long_words.extend(long.filter(|w| w.chars().count() >= LONG_WORD_CHARS));
    }
    (phrases, long_words)
}

/// Words in lower case, without surrounding punctuation, and their positions.
fn words(text: &str) -> impl Iterator<Item = (Range<usize>, String)> {
    let mut rest = 0;
    std::iter::from_fn(move || {
        let start = rest + text[rest..].find(char::is_alphanumeric)?;
        let length = text[start..].find(char::is_whitespace);
        let end = length.map_or(text.len(), |length| start + length);
        rest = end;
        let word = text[start..end].trim_end_matches(|c: char| !c.is_alphanumeric());
        Some((start..start + word.len(), word.to_lowercase()))
    })
}
