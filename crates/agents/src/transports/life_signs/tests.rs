use super::*;
use async_trait::async_trait;
use tandem_runtime::conversation::{OutgoingMessage, SendError};

/// A network that notes when which sign was shown.
struct Network {
    began: Instant,
    lasts: Option<Duration>,
    shown: Mutex<Vec<(u64, bool)>>,
}

#[async_trait]
impl ChatTransport for Network {
    async fn send(&self, _: &OutgoingMessage<'_>) -> Result<Option<String>, SendError> {
        Ok(None)
    }

    fn typing_lasts(&self) -> Option<Duration> {
        self.lasts
    }

    async fn show(&self, sign: &LifeSign) {
        let active = sign.kind == (LifeSignKind::Typing { active: true });
        let at = self.began.elapsed().as_secs();
        self.shown.lock().push((at, active));
    }
}

fn network(lasts: Option<u64>) -> Arc<Network> {
    Arc::new(Network {
        began: Instant::now(),
        lasts: lasts.map(Duration::from_secs),
        shown: Mutex::default(),
    })
}

fn typing(signs: &LifeSigns, network: &Arc<Network>, active: bool) {
    let sign = LifeSign {
        transport: "tg".to_owned(),
        to: "42".to_owned(),
        kind: LifeSignKind::Typing { active },
    };
    signs.show(&AgentId::new("desk"), network.clone(), sign);
}

/// Time that passes for the tasks, a second at a time. The clock of the test is paused.
async fn pass(seconds: u64) {
    run_tasks().await;
    for _ in 0..seconds {
        tokio::time::advance(Duration::from_secs(1)).await;
        run_tasks().await;
    }
}

async fn run_tasks() {
    for _ in 0..8 {
        tokio::task::yield_now().await;
    }
}

/// Z-244 (half: typing goes on while the turn does, and ends with a silent one)
#[tokio::test(start_paused = true)]
async fn typing_is_shown_again_until_the_turn_ends() {
    let (signs, network) = (LifeSigns::default(), network(Some(5)));
    typing(&signs, &network, true);
    pass(13).await;
    let shown = network.shown.lock().clone();
    assert_eq!(shown, [(0, true), (4, true), (8, true), (12, true)]);
    // The turn said nothing: its end is the only sign.
    typing(&signs, &network, false);
    pass(20).await;
    assert_eq!(network.shown.lock().len(), 5, "the end, and no more");
    assert!(signs.waiting.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn typing_whose_end_nobody_sees_stops() {
    let (signs, network) = (LifeSigns::default(), network(Some(5)));
    typing(&signs, &network, true);
    pass(600).await;
    let last = network.shown.lock().last().copied();
    assert!(last.is_some_and(|(at, _)| at <= 301), "{last:?}");
    assert!(signs.waiting.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_sign_that_lasts_is_shown_once() {
    let (signs, network) = (LifeSigns::default(), network(None));
    typing(&signs, &network, true);
    pass(20).await;
    assert_eq!(*network.shown.lock(), [(0, true)]);
    typing(&signs, &network, false);
    pass(1).await;
    assert_eq!(network.shown.lock().len(), 2);
    assert!(signs.waiting.lock().is_empty());
}
