//! The command and configuration file of a ClickHouse server that is installed on this machine: HTTP on loopback only, one
//! user, no system log tables.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result};
use sha2::{Digest as _, Sha256};

/// The only user, with all privileges.
pub(super) const USER: &str = "default";

/// Writes the configuration to `dir` and returns the command of a server with all its files there.
pub(super) fn command(
    program: &Path,
    dir: &Path,
    port: u16,
    password: &str,
    backups: Option<&Path>,
) -> Result<Command> {
    let file = dir.join("config.xml");
    fs::write(&file, configuration(dir, port, password, backups))
        .with_context(|| format!("writing {}", file.display()))?;
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
    let mut command = Command::new(program);
    command.arg("server").arg("--config-file").arg(&file);
    Ok(command)
}

fn configuration(dir: &Path, port: u16, password: &str, backups: Option<&Path>) -> String {
    let data = dir.join("data");
    let data = data.display();
    let backups = backups.map(backups_section).unwrap_or_default();
    let hash = hex::encode(Sha256::digest(password));
    format!(
        "<clickhouse>
    <logger><level>warning</level><console>true</console></logger>
    <listen_host>127.0.0.1</listen_host>
    <http_port>{port}</http_port>
    <path>{data}/</path>
    <tmp_path>{data}/tmp/</tmp_path>
    <user_files_path>{data}/user_files/</user_files_path>
    <format_schema_path>{data}/format_schemas/</format_schema_path>
    <mark_cache_size>67108864</mark_cache_size>
    <max_server_memory_usage_to_ram_ratio>0.5</max_server_memory_usage_to_ram_ratio>
    <max_concurrent_queries>100</max_concurrent_queries>
    {backups}
    <users>
        <{USER}>
            <password_sha256_hex>{hash}</password_sha256_hex>
            <networks><ip>127.0.0.1</ip></networks>
            <profile>default</profile>
            <quota>default</quota>
            <access_management>1</access_management>
        </{USER}>
    </users>
    <profiles><default/></profiles>
    <quotas><default/></quotas>
</clickhouse>
"
    )
}

/// Returns the section that allows `BACKUP … TO File('name')` in a folder.
pub(crate) fn backups_section(folder: &Path) -> String {
    format!("<backups><allowed_path>{}</allowed_path></backups>", folder.display())
}
