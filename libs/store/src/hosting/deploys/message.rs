//! What a deploy changes, in its creator's words.

use sqlx::query;
use uuid::Uuid;

use crate::{Conn, Error};

/// Sets the message of a deploy.
pub async fn update_message(conn: &mut Conn, account_id: Uuid, id: Uuid, message: &str) -> Result<(), Error> {
    query!("update deploys set message = $3 where account_id = $1 and id = $2", account_id, id, message)
        .execute(conn)
        .await?;
    Ok(())
}
