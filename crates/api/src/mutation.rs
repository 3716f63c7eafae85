//! Requests that change something: their body, their place among those under way, and the promise
//! that one idempotency key means one deed.
//!
//! Order: the caller is known and allowed before the body is read; an earlier answer is looked up
//! before the body is judged; the answer is stored in the commit that does the deed. Refusals before
//! there is a deed are kept on the way out (`kept.rs`); those that a retry may change never are.

use crate::api::{Doors, Shared};
use crate::body;
use crate::deciding;
use crate::idempotency::{self, Held};
use crate::kept::Keeping;
use crate::places::Place;
use crate::problem::Problem;
use crate::said::{Said, replay};
use crate::to_the_end::to_the_end;
use crate::verb;
use axum::extract::{FromRequest, MatchedPath, Request};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde_json::json;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tandem_access::Identity;
use tandem_record::{Command, Partition, Reply, RunId};
use tandem_runtime::{
    Answer, Answering, ForkRequest, IdempotencyKey, IdempotencyRecord, Judge, NewRun, Proposal,
    Refusal, Runtime, StoredResponse, StoredRun, SubmitError,
};

const MAX_KEY_CHARS: usize = 255;
/// How long a request waits for its twin before it is told to come back.
const TWIN_PATIENCE: Duration = Duration::from_secs(10);

/// How a route puts an accepted command into words.
pub(crate) type Say = fn(&RunId, &Reply) -> Said;

pub(crate) struct Mutation {
    body: Bytes,
    key: Option<Key>,
    /// Taken once the tenant is known, and held as long as the request.
    place: OnceLock<Place>,
}

/// An idempotency key, with what it was sent for.
struct Key {
    /// The caller's own text; never logged, never stored.
    text: String,
    /// Method and route template: what a key is good for.
    operation: String,
    /// The path as it came, parameters included.
    path: String,
    keeping: Option<Keeping>,
}

impl Key {
    fn of(parts: &Parts) -> Result<Option<Self>, Problem> {
        let Some(value) = parts.headers.get("idempotency-key") else {
            return Ok(None);
        };
        let text = value.to_str().unwrap_or_default();
        if !(1..=MAX_KEY_CHARS).contains(&text.chars().count()) {
            let message = format!("must have 1 to {MAX_KEY_CHARS} visible characters");
            return Err(Problem::invalid("Idempotency-Key", message));
        }
        let template = parts.extensions.get::<MatchedPath>();
        let template = template.map_or_else(String::new, |path| verb::outside(path.as_str()));
        Ok(Some(Self {
            text: text.to_owned(),
            operation: format!("{} {template}", parts.method),
            path: parts.uri.path().to_owned(),
            keeping: parts.extensions.get().cloned(),
        }))
    }
}

impl FromRequest<Shared> for Mutation {
    type Rejection = Problem;

    async fn from_request(request: Request, doors: &Shared) -> Result<Self, Problem> {
        let (parts, body) = request.into_parts();
        let body = body::read(&parts.headers, body, &doors.settings).await?;
        Ok(Self {
            body,
            key: Key::of(&parts)?,
            place: OnceLock::new(),
        })
    }
}

/// Whether a request is to be carried out.
pub(crate) enum Begun {
    Now(Ticket),
    /// It was answered before; this is the answer.
    Before(Response),
}

/// What came of a deed that keeps its own answer.
pub(crate) enum Deed {
    Done,
    /// Another request with the same key was quicker; its answer stands.
    AnsweredBefore,
}

/// The right to carry a request out once.
pub(crate) struct Ticket(Option<Kept>);

struct Kept {
    key: IdempotencyKey,
    digest: String,
    /// Keeps twins of this request waiting until the deed is done.
    _held: Arc<Held>,
}

impl Mutation {
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Problem> {
        body::parse(&self.body)
    }

    pub(crate) fn optional_json<T: DeserializeOwned + Default>(&self) -> Result<T, Problem> {
        body::parse_optional(&self.body)
    }

    /// Looks for an earlier answer. Twins of a request under way wait here for its answer.
    pub(crate) async fn begin(&self, doors: &Doors, caller: &Identity) -> Result<Begun, Problem> {
        self.begin_for(doors, &caller.partition()).await
    }

    /// The same for whoever has no identity beyond whose data they act on.
    pub(crate) async fn begin_for(
        &self,
        doors: &Doors,
        caller: &Partition,
    ) -> Result<Begun, Problem> {
        // Only now: a caller who sends slowly must not keep others out.
        let place = doors
            .mutations
            .take(&caller.tenant, self.body.len())
            .await?;
        self.place.get_or_init(|| place);
        let Some(sent) = &self.key else {
            return Ok(Begun::Now(Ticket(None)));
        };
        let key = idempotency::storage_key(caller, &sent.operation, &sent.text);
        let digest = idempotency::digest(&sent.path, &self.body);
        let held = tokio::time::timeout(TWIN_PATIENCE, doors.in_flight.hold(&key))
            .await
            .map_err(|_| Problem::key_in_flight())?;
        if let Some(before) = earlier(doors, &key, &digest).await? {
            return Ok(Begun::Before(before));
        }
        let held = Arc::new(held);
        if let Some(keeping) = &sent.keeping {
            keeping.note(&key, &digest, &held);
        }
        Ok(Begun::Now(Ticket(Some(Kept {
            key,
            digest,
            _held: held,
        }))))
    }
}

async fn earlier(
    doors: &Doors,
    key: &IdempotencyKey,
    digest: &str,
) -> Result<Option<Response>, Problem> {
    match doors.runtime.answered(key).await? {
        Some(record) if record.digest == digest => Ok(Some(replay(record.response))),
        Some(_) => Err(Problem::key_mismatch()),
        None => Ok(None),
    }
}

impl Ticket {
    /// For a deed under no key: a form, where the deed itself tells a repetition.
    pub(crate) fn without_key() -> Self {
        Self(None)
    }

    /// Puts a command to a run and answers.
    pub(crate) async fn submit(
        self,
        doors: &Shared,
        caller: &Identity,
        run: RunId,
        command: Command,
        say: Say,
    ) -> Result<Response, Problem> {
        let answering = self.answering(move |answer| match answer {
            Answer::Replied(run, reply) => Some(say(run, reply).stored()),
            Answer::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            Answer::Created(_) => None,
        });
        let (runtime, partition) = (doors.runtime_of(caller), caller.partition());
        let named = run.clone();
        let outcome = self
            .carry_out(
                doors,
                Box::pin(async move {
                    let reply = runtime.submit(&partition, &run, command, answering).await?;
                    Ok(say(&run, &reply).into_response())
                }),
            )
            .await;
        match outcome {
            // The runtime does not tell a run that is not there from one that is not the caller's.
            Err(problem) if problem.code() == "not_found" => {
                doors.known(caller, &named).await?;
                Err(problem)
            }
            outcome => outcome,
        }
    }

    /// Answers a question, if the judge lets whoever the runtime acts for.
    pub(crate) async fn decide(
        self,
        doors: &Shared,
        runtime: Runtime,
        caller: Partition,
        run: RunId,
        proposal: Proposal,
        judge: Judge,
    ) -> Result<Response, Problem> {
        let answering = self.answering(move |answer| match answer {
            // Nothing to repeat: they may be allowed the next time.
            Answer::Replied(_, Reply::Denied { .. }) => None,
            Answer::Replied(run, reply) => Some(deciding::say(run, reply).stored()),
            // Doors put this one differently, and it stays true without being kept.
            Answer::Refused(Refusal::InterruptGone) => None,
            Answer::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            Answer::Created(_) => None,
        });
        self.carry_out(
            doors,
            Box::pin(async move {
                let reply = runtime
                    .decide(&caller, &run, proposal, judge, answering)
                    .await?;
                Ok(deciding::say(&run, &reply).into_response())
            }),
        )
        .await
    }

    /// Creates a run and answers.
    pub(crate) async fn create(
        self,
        doors: &Shared,
        caller: &Identity,
        new: NewRun,
        say: fn(&RunId) -> Said,
    ) -> Result<Response, Problem> {
        let answering = self.answering(move |answer| match answer {
            Answer::Created(run) => Some(say(run).stored()),
            Answer::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            Answer::Replied(..) => None,
        });
        let runtime = doors.runtime_of(caller);
        self.carry_out(
            doors,
            Box::pin(async move {
                let run = runtime.create_run(new, answering).await?;
                Ok(say(&run).into_response())
            }),
        )
        .await
    }

    /// Forks a run and answers.
    pub(crate) async fn fork(
        self,
        doors: &Shared,
        caller: &Identity,
        source: StoredRun,
        asked: ForkRequest,
    ) -> Result<Response, Problem> {
        let (source_run, from_seq, mode) = (source.row.run_id.clone(), asked.from_seq, asked.mode);
        let say = move |run: &RunId| {
            Said::created(json!({
                "runId": run,
                "sourceRunId": source_run,
                "fromSeq": from_seq,
                "mode": mode.as_str(),
                "status": "pending",
                "eventsUrl": format!("/v1/runs/{run}/events"),
            }))
        };
        let stored = say.clone();
        let answering = self.answering(move |answer| match answer {
            Answer::Created(run) => Some(stored(run).stored()),
            Answer::Refused(refusal) => Problem::from((*refusal).clone()).stored(),
            Answer::Replied(..) => None,
        });
        let runtime = doors.runtime_of(caller);
        self.carry_out(
            doors,
            Box::pin(async move {
                let run = runtime.fork_run(&source, asked, answering).await?;
                Ok(say(&run).into_response())
            }),
        )
        .await
    }

    /// Carries out a deed of one commit, which takes the answer along.
    pub(crate) async fn together<F>(
        self,
        doors: &Shared,
        said: Said,
        deed: impl FnOnce(Option<IdempotencyRecord>) -> F,
    ) -> Result<Response, Problem>
    where
        F: Future<Output = Result<Deed, Problem>> + Send + 'static,
    {
        let named = self.0.as_ref().map(|k| (k.key.clone(), k.digest.clone()));
        let record = named.clone().map(|(key, digest)| IdempotencyRecord {
            key,
            digest,
            response: said.stored(),
            recorded_at: doors.now(),
        });
        let deed = deed(record);
        let outcome = to_the_end(async move {
            let outcome = deed.await;
            drop(self);
            outcome
        });
        match (outcome.await?, named) {
            (Deed::Done, _) => Ok(said.into_response()),
            (Deed::AnsweredBefore, Some((key, digest))) => {
                let before = earlier(doors, &key, &digest).await?;
                before.ok_or_else(Problem::key_in_flight)
            }
            (Deed::AnsweredBefore, None) => Err(Problem::key_in_flight()),
        }
    }

    /// Answers a deed that is already done. Only for deeds that may be done twice: a crash right
    /// before this forgets the answer, and the retry does the deed again.
    pub(crate) async fn done(self, doors: &Doors, said: Said) -> Result<Response, Problem> {
        if let Some(kept) = self.0 {
            let record = IdempotencyRecord {
                key: kept.key,
                digest: kept.digest,
                response: said.stored(),
                recorded_at: doors.now(),
            };
            doors.runtime.keep_answer(record).await?;
        }
        Ok(said.into_response())
    }

    fn answering(
        &self,
        render: impl Fn(&Answer<'_>) -> Option<StoredResponse> + Send + Sync + 'static,
    ) -> Option<Answering> {
        self.0.as_ref().map(|kept| Answering {
            key: kept.key.clone(),
            digest: kept.digest.clone(),
            render: Arc::new(render),
        })
    }

    /// The deed comes in a box: it is large, and would be copied at every step on its way to its task.
    async fn carry_out(
        self,
        doors: &Shared,
        deed: Pin<Box<dyn Future<Output = Result<Response, SubmitError>> + Send>>,
    ) -> Result<Response, Problem> {
        let named = self.0.as_ref().map(|k| (k.key.clone(), k.digest.clone()));
        let outcome = to_the_end(async move {
            let outcome = deed.await;
            // Only now may a twin look for the answer, whether or not the caller still waits.
            drop(self);
            outcome
        });
        match (outcome.await, named) {
            (Ok(response), _) => Ok(response),
            // Another process was quicker with the same key.
            (Err(SubmitError::AnsweredBefore), Some((key, digest))) => {
                let before = earlier(doors, &key, &digest).await?;
                before.ok_or_else(Problem::key_in_flight)
            }
            (Err(SubmitError::ScopeBusy(active)), _) => {
                Err(Problem::scope_busy(active.as_ref(), &doors.host.host_id))
            }
            (Err(other), _) => Err(other.into()),
        }
    }
}
