//! Questions of workflows that the session shows.

use crate::session::state::ChatSession;
use crate::session::workflow_questions::OpenWorkflowQuestion;
use tandem_record::Object;
use tandem_record::conversation::SessionEventBody as Body;

/// Questions shown at once. A further one pushes out the oldest, which stays in the inbox.
const MAX_SHOWN: usize = 20;

impl ChatSession {
    pub(super) fn fold_workflow_question(&mut self, body: &Body) {
        match body {
            Body::WorkflowQuestionOpened {
                wait,
                question,
                escalation_id,
            } => {
                self.workflow_questions.push(OpenWorkflowQuestion {
                    wait: wait.clone(),
                    question: (**question).clone(),
                    escalation_id: escalation_id.clone(),
                    answers: Object::new(),
                });
                if self.workflow_questions.len() > MAX_SHOWN {
                    self.workflow_questions.remove(0);
                }
            }
            Body::WorkflowQuestionAnswered {
                interrupt_id,
                key,
                value,
            } => {
                if let Some(open) = self.open_workflow_question_mut(interrupt_id) {
                    open.answers.insert(key.clone(), value.clone());
                }
            }
            Body::WorkflowAnswerRefused { interrupt_id, .. } => {
                if let Some(open) = self.open_workflow_question_mut(interrupt_id) {
                    open.answers.clear();
                }
            }
            Body::WorkflowQuestionClosed { interrupt_id, .. } => {
                self.workflow_questions
                    .retain(|open| open.question.interrupt_id != *interrupt_id);
            }
            _ => {}
        }
    }
}
