use crate::{GuardedResolver, Rejected, UrlGuard};
use reqwest::dns::Resolve;
use std::net::SocketAddr;
use std::sync::Arc;

fn resolver(allow_private: bool) -> GuardedResolver {
    GuardedResolver::new(Arc::new(UrlGuard {
        allow_private,
        ..UrlGuard::default()
    }))
}

fn addresses(list: &[&str]) -> Vec<SocketAddr> {
    list.iter()
        .map(|text| SocketAddr::new(text.parse().unwrap(), 0))
        .collect()
}

#[tokio::test]
async fn a_name_that_resolves_to_loopback_is_refused() {
    let name = "localhost".parse().unwrap();
    let Err(error) = resolver(false).resolve(name).await else {
        panic!("loopback was handed to the connector");
    };
    assert!(error.downcast_ref::<Rejected>().is_some(), "{error}");

    let name = "localhost".parse().unwrap();
    let resolved = resolver(true)
        .resolve(name)
        .await
        .expect("allowed in tests");
    assert!(
        resolved
            .into_iter()
            .all(|address| address.ip().is_loopback())
    );
}

#[test]
fn name_with_one_rejected_address_is_rejected() {
    let good = addresses(&["1.1.1.1", "2606:4700::1111"]);
    assert_eq!(resolver(false).vet(good.clone()), Ok(good));
    for mixed in [
        &["1.1.1.1", "10.0.0.1"][..],
        &["10.0.0.1", "1.1.1.1"],
        &["2606:4700::1111", "::1"],
        &["1.1.1.1", "169.254.169.254"],
        &["1.1.1.1", "::ffff:127.0.0.1"],
    ] {
        assert!(resolver(false).vet(addresses(mixed)).is_err(), "{mixed:?}");
    }
    assert!(
        resolver(true)
            .vet(addresses(&["1.1.1.1", "10.0.0.1"]))
            .is_ok()
    );
    assert!(
        resolver(true)
            .vet(addresses(&["10.0.0.1", "169.254.169.254"]))
            .is_err()
    );
}
