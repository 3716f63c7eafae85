//! Requests of admins that change something: begun once under their key and credentials, read, carried out and
//! rendered.

use super::admin_call;
use crate::api::ApiState;
use crate::mutation::{IdempotencyCheck, Mutation, respond};
use crate::problem::Problem;
use crate::response::ApiResponse;
use axum::http::HeaderMap;
use axum::response::Response;
use tandem_access::Identity;
use tandem_app::conversation::AdminCall;
use tandem_app::{AppError, Completion, Idempotency};

/// What arrived from an admin.
pub(super) struct AdminRequest<'a> {
    pub(super) api: &'a ApiState,
    pub(super) caller: &'a Identity,
    pub(super) headers: &'a HeaderMap,
    pub(super) request: &'a Mutation,
}

impl AdminRequest<'_> {
    /// `read` reads the body, once the request is known not to be a repetition.
    pub(super) async fn answer<B, T: Send + 'static>(
        &self,
        read: impl FnOnce(&Mutation) -> Result<B, Problem>,
        render: impl Fn(&T) -> ApiResponse + Send + Sync + 'static,
        use_case: impl AsyncFnOnce(AdminCall<'_>, B, Idempotency<T>) -> Result<Completion<T>, AppError>,
    ) -> Result<Response, Problem> {
        let begun = self
            .request
            .begin_for_admin(self.api, self.caller, self.headers)
            .await?;
        let ticket = match begun {
            IdempotencyCheck::New(ticket) => ticket,
            IdempotencyCheck::Replay(response) => return Ok(response),
        };
        let body = read(self.request)?;
        let call = admin_call(self.caller, self.headers);
        respond(ticket, render, |idempotency| {
            use_case(call, body, idempotency)
        })
        .await
    }
}

/// For requests whose body says nothing.
pub(super) fn no_body(_: &Mutation) -> Result<(), Problem> {
    Ok(())
}
