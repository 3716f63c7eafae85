//! What a chat reacts to, in one queue: lines of the user, events of the session.

use crate::client::{Client, Follower, Frame};
use std::io::BufRead as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Lines and events that may wait.
const QUEUED: usize = 64;

pub(super) enum Incoming {
    Line(String),
    /// No line follows.
    InputEnded,
    Frame(Frame),
    /// This session has ended, and all of it was read.
    SessionEnded(String),
    Failed(anyhow::Error),
}

pub(super) struct Sources {
    sender: mpsc::Sender<Incoming>,
    receiver: mpsc::Receiver<Incoming>,
    follower: Option<JoinHandle<()>>,
}

impl Sources {
    /// Starts to read lines.
    pub(super) fn start() -> Self {
        let (sender, receiver) = mpsc::channel(QUEUED);
        let lines = sender.clone();
        // Reading a terminal blocks a thread, which the end of the process ends.
        std::thread::spawn(move || {
            for line in std::io::stdin().lock().lines() {
                let Ok(line) = line else { break };
                if lines.blocking_send(Incoming::Line(line)).is_err() {
                    return;
                }
            }
            let _ = lines.blocking_send(Incoming::InputEnded);
        });
        Self {
            sender,
            receiver,
            follower: None,
        }
    }

    /// Follows this session and no other.
    pub(super) fn follow(&mut self, client: &Client, session: &str, after: Option<u64>) {
        let mut follower = Follower::of_session(client, session, after);
        let session = session.to_owned();
        let frames = self.sender.clone();
        let task = tokio::spawn(async move {
            loop {
                let next = match follower.next().await {
                    Ok(Some(frame)) => Incoming::Frame(frame),
                    Ok(None) => Incoming::SessionEnded(session.clone()),
                    Err(error) => Incoming::Failed(error),
                };
                let is_last = !matches!(next, Incoming::Frame(_));
                if frames.send(next).await.is_err() || is_last {
                    return;
                }
            }
        });
        if let Some(before) = self.follower.replace(task) {
            before.abort();
        }
    }

    pub(super) async fn next(&mut self) -> Incoming {
        let next = self.receiver.recv().await;
        next.expect("a sender is kept here")
    }
}
