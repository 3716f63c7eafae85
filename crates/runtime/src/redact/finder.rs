//! Finds the first of several literals: with SIMD where the processor allows it, else with an
//! automaton.

use aho_corasick::packed::{Config, MatchKind as PackedKind, Searcher};
use aho_corasick::{AhoCorasick, Match, MatchKind, Span};

#[derive(Clone)]
pub(super) struct Finder {
    /// `None` where the processor or the literals do not allow it.
    packed: Option<Searcher>,
    automaton: AhoCorasick,
}

impl Finder {
    /// If several literals match at one position, the first in the list is found.
    pub(super) fn new(literals: &[&str]) -> Self {
        let mut packed = Config::new()
            .match_kind(PackedKind::LeftmostFirst)
            .builder();
        packed.extend(literals);
        let builder = &mut AhoCorasick::builder();
        let automaton = builder
            .match_kind(MatchKind::LeftmostFirst)
            .build(literals)
            .expect("the literals are few and short");
        Self {
            packed: packed.build(),
            automaton,
        }
    }

    /// The first literal at or after `from`.
    pub(super) fn find(&self, text: &str, from: usize) -> Option<Match> {
        let span = Span::from(from..text.len());
        match &self.packed {
            Some(packed) => packed.find_in(text, span),
            None => {
                let input = aho_corasick::Input::new(text).span(span);
                self.automaton.find(input)
            }
        }
    }
}
