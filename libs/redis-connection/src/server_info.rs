//! What a Redis server says about itself, for its operator.

use std::time::Duration;

use crate::error::Error;
use crate::primary::Primary;

/// A Redis server, or one that speaks its protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerInfo {
    /// The version of Redis that it is or claims to be compatible with, such as `8.2.1`.
    pub version: String,
    /// Whether it accepts writes: it is not a replica.
    pub is_primary: bool,
    /// Whether it writes a log of its changes, so that a restart loses none.
    pub has_append_only_file: bool,
}

/// Asks the server, within `timeout`, over a connection of its own.
pub async fn server_info(server: &Primary, timeout: Duration) -> Result<ServerInfo, Error> {
    let info = async {
        let mut conn = server.client().await?.get_multiplexed_async_connection().await?;
        redis::cmd("INFO").query_async::<String>(&mut conn).await
    };
    let text = tokio::time::timeout(timeout, info).await.map_err(|_elapsed| Error::Timeout)??;
    Ok(parse(&text))
}

fn parse(text: &str) -> ServerInfo {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        lines.find(|(name, _)| *name == key).map(|(_, value)| value.trim()).unwrap_or_default()
    };
    ServerInfo {
        version: value("redis_version").to_owned(),
        is_primary: value("role") != "slave",
        has_append_only_file: value("aof_enabled") == "1",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_the_lines_of_info() {
        let info = parse("# Server\r\nredis_version:8.2.1\r\nrole:master\r\naof_enabled:1\r\n");
        let expected =
            ServerInfo { version: "8.2.1".to_owned(), is_primary: true, has_append_only_file: true };
        assert_eq!(info, expected);
        assert!(!parse("role:slave").is_primary);
    }
}
