//! Nodes of packs. A call is recorded with its inputs before it is made; its result and its log
//! lines are recorded when it returns.

use crate::run::draft::DecisionDraft;
use crate::run::scheduling::Done;
use crate::run::state::Run;
use tandem_record::{
    CapKind, EffectId, EffectKind, ErrorInfo, Event, Object, PackAnswer, PackCall, PackResult, Seq,
    Work,
};

impl DecisionDraft<'_> {
    /// The call that a pack's node will make.
    pub(in crate::run) fn pack_work(
        &self,
        ix: usize,
        effect: EffectId,
        inputs: &Object,
    ) -> Result<Work, ErrorInfo> {
        let type_id = &self.run.def.nodes[ix].type_id;
        match self.cx.packs.get(type_id) {
            Some(known) => Ok(Work::Pack {
                effect,
                pack: known.pack.clone(),
                inputs: inputs.clone(),
            }),
            None => {
                let message = format!("no pack of this host brings {type_id:?} any more");
                Err(ErrorInfo::new("pack_unavailable", message))
            }
        }
    }

    pub(in crate::run) fn pack_answered(&mut self, ix: usize, answer: PackAnswer, mut cause: Seq) {
        for line in answer.log_lines {
            let event = Event::LogAppended {
                level: line.level,
                message: line.message,
                node: Some(self.run.def.nodes[ix].id.clone()),
                fields: None,
            };
            cause = self.emit(event, Some(cause));
        }
        match answer.result {
            PackResult::Completed { outputs } => {
                self.complete_node(ix, Done::with(outputs), cause);
            }
            PackResult::Failed { error } => self.fail_or_retry(ix, error, cause),
            PackResult::Breached {
                kind,
                limit,
                observed,
                error,
            } => {
                let cause = self.emit_cap_breached(ix, kind, limit, observed, cause);
                self.fail_or_retry(ix, error, cause);
            }
        }
    }

    fn emit_cap_breached(
        &mut self,
        ix: usize,
        kind: CapKind,
        limit: u64,
        observed: u64,
        cause: Seq,
    ) -> Seq {
        let breached = Event::CapBreached {
            kind,
            limit,
            observed,
            node: Some(self.run.def.nodes[ix].id.clone()),
        };
        self.emit(breached, Some(cause))
    }
}

impl Run {
    /// The call a pack's node waits for, with the parts that the log does not store.
    pub(in crate::run) fn pack_effect(&self, ix: usize, inputs: &Object) -> EffectKind {
        let node = &self.def.nodes[ix];
        let state = self.node(ix);
        let request = self.request();
        let authored = self.def.doc_node(ix);
        EffectKind::Pack {
            node: node.id.clone(),
            attempt: state.attempt,
            call: Box::new(PackCall {
                type_id: node.type_id.clone(),
                tenant: request.owner.tenant.clone(),
                inputs: inputs.clone(),
                config: authored.config.clone(),
                configurable: request.options.configurable.clone().unwrap_or_default(),
                agent: authored.agent.clone(),
                at: state.started_at.unwrap_or(self.last_at()),
            }),
        }
    }
}
