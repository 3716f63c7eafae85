//! `tandem chat`: a conversation with an agent in the terminal, or by lines of a script.
//!
//! Messages are posted with fresh ids; everything that is shown comes from the session's events, so that
//! what other people and timers cause appears too. A terminal may send while an answer is written. Without
//! a terminal the next line waits until the turn of the one before is over.

mod incoming;
mod screen;
mod session;
mod transcript;

use super::agents;
use crate::cli::ChatArgs;
use crate::client::{Client, Frame};
use crate::failure::Failure;
use crate::output::{self, Style};
use incoming::{Incoming, Sources};
use screen::Screen;
use serde_json::{Value, json};
use session::{Delivery, Participant};
use std::collections::VecDeque;
use std::io::IsTerminal as _;
use std::process::ExitCode;
use transcript::Transcript;

/// Lines that leave the chat instead of going to the agent.
const QUIT: [&str; 2] = ["/quit", "/exit"];

pub(crate) async fn chat(args: ChatArgs) -> anyhow::Result<ExitCode> {
    let client = Client::connect(&args.connection)?;
    let agent = agents::find(&client, &args.agent).await?;
    refuse_invalid(&agent, &args.agent)?;
    let user = Participant {
        agent: args.agent,
        id: args.user.unwrap_or_else(login_name),
    };
    let is_terminal = std::io::stdin().is_terminal();
    let mut chat = Chat {
        transcript: Transcript::new(&user.agent, &user.id, Style::of_stdout()),
        screen: Screen::new(is_terminal && !args.connection.json),
        sources: Sources::start(),
        as_json: args.connection.json,
        is_terminal,
        waiting: VecDeque::new(),
        turn: None,
        session: None,
        input_ended: false,
        is_failed: false,
        client,
        user,
    };
    if is_terminal {
        let Chat { user, .. } = &chat;
        output::note(format!(
            "You are {}, talking to {}. /help lists commands, /quit leaves.",
            user.id, user.agent
        ));
    }
    chat.resume().await?;
    chat.run().await?;
    Ok(match chat.is_failed {
        true => ExitCode::FAILURE,
        false => ExitCode::SUCCESS,
    })
}

/// Nobody can talk to an agent that was never good.
fn refuse_invalid(agent: &Value, id: &str) -> anyhow::Result<()> {
    if agent["status"] != "invalid" {
        return Ok(());
    }
    let errors = agent["errors"].as_array().into_iter().flatten();
    let errors: Vec<String> = errors.map(agents::error_line).collect();
    let what = format!("the agent {id:?} cannot be loaded:\n{}", errors.join("\n"));
    Err(Failure::new(what, "Correct its files; the server takes changes over.").into())
}

fn login_name() -> String {
    let named = ["USER", "USERNAME"]
        .iter()
        .find_map(|name| std::env::var(name).ok());
    named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "guest".to_owned())
}

struct Chat {
    client: Client,
    user: Participant,
    transcript: Transcript,
    screen: Screen,
    sources: Sources,
    as_json: bool,
    is_terminal: bool,
    /// Lines that are not sent yet.
    waiting: VecDeque<String>,
    /// The turn that is under way.
    turn: Option<String>,
    /// The session that is followed.
    session: Option<String>,
    input_ended: bool,
    /// A message was not processed.
    is_failed: bool,
}

impl Chat {
    /// Shows the last messages of the active session and follows it.
    async fn resume(&mut self) -> anyhow::Result<()> {
        let Some(session) = self.user.active_session(&self.client).await? else {
            return Ok(());
        };
        // First the end of the log, then the messages: what arrives in between is recognized by its id.
        let after = session::last_sequence(&self.client, &session).await?;
        let messages = session::messages(&self.client, &session).await?;
        if !self.as_json {
            let shown = self.transcript.history(&messages);
            self.screen.print(&shown)?;
        }
        self.follow(session, after);
        Ok(())
    }

    fn follow(&mut self, session: String, after: Option<u64>) {
        self.sources.follow(&self.client, &session, after);
        self.session = Some(session);
    }

    async fn run(&mut self) -> anyhow::Result<()> {
        loop {
            self.screen.prompt()?;
            let is_idle = self.turn.is_none();
            if self.input_ended && (self.is_terminal || (is_idle && self.waiting.is_empty())) {
                return self.screen.finish();
            }
            match self.sources.next().await {
                Incoming::Line(line) => self.waiting.push_back(line),
                Incoming::InputEnded => self.input_ended = true,
                Incoming::Frame(frame) => self.show(&frame)?,
                Incoming::SessionEnded(ended) if self.session.as_ref() == Some(&ended) => {
                    self.session = None;
                    self.turn = None;
                }
                // The one before.
                Incoming::SessionEnded(_) => {}
                Incoming::Failed(error) => return Err(error),
            }
            while self.is_terminal || self.turn.is_none() {
                let Some(line) = self.waiting.pop_front() else {
                    break;
                };
                self.screen.line_entered();
                if QUIT.contains(&line.trim()) {
                    return self.screen.finish();
                }
                self.send(&line).await?;
            }
        }
    }

    async fn send(&mut self, line: &str) -> anyhow::Result<()> {
        if line.trim().is_empty() {
            return Ok(());
        }
        let id = uuid::Uuid::new_v4().to_string();
        self.transcript.note_own(&id);
        match self.user.deliver(&self.client, &id, line).await? {
            Delivery::Accepted { session, turn } => {
                if self.session.as_deref() != Some(&session) {
                    self.follow(session, None);
                }
                self.turn = Some(turn);
            }
            Delivery::Elsewhere => {}
            Delivery::Refused(why) => {
                self.is_failed = true;
                let shown = self.transcript.note(&why);
                self.screen.print(&shown)?;
            }
        }
        Ok(())
    }

    fn show(&mut self, frame: &Frame) -> anyhow::Result<()> {
        let mut event: Value = serde_json::from_str(&frame.data)?;
        let is_piece = frame.event.as_deref() == Some("TOKEN_CHUNK");
        if self.as_json {
            if is_piece {
                event["type"] = json!("TOKEN_CHUNK");
            }
            output::json_line(&event)?;
        } else if is_piece {
            let piece = event["content"].as_str().unwrap_or_default();
            let shown = self.transcript.piece(piece);
            self.screen.print(&shown)?;
        } else {
            let shown = self.transcript.event(&event);
            self.screen.print(&shown)?;
        }
        let is_over = matches!(
            event["type"].as_str(),
            Some("runtime:inbound:processed" | "runtime:inbound:failed")
        );
        if is_over && self.turn.is_some() && event["turnId"].as_str() == self.turn.as_deref() {
            self.turn = None;
        }
        Ok(())
    }
}
