//! The keys and channels of an installation, for its operator.

use std::time::Duration;

use redis::aio::MultiplexedConnection;

use crate::error::Error;
use crate::primary::Primary;

/// Keys of one call.
const BATCH: usize = 500;

/// Returns the number of subscribers of a channel, within `timeout`.
pub async fn count_subscribers(server: &Primary, channel: &str, timeout: Duration) -> Result<u64, Error> {
    let count = async {
        let mut conn = server.client().await?.get_multiplexed_async_connection().await?;
        let counts: (String, u64) =
            redis::cmd("PUBSUB").arg("NUMSUB").arg(channel).query_async(&mut conn).await?;
        Ok(counts.1)
    };
    tokio::time::timeout(timeout, count).await.map_err(|_elapsed| Error::Timeout)?
}

/// Deletes the keys of a prefix, within `timeout`, apart from those that begin with `kept`. Returns their number.
pub async fn delete_keys(
    server: &Primary,
    prefix: &str,
    kept: &str,
    timeout: Duration,
) -> Result<u64, Error> {
    let delete = async {
        let mut conn = server.client().await?.get_multiplexed_async_connection().await?;
        // Without MATCH: a prefix is no pattern.
        let mut cursor = 0_u64;
        let mut deleted = 0;
        loop {
            let (next, keys): (u64, Vec<String>) =
                redis::cmd("SCAN").arg(cursor).arg("COUNT").arg(BATCH).query_async(&mut conn).await?;
            let own = keys.into_iter().filter(|key| belongs(key, prefix) && !key.starts_with(kept));
            deleted += unlink(&mut conn, own.collect()).await?;
            cursor = next;
            if cursor == 0 {
                return Ok(deleted);
            }
        }
    };
    tokio::time::timeout(timeout, delete).await.map_err(|_elapsed| Error::Timeout)?
}

fn belongs(key: &str, prefix: &str) -> bool {
    key.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(':'))
}

async fn unlink(conn: &mut MultiplexedConnection, keys: Vec<String>) -> Result<u64, Error> {
    if keys.is_empty() {
        return Ok(0);
    }
    Ok(redis::cmd("UNLINK").arg(keys).query_async(conn).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_another_installation_are_not_deleted() {
        assert!(belongs("web:queue", "web"));
        assert!(!belongs("web2:queue", "web"));
        assert!(!belongs("web", "web"));
    }
}
