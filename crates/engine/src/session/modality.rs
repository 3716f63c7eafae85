//! Whether a text is sent as text or as speech.

use super::draft::Draft;
use super::keywords::KeywordList;
use super::profile::REPLY_FORMAT;
use crate::agent::ModalityPolicy;
use serde_json::Value;
use tandem_record::conversation::{CandidateOrigin, Modality};

/// Words with which a user asks for speech or for text.
const VOICE_WORDS: [&str; 6] = ["voice", "audio", "speak", "voz", "áudio", "vocal"];
const TEXT_WORDS: [&str; 5] = ["text", "write", "texto", "escreva", "escribe"];

impl Draft<'_> {
    /// The first rule that decides: the agent, the user's preference, the answer itself, the words of
    /// the user, the form of the user's message.
    pub(super) fn modality_of(
        &self,
        origin: CandidateOrigin,
        structured: Option<&Value>,
    ) -> Modality {
        if !origin.passes_before_response() {
            return Modality::Text;
        }
        match self.cx.agent.modality {
            ModalityPolicy::Text => return Modality::Text,
            ModalityPolicy::Voice => return Modality::Voice,
            ModalityPolicy::Auto => {}
        }
        let preferences = &self.session.start.user.preferences;
        let preferred = preferences.get(REPLY_FORMAT).and_then(Value::as_str);
        match preferred {
            Some("text") => Modality::Text,
            Some("voice") => Modality::Voice,
            Some("dynamic") => {
                let given = structured.and_then(|s| read(s.get("modality")?.as_str()?));
                let given = given.or_else(|| self.asked_modality());
                given.unwrap_or_else(|| self.mirrored())
            }
            _ => self.mirrored(),
        }
    }

    fn asked_modality(&self) -> Option<Modality> {
        let text = self.turn().text();
        let voice = KeywordList::new(VOICE_WORDS).occurs_in(text);
        let written = KeywordList::new(TEXT_WORDS).occurs_in(text);
        match (voice, written) {
            (true, false) => Some(Modality::Voice),
            (false, true) => Some(Modality::Text),
            _ => None,
        }
    }

    fn mirrored(&self) -> Modality {
        let message = self.turn().cause.message();
        match message.and_then(|message| message.kind.as_deref()) {
            Some("voice" | "audio") => Modality::Voice,
            _ => Modality::Text,
        }
    }
}

pub(super) fn read(name: &str) -> Option<Modality> {
    match name {
        "text" => Some(Modality::Text),
        "voice" => Some(Modality::Voice),
        _ => None,
    }
}
