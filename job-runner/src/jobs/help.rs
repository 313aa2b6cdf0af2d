//! The email of a request for help, addressed to the operator.

use store::Conn;
use store::help::find_help_request;
use uuid::Uuid;

use crate::mail::Email;

pub(crate) async fn write(conn: &mut Conn, account_id: Uuid, id: Uuid) -> anyhow::Result<Option<Email>> {
    let Some(request) = find_help_request(conn, account_id, id).await? else { return Ok(None) };
    let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
    let text = format!(
        "Category: {}\nSeverity: {}\nAccount:  {account_id}\nPage:     {}\nReply to: {}\nRequest:  {id}\n\n{}\n",
        request.category,
        or_dash(&request.severity),
        or_dash(&request.url),
        or_dash(&request.email),
        request.message,
    );
    Ok(Some(Email {
        id: id.to_string(),
        to: None,
        reply_to: request.email,
        subject: format!("[{}] {}", request.category, request.subject),
        text,
        written_at: request.created_at.into(),
    }))
}
