//! The SMTP client. Only the operator chooses its server, so it does not use the guard of other outgoing calls.

use std::time::Duration;

use anyhow::Context;
use lettre::message::Mailbox;
use lettre::message::header::{ContentType, MIME_VERSION_1_0};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use service::config::ExposeSecret;
use url::Url;

use crate::config;

/// Sends emails to the operator and to form owners.
pub(crate) struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
    to: Mailbox,
    /// The timeout of one attempt.
    pub(crate) timeout: Duration,
    /// Delays before each attempt.
    pub(crate) retry_schedule: Vec<Duration>,
    pub(crate) max_per_form_and_hour: u32,
}

/// One email.
pub(crate) struct Email {
    /// The local part of the `Message-ID`, the same in every attempt.
    pub(crate) id: String,
    /// The recipient; `None` for the operator.
    pub(crate) to: Option<String>,
    /// The address for replies. Ignored unless it is a valid address.
    pub(crate) reply_to: Option<String>,
    pub(crate) subject: String,
    pub(crate) text: String,
    pub(crate) written_at: std::time::SystemTime,
}

impl Mailer {
    /// Returns `None` if no server is set, and an error if a setting is invalid.
    pub(crate) fn new(config: &config::Mail) -> anyhow::Result<Option<Self>> {
        let url = config.smtp_url.expose_secret();
        if url.is_empty() {
            return Ok(None);
        }
        // The parser's error may repeat the URL, which contains the password.
        let transport = url_with_password(url, config.password.expose_secret())
            .and_then(|url| AsyncSmtpTransport::<Tokio1Executor>::from_url(url.as_str()).ok());
        let transport = transport.context("mail.smtp_url must be like smtps://user:password@host")?;
        let mailbox = |name: &str, text: &str| {
            text.parse::<Mailbox>().with_context(|| format!("{name} must be like Name <name@example.com>"))
        };
        anyhow::ensure!(!config.retry_schedule.is_empty(), "mail.retry_schedule needs at least one attempt");
        Ok(Some(Self {
            transport: transport.timeout(Some(config.timeout)).build(),
            from: mailbox("mail.from", &config.from)?,
            to: mailbox("mail.to", &config.to)?,
            timeout: config.timeout,
            retry_schedule: config.retry_schedule.clone(),
            max_per_form_and_hour: config.max_per_form_and_hour.max(1),
        }))
    }

    /// Sends an email. Headers are encoded, so no text of the email can end one.
    pub(crate) async fn send(&self, email: Email) -> anyhow::Result<()> {
        let message = self.message(email)?;
        let sent = tokio::time::timeout(self.timeout, self.transport.send(message)).await;
        sent.context("the server timed out")??;
        Ok(())
    }

    fn message(&self, email: Email) -> anyhow::Result<Message> {
        let to = match &email.to {
            Some(address) => {
                Mailbox::new(None, address.parse().context("the recipient's address is invalid")?)
            }
            None => self.to.clone(),
        };
        let mut message = Message::builder()
            .from(self.from.clone())
            .to(to)
            .subject(email.subject)
            .date(email.written_at)
            .message_id(Some(format!("<{}@{}>", email.id, self.from.email.domain())))
            .header(MIME_VERSION_1_0)
            .header(ContentType::TEXT_PLAIN);
        if let Some(address) = email.reply_to.and_then(|address| address.parse().ok()) {
            message = message.reply_to(Mailbox::new(None, address));
        }
        Ok(message.body(email.text)?)
    }
}

/// Returns the server's URL with the password, unless that is empty; `None` if it isn't a URL with a host.
fn url_with_password(url: &str, password: &str) -> Option<Url> {
    let mut url = Url::parse(url).ok()?;
    if !password.is_empty() {
        // `set_password` leaves percent signs as they are, and the client decodes them.
        url.set_password(Some(&password.replace('%', "%25"))).ok()?;
    }
    Some(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_of_its_own_replaces_that_of_the_url() {
        let url = |url: &str, password: &str| url_with_password(url, password).map(String::from);
        let server = "smtps://user@smtp.example.com";
        assert_eq!(url(server, "").as_deref(), Some(server));
        let expected = "smtps://user:p%20%2541%2F%40@smtp.example.com";
        assert_eq!(url(server, "p %41/@").as_deref(), Some(expected));
        assert_eq!(url("smtps://user:old@smtp.example.com", "p %41/@").as_deref(), Some(expected));
        assert_eq!(url("no url", "x"), None);
    }
}
