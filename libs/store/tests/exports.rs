//! tmp
#[tokio::test]
async fn tmp() {
    use futures::TryStreamExt;
    let database = sandbox::test::database().await;
    let mut conn = store::acquire_own(&database.db).await.unwrap();
    let pieces =
        store::submissions::export_submissions(&mut conn, uuid::Uuid::nil(), uuid::Uuid::nil(), &[]).await;
    match pieces {
        Ok(p) => {
            let v: Result<Vec<_>, _> = p.try_collect().await;
            panic!("{v:?}");
        }
        Err(e) => panic!("{e:?}"),
    }
}
