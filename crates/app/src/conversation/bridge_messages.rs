//! What passed over bridges, for those who may view it.

use super::bridges::{INPUT, ProxyFound, STOP, VIEW};
use super::desk_work::DeskRight;
use super::inspection::{InspectionCursor, begun};
use super::rights::{AdminCall, PrivilegedAction};
use crate::app::App;
use crate::error::{AppError, ResourceKind};
use crate::follow::PAGE;
use tandem_access::{Identity, Scope};
use tandem_record::conversation::{BridgeMessage, BridgeOutcome, IntentStatus, SessionLedger};
use tandem_record::{Masking, ProxyId, SessionId};
use tandem_runtime::{ListingPage, ProxyFilter};

/// Bridges of one session that are shown with it.
const MAX_SHOWN: usize = 20;
/// Events after a page that are read for what became of its input.
const MAX_READ_AFTER: usize = 20_000;

/// A bridge with a page of what passed over it, oldest first.
pub struct ReadBridge {
    pub found: ProxyFound,
    pub messages: Vec<BridgeMessage>,
    /// Where the next page starts, if there is more.
    pub next: Option<InspectionCursor>,
    /// How texts are shown.
    pub texts: Masking,
}

/// What a reader may be offered to do about a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BridgeOffers {
    pub view: DeskRight,
    pub input: DeskRight,
    pub stop: DeskRight,
}

impl App {
    /// A bridge, active or stopped, with a page of what passed over it.
    pub async fn read_proxy(
        &self,
        call: &AdminCall<'_>,
        proxy: &ProxyId,
        from: InspectionCursor,
        limit: usize,
    ) -> Result<ReadBridge, AppError> {
        call.caller.require_scope(Scope::RunsRead)?;
        let row = self.find_proxy(call.caller, proxy).await?;
        let session = &row.session_id;
        let start = self.find_session(call.caller, session).await?;
        let asked = PrivilegedAction {
            action: VIEW,
            agent: &row.agent,
            session: Some((session, (call.show_session)(&start.view()))),
            escalation: None,
        };
        self.authorize_admin(call, &asked).await?;
        let found = ProxyFound::from_row(&row);
        let found = found.ok_or(AppError::NotFound(ResourceKind::Proxy))?;
        let ledger = begun(start.start(), start.started_at());
        let is_full = |ledger: &SessionLedger| {
            ledger.bridges.is_settled() && ledger.bridges.of(proxy).count() >= limit
        };
        let (ledger, next) = self.read_ledger(session, ledger, from, is_full).await?;
        let ledger = match &next {
            Some(next) => self.read_outcomes(session, ledger, next, proxy).await?,
            None => ledger,
        };
        Ok(ReadBridge {
            texts: self.text_masking(&found.agent),
            messages: ledger.bridges.of(proxy).cloned().collect(),
            found,
            next,
        })
    }

    /// Follows what was kept, or is on its way, until it is known what became of it.
    async fn read_outcomes(
        &self,
        session: &SessionId,
        mut ledger: SessionLedger,
        from: &InspectionCursor,
        proxy: &ProxyId,
    ) -> Result<SessionLedger, AppError> {
        let shown = ledger.bridges.messages.len();
        let (mut after, mut read) = (from.event, 0);
        let is_open = |message: &BridgeMessage| {
            let is_decided = !matches!(
                message.outcome,
                BridgeOutcome::Kept | BridgeOutcome::Waiting
            );
            let is_sent = message.delivery != Some(IntentStatus::Pending);
            message.proxy == *proxy && !(is_decided && is_sent)
        };
        while read < MAX_READ_AFTER && ledger.bridges.messages.iter().take(shown).any(is_open) {
            let page = self.runtime().session_events(session, after, PAGE).await?;
            let Some(last) = page.events.last() else {
                break;
            };
            after = Some(last.seq);
            read += page.events.len();
            page.events.iter().for_each(|event| ledger.evolve(event));
        }
        ledger.bridges.messages.truncate(shown);
        Ok(ledger)
    }

    /// The last bridges of a session, newest first, as the console shows them. What passed over them is another right.
    pub async fn bridges_of_session(
        &self,
        caller: &Identity,
        session: &SessionId,
    ) -> Result<Vec<ProxyFound>, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        let filter = ProxyFilter {
            workspace: caller.workspace.clone(),
            status: None,
            agent: caller.agent.clone(),
            session: Some(session.clone()),
        };
        let page = ListingPage {
            after: None,
            limit: MAX_SHOWN,
        };
        let store = self.runtime().store();
        let listing = store.list_proxies(&caller.tenant, &filter, &page).await?;
        let rows = listing.map(|listing| listing.rows).unwrap_or_default();
        Ok(rows.iter().filter_map(ProxyFound::from_row).collect())
    }

    /// The session of a bridge that the caller may see.
    pub async fn session_of_bridge(
        &self,
        caller: &Identity,
        proxy: &ProxyId,
    ) -> Result<SessionId, AppError> {
        caller.require_scope(Scope::RunsRead)?;
        Ok(self.find_proxy(caller, proxy).await?.session_id)
    }

    /// Looking whether something may be offered is not doing it: nothing is recorded.
    pub fn bridge_offers(&self, caller: &Identity, found: &ProxyFound) -> BridgeOffers {
        let agent = &found.agent;
        let takeover = Scope::ConversationsTakeover;
        let spec = self.agent_spec(agent);
        let target = spec
            .as_ref()
            .and_then(|spec| spec.hitl.targets.get(&found.bridge.target));
        let allowed = target.and_then(|target| target.allowed_actors.as_ref());
        let input = match self.offered_right(caller, agent, takeover, INPUT) {
            DeskRight::As(actor) if allowed.is_some_and(|allowed| !allowed.contains(&actor)) => {
                DeskRight::None
            }
            right => right,
        };
        BridgeOffers {
            view: self.offered_right(caller, agent, Scope::RunsRead, VIEW),
            input,
            stop: self.offered_right(caller, agent, takeover, STOP),
        }
    }
}
