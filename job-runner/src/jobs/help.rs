//! A request for help, as the operator reads it.

use store::Conn;
use store::help::find_help;
use uuid::Uuid;

use crate::mail::Letter;

pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Letter>> {
    let Some(request) = find_help(conn, account_id, id).await? else { return Ok(None) };
    let or_none = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let text = format!(
        "Category: {}\nSeverity: {}\nAccount:  {account_id}\nPage:     {}\nAnswer:   {}\nRequest:  {id}\n\n{}\n",
        request.category,
        or_none(&request.severity),
        or_none(&request.url),
        or_none(&request.email),
        request.message,
    );
    Ok(Some(Letter {
        id: id.to_string(),
        to: None,
        reply_to: request.email,
        subject: format!("[{}] {}", request.category, request.subject),
        text,
        written_at: request.created_at.into(),
    }))
}
