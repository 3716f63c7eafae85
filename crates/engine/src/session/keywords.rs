//! Keywords for yes and no, and whether a text contains them. Keywords match whole words, never parts.

use super::Language;
use super::language::SIGNS;
use super::normalize::{normalized, tokens};
use crate::agent::ConfirmDefaults;
use crate::flow::effect::ConfirmEffect;

/// A keyword is a word or a short phrase.
const MAX_KEYWORD_CHARS: usize = 200;

/// Words that mean the same.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeywordList(Vec<Keyword>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Keyword {
    whole: String,
    tokens: Vec<String>,
}

/// The keywords of one confirmation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Keywords {
    pub positive: KeywordList,
    pub negative: KeywordList,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeywordMatch {
    Positive,
    Negative,
    /// Both kinds of keywords, or none.
    Unrecognized,
}

/// A text prepared for looking up several lists.
struct Reply {
    whole: String,
    tokens: Vec<String>,
}

impl Reply {
    fn new(text: &str) -> Self {
        let whole = normalized(text);
        let tokens = tokens(&whole);
        Self { whole, tokens }
    }
}

impl KeywordList {
    pub fn new<'a>(words: impl IntoIterator<Item = &'a str>) -> Self {
        let words = words.into_iter().map(|word| {
            let short: String = word.chars().take(MAX_KEYWORD_CHARS).collect();
            let Reply { whole, tokens } = Reply::new(&short);
            Keyword { whole, tokens }
        });
        // A keyword of punctuation alone would match every blank text.
        Self(words.filter(|word| !word.tokens.is_empty()).collect())
    }

    /// Whether the whole text is one of the keywords.
    pub fn equals(&self, text: &str) -> bool {
        self.is(&Reply::new(text))
    }

    /// Whether one of the keywords occurs in the text.
    pub fn occurs_in(&self, text: &str) -> bool {
        self.is_within(&Reply::new(text))
    }

    fn is(&self, reply: &Reply) -> bool {
        self.0.iter().any(|word| word.whole == reply.whole)
    }

    fn is_within(&self, reply: &Reply) -> bool {
        self.0.iter().any(|word| {
            let mut places = reply.tokens.windows(word.tokens.len());
            places.any(|place| place == word.tokens)
        })
    }
}

impl Keywords {
    /// Keywords of the effect, else of the agent's defaults, else of the language, for each list.
    pub fn of(
        effect: Option<&ConfirmEffect>,
        defaults: &ConfirmDefaults,
        language: Language,
    ) -> Self {
        let positive = effect.and_then(|effect| effect.positive_keywords.as_deref());
        let positive = positive.or(defaults.positive_keywords.as_deref());
        let negative = effect.and_then(|effect| effect.negative_keywords.as_deref());
        let negative = negative.or(defaults.negative_keywords.as_deref());
        let language = Self::of_language(language);
        Self {
            positive: positive.map_or(language.positive, |words| given(words, SIGNS.positive)),
            negative: negative.map_or(language.negative, |words| given(words, SIGNS.negative)),
        }
    }

    pub fn of_language(language: Language) -> Self {
        let lists = language.word_lists().into_iter().map(Language::yes_no);
        let lists: Vec<_> = lists.chain([SIGNS]).collect();
        let positive = lists.iter().flat_map(|list| list.positive);
        let negative = lists.iter().flat_map(|list| list.negative);
        Self {
            positive: KeywordList::new(positive.copied()),
            negative: KeywordList::new(negative.copied()),
        }
    }

    pub fn read(&self, text: &str) -> KeywordMatch {
        let reply = Reply::new(text);
        let whole = (self.positive.is(&reply), self.negative.is(&reply));
        let within = || {
            (
                self.positive.is_within(&reply),
                self.negative.is_within(&reply),
            )
        };
        let found = if whole == (false, false) {
            within()
        } else {
            whole
        };
        match found {
            (true, false) => KeywordMatch::Positive,
            (false, true) => KeywordMatch::Negative,
            (true, true) | (false, false) => KeywordMatch::Unrecognized,
        }
    }
}

/// Keywords of an author. Signs count besides them.
fn given(words: &[String], signs: &'static [&'static str]) -> KeywordList {
    let words = words.iter().map(String::as_str);
    KeywordList::new(words.chain(signs.iter().copied()))
}
