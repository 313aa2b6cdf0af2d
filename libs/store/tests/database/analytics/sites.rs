//! A site belongs to one account, and its token identifies both.

use chrono::{DateTime, TimeDelta, Utc};
use domain::Cursor;
use domain::plans::Plan;
use domain::visitors::Lifetime;
use store::ListFilter;
use store::sites::{NewSite, SiteOwner, find_owner_by_token, find_site, insert_site, list_sites};
use store::subdomains::insert_subdomain;
use uuid::Uuid;

const ACCOUNT: Uuid = Uuid::from_u128(1);
const STRANGER: Uuid = Uuid::from_u128(2);

fn now() -> DateTime<Utc> {
    DateTime::from_timestamp_nanos(1_795_003_200_000_000_000)
}

fn part(after: Option<Cursor>, limit: i64) -> ListFilter {
    ListFilter { after, limit, ..ListFilter::default() }
}

fn site(number: u8) -> NewSite {
    NewSite {
        id: Uuid::from_u128(100 + u128::from(number)),
        site_token: format!("site_{number}"),
        name: format!("Shop {number}"),
        domain: Some("shop.example".into()),
        folder_id: None,
        subdomain_id: None,
        hash_routing: false,
        created_at: now() + TimeDelta::seconds(number.into()),
    }
}

#[tokio::test]
async fn a_site_belongs_to_one_account_and_its_token_identifies_both() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    for account in [ACCOUNT, STRANGER] {
        sandbox::test::trial(&database, account, now()).await;
    }
    let new = site(1);
    assert!(insert_site(&mut conn, ACCOUNT, &new).await.unwrap());

    let found = find_site(&mut conn, ACCOUNT, new.id).await.unwrap().unwrap();
    assert_eq!((found.site_token, found.name, found.domain), (new.site_token, new.name, new.domain));
    assert!(find_site(&mut conn, STRANGER, new.id).await.unwrap().is_none());
    assert!(list_sites(&mut conn, STRANGER, &part(None, 10)).await.unwrap().is_empty());

    let owner = find_owner_by_token(&mut conn, "site_1").await.unwrap();
    let expected = SiteOwner {
        site_id: new.id,
        account_id: ACCOUNT,
        plan: Plan::Free,
        zone: chrono_tz::UTC,
        honour_dnt: true,
        lifetime: Lifetime::Month,
    };
    assert_eq!(owner, Some(expected));
    assert_eq!(find_owner_by_token(&mut conn, "site_2").await.unwrap(), None);
}

#[tokio::test]
async fn sites_of_a_suspended_account_are_not_counted() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    sandbox::test::trial(&database, ACCOUNT, now()).await;
    insert_site(&mut conn, ACCOUNT, &site(1)).await.unwrap();
    store::execute_raw(&database.db, "update accounts set suspended_at = now()").await.unwrap();
    assert_eq!(find_owner_by_token(&mut conn, "site_1").await.unwrap(), None);
}

#[tokio::test]
async fn pages_of_a_list_continue_after_the_cursor() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    sandbox::test::trial(&database, ACCOUNT, now()).await;
    for number in 1..=3 {
        insert_site(&mut conn, ACCOUNT, &site(number)).await.unwrap();
    }
    // One row more than the limit shows that there is a next page.
    let first = list_sites(&mut conn, ACCOUNT, &part(None, 1)).await.unwrap();
    let after = Cursor { created_at: first[1].created_at, id: first[1].id };
    let rest = list_sites(&mut conn, ACCOUNT, &part(Some(after), 2)).await.unwrap();
    let tokens: Vec<_> = first.iter().chain(&rest).map(|site| site.site_token.as_str()).collect();
    assert_eq!(tokens, ["site_1", "site_2", "site_3"]);
}

#[tokio::test]
async fn a_subdomain_has_one_analytics_site() {
    let database = sandbox::test::database().await;
    let mut conn = store::acquire(&database.db).await.unwrap();
    sandbox::test::trial(&database, ACCOUNT, now()).await;
    let subdomain_id = Uuid::from_u128(50);
    insert_subdomain(&mut conn, ACCOUNT, subdomain_id, "shop", now()).await.unwrap();
    let taken = |number| NewSite { subdomain_id: Some(subdomain_id), ..site(number) };
    assert!(insert_site(&mut conn, ACCOUNT, &taken(1)).await.unwrap());
    assert!(!insert_site(&mut conn, ACCOUNT, &taken(2)).await.unwrap());
    assert!(insert_site(&mut conn, ACCOUNT, &site(3)).await.unwrap());
}
