//! What is counted, and for how long.

use super::*;
use axum::Json;
use http_body_util::BodyExt as _;

const TENANT_BYTES: usize = 64 * 1024 * 1024;
const HALF: usize = TENANT_BYTES / 2 + 1;

fn page_budget() -> PageBudget {
    PageBudget::new(&FairShares::new(4 * TENANT_BYTES, TENANT_BYTES))
}

async fn respond(budget: &PageBudget, tenant: &TenantId, bytes: usize) -> Result<Response, u16> {
    let build = || async move { Ok(vec![b'x'; bytes]) };
    let response = budget.respond(tenant, build).await;
    response.map_err(|problem| problem.status())
}

#[tokio::test(start_paused = true)]
async fn tenant_with_unsent_pages_is_refused_and_others_are_served() {
    let budget = page_budget();
    let (a, b) = (TenantId::new("a"), TenantId::new("b"));
    let first = respond(&budget, &a, HALF).await.expect("room for one");
    let refused = respond(&budget, &a, HALF).await.expect_err("not for two");
    assert_eq!(refused, 503);
    let small = respond(&budget, &a, 1_000).await;
    assert!(small.is_ok(), "small pages are not counted");
    let other = respond(&budget, &b, HALF).await;
    assert!(other.is_ok(), "another tenant");
    drop(first);
    assert!(respond(&budget, &a, HALF).await.is_ok(), "room again");
}

#[tokio::test(start_paused = true)]
async fn bytes_taken_by_the_connection_are_counted_until_they_are_written() {
    let budget = page_budget();
    let tenant = TenantId::new("a");
    let response = respond(&budget, &tenant, HALF)
        .await
        .expect("there is room");
    let mut body = response.into_body();
    let mut write_buffer = Vec::new();
    while let Some(frame) = body.frame().await {
        let chunk = frame.expect("no fault").into_data().expect("data");
        assert!(chunk.len() <= CHUNK_BYTES, "{}", chunk.len());
        write_buffer.push(chunk);
    }
    drop(body);
    assert!(
        budget.try_hold(&tenant, HALF).is_none(),
        "nothing is written"
    );
    let last = write_buffer.pop();
    drop(write_buffer);
    let held = budget.try_hold(&tenant, HALF);
    assert!(held.is_none(), "a part keeps the whole page in memory");
    drop(last);
    assert!(budget.try_hold(&tenant, HALF).is_some());
}

#[tokio::test(start_paused = true)]
async fn request_that_waits_holds_no_page_and_is_served_when_there_is_room() {
    let budget = Arc::new(page_budget());
    let tenant = TenantId::new("a");
    let first = respond(&budget, &tenant, HALF).await.expect("room for one");
    let waiting: Vec<_> = (0..MAX_BUILDS_OF_TENANT)
        .map(|_| {
            let (budget, tenant) = (Arc::clone(&budget), tenant.clone());
            tokio::spawn(async move { respond(&budget, &tenant, HALF).await.map(drop) })
        })
        .collect();
    // Their turns come without a move of the clock.
    tokio::time::sleep(Duration::from_millis(1)).await;
    let small = tokio::time::timeout(Duration::from_millis(1), respond(&budget, &tenant, 10));
    assert!(small.await.is_ok(), "those that wait do not build");
    drop(first);
    for one in waiting {
        assert_eq!(one.await.expect("it ends"), Ok(()));
    }
}

#[tokio::test(start_paused = true)]
async fn large_response_built_without_the_budget_is_counted_or_refused() {
    let budget = page_budget();
    let tenant = TenantId::new("a");
    let snapshot = || Json("x".repeat(HALF)).into_response();
    let first = budget.count(&tenant, snapshot());
    assert_eq!(first.status(), 200);
    let refused = budget.count(&tenant, snapshot());
    assert_eq!(refused.status(), 503);
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    let again = budget.count(&tenant, first);
    assert_eq!(again.status(), 200, "nothing is counted twice");
}

#[tokio::test(start_paused = true)]
async fn reader_below_the_minimum_rate_is_cut_off() {
    let budget = page_budget();
    let tenant = TenantId::new("a");
    let response = respond(&budget, &tenant, 4 * CHUNK_BYTES)
        .await
        .expect("room");
    let mut body = response.into_body();
    assert!(body.frame().await.is_some_and(|frame| frame.is_ok()));
    tokio::time::advance(READ_TIME + Duration::from_secs(10)).await;
    assert!(
        body.frame().await.is_some_and(|frame| frame.is_ok()),
        "slow"
    );
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(body.frame().await.is_some_and(|frame| frame.is_err()));
}
