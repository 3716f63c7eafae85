//! One connection of a visitor, from its first frame to its end.
//!
//! Nothing is queued for a visitor: the log is read when the connection took what was read before. A message is
//! acknowledged when it is in the log. A client that lost its connection sends what was not acknowledged again,
//! with the same ids.

use super::limits::VisitorPlace;
use super::protocol::{ClientFrame, Closing, cursor};
use crate::api::SharedState;
use crate::problem::Problem;
use axum::extract::ws::{Message, WebSocket};
use serde_json::json;
use std::time::Duration;
use tandem_app::SMALL_PAGE_BYTES;
use tandem_app::conversation::{
    DeliveryStatus, Visitor, VisitorCursor, VisitorFollower, VisitorMessage, VisitorUpdate, WebChat,
};
use tandem_record::MediaId;
use tandem_wire::conversation::{UiAckStatus, UiFrame, UiProjection, UiReader};
use tokio::time::{Instant, timeout};

/// For the first frame.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Between two signs of life that the host asks for.
const PING_INTERVAL: Duration = Duration::from_secs(25);
/// A client that sent nothing for so long is gone.
const SILENCE_LIMIT: Duration = Duration::from_secs(80);
/// For the connection to take one frame.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

pub(super) async fn serve(
    mut socket: WebSocket,
    api: SharedState,
    chat: WebChat,
    place: VisitorPlace,
) {
    match connected(&mut socket, &api, &chat, place).await {
        // The client is gone, or takes nothing.
        None => {}
        Some(closing) => {
            let _ = timeout(WRITE_TIMEOUT, socket.send(closing.frame())).await;
        }
    }
}

async fn connected(
    socket: &mut WebSocket,
    api: &SharedState,
    chat: &WebChat,
    mut place: VisitorPlace,
) -> Option<Closing> {
    let first = timeout(HELLO_TIMEOUT, first_frame(socket)).await;
    let Ok(first) = first else {
        return Some(Closing::Policy("no CONNECT frame"));
    };
    let Some(ClientFrame::Connect {
        client_id,
        session_id,
        after,
    }) = first?
    else {
        return Some(Closing::Policy("the first frame is CONNECT"));
    };
    let known = client_id.and_then(|token| {
        let visitor = api.app.known_visitor(chat, &token)?;
        Some((visitor, token))
    });
    let (visitor, token) = known.unwrap_or_else(|| {
        let (visitor, token) = api.app.new_visitor(chat);
        (visitor, token.expose().to_owned())
    });
    if !place.belongs_to(visitor.id()) {
        return Some(Closing::Policy("too many connections"));
    }
    let welcome = UiFrame::Connected {
        client_id: token,
        agent_id: chat.agent.to_string(),
        title: chat.title.clone(),
    };
    let connection = VisitorConnection {
        api,
        chat,
        follower: follow(api, &visitor, cursor(session_id, after)),
        visitor,
        projection: None,
        heard_at: Instant::now(),
    };
    connection.run(socket, welcome).await
}

fn follow(api: &SharedState, visitor: &Visitor, cursor: Option<VisitorCursor>) -> VisitorFollower {
    let stopping = api.stopping.clone();
    api.app.follow_visitor(visitor.clone(), cursor, stopping)
}

/// `None` when the client is gone, `Some(None)` for a frame that is not known.
async fn first_frame(socket: &mut WebSocket) -> Option<Option<ClientFrame>> {
    loop {
        match socket.recv().await?.ok()? {
            Message::Text(text) => return Some(ClientFrame::parse(&text)),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Binary(_) => return Some(None),
            Message::Close(_) => return None,
        }
    }
}

/// A visitor who is connected.
struct VisitorConnection<'a> {
    api: &'a SharedState,
    chat: &'a WebChat,
    visitor: Visitor,
    follower: VisitorFollower,
    /// How the session that is followed is shown.
    projection: Option<UiProjection>,
    heard_at: Instant,
}

impl VisitorConnection<'_> {
    /// Why the host closes the connection; `None` when the client is gone.
    async fn run(mut self, socket: &mut WebSocket, welcome: UiFrame) -> Option<Closing> {
        send(socket, &welcome).await?;
        loop {
            tokio::select! {
                received = socket.recv() => {
                    self.heard_at = Instant::now();
                    let text = match received?.ok()? {
                        Message::Text(text) => text,
                        Message::Ping(_) | Message::Pong(_) => continue,
                        Message::Binary(_) => return Some(Closing::Policy("frames are text")),
                        Message::Close(_) => return None,
                    };
                    if !self.is_open() {
                        return Some(Closing::Policy("the chat was closed"));
                    }
                    if !self.api.visitors.admits_frame(self.visitor.id(), self.api.now()) {
                        return Some(Closing::Policy("too many frames"));
                    }
                    let answer = self.handle(&text).await;
                    if let Some(closing) = self.send_all(socket, &[answer], false).await? {
                        return Some(closing);
                    }
                }
                update = self.follower.next(Instant::now() + PING_INTERVAL) => match update {
                    Ok(VisitorUpdate::Draining) => return Some(Closing::GoingAway),
                    Ok(VisitorUpdate::TimedOut) => {
                        if !self.is_open() {
                            return Some(Closing::Policy("the chat was closed"));
                        }
                        if self.heard_at.elapsed() > SILENCE_LIMIT {
                            return None;
                        }
                        write(socket, Message::Ping(Default::default())).await?;
                    }
                    Ok(update) => {
                        if let Some(closing) = self.show(socket, update).await? {
                            return Some(closing);
                        }
                    }
                    Err(fault) => {
                        // The client connects again and misses nothing.
                        tracing::warn!(cause = %fault, "a web chat connection ended by a fault");
                        return Some(Closing::TryAgainLater);
                    }
                },
            }
        }
    }

    /// Whether the agent's file still says that the agent is on the web.
    fn is_open(&self) -> bool {
        self.api.app.web_chat(&self.chat.agent).is_ok()
    }

    async fn handle(&self, text: &str) -> UiFrame {
        let (body, message_id, media) = match ClientFrame::parse(text) {
            Some(ClientFrame::InboundMessage {
                body,
                message_id,
                media,
            }) => (body, message_id, media),
            Some(ClientFrame::GetMedia { id }) => return self.media(id).await,
            Some(ClientFrame::Connect { .. }) | None => {
                return UiFrame::Error {
                    code: "validation_error",
                    message: "This frame is not known here.".to_owned(),
                };
            }
        };
        let message_id = message_id.unwrap_or_else(|| uuid::Uuid::new_v4().to_string());
        let message = VisitorMessage {
            message_id: message_id.clone(),
            body,
            media: media.map(|m| json!({"contentType": m.content_type, "data": m.data})),
        };
        let delivered = self.api.app.deliver_visitor_message(&self.visitor, message);
        match delivered.await {
            Ok((status, notice)) => UiFrame::Ack {
                message_id,
                status: match status {
                    DeliveryStatus::Processed | DeliveryStatus::Accepted => UiAckStatus::Accepted,
                    DeliveryStatus::Duplicate => UiAckStatus::Duplicate,
                    DeliveryStatus::RateLimited => UiAckStatus::Ratelimited,
                    DeliveryStatus::Overloaded => UiAckStatus::Overloaded,
                },
                message: notice,
            },
            Err(error) => {
                let problem = Problem::from(error);
                let (status, message) = match problem.is_server_error() {
                    true => (UiAckStatus::Overloaded, None),
                    false => (UiAckStatus::Refused, Some(refusal(&problem))),
                };
                UiFrame::Ack {
                    message_id,
                    status,
                    message,
                }
            }
        }
    }

    /// The bytes of a recording of the session that the client is shown.
    async fn media(&self, id: MediaId) -> UiFrame {
        let found = match self.follower.session() {
            Some(session) => {
                let app = &self.api.app;
                app.read_visitor_media(&self.visitor, session, &id).await
            }
            None => Ok(None),
        };
        match found {
            Ok(Some(content)) => UiFrame::Media {
                id,
                data: content.to_base64(),
                content_type: content.content_type,
            },
            Ok(None) => UiFrame::Error {
                code: "not_found",
                message: "This recording is not kept.".to_owned(),
            },
            Err(fault) => {
                tracing::warn!(cause = %fault, "a recording cannot be read");
                UiFrame::Error {
                    code: "internal_error",
                    message: "This recording cannot be read now.".to_owned(),
                }
            }
        }
    }

    /// Sends what an update shows. `None` when the client is gone.
    async fn show(
        &mut self,
        socket: &mut WebSocket,
        update: VisitorUpdate,
    ) -> Option<Option<Closing>> {
        // Held until the connection took all of it.
        let page_room = match &update {
            VisitorUpdate::Events(_, room) => room.clone(),
            _ => None,
        };
        let frames = self.frames(update);
        let closing = self.send_all(socket, &frames, page_room.is_some()).await;
        drop(page_room);
        closing
    }

    /// Sends frames; large ones are counted unless their page is.
    async fn send_all(
        &self,
        socket: &mut WebSocket,
        frames: &[UiFrame],
        is_counted: bool,
    ) -> Option<Option<Closing>> {
        let texts: Vec<String> = frames.iter().map(text_of).collect();
        let bytes: usize = texts.iter().map(String::len).sum();
        let mut room = None;
        if bytes > SMALL_PAGE_BYTES && !is_counted {
            room = self.api.pages.try_hold(&self.chat.owner().tenant, bytes);
            if room.is_none() {
                return Some(Some(Closing::TryAgainLater));
            }
        }
        for text in texts {
            write(socket, Message::Text(text.into())).await?;
        }
        drop(room);
        Some(None)
    }

    fn frames(&mut self, update: VisitorUpdate) -> Vec<UiFrame> {
        match update {
            VisitorUpdate::Session {
                start,
                after,
                is_shortened,
            } => {
                let reader = UiReader {
                    own_id_prefix: self.visitor.claimed_id(""),
                    confirm_words: self.chat.confirm_words.clone(),
                    state_keys: self.chat.state_keys.clone(),
                };
                self.projection = Some(UiProjection::new(&start, after, reader));
                vec![UiFrame::Session {
                    session_id: start.session_id,
                    resumed: after.is_some(),
                    shortened: is_shortened,
                }]
            }
            VisitorUpdate::Events(events, _) => {
                let Some(projection) = &mut self.projection else {
                    return Vec::new();
                };
                let frames = events.iter();
                frames.flat_map(|event| projection.frames(event)).collect()
            }
            VisitorUpdate::Piece(piece) => {
                let projection = self.projection.as_mut();
                let frame = projection.and_then(|projection| projection.piece(&piece.text));
                frame.into_iter().collect()
            }
            VisitorUpdate::TimedOut | VisitorUpdate::Draining => Vec::new(),
        }
    }
}

/// What a visitor is told of a refusal: what is wrong with the message, nothing of the host.
fn refusal(problem: &Problem) -> String {
    let fields = problem.field_errors().into_iter();
    let fields = fields.map(|(_, why)| format!("The message {why}."));
    let text: Vec<String> = fields.collect();
    match text.is_empty() {
        true => "The message cannot be taken.".to_owned(),
        false => text.join(" "),
    }
}

fn text_of(frame: &UiFrame) -> String {
    serde_json::to_string(frame).expect("a frame is plain data")
}

async fn send(socket: &mut WebSocket, frame: &UiFrame) -> Option<()> {
    write(socket, Message::Text(text_of(frame).into())).await
}

/// `None` when the client is gone or does not read.
async fn write(socket: &mut WebSocket, message: Message) -> Option<()> {
    let written = timeout(WRITE_TIMEOUT, socket.send(message)).await;
    written.ok()?.ok()
}
