//! The conformance suite's model. Its programs are in the store, so that they survive a restart.
//! Only test routes lead here; without them there is no programmed provider.

use crate::runtime::Runtime;
use tandem_engine::run::{ModelNeed, ReplayedModelAnswer};
use tandem_nodes::{MockProgram, outcome_of_answer, unprogrammed_answer};
use tandem_record::{
    EffectId, EffectKind, EffectOutcome, ErrorInfo, ModelAnswer, ModelRequest, NodeId,
};
use tandem_store::Fault;

impl Runtime {
    /// Sets the answers that nodes of this name get from now on.
    pub async fn program_mock(&self, node: &NodeId, program: MockProgram) -> Result<(), Fault> {
        let _guard = self.inner.programs.lock().await;
        let text = serde_json::to_string(&program).expect("a program is plain data");
        self.store().set(&program_key(node), &text).await
    }

    /// The outcome of a call to a programmed provider; `None` for every other effect.
    pub(crate) async fn programmed_outcome(
        &self,
        effect: &EffectId,
        kind: &EffectKind,
    ) -> Result<Option<EffectOutcome>, Fault> {
        let EffectKind::Model { node, request, .. } = kind else {
            return Ok(None);
        };
        if !self.providers().is_programmed(&request.provider) {
            return Ok(None);
        }
        let answer = self.next_answer(node, effect, request).await?;
        let programmed = self.store().get(&program_key(node)).await?.is_some();
        Ok(Some(match answer {
            Some(answer) => outcome_of_answer(&answer),
            None if !programmed => outcome_of_answer(&unprogrammed_answer(request)),
            None => EffectOutcome::Failed {
                error: ErrorInfo::new(
                    "provider_unavailable",
                    format!("No answer is programmed for the node {node} any more."),
                ),
            },
        }))
    }

    /// Gets the answer for a replay.
    pub(crate) async fn replay_model_answer(
        &self,
        need: &ModelNeed,
    ) -> Result<ReplayedModelAnswer, Fault> {
        let answer = self.next_answer(&need.node, &need.effect, &need.request);
        Ok(answer
            .await?
            .map_or(ReplayedModelAnswer::Exhausted, ReplayedModelAnswer::Answer))
    }

    /// The next answer of a node's program, or the answer this call got before. `None` without a
    /// program, and when the program has no more answers.
    async fn next_answer(
        &self,
        node: &NodeId,
        effect: &EffectId,
        request: &ModelRequest,
    ) -> Result<Option<ModelAnswer>, Fault> {
        let _guard = self.inner.programs.lock().await;
        let key = program_key(node);
        let Some(text) = self.store().get(&key).await? else {
            return Ok(None);
        };
        let read = serde_json::from_str(&text);
        let mut program: MockProgram = read.map_err(|error| {
            Fault::permanent(
                "corrupt",
                format!("a stored program is unreadable: {error}"),
            )
        })?;
        let answer = program.take(effect, request);
        if answer.is_some() {
            let text = serde_json::to_string(&program).expect("a program is plain data");
            self.store().set(&key, &text).await?;
        }
        Ok(answer)
    }
}

fn program_key(node: &NodeId) -> String {
    format!("test.mock-ai:{node}")
}
