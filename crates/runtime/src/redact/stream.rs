//! Text that arrives in pieces and is handed on at once. What may be the beginning of a secret is held back
//! until more arrives, so that no reader can put a secret together from the pieces.

use super::{MARK, MAX_ROUNDS, Redactor, shapes};

/// Longest text that is held back. What looks like one credential is masked there, however long it is.
const MAX_HELD: usize = 4096;
/// Bytes before a text that decide whether a credential begins with it; an escape has six.
const CONTEXT: usize = 16;
/// Stands for what came before the context: no credential begins right after a letter.
const EARLIER: &str = "Z";

/// One stream of text.
pub(crate) struct StreamRedactor<'a> {
    redactor: &'a Redactor,
    /// The end of what was handed on.
    context: String,
    held: String,
    /// The rest of a credential that was masked before it ended.
    skips: bool,
}

impl Redactor {
    pub(crate) fn stream(&self) -> StreamRedactor<'_> {
        StreamRedactor {
            redactor: self,
            context: String::new(),
            held: String::new(),
            skips: false,
        }
    }

    /// Redacts texts that are handed on one after the other. Returns whether anything was found. The masked
    /// pieces are cut elsewhere; without a secret none is changed.
    pub(crate) fn redact_pieces(&self, pieces: &mut [&mut String]) -> bool {
        let joined: String = pieces.iter().map(|piece| piece.as_str()).collect();
        if self.redact_text(&joined).is_none() {
            return false;
        }
        let mut stream = self.stream();
        for piece in &mut *pieces {
            **piece = stream.push(piece);
        }
        if let Some(last) = pieces.last_mut() {
            last.push_str(&stream.finish());
        }
        true
    }
}

impl StreamRedactor<'_> {
    /// Takes a piece, and returns what may be handed on.
    pub(crate) fn push(&mut self, piece: &str) -> String {
        let piece = match self.skips {
            true => piece.trim_start_matches(shapes::may_hold),
            false => piece,
        };
        if piece.is_empty() {
            return String::new();
        }
        self.skips = false;
        self.held.push_str(piece);
        let ready = self.redact_held();
        let rest = self.held.split_off(ready);
        let mut text = std::mem::replace(&mut self.held, rest);
        if self.held.len() > MAX_HELD.max(self.redactor.longest_form) {
            self.held.clear();
            text.push_str(MARK);
            self.skips = true;
        }
        self.remember(&text);
        text
    }

    /// What is left when nothing follows.
    pub(crate) fn finish(mut self) -> String {
        let text = format!("{}{}", self.context, self.held);
        if let Some(clean) = self.redactor.redact_text(&text) {
            self.replace_held(&clean, "");
        }
        self.held
    }

    /// Masks the secrets that are complete. Returns the length of what cannot be part of another one.
    fn redact_held(&mut self) -> usize {
        let before = self.context.len();
        for _ in 0..MAX_ROUNDS {
            let text = format!("{}{}", self.context, self.held);
            let end = self.redactor.end_of_settled(&text).max(before);
            match self.redactor.redact_text(&text[..end]) {
                None => return end - before,
                // Beside a mask, what follows may be the beginning of a secret.
                Some(clean) => self.replace_held(&clean, &text[end..]),
            }
        }
        0
    }

    fn replace_held(&mut self, clean: &str, rest: &str) {
        // The context holds no secret, and none that begins there: it would have been held back.
        let clean = clean.strip_prefix(&self.context).unwrap_or(MARK);
        self.held = format!("{clean}{rest}");
    }

    fn remember(&mut self, text: &str) {
        self.context.push_str(text);
        if self.context.len() > CONTEXT {
            let from = self.context.len() - CONTEXT;
            let from = self.context.ceil_char_boundary(from);
            self.context = format!("{EARLIER}{}", &self.context[from..]);
        }
    }
}

impl Redactor {
    /// Where the text ends that no secret continues, whatever follows.
    fn end_of_settled(&self, text: &str) -> usize {
        let shaped = shapes::unfinished(text).unwrap_or(text.len());
        let mut end = shaped.min(self.unfinished_form(text).unwrap_or(text.len()));
        let mut secrets = shapes::find(text);
        if let Some(forms) = &self.forms {
            secrets.extend(forms.find_overlapping_iter(text).map(|found| found.range()));
        }
        // From behind: a secret that is not cut stays whole.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.end));
        for secret in secrets {
            if secret.start < end && end < secret.end {
                end = secret.start;
            }
        }
        end
    }

    /// Where the longest beginning of a form begins that the text ends with.
    fn unfinished_form(&self, text: &str) -> Option<usize> {
        let from = text.len().saturating_sub(self.longest_form);
        let from = text.ceil_char_boundary(from);
        let starts = text[from..].char_indices().map(|(at, _)| from + at);
        starts.into_iter().find(|at| {
            let tail = &text[*at..];
            let next = self
                .sorted_forms
                .partition_point(|form| form.as_str() <= tail);
            let next = self.sorted_forms.get(next);
            next.is_some_and(|form| form.starts_with(tail))
        })
    }
}
