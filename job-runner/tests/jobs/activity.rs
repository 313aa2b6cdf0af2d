//! The retention of the log of changes.

use sandbox::test::until;

use crate::fixture::account::Account;

#[tokio::test]
async fn rows_of_the_log_of_changes_are_deleted_when_they_expire() {
    let account = Account::new().await;
    for (operation, expires) in
        [("forms.delete", "now() - interval '1 second'"), ("forms.create", "now() + interval '1 day'")]
    {
        let row = format!(
            "insert into activity (account_id, at, expires_at, actor_type, actor_name, operation)
             values ('{}', now(), {expires}, 'operator', 'operator', '{operation}')",
            account.id
        );
        account.change(&row).await;
    }
    let _running = account.run(&["activity.poll_interval=20ms"]).await;
    until(async || account.number("select count(*) from activity").await == 1).await;
    assert_eq!(account.number("select count(*) from activity where operation = 'forms.create'").await, 1);
}
