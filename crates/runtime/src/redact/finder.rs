//! Finds the first of several literals: many bytes at a time where the processor can, else by an
//! automaton. That takes few literals; a host with many secrets has the automaton, which looks at every
//! byte once.

use aho_corasick::packed::{Config, MatchKind as PackedKind, Searcher};
use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind, Span};

/// The fastest automaton takes about 2 KiB for each of them.
const MAX_DFA_LITERALS: usize = 1024;

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
            .kind((literals.len() <= MAX_DFA_LITERALS).then_some(AhoCorasickKind::DFA))
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
